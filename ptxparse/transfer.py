"""What one instruction does to the integers in registers: opcode by opcode, sums in, sums out.

A result of None means that nothing is known; the caller makes it an unknown of the destination's width. Operands and
results are sums modulo 2^width; where PTX looks at a number, it is wrapped to the signed or unsigned one.
"""

from __future__ import annotations

from collections.abc import Callable

from ptxparse.values import ONE, ZERO, Graph, Sum, add, constant, constant_of, scale

Arguments = list[Sum]
_WIDTHS = {"b8": 8, "u8": 8, "s8": 8, "b16": 16, "u16": 16, "s16": 16, "b32": 32, "u32": 32, "s32": 32,
           "b64": 64, "u64": 64, "s64": 64, "pred": 1, "f32": 32, "f64": 64, "f16": 16, "bf16": 16, "f16x2": 32,
           "bf16x2": 32, "b128": 128}
_COMPARISONS = {"eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs"}
_UNSIGNED_NAMES = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}


def width_of(kind: str) -> int:
    """Bits of a type by its name without the dot; 0 for one that is not a register type."""
    return _WIDTHS.get(kind, 0)


def is_signed(kind: str) -> bool:
    return kind[0] == "s"


def evaluate(graph: Graph, modifiers: tuple[str, ...], opcode: str, arguments: Arguments) -> Sum | None:
    """The destination's value, or None when nothing is known."""
    handler = _HANDLERS.get(opcode)
    if handler is None or not modifiers:
        return None
    kind = modifiers[-1]
    if kind not in _WIDTHS or len(arguments) < _ARITY.get(opcode, 2):
        return None
    return handler(graph, modifiers, kind, arguments)


Handler = Callable[[Graph, tuple[str, ...], str, Arguments], Sum | None]


def _number(graph: Graph, value: Sum, kind: str) -> Sum:
    return graph.wrap(value, width_of(kind), is_signed(kind))


def _is_integer(kind: str) -> bool:
    return kind in _WIDTHS and kind[0] in "busp" and not kind.startswith("bf")


def _mov(graph: Graph, modifiers: tuple[str, ...], kind: str, a: Arguments) -> Sum | None:
    return a[0]


def _add(graph: Graph, modifiers: tuple[str, ...], kind: str, a: Arguments) -> Sum | None:
    if not _is_integer(kind) or "sat" in modifiers:
        return None
    return add(a[0], a[1])


def _sub(graph: Graph, modifiers: tuple[str, ...], kind: str, a: Arguments) -> Sum | None:
    if not _is_integer(kind) or "sat" in modifiers:
        return None
    return add(a[0], a[1], -1)


def _mul(graph: Graph, modifiers: tuple[str, ...], kind: str, a: Arguments) -> Sum | None:
    if not _is_integer(kind):
        return None
    if "wide" in modifiers:
        return graph.multiply(_number(graph, a[0], kind), _number(graph, a[1], kind))
    if "hi" in modifiers:
        product = graph.multiply(_number(graph, a[0], kind), _number(graph, a[1], kind))
        return graph.shift_right(product, width_of(kind))
    return graph.multiply(a[0], a[1]) if "lo" in modifiers else None


def _mad(graph: Graph, modifiers: tuple[str, ...], kind: str, a: Arguments) -> Sum | None:
    product = None if "sat" in modifiers else _mul(graph, modifiers, kind, a)
    return None if product is None else add(product, a[2])


def _mul24(graph: Graph, modifiers: tuple[str, ...], kind: str, a: Arguments) -> Sum | None:
    if "lo" not in modifiers:
        return None
    signed = is_signed(kind)
    return graph.multiply(graph.wrap(a[0], 24, signed), graph.wrap(a[1], 24, signed))


def _mad24(graph: Graph, modifiers: tuple[str, ...], kind: str, a: Arguments) -> Sum | None:
    product = _mul24(graph, modifiers, kind, a)
    return None if product is None or "sat" in modifiers else add(product, a[2])


def _neg(graph: Graph, modifiers: tuple[str, ...], kind: str, a: Arguments) -> Sum | None:
    return scale(a[0], -1) if _is_integer(kind) else None


def _not(graph: Graph, modifiers: tuple[str, ...], kind: str, a: Arguments) -> Sum | None:
    return add(ONE if kind == "pred" else constant(-1), a[0], -1)


def _abs(graph: Graph, modifiers: tuple[str, ...], kind: str, a: Arguments) -> Sum | None:
    if not is_signed(kind):
        return None
    value = _number(graph, a[0], kind)
    return graph.maximum(value, scale(value, -1))


def _min(graph: Graph, modifiers: tuple[str, ...], kind: str, a: Arguments) -> Sum | None:
    if kind[0] not in "us" or "relu" in modifiers or kind not in _WIDTHS:
        return None
    return graph.minimum(_number(graph, a[0], kind), _number(graph, a[1], kind))


