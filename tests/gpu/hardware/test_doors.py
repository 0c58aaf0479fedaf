from tests.device.doors import *
