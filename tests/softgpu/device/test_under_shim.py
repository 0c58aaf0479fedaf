from tests.device.under_shim import *
