from tests.device.exchange import *
