"""The full mnemonics of cvt with formats narrower than eight bits, ue8m0, and cvt.pack.

Left out by name: ``cvt.rs``, whose use of the random bits the manual only draws, and s2f6.
"""

from __future__ import annotations

from functools import partial
from itertools import product

import numpy as np
import numpy.typing as npt

from softgpu.reference.numerics import narrow
from softgpu.reference.numerics.formats import Array
from softgpu.reference.numerics.mnemonics import Entries, join

_REGISTER = {"e2m1": "b8", "e2m3": "b16", "e3m2": "b16"}


def formats() -> Entries:
    """cvt to and from packed pairs of e2m1, e2m3 and e3m2; ``.relu`` and ``.satfinite`` in both orders."""
    for (kind, register), relu in product(_REGISTER.items(), (False, True)):
        pair = partial(narrow.pack, kind=kind, relu=relu)
        for order in (("relu", "satfinite"), ("satfinite", "relu")) if relu else (("satfinite",),):
            yield join("cvt", "rn", *order, f"{kind}x2", "f32"), ("f32", "f32"), register, pair
        back = partial(narrow.unpack, kind=kind, relu=relu)
        yield join("cvt", "rn", "relu" if relu else "", "f16x2", f"{kind}x2"), (register,), "f16x2", back


def exponents() -> Entries:
    """cvt to and from packed pairs of ue8m0."""
    for rounding, satfinite in product(("rz", "rp"), (False, True)):
        name = join("cvt", rounding, "satfinite" if satfinite else "", "ue8m0x2")
        options = {"rounding": rounding, "satfinite": satfinite}
        pair = partial(narrow.pack_exponents, **options)  # type: ignore[arg-type]
        yield f"{name}.f32", ("f32", "f32"), "b16", pair
        packed = partial(narrow.pack_exponents_of_pair, **options)  # type: ignore[arg-type]
        yield f"{name}.bf16x2", ("bf16x2",), "b16", packed
    yield "cvt.rn.bf16x2.ue8m0x2", ("b16",), "bf16x2", narrow.unpack_exponents


def _clamped(a: npt.ArrayLike, bits: int, signed: bool) -> Array:
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    integers = np.asarray(a, np.uint32).view(np.int32).astype(np.int64)
    return np.asarray(np.clip(integers, low, high).astype(np.uint32) & np.uint32((1 << bits) - 1))


def pack_integers(a: npt.ArrayLike, b: npt.ArrayLike, *c: npt.ArrayLike, bits: int, signed: bool) -> Array:
    """cvt.pack: b clamped in the low ``bits``, a above it, then the low bits of c."""
    packed = _clamped(b, bits, signed) | _clamped(a, bits, signed) << np.uint32(bits)
    for rest in c:
        packed = packed | np.asarray(rest, np.uint32) << np.uint32(2 * bits)
    return np.asarray(packed)


def packs() -> Entries:
    """cvt.pack.sat of two 32-bit integers, with a third operand for elements of at most eight bits."""
    for bits, signed in product((2, 4, 8, 16), (True, False)):
        call = partial(pack_integers, bits=bits, signed=signed)
        name = f"cvt.pack.sat.{'s' if signed else 'u'}{bits}.s32"
        if bits == 16:
            yield name, ("s32", "s32"), "b32", call
        else:
            yield f"{name}.b32", ("s32", "s32", "b32"), "b32", call


def cvt() -> Entries:
    yield from formats()
    yield from exponents()
    yield from packs()
