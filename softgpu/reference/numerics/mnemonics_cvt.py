"""The full mnemonics of cvt, generated from its syntax lines and its rules on which modifier needs which types."""

from __future__ import annotations

from functools import partial
from itertools import product

from softgpu.reference.numerics import mnemonics_narrow
from softgpu.reference.numerics.conversion import (
    INTEGER_ROUNDINGS,
    convert,
    convert_packed,
    convert_pair,
    integer_limits,
)
from softgpu.reference.numerics.formats import INTEGERS
from softgpu.reference.numerics.mnemonics import Entries, join
from softgpu.reference.numerics.rounding import ROUNDINGS

_FLOATS = ("f16", "bf16", "f32", "f64")
_EXACT = {("f16", "f32"), ("f16", "f64"), ("bf16", "f32"), ("bf16", "f64"), ("f32", "f64")}
"""(source, destination) pairs that lose nothing and take no rounding modifier."""


def _roundings(source: str, to: str) -> tuple[str, ...]:
    if source in INTEGERS:
        return ("",) if to in INTEGERS else ROUNDINGS
    if to in INTEGERS:
        return INTEGER_ROUNDINGS
    if source == to:
        return ("", *INTEGER_ROUNDINGS)
    if source == "bf16" and to in ("f32", "f64"):
        return ("", *ROUNDINGS)  # nothing is lost, but assemblers take them, as an example of the manual has it
    return ("",) if (source, to) in _EXACT else ROUNDINGS


def _may_saturate(source: str, to: str) -> bool:
    """Is the range of ``to`` not a superset of that of ``source``; bf16 has no ``.sat`` on either side."""
    if "bf16" in (to, source):
        return False
    if to not in INTEGERS or source not in INTEGERS:
        return True
    (low, high), (source_low, source_high) = integer_limits(to), integer_limits(source)
    return source_low < low or source_high > high


def plain() -> Entries:
    """cvt{.rnd}{.ftz}{.sat}.to.source of the twelve numeric types."""
    for to, source in product((*INTEGERS, *_FLOATS), repeat=2):
        saturations = (False, True) if _may_saturate(source, to) else (False,)
        flushes = (False, True) if "f32" in (to, source) else (False,)
        for rounding, ftz, sat in product(_roundings(source, to), flushes, saturations):
            mnemonic = join("cvt", rounding, "ftz" if ftz else "", "sat" if sat else "", to, source)
            call = partial(convert, to=to, source=source, rounding=rounding, ftz=ftz, sat=sat)
            yield mnemonic, (source,), to, call


def _orders(relu: bool, satfinite: bool) -> tuple[tuple[str, ...], ...]:
    """The manual writes .relu and .satfinite in both orders, and ptxas takes both."""
    present = tuple(name for name, there in (("relu", relu), ("satfinite", satfinite)) if there)
    return (present, present[::-1]) if len(present) == 2 else (present,)


def from_f32() -> Entries:
    """cvt with .relu or .satfinite to f16, bf16, tf32, and packed pairs of f16 and bf16."""
    for rounding, relu, satfinite in product(("rn", "rz"), (False, True), (False, True)):
        options = {"rounding": rounding, "relu": relu, "satfinite": satfinite}
        for to, order in product(("f16", "bf16", "tf32"), _orders(relu, satfinite)):
            call = partial(convert, to=to, source="f32", **options)  # type: ignore[arg-type]
            if to == "tf32" or relu or satfinite:  # without either, plain() has f16 and bf16
                yield join("cvt", rounding, *order, to, "f32"), ("f32",), to, call
        for to, order in product(("f16x2", "bf16x2"), _orders(relu, satfinite)):
            pair = partial(convert_pair, to=to, source="f32", **options)  # type: ignore[arg-type]
            yield join("cvt", rounding, *order, to, "f32"), ("f32", "f32"), to, pair
    for satfinite in (False, True):
        call = partial(convert, to="tf32", source="f32", rounding="rna", satfinite=satfinite)
        yield join("cvt", "rna", "satfinite" if satfinite else "", "tf32", "f32"), ("f32",), "tf32", call


def eight_bit() -> Entries:
    """cvt to and from packed pairs of e4m3 and e5m2."""
    for to, relu in product(("e4m3x2", "e5m2x2"), (False, True)):
        for order in _orders(relu, True):
            pair = partial(convert_pair, to=to, source="f32", relu=relu, satfinite=True)
            yield join("cvt", "rn", *order, to, "f32"), ("f32", "f32"), to, pair
            for source in ("f16x2", "bf16x2"):
                packed = partial(convert_packed, to=to, source=source, relu=relu, satfinite=True)
                yield join("cvt", "rn", *order, to, source), (source,), to, packed
        back = partial(convert_packed, to="f16x2", source=to, relu=relu)
        yield join("cvt", "rn", "relu" if relu else "", "f16x2", to), (to,), "f16x2", back


def cvt() -> Entries:
    yield from plain()
    yield from from_f32()
    yield from eight_bit()
    yield from mnemonics_narrow.cvt()
