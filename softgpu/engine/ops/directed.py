"""Arithmetic in the modes that the machine does not round in: towards zero, down and up, for f32 and f64.

Each operation takes the nearest result and corrects it by the sign of its error (see ``rounding``). For f32 the error
is exact in f64. For f64 it is a residual of a fused multiply-add, of scaled operands where it could underflow. Rounding
down is rounding up of the mirrored operation, which also gives zero sums their sign: -0 when rounding down.
"""

from __future__ import annotations

from collections.abc import Callable

from softgpu.engine.ir import Builder, Value, element, lanes
from softgpu.engine.ops.fused import directed_fma
from softgpu.engine.ops.rounding import directed, ordered_sum_error, two_sum_error, wide

_TINY = 2.0**-900
"""Below it a residual in f64 may underflow; products and quotients that are larger have residuals above 2**-1010."""

_SCALE = 2.0**540
"""Lifts what is below ``_TINY`` twice without overflow, and subnormal numbers exactly."""


def _negate(b: Builder, x: Value) -> Value:
    return b.emit(f"fneg {x.type} {x.ref}", x.type)


def _is_tiny(b: Builder, x: Value) -> Value:
    return b.fcmp("olt", b.intrinsic("llvm.fabs", element(x.type), x), b.like(_TINY, x))


def _scaled(b: Builder, where: Value, x: Value, times: int = 1) -> Value:
    """``x`` times ``_SCALE`` to the power of ``times`` where the condition holds."""
    larger = x
    for _ in range(times):
        larger = b.binary("fmul", larger, b.like(_SCALE, x))
    return b.select(where, larger, x)


def _add(b: Builder, mode: str, x: Value, y: Value) -> Value:
    if mode == "rm":
        return _negate(b, _add(b, "rp", _negate(b, x), _negate(b, y)))
    total = b.binary("fadd", x, y)
    if element(x.type) == "double":
        return directed(b, total, ordered_sum_error(b, x, y, total), mode)
    return directed(b, total, _sum_error(b, wide(b, x), wide(b, y), total), mode)


def _sum_error(b: Builder, x: Value, y: Value, total: Value) -> Value:
    """The error of an f32 sum of two f64 numbers; no step but the last is inexact, and that one keeps the sign."""
    close = b.binary("fadd", x, y)
    return b.binary("fadd", b.binary("fsub", close, wide(b, total)), two_sum_error(b, x, y, close))


def _sub(b: Builder, mode: str, x: Value, y: Value) -> Value:
    return _add(b, mode, x, _negate(b, y))


def _mul(b: Builder, mode: str, x: Value, y: Value) -> Value:
    product = b.binary("fmul", x, y)
    if element(x.type) == "float":
        exact = b.binary("fmul", wide(b, x), wide(b, y))
        return directed(b, product, b.binary("fsub", exact, wide(b, product)), mode)
    tiny = _is_tiny(b, product)
    lifted = _scaled(b, tiny, product, 2)
    return directed(b, product, b.fma(_scaled(b, tiny, x), _scaled(b, tiny, y), _negate(b, lifted)), mode)


def _fma(b: Builder, mode: str, x: Value, y: Value, z: Value) -> Value:
    if mode == "rm":
        return _negate(b, _fma(b, "rp", _negate(b, x), y, _negate(b, z)))
    if element(x.type) == "double":
        return directed_fma(b, mode, x, y, z)
    product = b.binary("fmul", wide(b, x), wide(b, y))
    total = b.fma(x, y, z)
    return directed(b, total, _sum_error(b, product, wide(b, z), total), mode)


def _div(b: Builder, mode: str, x: Value, y: Value) -> Value:
    quotient = b.binary("fdiv", x, y)
    if element(x.type) == "float":
        residual = b.fma(_negate(b, wide(b, quotient)), wide(b, y), wide(b, x))
        return directed(b, quotient, _towards(b, residual, wide(b, y)), mode)
    tiny = _is_tiny(b, x)
    # A large divisor leaves no room to be lifted; its quotient is zero then, or can be lifted twice itself.
    large = b.fcmp("ogt", b.intrinsic("llvm.fabs", "double", y), b.like(2.0**400, y))
    both = b.and_(tiny, b.invert(large))
    lifted = b.select(b.and_(tiny, large), _scaled(b, tiny, quotient, 2), _scaled(b, both, quotient))
    residual = b.fma(_negate(b, lifted), _scaled(b, both, y), _scaled(b, tiny, x, 2))
    return directed(b, quotient, _towards(b, residual, y), mode)


def _towards(b: Builder, residual: Value, divisor: Value) -> Value:
    """The sign of an error of a quotient from that of dividend - quotient * divisor."""
    return b.select(b.fcmp("olt", divisor, b.zero(divisor.type)), _negate(b, residual), residual)


def _rcp(b: Builder, mode: str, x: Value) -> Value:
    return _div(b, mode, b.like(1.0, x), x)


def _sqrt(b: Builder, mode: str, x: Value) -> Value:
    root = b.intrinsic("llvm.sqrt", element(x.type), x)
    if element(x.type) == "float":
        return directed(b, root, b.fma(_negate(b, wide(b, root)), wide(b, root), wide(b, x)), mode)
    tiny = _is_tiny(b, x)
    lifted = _scaled(b, tiny, root)
    return directed(b, root, b.fma(_negate(b, lifted), lifted, _scaled(b, tiny, x, 2)), mode)


_ROUNDING_BITS = {"rm": 9, "rp": 10, "rz": 11}
"""The rounding operand of AVX-512 instructions, exceptions suppressed (Intel SDM, volume 2, "Embedded Rounding")."""
_INSTRUCTIONS = {"add": "add", "sub": "sub", "mul": "mul", "fma": "vfmadd", "mad": "vfmadd", "div": "div",
                 "rcp": "div", "sqrt": "sqrt"}


def by_instruction(b: Builder, family: str, mode: str, *operands: Value) -> Value | None:
    """A whole warp's operation by instructions that round as they are told; None where the machine has none."""
    count = lanes(operands[0].type)
    kind = element(operands[0].type)
    width, suffix = (16, "ps") if kind == "float" else (8, "pd")
    if not b.wide_registers or not count or count % width:
        return None
    if family == "rcp":
        operands = (b.like(1.0, operands[0]), *operands)
    part = f"<{width} x {kind}>"
    name = f"llvm.x86.avx512.{_INSTRUCTIONS[family]}.{suffix}.512"
    parts = []
    for start in range(0, count, width):
        chosen = [b.shuffle(x, None, list(range(start, start + width))) for x in operands]
        parts.append(b.call(name, part, *chosen, b.constant(_ROUNDING_BITS[mode], "i32")))
    while len(parts) > 1:
        size = 2 * lanes(parts[0].type)
        parts = [b.shuffle(parts[i], parts[i + 1], list(range(size))) for i in range(0, len(parts), 2)]
    return parts[0]


DIRECTED: dict[str, Callable[..., Value]] = {
    "add": _add, "sub": _sub, "mul": _mul, "fma": _fma, "mad": _fma, "div": _div, "rcp": _rcp, "sqrt": _sqrt,
}
"""By family: ``(builder, mode, *operands)`` with mode ``rz``, ``rm`` or ``rp``."""
