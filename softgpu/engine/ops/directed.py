"""Arithmetic in the modes that the machine does not round in: towards zero, down and up, for f32 and f64.

Each operation takes the nearest result and corrects it by the sign of its error (see ``rounding``). For f32 the error
is exact in f64. For f64 it is a residual of a fused multiply-add, of scaled operands where it could underflow. Rounding
down is rounding up of the mirrored operation, which also gives zero sums their sign: -0 when rounding down.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from softgpu.engine.ir import Builder, Value, bits, element, joined, lanes, split
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


_INSTRUCTIONS = {"add": "add", "sub": "sub", "mul": "mul", "fma": "vfmadd", "mad": "vfmadd", "div": "div",
                 "rcp": "div", "sqrt": "sqrt"}
_ROUNDING_BITS = {"rm": 9, "rp": 10, "rz": 11}
"""The rounding operand of AVX-512 instructions, exceptions suppressed (Intel SDM, volume 2, "Embedded Rounding")."""
_MXCSR = {"rn": 0x1F80, "rm": 0x3F80, "rp": 0x5F80, "rz": 0x7F80}
"""The control register with all exceptions masked (Intel SDM, volume 1, "MXCSR Control and Status Register")."""
_AT_ONCE = 4
"""Vectors for one change of the control register: with three operands each they still find registers."""


def by_instruction(b: Builder, family: str, mode: str, *operands: Value) -> Value | None:
    """A whole warp's operation by the machine's instructions; None for other numbers of lanes."""
    count = lanes(operands[0].type)
    size = 512 if b.wide_registers else 256
    width = size // bits(operands[0].type)
    if not count or count % width:
        return None
    if family == "rcp":
        operands = (b.like(1.0, operands[0]), *operands)
    pieces = list(zip(*[split(b, [x]) for x in operands], strict=True))
    if b.wide_registers:
        parts = [_with_operand(b, family, mode, piece) for piece in pieces]
    else:
        parts = [part for k in range(0, len(pieces), _AT_ONCE)
                 for part in _with_register(b, family, mode, pieces[k : k + _AT_ONCE])]
    return joined(b, parts)


def _suffix(piece: Sequence[Value]) -> str:
    return "ps" if element(piece[0].type) == "float" else "pd"


def _with_operand(b: Builder, family: str, mode: str, piece: Sequence[Value]) -> Value:
    """By an instruction that is told how to round."""
    name = f"llvm.x86.avx512.{_INSTRUCTIONS[family]}.{_suffix(piece)}.512"
    return b.call(name, piece[0].type, *piece, b.constant(_ROUNDING_BITS[mode], "i32"))


def _with_register(b: Builder, family: str, mode: str, pieces: Sequence[Sequence[Value]]) -> list[Value]:
    """By instructions between two changes of the control register, all in one piece of assembly: LLVM may move whatever
    it knows to be arithmetic."""
    count, operands = len(pieces), len(pieces[0])
    text, suffix = [], _suffix(pieces[0])
    fused = operands == 3
    # Operands are numbered: the results, then all first operands, all second ones, all third ones, and the modes.
    for k in range(count):
        first, second, third = count + k, 2 * count + k, 3 * count + k
        if fused:  # the first operand is where the result will be
            text.append(f"vfmadd213{suffix} ${third}, ${second}, ${k}")
        elif operands == 2:
            text.append(f"v{_INSTRUCTIONS[family]}{suffix} ${second}, ${first}, ${k}")
        else:
            text.append(f"v{_INSTRUCTIONS[family]}{suffix} ${first}, ${k}")
    modes = [_control_word(b, mode), _control_word(b, "rn")]
    at = (operands + 1) * count
    whole = "\\0A".join([f"vldmxcsr ${at}", *text, f"vldmxcsr ${at + 1}"])
    inputs = [str(k) if fused else "x" for k in range(count)] + ["x"] * (operands - 1) * count
    constraints = ",".join(["=&x"] * count + inputs + ["*m", "*m"])
    given = [pieces[k][operand] for operand in range(operands) for k in range(count)]
    type_ = given[0].type
    result = f"{{{', '.join([type_] * count)}}}" if count > 1 else type_
    taken = ", ".join([*[f"{v.type} {v.ref}" for v in given], *[f"ptr elementtype(i32) {word}" for word in modes]])
    found = b.emit(f'call {result} asm "{whole}", "{constraints}"({taken})', result)
    return [b.emit(f"extractvalue {result} {found.ref}, {k}", type_) for k in range(count)] if count > 1 else [found]


def _control_word(b: Builder, mode: str) -> str:
    """A constant in memory, from where alone the control register can be loaded."""
    name = f"softgpu_mxcsr_{mode}"
    b.helpers.setdefault(name, f"@{name} = internal constant i32 {_MXCSR[mode]}, align 4")
    return f"@{name}"


DIRECTED: dict[str, Callable[..., Value]] = {
    "add": _add, "sub": _sub, "mul": _mul, "fma": _fma, "mad": _fma, "div": _div, "rcp": _rcp, "sqrt": _sqrt,
}
"""By family: ``(builder, mode, *operands)`` with mode ``rz``, ``rm`` or ``rp``."""
