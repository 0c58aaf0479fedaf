"""cvt from floating-point types to integers: rounded, then clamped to the destination (``.sat`` says it once more).

Source: PTX ISA, "cvt". NaN becomes 0, except from f64 or to 64 bits, where it becomes the number that has only the
uppermost bit of the destination set.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import product

from softgpu.engine.ir import Builder, Value, bits
from softgpu.engine.ops.convert_integer import INTEGERS, limits
from softgpu.engine.ops.narrow import EXPONENTS, widened
from softgpu.engine.ops.operation import TYPES, Operation
from softgpu.engine.ops.rounding import INTEGER_ROUNDINGS, flush, integral, join

_FLAGS = (False, True)


def _nan(source: str, to: str) -> int:
    width = int(to[1:])
    return 1 << (width - 1) if source == "f64" or width == 64 else 0


def _clamped(b: Builder, x: Value, to: str) -> Value:
    """Truncated to an integer in the range of ``to``; NaN becomes the least one.

    All is bounded before it is converted, as LLVM leaves open what becomes of the rest.
    """
    low, high = limits(to)
    width = int(to[1:])
    to_integer = "fptosi" if to[0] == "s" or width < 32 else "fptoui"
    result = f"i{max(width, 32)}"
    least = b.like(low, x)
    x = b.select(b.fcmp("ogt", x, least), x, least)
    if width < (32 if bits(x.type) == 32 else 64):  # the greatest one is a number of this format
        greatest = b.like(high, x)
        x = b.select(b.fcmp("olt", x, greatest), x, greatest)
        return b.resize(b.cast(to_integer, x, result), TYPES[to]) if width < 32 else b.cast(to_integer, x, result)
    fits = b.fcmp("olt", x, b.like(high + 1, x))
    return b.select(fits, b.cast(to_integer, b.select(fits, x, b.zero(x.type)), result), b.like(high, x, result))


def _emit(b: Builder, x: Value, *, source: str, to: str, mode: str, ftz: bool) -> Value:
    value = widened(b, x, source) if source in EXPONENTS else x
    if ftz:
        value = flush(b, value)
    if mode != "rzi":  # the conversion truncates by itself
        value = integral(b, value, mode)
    result = _clamped(b, value, to)
    nan = _nan(source, to)
    least = limits(to)[0] & ((1 << int(to[1:])) - 1)
    return result if nan == least else b.select(b.fcmp("uno", value, value), b.like(nan, result), result)


def operations() -> Iterator[Operation]:
    for to, source, mode in product(INTEGERS, ("f16", "bf16", "f32", "f64"), INTEGER_ROUNDINGS):
        for ftz, sat in product(_FLAGS if source == "f32" else (False,), _FLAGS if source != "bf16" else (False,)):
            mnemonic = join("cvt", mode, "ftz" if ftz else "", "sat" if sat else "", to, source)
            emit = partial(_emit, source=source, to=to, mode=mode, ftz=ftz)
            yield Operation(mnemonic, (source,), (to,), emit)
