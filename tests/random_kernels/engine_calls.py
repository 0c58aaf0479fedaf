"""Device functions for the engine's kernels: called in any place, also through their address."""

from __future__ import annotations

import random
from collections.abc import Callable

from tests.random_kernels.builder import Builder, Value
from tests.random_kernels.conversion import compare
from tests.random_kernels.engine_builder import EngineBuilder

Statements = Callable[[Builder, int], None]
Call = Callable[[Builder], None]
SIGNATURE = "(.param .b32 {n}_x, .param .b64 {n}_q, .param .align 16 .b8 {n}_s[16])"


def function(choose: random.Random, number: int, others: list[Call], statements: Statements) -> tuple[str, Call]:
    """A function of two numbers and a struct of three numbers, that returns a struct of three; and what calls it."""
    name = f"f{number}"
    b = EngineBuilder(choose, name)
    b.functions = list(others)
    x, q = b.fresh("r", 10), b.fresh("rd", 20)
    fields = (b.fresh("r", 32), b.fresh("f"), b.fresh("rd", 64))
    b.prologue += [f"\tld.param.u32 {x.name}, [{name}_x];", f"\tld.param.u64 {q.name}, [{name}_q];"]
    if choose.random() < 0.7:
        for (value, type_, offset) in zip(fields, ("b32", "f32", "b64"), (0, 4, 8), strict=True):
            b.prologue.append(f"\tld.param.{type_} {value.name}, [{name}_s+{offset}];")
    else:
        t = b.fresh("r")
        b.prologue += [f"\tld.param.v4.b32 {{{fields[0].name}, {fields[1].name}, {t.name}, {x.name}}}, [{name}_s];",
                       f"\tmov.b64 {fields[2].name}, {{{t.name}, {x.name}}};"]
    for value in (x, q, *fields):
        b.declare(value)
    for parameter in ("n", "m", "len"):
        b.parameters[parameter] = lambda: x
    for axis in "xyz":
        for k in ("tid", "ntid", "ctaid", "nctaid"):
            b.parameters[f"{k}.{axis}"] = lambda k=k, axis=axis: _special(b, f"%{k}.{axis}")  # type: ignore[misc]
    compare(b, "r")
    compare(b, "r")
    statements(b, choose.choice((2, 4, 6)))
    text = f".func (.param .align 16 .b8 {name}_r[16]) {name}{SIGNATURE.format(n=name)}\n{{\n"
    text += "".join(line + "\n" for line in b.body()) + f"$END{name}:\n"
    # What is returned must be set on every way: the prologue's values are.
    text += f"\tst.param.b32 [{name}_r+0], {fields[0].name};\n\tst.param.f32 [{name}_r+4], {fields[1].name};\n"
    text += f"\tst.param.b64 [{name}_r+8], {q.name};\n\tret;\n}}\n"
    return text, lambda c: _call(c, name)


def _special(b: Builder, name: str) -> Value:
    value = b.fresh("r", 7, fixed=True)
    b.emit(f"mov.u32 {value.name}, {name}")
    return b.declare(value)


def _call(c: Builder, name: str) -> None:
    if c.depth > 1:
        return
    if not c.of("f"):
        return
    guard = f"@{c.pick('p').name} " if c.maybe(0.15) else ""
    d, f, e = c.fresh("r", 32), c.fresh("f"), c.fresh("rd", 64)
    if guard:
        c.emit(f"mov.u32 {d.name}, 3")
        c.emit(f"mov.f32 {f.name}, 0f00000000")
        c.emit(f"mov.u64 {e.name}, 4")
    c.lines.append("\t{")
    c.emit(".param .b32 param0")
    c.emit(".param .b64 param1")
    c.emit(".param .align 16 .b8 param2[16]")
    c.emit(".param .align 16 .b8 retval0[16]")
    c.emit(f"st.param.b32 [param0+0], {c.pick('r').name}")
    c.emit(f"st.param.b64 [param1+0], {c.pick('rd').name}")
    if c.maybe(0.5):
        c.emit(f"st.param.b32 [param2+0], {c.pick('r').name}")
        c.emit(f"st.param.f32 [param2+4], {c.pick('f').name}")
        c.emit(f"st.param.b64 [param2+8], {c.pick('rd').name}")
    else:
        c.emit(f"st.param.v2.b32 [param2+0], {{{c.pick('r').name}, {c.pick('f').name}}}")
        c.emit(f"st.param.v2.b32 [param2+8], {{{c.pick('r').name}, {c.pick('r').name}}}")
    target, listed = name, ""
    label = ""
    if guard:
        label = c.label()
        c.emit(f"@!{guard[1:].strip()} bra {label}")
    if not c.suffix and c.maybe(0.2):
        at = c.fresh("rd")
        c.emit(f"mov.u64 {at.name}, {name}")
        prototype = c.label() + "p"
        c.lines.append(f"{prototype}: .callprototype (.param .align 16 .b8 _[16]) _ (.param .b32 _, .param .b64 _, "
                       ".param .align 16 .b8 _[16]);")
        target, listed = at.name, f", {prototype}"
    uniform = "" if guard or c.maybe(0.5) or listed else ".uni"
    c.emit(f"call{uniform} (retval0), {target}, (param0, param1, param2){listed}")
    c.emit(f"ld.param.b32 {d.name}, [retval0+0]")
    c.emit(f"ld.param.f32 {f.name}, [retval0+4]")
    c.emit(f"ld.param.b64 {e.name}, [retval0+8]")
    if label:
        c.mark(label)
    c.lines.append("\t}")
    for value in (d, f, e):
        c.declare(value)
