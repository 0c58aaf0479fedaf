"""Loops in the shapes that compilers give them."""

from __future__ import annotations

from tests.random_kernels.addresses import access
from tests.random_kernels.arithmetic import operand
from tests.random_kernels.builder import Builder, Value
from tests.random_kernels.carried import carried_values
from tests.random_kernels.control import Body, Inside, bound, condition
from tests.random_kernels.conversion import compare

MOST_DEPTH = 2


def loop(b: Builder, body: Body) -> None:
    """Any loop. Values of before the loop may be redefined in it and used after it."""
    if b.depth >= MOST_DEPTH:
        return
    shape = b.choose.choice((top_tested, top_tested, rotated, rotated, do_while, countdown, grid_stride, unrolled,
                             halving, long_index, stepped_pointer, two_ends, multiply_step))
    shape(b, body)


def _index(b: Builder) -> tuple[Value, str]:
    """The loop's index register, set to its start; it stays available after the loop."""
    i = b.fresh("r", 8, fixed=True)
    start, bits = operand(b, "r", 6) if b.maybe(0.5) else ("0", 0)
    b.emit(f"mov.u32 {i.name}, {start}")
    i.bits = max(bits, 6) + 2
    b.declare(i)
    return i, start


def _advance(b: Builder, i: Value, carried: list[tuple[str, str]], step: str) -> None:
    """The end of an iteration; the index first or last."""
    first = b.maybe(0.5)
    if first:
        b.emit(f"add.s32 {i.name}, {i.name}, {step}")
    for _, text in carried:
        b.emit(text)
    if not first:
        b.emit(f"add.s32 {i.name}, {i.name}, {step}")


def _step(b: Builder) -> str:
    if b.maybe(0.75):
        return str(b.choose.choice((1, 1, 1, 2, 3, 4)))
    d = b.fresh("r", 5)
    b.emit(f"and.b32 {d.name}, {b.pick('r').name}, 3")
    b.emit(f"add.s32 {d.name}, {d.name}, 1")
    return d.name


def top_tested(b: Builder, body: Body) -> None:
    i, _ = _index(b)
    limit, step, carried = bound(b), _step(b), carried_values(b)
    head, again, end = b.label(), b.label(), b.label()
    p = b.fresh("p", 1)
    sign = b.choose.choice("sssu")
    b.mark(head)
    if b.maybe(0.25):
        q = compare(b)
        b.emit(f"setp.ge.or.{sign}32 {p.name}, {i.name}, {limit.text}, {q.name}")
    else:
        b.emit(f"setp.{b.choose.choice(('ge', 'ge', 'gt'))}.{sign}32 {p.name}, {i.name}, {limit.text}")
    b.emit(f"@{p.name} bra {end}")
    with Inside(b, end, again if b.maybe(0.6) else ""):
        body(b)
        b.mark(again)
        _advance(b, i, carried, step)
    b.emit(f"bra{b.choose.choice(('', '.uni'))} {head}")
    b.mark(end)


def rotated(b: Builder, body: Body) -> None:
    i, start = _index(b)
    limit, step, carried = bound(b), _step(b), carried_values(b)
    head, again, end = b.label(), b.label(), b.label()
    p, q = b.fresh("p", 1), b.fresh("p", 1)
    sign = b.choose.choice("sssu")
    b.emit(f"setp.ge.{sign}32 {p.name}, {start if b.maybe(0.5) and start[0] == '%' else i.name}, {limit.text}")
    b.emit(f"@{p.name} bra {end}")
    b.mark(head)
    latches = b.maybe(0.2)
    with Inside(b, end, again if b.maybe(0.6) else ""):
        body(b)
        if latches:
            # A second way back to the head.
            c = condition(b)
            b.emit(f"@{c.name} bra {again}")
            _advance(b, i, carried, step)
            b.emit(f"setp.ge.{sign}32 {q.name}, {i.name}, {limit.text}")
            b.emit(f"@{q.name} bra {end}")
            b.emit(f"bra {head}")
        b.mark(again)
        _advance(b, i, carried, step)
    relation = b.choose.choice(("lt", "lt", "lt", "le"))
    b.emit(f"setp.{relation}.{sign}32 {q.name}, {i.name}, {limit.text}")
    b.emit(f"@{q.name} bra {head}")
    b.mark(end)


