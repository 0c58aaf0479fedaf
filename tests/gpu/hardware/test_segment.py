from tests.device.segment import *
