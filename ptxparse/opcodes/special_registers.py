"""The special registers (PTX manual chapter 10), with what they depend on and their bounds."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


class Source(Enum):
    """What the value of a special register depends on."""

    LAUNCH = "launch"  # the same for all threads of a launch, given by its grid, block and shared bytes
    THREAD = "thread"  # the position of the thread in the launch
    WARP = "warp"  # the position of the thread in its warp
    DEVICE = "device"  # which multiprocessor, how many there are, how memory is laid out
    TIME = "time"  # clocks and counters
    ENVIRONMENT = "environment"  # what the driver keeps there


class SpecialRegister(NamedTuple):
    """``kind`` what it depends on; ``bits`` its width; ``lower`` and ``upper`` inclusive bounds of its value."""

    kind: Source
    bits: int
    lower: int
    upper: int


_MAX_32 = 2**32 - 1
_MAX_64 = 2**64 - 1
_BLOCK = (1024, 1024, 64)  # largest block, CUDA programming guide, compute capabilities 5.0 and up
_GRID = (2**31 - 1, 65535, 65535)  # largest grid
_THREADS = 1024  # largest block in threads
_CLUSTER = 16  # largest cluster in blocks (non-portable size)
_AXES = "xyz"


def _build() -> dict[str, SpecialRegister]:
    registers: dict[str, SpecialRegister] = {}

    def add(names: str, kind: Source, bits: int = 32, lower: int = 0, upper: int | None = None) -> None:
        for name in names.split():
            registers[f"%{name}"] = SpecialRegister(kind, bits, lower, 2**bits - 1 if upper is None else upper)

    for axis, block, grid in zip(_AXES, _BLOCK, _GRID, strict=True):
        add(f"tid.{axis}", Source.THREAD, upper=block - 1)
        add(f"ntid.{axis}", Source.LAUNCH, lower=1, upper=block)
        add(f"ctaid.{axis}", Source.THREAD, upper=grid - 1)
        add(f"nctaid.{axis}", Source.LAUNCH, lower=1, upper=grid)
        add(f"clusterid.{axis}", Source.THREAD, upper=grid - 1)
        add(f"nclusterid.{axis}", Source.LAUNCH, lower=1, upper=grid)
        add(f"cluster_ctaid.{axis}", Source.THREAD, upper=_CLUSTER - 1)
        add(f"cluster_nctaid.{axis}", Source.LAUNCH, lower=1, upper=_CLUSTER)
    for stem in ("tid", "ntid", "ctaid", "nctaid", "clusterid", "nclusterid", "cluster_ctaid", "cluster_nctaid"):
        registers[f"%{stem}.w"] = SpecialRegister(Source.LAUNCH, 32, 0, 1)
    add("cluster_ctarank", Source.THREAD, upper=_CLUSTER - 1)
    add("cluster_nctarank", Source.LAUNCH, lower=1, upper=_CLUSTER)
    add("is_explicit_cluster", Source.LAUNCH, bits=1)

    add("laneid", Source.WARP, upper=31)
    add("lanemask_eq lanemask_le lanemask_lt lanemask_ge lanemask_gt", Source.WARP)
    # The manual calls %warpid volatile and %nwarpid the maximum number of warp identifiers of the device.
    add("warpid", Source.DEVICE, upper=_MAX_32)
    add("nwarpid smid nsmid", Source.DEVICE)
    add("locality_domain_id locality_domain_count", Source.DEVICE)

    add("clock clock_hi", Source.TIME)
    add("clock64 globaltimer", Source.TIME, bits=64)
    add("globaltimer_lo globaltimer_hi", Source.TIME)
    add(" ".join(f"pm{n}" for n in range(8)), Source.TIME)
    add(" ".join(f"pm{n}_64" for n in range(8)), Source.TIME, bits=64)
    add("gridid", Source.ENVIRONMENT, bits=64)

    add(" ".join(f"envreg{n}" for n in range(32)), Source.ENVIRONMENT)
    add("current_graph_exec", Source.ENVIRONMENT, bits=64)
    add("perctamemoryoffset perctamemorysize", Source.ENVIRONMENT, bits=64)
    add("dynamic_smem_size", Source.LAUNCH)
    add("total_smem_size aggr_smem_size", Source.DEVICE)  # rounded to the device's allocation unit
    add(
        "reserved_smem_offset_begin reserved_smem_offset_end reserved_smem_offset_cap "
        "reserved_smem_offset_0 reserved_smem_offset_1",
        Source.DEVICE,
    )
    # Not in the manual's list, but predefined by the assembler.
    add("WARP_SZ", Source.LAUNCH, lower=32, upper=32)
    registers["WARP_SZ"] = registers.pop("%WARP_SZ")
    return registers


SPECIAL_REGISTERS: dict[str, SpecialRegister] = _build()
"""Every special register by its name as written (``%tid.x``), and the constant ``WARP_SZ``."""


def is_special(name: str) -> bool:
    """Whether a register name is a special register."""
    return name in SPECIAL_REGISTERS
