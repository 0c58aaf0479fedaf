"""Floating-point statements, among them those that make NaNs whose bits are looked at; carries; halves."""

from __future__ import annotations

from tests.random_kernels.builder import Value
from tests.random_kernels.engine_builder import EngineBuilder

SPECIAL = ("0f7F800000", "0fFF800000", "0f7FC00000", "0f00000000", "0f80000000", "0f3F800000", "0fC0490FDB",
           "0f7F7FFFFF", "0fFFFFFFFF", "0f00000001")
TWO = ("add.f32", "sub.f32", "mul.f32", "add.rn.f32", "add.ftz.f32", "mul.rn.f32", "min.f32", "max.f32", "add.rz.f32",
       "mul.rp.f32", "div.rn.f32", "min.NaN.f32", "copysign.f32")
ONE = ("neg.f32", "abs.f32", "mov.f32", "mov.b32", "sqrt.rn.f32", "rcp.rn.f32")
FROM = ("cvt.rn.f32.s32", "cvt.rn.f32.u32", "cvt.rz.f32.s32")
TO = ("cvt.rni.s32.f32", "cvt.rzi.s32.f32", "cvt.rzi.u32.f32", "cvt.rmi.s32.f32")


def a_float(b: EngineBuilder) -> str:
    """A register that holds an f32, or a constant; sometimes the bits of a number."""
    if b.of("f") and b.maybe(0.75):
        return b.pick("f").name
    if b.maybe(0.5):
        return b.choose.choice(SPECIAL)
    d = b.fresh("f")
    b.emit(f"mov.b32 {d.name}, {b.pick('r').name}")
    return d.name


def _target(b: EngineBuilder) -> Value:
    """Often one in use, so that sums are carried around and lanes keep theirs."""
    if b.maybe(0.15):
        return b.destination("r", 32)
    used = [v for v in b.of("f") if not v.fixed]
    if used and b.maybe(0.4):
        return b.choose.choice(used)
    return b.declare(b.fresh("f"))


def float_statement(b: EngineBuilder) -> None:
    """One instruction with floating-point numbers."""
    style = b.choose.randrange(12)
    guard = ""
    if style <= 3:
        text = f"{b.choose.choice(TWO)} {{d}}, {a_float(b)}, {a_float(b)}"
    elif style == 4:
        text = f"fma.rn.f32 {{d}}, {a_float(b)}, {a_float(b)}, {a_float(b)}"
    elif style == 5:
        text = f"{b.choose.choice(ONE)} {{d}}, {a_float(b)}"
    elif style == 6:
        text = f"{b.choose.choice(FROM)} {{d}}, {b.pick('r').name}"
    elif style == 7:
        text = f"selp.f32 {{d}}, {a_float(b)}, {a_float(b)}, {b.pick('p').name}"
    elif style == 8:  # the bits as a number
        d = b.destination("r", 32)
        b.emit(f"mov.b32 {d.name}, {b.pick('f').name}")
        return
    elif style == 9:
        d = b.destination("r", 32)
        b.emit(f"{b.choose.choice(TO)} {d.name}, {a_float(b)}")
        return
    elif style == 10:
        p = b.destination("p", 1)
        relation = b.choose.choice(("lt", "gtu", "eq", "neu", "nan", "num", "le", "ge"))
        b.emit(f"setp.{relation}.f32 {p.name}, {a_float(b)}, {a_float(b)}")
        return
    else:
        d = b.destination("rd", 64)
        b.emit(f"mov.b64 {d.name}, {{{b.pick('f').name}, {b.pick('f').name}}}")
        return
    old = [v for v in b.of("f") if not v.fixed]
    if old and b.maybe(0.2):
        guard = f"@{'!' if b.maybe(0.5) else ''}{b.pick('p').name} "
        target = b.choose.choice(old)
    else:
        target = _target(b)
    b.emit(guard + text.format(d=target.name))


def sum_loop(b: EngineBuilder) -> None:
    """A sum over a few values with more than one accumulator, whose end is stored or taken apart."""
    i, p = b.fresh("r", 4, fixed=True), b.fresh("p")
    limit = b.fresh("r", 3)
    b.emit(f"and.b32 {limit.name}, {b.pick('r').name}, 3")
    sums = [b.declare(b.fresh("f")) for _ in range(b.choose.choice((1, 2)))]
    for s in sums:
        b.emit(f"mov.f32 {s.name}, {b.choose.choice(('0f00000000', a_float(b)))}")
    b.emit(f"mov.u32 {i.name}, 0")
    head = b.label()
    b.mark(head)
    for s in sums:
        b.emit(b.choose.choice((f"fma.rn.f32 {s.name}, {a_float(b)}, {a_float(b)}, {s.name}",
                                f"add.f32 {s.name}, {s.name}, {a_float(b)}",
                                f"mul.f32 {s.name}, {s.name}, {a_float(b)}")))
    b.emit(f"add.s32 {i.name}, {i.name}, 1")
    b.emit(f"setp.le.s32 {p.name}, {i.name}, {limit.name}")
    b.emit(f"@{p.name} bra {head}")
    d = b.fresh("r", 32)
    b.emit(f"mov.b32 {d.name}, {sums[0].name}")
    b.declare(d)


def carry(b: EngineBuilder) -> None:
    """128-bit sums and products by parts."""
    x, y, z, w = (b.pick("r").name for _ in range(4))
    d, e = b.fresh("r", 32), b.fresh("r", 32)
    style = b.choose.randrange(3)
    if style == 0:
        b.emit(f"add.cc.u32 {d.name}, {x}, {y}")
        b.emit(f"addc.u32 {e.name}, {z}, {w}")
    elif style == 1:
        b.emit(f"sub.cc.u32 {d.name}, {x}, {y}")
        b.emit(f"subc.u32 {e.name}, {z}, {b.choose.choice((w, '0'))}")
    else:
        b.emit(f"mad.lo.cc.u32 {d.name}, {x}, {y}, {z}")
        b.emit(f"madc.hi.u32 {e.name}, {x}, {y}, {w}")
    b.declare(d)
    b.declare(e)


def halves_statement(b: EngineBuilder) -> None:
    """16-bit floating-point numbers, alone and in pairs."""
    if b.maybe(0.6):
        d = b.destination("r", 32)
        b.emit(f"{b.choose.choice(('add.f16x2', 'mul.f16x2', 'min.f16x2', 'add.rn.f16x2'))} {d.name}, "
               f"{b.pick('r').name}, {b.pick('r').name}")
    else:
        d = b.destination("rs", 16)
        b.emit(f"{b.choose.choice(('add.f16', 'mul.f16', 'sub.f16', 'neg.f16'))} {d.name}, "
               f"{', '.join(b.pick('rs').name for _ in range(2))}".replace("neg.f16", "sub.f16"))
