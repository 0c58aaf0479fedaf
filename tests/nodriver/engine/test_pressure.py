"""Registers that a kernel needs by its text: counted by hand."""

from __future__ import annotations

import pytest

from ptxparse.parser import parse
from softgpu.engine.pressure import registers

HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"
DECLARED = ".reg .b32 %r<40>; .reg .b64 %d<40>; .reg .pred %p<5>; .reg .b16 %h<5>;"


def needed(body: str, directives: str = "", functions: str = "") -> int:
    text = HEAD + functions + f".visible .entry k(.param .u64 a) {directives} {{ {DECLARED} {body} ret; }}"
    module = parse(text)
    return registers(module, module.entries[-1])


def many(first: str, count: int) -> str:
    """Values that are all live until the last is there."""
    made = "".join(f"mov.b32 %r{n}, {n};" for n in range(count))
    return made + first + "".join(f"st.global.u32 [%d0], %r{n};" for n in range(count))


@pytest.mark.parametrize(("body", "expected"), [
    ("", 8), (many("ld.param.u64 %d0, [a];", 20), 22), ("ld.param.u64 %d0, [a];" + many("", 20), 22),
    (many("ld.param.u64 %d0, [a]; mov.u16 %h1, 3; st.global.u16 [%d0], %h1;", 20), 23),
    (many("ld.param.u64 %d0, [a]; setp.eq.u32 %p1, %r1, %tid.x; @%p1 mov.b32 %r30, 1;", 20), 22),
    (many("ld.param.u64 %d0, [a]; mov.b32 %r30, 2; st.global.u32 [%d0], %r30;", 20), 23),
    ("ld.param.u64 %d0, [a]; mov.b32 %r39, 0; loop: add.u32 %r39, %r39, 1;" + many("", 12)
     + "setp.lt.u32 %p1, %r39, 9; @%p1 bra loop;", 15),
])  # fmt: skip
def test_what_is_live_at_once(body: str, expected: int) -> None:
    assert needed(body) == expected


def test_limits() -> None:
    body = many("ld.param.u64 %d0, [a];", 20)
    assert needed(body, ".maxnreg 16") == 16 and needed("", ".maxnreg 4") == 4
    assert needed("".join(f".reg .b32 %x{n}; mov.b32 %x{n}, {n};" for n in range(300))
                  + "".join(f"st.global.u32 [0], %x{n};" for n in range(300))) == 255


def test_calls() -> None:
    inner = f".func inner(.param .u64 a) {{ {DECLARED} {many('ld.param.u64 %d0, [a];', 15)} call inner, (a); ret; }}\n"
    outer = f".func outer(.param .u64 a) {{ {DECLARED} {many('ld.param.u64 %d0, [a];', 10)} call inner, (a); ret; }}\n"
    body = many("ld.param.u64 %d0, [a];", 20) + "call outer, (a); call inner, (a);"
    assert needed(body, functions=inner + outer) == 22 + 12 + 17
    chain = "".join(f".func f{n}() {{ call f{n + 1}; ret; }}\n" for n in range(3000)) + ".func f3000() { ret; }\n"
    assert needed("call f0;", functions=chain) == 8
