"""Device functions that are called, not inlined, and their calls."""

from __future__ import annotations

import random
from collections.abc import Callable

from tests.random_kernels.builder import Builder, Value
from tests.random_kernels.conversion import compare

Statements = Callable[[Builder, int], None]
Call = Callable[[Builder], None]


def function(choose: random.Random, number: int, others: list[Call], statements: Statements) -> tuple[str, Call]:
    """A device function of a pointer and two numbers, which may return a number; and what writes a call of it."""
    name = f"f{number}"
    b = Builder(choose, name)
    b.traits = {"generic"} if choose.random() < 0.5 else set()
    b.functions = list(others)
    writable = choose.random() < 0.8
    p, x, y = b.fresh("rd", 10), b.fresh("r", 10), b.fresh("r", 10)
    p.align = 16
    b.prologue += [f"\tld.param.u64 {p.name}, [{name}_p];", f"\tld.param.u32 {x.name}, [{name}_x];",
                   f"\tld.param.u32 {y.name}, [{name}_y];"]  # fmt: skip
    b.declare_pointer(p, writable)
    b.declare(x)
    b.declare(y)
    for parameter in ("n", "m", "len"):
        b.parameters[parameter] = lambda: x
    for axis in "xyz":
        for k in ("tid", "ntid", "ctaid", "nctaid"):
            b.parameters[f"{k}.{axis}"] = lambda k=k, axis=axis: _special(b, f"%{k}.{axis}")  # type: ignore[misc]
    compare(b, "r")
    statements(b, choose.choice((2, 4, 6)))
    result = choose.choice(("", "r", "rd"))
    kind = {"": "", "r": "b32", "rd": "b64"}[result]
    head = f"(.param .{kind} {name}_r) " if result else ""
    text = f".func {head}{name}(.param .b64 {name}_p, .param .b32 {name}_x, .param .b32 {name}_y)\n{{\n"
    returned = f"\tst.param.{kind} [{name}_r+0], {b.pick(result, 20).name};\n" if result else ""
    text += "".join(line + "\n" for line in b.body()) + f"$END{name}:\n{returned}\tret;\n}}\n"
    return text, lambda c: _call(c, name, result, writable)


def _special(b: Builder, name: str) -> Value:
    value = b.fresh("r", 7, fixed=True)
    b.emit(f"mov.u32 {value.name}, {name}")
    return b.declare(value)


def _call(c: Builder, name: str, result: str, writable: bool) -> None:
    candidates = [v for v in c.pointers if (v.writable or not writable) and v.align >= 16 and v.bits <= 34]
    if not candidates or c.depth > 1:
        return
    arguments = (("b64", c.choose.choice(candidates)), ("b32", c.pick("r", 8)), ("b32", c.pick("r", 10)))
    guard = f"@{c.pick('p').name} " if not result and c.maybe(0.2) else ""
    c.lines.append("\t{")
    for at, (kind, value) in enumerate(arguments):
        c.emit(f".param .{kind} param{at}")
        c.emit(f"st.param.{kind} [param{at}+0], {value.name}")
    given = "param0, param1, param2"
    uniform = "" if guard or c.maybe(0.5) else ".uni"
    if result:
        d = c.fresh(result, 20)
        kind = {"r": "b32", "rd": "b64"}[result]
        c.emit(f".param .{kind} retval0")
        c.emit(f"call{uniform} (retval0), {name}, ({given})")
        c.emit(f"ld.param.{kind} {d.name}, [retval0+0]")
        c.declare(d)
    else:
        c.emit(f"{guard}call{uniform} {name}, ({given})")
    c.lines.append("\t}")