def _max(graph: Graph, modifiers: tuple[str, ...], kind: str, a: Arguments) -> Sum | None:
    if kind[0] not in "us" or "relu" in modifiers or kind not in _WIDTHS:
        return None
    return graph.maximum(_number(graph, a[0], kind), _number(graph, a[1], kind))


def _div(graph: Graph, modifiers: tuple[str, ...], kind: str, a: Arguments) -> Sum | None:
    if kind[0] not in "us":
        return None
    return _number(graph, graph.divide(_number(graph, a[0], kind), _number(graph, a[1], kind)), kind)


def _rem(graph: Graph, modifiers: tuple[str, ...], kind: str, a: Arguments) -> Sum | None:
    if kind[0] not in "us":
        return None
    return _number(graph, graph.remainder(_number(graph, a[0], kind), _number(graph, a[1], kind)), kind)


def _shl(graph: Graph, modifiers: tuple[str, ...], kind: str, a: Arguments) -> Sum | None:
    count = constant_of(a[1])
    if count is None:
        amount = graph.wrap(a[1], 32, False)
        low, high = graph.bounds(amount)
        if graph.is_uniform(amount) or high < 64:
            power = graph.derived(("power", amount), 1 << min(low, 64), 1 << min(high, 64), amount)
            return graph.multiply(a[0], power)
        return None
    count &= 0xFFFFFFFF
    return ZERO if count >= width_of(kind) else scale(a[0], 1 << count)


def _shr(graph: Graph, modifiers: tuple[str, ...], kind: str, a: Arguments) -> Sum | None:
    width = width_of(kind)
    count = constant_of(a[1])
    if count is None:
        value = _number(graph, a[0], kind)
        amount = graph.wrap(a[1], 32, False)
        low, high = graph.bounds(value)
        return graph.derived(("shift", value, amount), min(low, 0), max(high, 0), value, amount)
    # A count past the width acts as the width (PTX manual, shr); the sign stays.
    count = min(count & 0xFFFFFFFF, width)
    if is_signed(kind) and count < width:
        zeros = _common_factor(a[0])
        if zeros and zeros <= count and len(a[0]) and width > zeros:
            # shr.s(shl(x, z), c): the sign-extended low bits of x, as compilers write them.
            inner = graph.wrap(tuple([(p, c >> zeros) for p, c in a[0]]), width - zeros, True)
            return graph.shift_right(inner, count - zeros)
        if zeros > count and width > zeros:
            inner = graph.wrap(tuple([(p, c >> zeros) for p, c in a[0]]), width - zeros, True)
            return scale(inner, 1 << (zeros - count))
    return graph.shift_right(_number(graph, a[0], kind), count)


def _common_factor(value: Sum) -> int:
    """The number of low zero bits that all coefficients share, when at least 8 (a real shift, not an element size)."""
    common = 0
    for _, coefficient in value:
        common |= coefficient
    zeros = (common & -common).bit_length() - 1
    return zeros if zeros >= 8 else 0


def _logic(operation: str) -> Handler:
    def handle(graph: Graph, modifiers: tuple[str, ...], kind: str, a: Arguments) -> Sum | None:
        if kind == "pred" and operation == "xor":
            if constant_of(a[1]) == 1:
                return add(ONE, a[0], -1)
            if constant_of(a[0]) == 1:
                return add(ONE, a[1], -1)
        return graph.bitwise(operation, a[0], a[1], width_of(kind))

    return handle


def _cvt(graph: Graph, modifiers: tuple[str, ...], kind: str, a: Arguments) -> Sum | None:
    types = [m for m in modifiers if m in _WIDTHS]
    if "pack" in modifiers or len(types) != 2 or not (_is_integer(types[0]) and _is_integer(types[1])):
        return None
    target, source = types
    value = _number(graph, a[0], source)
    if "sat" in modifiers:
        low, high = (-(1 << width_of(target) - 1), (1 << width_of(target) - 1) - 1) if is_signed(target) else (
            0, (1 << width_of(target)) - 1)
        return graph.minimum(graph.maximum(value, constant(low)), constant(high))
    return value if width_of(target) > width_of(source) else a[0]


def _selp(graph: Graph, modifiers: tuple[str, ...], kind: str, a: Arguments) -> Sum | None:
    return select(graph, a[2], a[0], a[1])


def select(graph: Graph, condition: Sum, yes: Sum, no: Sum) -> Sum:
    """``yes`` where the condition (0 or 1) holds, else ``no``."""
    known = constant_of(condition)
    if known is not None:
        return yes if known & 1 else no
    if yes == no:
        return yes
    return alternatives(graph, ((yes, ((condition, True),)), (no, ((condition, False),))))


Alternative = tuple[Sum, tuple[tuple[Sum, bool], ...]]


