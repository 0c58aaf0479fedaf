"""Programs that never ran, as the records that the preloaded library would have written for them: random ones, and a
decoder with a paged cache. All are correctly synchronised: whatever order the rules of streams allow, they bring the
same bytes to the host."""

from tests.generated import kernels_attention, kernels_elements, kernels_indirect
from tests.generated.attention import paged_attention
from tests.generated.devices import random_devices
from tests.generated.random_program import ALL, random_program
from tests.generated.records import Program, Written

__all__ = ["ALL", "Program", "Written", "kernels_attention", "kernels_elements",
           "kernels_indirect", "paged_attention", "random_devices", "random_program"]
