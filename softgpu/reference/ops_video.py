"""vabsdiff2 and vabsdiff4, with or without ``.add``: what compilers emit of the video instructions.

Source: PTX manual, "SIMD Video Instructions". Masks, selectors and ``.sat`` are left out by name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from softgpu.reference.decode import Decode, Decoder
from softgpu.reference.integers import Ints, halves_of, octets_of

if TYPE_CHECKING:
    from softgpu.reference.issue import Issue


def _vabsdiff(parts: int) -> Decode:
    split = octets_of if parts == 4 else halves_of
    container = np.dtype(np.uint8 if parts == 4 else np.uint16)

    def decode(d: Decoder) -> None:
        d.need("u32")
        a_kind, b_kind = d.need("u32", "s32"), d.need("u32", "s32")
        adds = d.flag("add")
        d.done(4)
        write = d.destination(0, "u32")
        a, b, c = d.source(1, a_kind), d.source(2, b_kind), d.source(3, "u32")

        def difference(left: Ints, right: Ints) -> Ints:
            apart: Ints = np.abs(split(left, a_kind == "s32") - split(right, b_kind == "s32"))
            return apart

        def run(x: Issue) -> None:
            found = difference(a(x), b(x))
            if adds:
                # The accumulate form adds the differences of all parts to c.
                write(x, found.sum(axis=1).astype(np.uint32) + c(x))
            else:
                write(x, np.ascontiguousarray(found.astype(container)).view(np.uint32).reshape(-1))

        d.plain(run)

    return decode


TABLE: dict[str, Decode] = {"vabsdiff2": _vabsdiff(2), "vabsdiff4": _vabsdiff(4)}
