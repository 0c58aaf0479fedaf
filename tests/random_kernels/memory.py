"""Buffers of many gigabytes of which only the pages that are touched exist.

Pointers point into the middle of such buffers, so that an index needs no mask to stay in bounds, not even one that
wrapped round 32 bits.
"""

from __future__ import annotations

import mmap

import numpy as np

from softgpu.reference import memory as plain
from softgpu.reference.memory import UNSIGNED, Memory

BYTES = 1 << 38
MIDDLE = 1 << 37
GAP = 1 << 42
_NORESERVE = 0x4000


def sparse(memory: Memory, size: int = BYTES, gap: int = GAP) -> int:
    """Address of ``size`` new zero bytes, which take no memory until they are touched, ``gap`` bytes from others."""
    memory._next += gap  # a wrong turn out of one buffer must not end in another one
    address = memory.allocate(1)
    buffer = memory.buffer_at(address)
    assert buffer is not None
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NORESERVE
    buffer.data = np.frombuffer(mmap.mmap(-1, size, flags=flags), np.uint8)
    buffer.views = {n: buffer.data.view(dtype) for n, dtype in UNSIGNED.items()}
    buffer.size = size
    memory._next = address + size + plain.GAP
    return address