def do_while(b: Builder, body: Body) -> None:
    i, _ = _index(b)
    limit, step, carried = bound(b), _step(b), carried_values(b)
    head, again, end = b.label(), b.label(), b.label()
    p = b.fresh("p", 1)
    b.mark(head)
    with Inside(b, end, again):
        body(b)
        b.mark(again)
        _advance(b, i, carried, step)
    if b.maybe(0.2):
        c = b.pick("p")
        b.emit(f"setp.lt.and.s32 {p.name}, {i.name}, {limit.text}, {c.name}")
    else:
        b.emit(f"setp.lt.{b.choose.choice('ssu')}32 {p.name}, {i.name}, {limit.text}")
    b.emit(f"@{p.name} bra {head}")
    b.mark(end)


def countdown(b: Builder, body: Body) -> None:
    """n, n - 1, ... 1 with a test against zero; sometimes by a larger step that divides, or does not."""
    limit = bound(b)
    i = b.fresh("r", 6, fixed=True)
    b.emit(f"mov.u32 {i.name}, {limit.text}")
    carried = carried_values(b)
    head, again, end = b.label(), b.label(), b.label()
    p, q = b.fresh("p", 1), b.fresh("p", 1)
    b.emit(f"setp.lt.s32 {p.name}, {i.name}, 1")
    b.emit(f"@{p.name} bra {end}")
    b.declare(i)
    b.mark(head)
    exact = b.maybe(0.7)
    with Inside(b, end, again):
        body(b)
        b.mark(again)
        _advance(b, i, carried, "-1" if exact else "-2")
    b.emit(f"setp.{'ne' if exact else 'gt'}.s32 {q.name}, {i.name}, 0")
    b.emit(f"@{q.name} bra {head}")
    b.mark(end)


def grid_stride(b: Builder, body: Body) -> None:
    """for (i = global thread; i < limit; i += threads of the grid)."""
    axis = b.choose.choice("xxy")
    names = {k: b.parameters[f"{k}.{axis}"]().name for k in ("tid", "ntid", "ctaid", "nctaid")}
    i, stride = b.fresh("r", 9, fixed=True), b.fresh("r", 9)
    b.emit(f"mad.lo.s32 {i.name}, {names['ctaid']}, {names['ntid']}, {names['tid']}")
    b.emit(f"mul.lo.s32 {stride.name}, {names['ntid']}, {names['nctaid']}")
    b.declare(i)
    limit = b.parameters[b.choose.choice(("n", "m", "len"))]().name
    carried = carried_values(b)
    head, again, end = b.label(), b.label(), b.label()
    p = b.fresh("p", 1)
    rotate = b.maybe(0.5)
    if rotate:
        b.emit(f"setp.ge.s32 {p.name}, {i.name}, {limit}")
        b.emit(f"@{p.name} bra {end}")
        b.mark(head)
    else:
        b.mark(head)
        b.emit(f"setp.ge.s32 {p.name}, {i.name}, {limit}")
        b.emit(f"@{p.name} bra {end}")
    with Inside(b, end if b.maybe(0.5) else "", again if b.maybe(0.5) else ""):
        if b.maybe(0.7):
            access(b)
        body(b)
        b.mark(again)
        _advance(b, i, carried, stride.name)
    if rotate:
        b.emit(f"setp.lt.s32 {p.name}, {i.name}, {limit}")
        b.emit(f"@{p.name} bra {head}")
    else:
        b.emit(f"bra {head}")
    b.mark(end)