def alternatives(graph: Graph, options: tuple[Alternative, ...]) -> Sum:
    """One of several values, each with the conditions under which it is the one."""
    if all(value == options[0][0] for value, _ in options):
        return options[0][0]
    bounds = [graph.bounds(value) for value, _ in options]
    arguments = [value for value, _ in options] + [condition for _, guards in options for condition, _ in guards]
    low, high = min(low for low, _ in bounds), max(high for _, high in bounds)
    if low == high:
        return constant(low)
    made = graph.derived(("alternatives", options), low, high, *arguments)
    if not exclusive(options):
        # Nothing tells which option it is, however much is known of each.
        graph.uniform[made[0][0][0]] = False
    return made


def exclusive(options: tuple[Alternative, ...]) -> bool:
    """Whether the conditions of any two options contradict each other, so that they tell which option it is."""
    for position, (_, guards) in enumerate(options):
        for _, others in options[position + 1:]:
            if not any((value, not truth) in others for value, truth in guards):
                return False
    return True


def _setp(graph: Graph, modifiers: tuple[str, ...], kind: str, a: Arguments) -> Sum | None:
    relation = modifiers[0]
    if relation not in _COMPARISONS or not _is_integer(kind):
        return graph.unknown(0, 1)
    relation = _UNSIGNED_NAMES.get(relation, relation)
    signed = is_signed(kind)
    width = width_of(kind)
    result = compare(graph, relation, graph.wrap(a[0], width, signed), graph.wrap(a[1], width, signed))
    if len(a) > 2 and len(modifiers) > 2 and modifiers[1] in ("and", "or", "xor"):
        return graph.bitwise(modifiers[1], result, a[2], 1)
    return result


def compare(graph: Graph, relation: str, a: Sum, b: Sum) -> Sum:
    """1 where the relation holds between two numbers, else 0."""
    if relation in ("gt", "ge"):
        relation, a, b = "lt" if relation == "gt" else "le", b, a
    if relation == "ne":
        return add(ONE, compare(graph, "eq", a, b), -1)
    if relation == "le":
        # a <= b is not b < a.
        return add(ONE, compare(graph, "lt", b, a), -1)
    if relation == "eq":
        a, b = sorted((a, b))
    low, high = graph.bounds(add(a, b, -1))
    if relation == "lt":
        if high < 0:
            return ONE
        if low >= 0:
            return ZERO
    elif low > 0 or high < 0:
        return ZERO
    elif low == high:
        return ONE
    return graph.derived((relation, a, b), 0, 1, a, b)


def _bfe(graph: Graph, modifiers: tuple[str, ...], kind: str, a: Arguments) -> Sum | None:
    position, length = constant_of(a[1]), constant_of(a[2])
    width = width_of(kind)
    if position is None or length is None:
        return None
    position, length = position & 0xFF, length & 0xFF
    if not length:
        return ZERO
    if position >= width:
        return None
    field = graph.shift_right(graph.wrap(a[0], width, is_signed(kind)), position)
    if is_signed(kind):
        return graph.wrap(field, min(length, width - position), True)
    return graph.low_bits(field, min(length, width - position))


def _bfi(graph: Graph, modifiers: tuple[str, ...], kind: str, a: Arguments) -> Sum | None:
    position, length = constant_of(a[2]), constant_of(a[3])
    width = width_of(kind)
    if position is None or length is None:
        return None
    position, length = position & 0xFF, length & 0xFF
    if not length or position >= width:
        return a[1]
    length = min(length, width - position)
    mask = ((1 << length) - 1) << position
    kept = graph.bitwise("and", a[1], constant(((1 << width) - 1) ^ mask), width)
    return add(kept, scale(graph.low_bits(a[0], length), 1 << position))


def _count(graph: Graph, modifiers: tuple[str, ...], kind: str, a: Arguments) -> Sum | None:
    return graph.unknown(0, width_of(kind))


_HANDLERS: dict[str, Handler] = {
    "mov": _mov, "cvta": _mov, "add": _add, "sub": _sub, "mul": _mul, "mad": _mad, "mul24": _mul24, "mad24": _mad24,
    "neg": _neg, "not": _not, "abs": _abs, "min": _min, "max": _max, "div": _div, "rem": _rem, "shl": _shl,
    "shr": _shr, "and": _logic("and"), "or": _logic("or"), "xor": _logic("xor"), "cvt": _cvt, "selp": _selp,
    "setp": _setp, "bfe": _bfe, "bfi": _bfi, "popc": _count, "clz": _count,
}
_ARITY = {
    "mov": 1, "cvta": 1, "neg": 1, "not": 1, "abs": 1, "cvt": 1, "popc": 1, "clz": 1, "mad": 3, "mad24": 3, "selp": 3,
    "bfe": 3, "bfi": 4,
}
"""Source operands of the opcodes that do not have two."""
