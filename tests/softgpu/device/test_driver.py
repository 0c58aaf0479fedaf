from tests.device.driver import *
