"""State spaces seen from a generic address, and the storage of the spaces that belong to a block or a thread.

Global and constant memory have the same address in their space and as generic addresses; shared, local and kernel
parameter space have windows, each ``WINDOW_SIZE`` bytes, above every global address. Inside its window a space's own
addresses start at 0.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from softgpu.reference.memory import UNSIGNED, Bytes

WINDOW_SIZE = 1 << 32
SHARED_WINDOW = 1 << 48
LOCAL_WINDOW = 2 << 48
PARAM_WINDOW = 3 << 48
CODE_WINDOW = 4 << 48
"""Functions have addresses here; nothing can be loaded from or stored to them."""

WINDOWS: dict[str, int] = {"shared": SHARED_WINDOW, "local": LOCAL_WINDOW, "param": PARAM_WINDOW}

LOCAL_LIMIT = 1 << 19
"""Bytes of local memory a thread may use, call frames included (512 KiB, the limit of CUDA devices)."""


class Storage:
    """Equal shares of one byte array: shared memory by block, local memory by thread, parameters for everybody.

    ``stride`` is the distance between shares, ``size`` what an access may touch of each.
    """

    __slots__ = ("bytes", "shares", "size", "stride", "views")

    def __init__(self, shares: int, size: int) -> None:
        self.shares = shares
        self.size = size
        self.stride = -(-max(size, 1) // 16) * 16
        self.bytes: Bytes = np.zeros(shares * self.stride, np.uint8)
        self.views: dict[int, npt.NDArray[np.unsignedinteger]] = {
            n: self.bytes.view(dtype) for n, dtype in UNSIGNED.items()
        }

    def grow(self, size: int) -> None:
        """Give every share at least ``size`` bytes, contents kept."""
        if size <= self.size:
            return
        if size > self.stride:
            larger = Storage(self.shares, max(size, 2 * self.stride))
            old = self.bytes.reshape(self.shares, self.stride)
            larger.bytes.reshape(self.shares, larger.stride)[:, :self.stride] = old
            self.stride, self.bytes, self.views = larger.stride, larger.bytes, larger.views
        self.size = size
