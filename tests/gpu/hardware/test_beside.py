from tests.device.beside import *
