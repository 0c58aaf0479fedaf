from tests.device.programs_of_others import *
