from tests.device.launch_cost import *
