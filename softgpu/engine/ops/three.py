"""min and max of three f32 operands (PTX ISA, "Floating Point Instructions: min, max", sm_100).

Their names without ``.abs`` are those of two operands too, so they have a table of their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import product

from softgpu.engine.ir import Builder, Value
from softgpu.engine.ops.magnitude import extreme_number
from softgpu.engine.ops.operation import Operation
from softgpu.engine.ops.rounding import join

_FLAGS = (False, True)


def _emit(b: Builder, x: Value, y: Value, z: Value, *, family: str, ftz: bool, nan: bool, magnitudes: bool) -> Value:
    if magnitudes:
        x, y, z = (b.intrinsic("llvm.fabs", "float", v) for v in (x, y, z))
    first = extreme_number(b, x, y, family, ftz, nan, False)
    return extreme_number(b, first, z, family, ftz, nan, False)


def operations() -> Iterator[Operation]:
    for family, ftz, nan, magnitudes in product(("min", "max"), _FLAGS, _FLAGS, _FLAGS):
        parts = (family, "ftz" if ftz else "", "NaN" if nan else "", "abs" if magnitudes else "", "f32")
        emit = partial(_emit, family=family, ftz=ftz, nan=nan, magnitudes=magnitudes)
        yield Operation(join(*parts), ("f32",) * 3, ("f32",), emit, canonical=False)