def unrolled(b: Builder, body: Body) -> None:
    """Four at a time, then the rest one by one, as nvcc unrolls."""
    n = b.parameters[b.choose.choice(("n", "m", "len"))]().name
    rest, count, p = b.fresh("r", 2), b.fresh("r", 8, fixed=True), b.fresh("p", 1)
    i = b.fresh("r", 8, fixed=True)
    carried = carried_values(b)
    skip, head, tail, more, end = (b.label() for _ in range(5))
    b.emit(f"mov.u32 {i.name}, 0")
    b.emit(f"setp.lt.s32 {p.name}, {n}, 1")
    b.emit(f"@{p.name} bra {end}")
    b.emit(f"and.b32 {rest.name}, {n}, 3")
    b.declare(i)
    b.emit(f"setp.lt.u32 {p.name}, {n}, 4")
    b.emit(f"@{p.name} bra {skip}")
    b.emit(f"sub.s32 {count.name}, {rest.name}, {n}" if b.maybe(0.5) else f"sub.s32 {count.name}, {n}, {rest.name}")
    up = "rest" if b.lines[-1].startswith(f"\tsub.s32 {count.name}, {rest.name}") else "n"
    b.mark(head)
    with Inside(b, "", ""):
        body(b)
        for _, text in carried:
            b.emit(text)
        b.emit(f"add.s32 {i.name}, {i.name}, 4")
        b.emit(f"add.s32 {count.name}, {count.name}, {'4' if up == 'rest' else '-4'}")
    b.emit(f"setp.ne.s32 {p.name}, {count.name}, 0")
    b.emit(f"@{p.name} bra {head}")
    b.mark(skip)
    b.emit(f"setp.eq.s32 {p.name}, {rest.name}, 0")
    b.emit(f"@{p.name} bra {end}")
    b.mark(tail)
    left = b.fresh("r", 2, fixed=True)
    b.lines.insert(len(b.lines) - 1, f"\tmov.u32 {left.name}, {rest.name};")
    with Inside(b, "", more):
        body(b)
        b.mark(more)
        b.emit(f"add.s32 {i.name}, {i.name}, 1")
        b.emit(f"add.s32 {left.name}, {left.name}, -1")
    b.emit(f"setp.ne.s32 {p.name}, {left.name}, 0")
    b.emit(f"@{p.name} bra {tail}")
    b.mark(end)


def halving(b: Builder, body: Body) -> None:
    """for (s = something / 2; s > 0; s >>= 1)."""
    s = b.fresh("r", 8, fixed=True)
    b.emit(f"shr.{b.choose.choice('us')}32 {s.name}, {b.pick('r', 10).name}, 1")
    b.emit(f"and.b32 {s.name}, {s.name}, 255")
    b.declare(s)
    head, again, end = b.label(), b.label(), b.label()
    p = b.fresh("p", 1)
    b.mark(head)
    b.emit(f"setp.{b.choose.choice(('eq.s32', 'lt.s32', 'eq.u32'))} {p.name}, {s.name}, {b.choose.choice((0, 0, 1))}")
    b.emit(f"@{p.name} bra {end}")
    with Inside(b, end, again):
        body(b)
        b.mark(again)
        b.emit(f"shr.{b.choose.choice('us')}32 {s.name}, {s.name}, {b.choose.choice((1, 1, 2))}")
        b.emit(f"setp.eq.s32 {p.name}, {s.name}, 0")
        b.emit(f"@{p.name} bra {end}")
    b.emit(f"bra {head}")
    b.mark(end)


def long_index(b: Builder, body: Body) -> None:
    """A 64-bit index, compared with a widened 32-bit limit."""
    i, limit = b.fresh("rd", 8, fixed=True), b.fresh("rd", 8)
    b.emit(f"cvt.s64.s32 {limit.name}, {bound_register(b)}")
    b.emit(f"mov.u64 {i.name}, {b.choose.choice((0, 1, -3))}")
    b.declare(i)
    carried = carried_values(b)
    head, again, end = b.label(), b.label(), b.label()
    p = b.fresh("p", 1)
    b.mark(head)
    b.emit(f"setp.ge.s64 {p.name}, {i.name}, {limit.name}")
    b.emit(f"@{p.name} bra {end}")
    with Inside(b, end, again):
        body(b)
        b.mark(again)
        for _, text in carried:
            b.emit(text)
        if b.maybe(0.3):
            low = b.fresh("r")
            b.emit(f"cvt.u32.u64 {low.name}, {i.name}")
            b.emit(f"add.s32 {low.name}, {low.name}, 1")
            b.emit(f"cvt.s64.s32 {i.name}, {low.name}")
        else:
            b.emit(f"add.s64 {i.name}, {i.name}, {b.choose.choice((1, 1, 2, 3))}")
    b.emit(f"bra {head}")
    b.mark(end)


