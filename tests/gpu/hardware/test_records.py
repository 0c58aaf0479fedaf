from tests.device.records import *
