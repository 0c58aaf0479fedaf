"""Values carried between widths: conversions, packing and unpacking; predicates."""

from __future__ import annotations

from tests.random_kernels.arithmetic import define, operand
from tests.random_kernels.builder import WIDTH, Builder, Value

RELATIONS = ("eq", "ne", "lt", "le", "gt", "ge")
UNSIGNED = ("lo", "ls", "hi", "hs")


def convert(b: Builder) -> Value:
    """``cvt`` between any two widths, also of part of a register."""
    source_kind, target_kind = b.choose.choice(("rs", "r", "r", "r", "rd")), b.choose.choice(("rs", "r", "rd", "rd"))
    x = b.pick(source_kind)
    source = b.choose.choice([w for w in (8, 16, 32, 64) if w <= WIDTH[source_kind]][-2:])
    target = b.choose.choice([w for w in (8, 16, 32, 64) if w <= WIDTH[target_kind]][-2:])
    from_sign, to_sign = b.choose.choice("ssu"), b.choose.choice("su")
    bits = min(x.bits, source) if from_sign == "s" else min(source, WIDTH[target_kind])
    bits = min(bits, target) if to_sign == "s" or target < WIDTH[target_kind] else min(bits, WIDTH[target_kind])
    if target_kind == "rd" and to_sign == "u" and target == 32:
        bits = 32
    d = b.destination(target_kind, bits)
    possible = target < source or (target == source and from_sign != to_sign) or (from_sign == "s" and to_sign == "u")
    saturate = ".sat" if possible and b.maybe(0.08) else ""
    b.emit(f"cvt{saturate}.{to_sign}{target}.{from_sign}{source} {d.name}, {x.name}")
    return d


def widen(b: Builder, x: Value) -> Value:
    """A 32-bit value as a 64-bit one, in one of the common ways."""
    style = b.choose.randrange(6)
    d = b.fresh("rd", x.bits if style != 1 else max(x.bits, 32))
    if style == 0:
        b.emit(f"cvt.s64.s32 {d.name}, {x.name}")
    elif style == 1:
        b.emit(f"cvt.u64.u32 {d.name}, {x.name}")
    elif style == 2:
        b.emit(f"mul.wide.s32 {d.name}, {x.name}, 1")
    elif style == 3:
        t = b.fresh("rd")
        b.emit(f"cvt.u64.u32 {t.name}, {x.name}")
        b.emit(f"shl.b64 {t.name}, {t.name}, 32")
        b.emit(f"shr.s64 {d.name}, {t.name}, 32")
    elif style == 4:
        high = b.fresh("r")
        b.emit(f"shr.s32 {high.name}, {x.name}, 31")
        b.emit(f"mov.b64 {d.name}, {{{x.name}, {high.name}}}")
    else:
        b.emit(f"cvt.s64.s32 {d.name}, {x.name}")
    return b.declare(d)


def narrow(b: Builder) -> Value:
    x = b.pick("rd")
    if b.maybe(0.3):
        low, high = b.fresh("r"), b.fresh("r")
        b.emit(f"mov.b64 {{{low.name}, {high.name}}}, {x.name}")
        return b.declare(high if b.maybe(0.2) else low)
    d = b.destination("r", min(x.bits, 32))
    b.emit(f"cvt.{b.choose.choice('us')}32.{b.choose.choice('us')}64 {d.name}, {x.name}")
    return d


def pack(b: Builder) -> Value:
    """``mov`` between vectors of small registers and a large one."""
    style = b.choose.randrange(4)
    if style == 0:
        low, high = b.pick("r"), b.pick("r", 4)
        d = b.destination("rd", 64)
        b.emit(f"mov.b64 {d.name}, {{{low.name}, {high.name}}}")
        return d
    if style == 1:
        low, high = b.pick("rs"), b.pick("rs", 6)
        d = b.destination("r", 32)
        b.emit(f"mov.b32 {d.name}, {{{low.name}, {high.name}}}")
        return d
    low, high = b.fresh("rs", 16), b.fresh("rs", 16)
    if style == 2:
        b.emit(f"mov.b32 {{{low.name}, {high.name}}}, {b.pick('r').name}")
    else:
        more = [b.fresh("rs", 16) for _ in range(2)]
        b.emit(f"mov.b64 {{{low.name}, {high.name}, {more[0].name}, {more[1].name}}}, {b.pick('rd').name}")
        b.declare(more[b.choose.randrange(2)])
    b.declare(high)
    return b.declare(low)


def compare(b: Builder, kind: str | None = None) -> Value:
    """A new predicate from a comparison, sometimes combined with another one."""
    kind = kind or b.choose.choice(("r", "r", "r", "rd", "rs"))
    x, y = b.pick(kind), operand(b, kind)
    sign = b.choose.choice("ssu")
    relation = b.choose.choice(RELATIONS if sign == "s" or b.maybe(0.7) else UNSIGNED)
    width = WIDTH[kind]
    text = f"{relation}.{sign}{width}" if relation not in ("eq", "ne") or b.maybe(0.8) else f"{relation}.b{width}"
    if b.of("p") and b.maybe(0.2):
        other = b.pick("p").name
        operation = b.choose.choice(("and", "or", "xor"))
        d = b.destination("p", 1)
        relation, _, rest = text.partition(".")
        negated = "!" if b.maybe(0.2) else ""
        b.emit(f"setp.{relation}.{operation}.{rest} {d.name}, {x.name}, {y[0]}, {negated}{other}")
        return d
    if b.maybe(0.08):
        d, e = b.fresh("p", 1), b.fresh("p", 1)
        b.emit(f"setp.{text} {d.name}|{e.name}, {x.name}, {y[0]}")
        b.declare(e)
        return b.declare(d)
    d = b.destination("p", 1)
    b.emit(f"setp.{text} {d.name}, {x.name}, {y[0]}")
    return d


def predicate(b: Builder) -> Value:
    """A comparison, or predicates combined."""
    if len(b.of("p")) < 2 or b.maybe(0.7):
        return compare(b)
    x, y = b.pick("p"), b.pick("p")
    d = b.destination("p", 1)
    operation = b.choose.choice(("and", "or", "xor", "not", "mov"))
    if operation in ("not", "mov"):
        b.emit(f"{operation}.pred {d.name}, {x.name}")
    else:
        b.emit(f"{operation}.pred {d.name}, {x.name}, {y.name}")
    return d


def guarded_definition(b: Builder) -> None:
    """A register redefined under a predicate."""
    kind = b.choose.choice(("r", "r", "rd"))
    targets = [v for v in b.of(kind) if not v.fixed]
    if not targets:
        return
    target, x, p = b.choose.choice(targets), operand(b, kind), b.pick("p")
    target.bits = min(max(target.bits, x[1]) + 6, 64 if kind == "rd" else 32)
    negated = "!" if b.maybe(0.4) else ""
    name = b.choose.choice((f"mov.u{WIDTH[kind]} {target.name}, {x[0]}",
                            f"add.s{WIDTH[kind]} {target.name}, {target.name}, {x[0]}"))
    b.emit(f"@{negated}{p.name} {name}")


def value_statement(b: Builder) -> None:
    """Any statement that defines a value."""
    chance = b.choose.random()
    if chance < 0.62:
        define(b, "r")
    elif chance < 0.72:
        define(b, "rd")
    elif chance < 0.77:
        define(b, "rs")
    elif chance < 0.83:
        convert(b)
    elif chance < 0.86:
        pack(b)
    elif chance < 0.88:
        narrow(b)
    elif chance < 0.92:
        guarded_definition(b)
    else:
        predicate(b)