def bound_register(b: Builder) -> str:
    text = bound(b).text
    if text[0] == "%":
        return text
    d = b.fresh("r", 4)
    b.emit(f"mov.u32 {d.name}, {text}")
    return d.name


def stepped_pointer(b: Builder, body: Body) -> None:
    """for (p = begin; p != end; p += step): the pointer is the index."""
    source = b.choose.choice(b.pointers)
    if source.align < 4:
        return top_tested(b, body)
    step = 4 * b.choose.choice((1, 1, 2))
    p, last, count = b.fresh("rd", source.bits, fixed=True), b.fresh("rd"), b.fresh("rd")
    c = b.fresh("r")
    b.emit(f"and.b32 {c.name}, {bound_register(b)}, 7")
    b.emit(f"mul.wide.u32 {count.name}, {c.name}, {step}")
    b.emit(f"add.s64 {last.name}, {source.name}, {count.name}")
    b.emit(f"mov.u64 {p.name}, {source.name}")
    p.align = min(source.align, 4)
    b.declare_pointer(p, source.writable)
    head, again, end = b.label(), b.label(), b.label()
    q = b.fresh("p", 1)
    b.mark(head)
    b.emit(f"setp.{b.choose.choice(('eq.s64', 'ge.u64'))} {q.name}, {p.name}, {last.name}")
    b.emit(f"@{q.name} bra {end}")
    with Inside(b, end, again):
        body(b)
        b.mark(again)
        b.emit(f"add.s64 {p.name}, {p.name}, {step}")
    b.emit(f"bra {head}")
    b.mark(end)
    return None


def two_ends(b: Builder, body: Body) -> None:
    """for (i = 0, j = n - 1; i < j; i++, j--)."""
    i, j = b.fresh("r", 6, fixed=True), b.fresh("r", 6, fixed=True)
    b.emit(f"mov.u32 {i.name}, {b.choose.choice((0, 0, 1))}")
    b.emit(f"add.s32 {j.name}, {bound_register(b)}, -1")
    b.emit(f"min.s32 {j.name}, {j.name}, 40")
    b.declare(i)
    b.declare(j)
    head, again, end = b.label(), b.label(), b.label()
    p = b.fresh("p", 1)
    b.mark(head)
    b.emit(f"setp.ge.s32 {p.name}, {i.name}, {j.name}")
    b.emit(f"@{p.name} bra {end}")
    with Inside(b, end, again):
        body(b)
        b.mark(again)
        b.emit(f"add.s32 {i.name}, {i.name}, 1")
        b.emit(f"add.s32 {j.name}, {j.name}, {b.choose.choice((-1, -1, 0, -2))}")
    b.emit(f"bra {head}")
    b.mark(end)


def multiply_step(b: Builder, body: Body) -> None:
    """for (i = 1; i < limit; i *= 2)."""
    i = b.fresh("r", 8, fixed=True)
    b.emit(f"mov.u32 {i.name}, {b.choose.choice((1, 1, 2, 3))}")
    b.declare(i)
    limit = bound(b).text
    head, again, end = b.label(), b.label(), b.label()
    p = b.fresh("p", 1)
    b.mark(head)
    b.emit(f"setp.ge.s32 {p.name}, {i.name}, {limit}")
    b.emit(f"@{p.name} bra {end}")
    with Inside(b, end, again):
        body(b)
        b.mark(again)
        b.emit(b.choose.choice((f"shl.b32 {i.name}, {i.name}, 1", f"mul.lo.s32 {i.name}, {i.name}, 2")))
    b.emit(f"bra {head}")
    b.mark(end)
