"""Several PTX texts as one: what goes, what is renamed, what does not go together; and that the result runs."""

from __future__ import annotations

import numpy as np
import pytest

from softgpu.engine import LoadedModule, Memory, launch
from softgpu.engine.description import describe
from softgpu.engine.merge import MergeError, merge

HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"


def merged(*texts: str) -> str:
    return merge([(text if text.startswith(".version") else HEAD + text).encode() for text in texts]).decode()


def statements(text: str) -> list[str]:
    """The statements behind the header, without spaces and line ends."""
    return [" ".join(part.split()) for part in text.split(".address_size 64\n")[1].split("\n") if part.strip()]


CALLER = """
// calls what others have
.extern .func (.param .b32 r) add(.param .b32 a, .param .b32 b);
.extern .global .align 4 .u32 counter;
.global .align 4 .u32 bias[2] = {5, 6};
.func (.param .b32 r) mine(.param .b32 a) {
    .reg .b32 %r<4>;
    ld.param.b32 %r1, [a];
    ld.global.u32 %r2, [bias];
    add.s32 %r3, %r1, %r2;
    st.param.b32 [r], %r3;
    ret;
}
.visible .entry first(.param .u64 p) {
    .reg .b32 %r<9>; .reg .b64 %rd<5>; .reg .pred %p;
    .param .b32 a, b, r;
    ld.param.u64 %rd1, [p];
    mov.u32 %r1, %tid.x;
    st.param.b32 [a], %r1;
    st.param.b32 [b], 100;
    call.uni (r), add, (a, b);
    ld.param.b32 %r2, [r];
    st.param.b32 [a], %r2;
    call (r), mine, (a);
    ld.param.b32 %r3, [r];
    ld.global.u32 %r4, [counter];
    setp.eq.u32 %p, %r1, 3;
    @%p bra skip;
    @!%p add.u32 %r3, %r3, %r4;
skip:
    mad.wide.u32 %rd2, %r1, 4, %rd1;
    st.global.u32 [%rd2], %r3;
    ret;
}
"""

OTHER = """
.file 1 "other.cu"
.visible .global .align 4 .u32 counter = 1000;
.global .align 4 .u32 bias = 70;
.global .align 8 .u64 places[2] = {bias, mine};
.func mine() { .loc 1 2 3
    add: ret; }
.func (.param .b32 r) skip(.param .b32 a) {
    .reg .b32 %r<4>;
    .loc 1 7 0
    ld.param.b32 %r1, [a];
    ld.global.u32 %r2, [bias];
    add.s32 %r1, %r1, %r2;
    st.param.b32 [r], %r1;
    ret;
}
.visible .func (.param .b32 r) add(.param .b32 a, .param .b32 b) {
    .reg .b32 %r<4>;
    .param .b32 x, y;
    ld.param.b32 %r1, [a];
    ld.param.b32 %r2, [b];
    add.s32 %r3, %r1, %r2;
    st.param.b32 [x], %r3;
    call (y), skip, (x);
    ld.param.b32 %r3, [y];
    st.param.b32 [r], %r3;
    ret;
}
.section .debug_str { .b8 0, 1, 2 }
"""


@pytest.mark.parametrize("order", [(CALLER, OTHER), (OTHER, CALLER)], ids=["caller first", "caller last"])
def test_the_whole_runs(order: tuple[str, str]) -> None:
    text = merged(*order)
    assert describe(text.encode())["unresolved"] == []
    out = np.zeros(8, np.uint32)
    launch(LoadedModule(text, Memory()), "first", grid=1, block=8, arguments=[out])
    assert out.tolist() == [n + 100 + 70 + 5 + (0 if n == 3 else 1000) for n in range(8)]


def test_one_text_stays_as_it_is() -> None:
    assert merge([b"anything"]) == b"anything"


def test_header() -> None:
    text = merged(".version 7.5 .target sm_75 .address_size 64\n.global .u32 a;", HEAD + ".global .u32 b;",
                  ".version 7.8\n.target sm_75, debug\n.address_size 64\n.global .u32 c;")
    assert text.startswith(HEAD)
    targets = [f".version 8.0\n.target {name}\n.address_size 64\n" for name in ("sm_90a", "sm_80", "sm_90")]
    assert merged(*targets).split()[3] == "sm_90a"


@pytest.mark.parametrize(("texts", "expected"), [
    ([".global .u32 a;", ".global .u32 a;"], [".global .u32 a;", ".global .u32 a$2;"]),
    ([".global .u32 a;", ".global .u32 a$3;", ".global .u32 a;"],
     [".global .u32 a;", ".global .u32 a$3;", ".global .u32 a$4;"]),
    ([".visible .global .u32 a;", ".global .u32 a;"], [".visible .global .u32 a;", ".global .u32 a$2;"]),
    ([".global .u32 a;", ".visible .global .u32 a;"], [".global .u32 a$1;", ".visible .global .u32 a;"]),
    ([".global .u32 a;", ".extern .global .u32 a;"], [".global .u32 a$1;", ".extern .global .u32 a;"]),
    ([".extern .global .u32 a;"] * 2, [".extern .global .u32 a;"]),
    ([".weak .global .u32 a = 1;", ".weak .global .u32 a = 2;"], [".weak .global .u32 a = 1;"]),
    ([".weak .global .u32 a = 1;", ".visible .global .u32 a = 2;"], [".visible .global .u32 a = 2;"]),
    ([".common .global .u32 a;"] * 2, [".common .global .u32 a;"]),
    ([".extern .shared .b8 s[];"] * 2, [".extern .shared .b8 s[];", ".extern .shared .b8 s$2[];"]),
    ([".visible .func f(); .visible .func f() { ret; }", ".extern .func f();"],
     [".visible .func f(); .visible .func f() { ret; }"]),
    ([".weak .func f(); .weak .func f() { ret; }", ".visible .func f() { ret; }"], [".visible .func f() { ret; }"]),
    ([".visible .func f();\n.alias f, g;\n.func g() { ret; }", ".func g() { ret; }"],
     [".visible .func f();", ".alias f, g;", ".func g() { ret; }", ".func g$2() { ret; }"]),
    ([".global .u64 a = {x};.global .u32 x;", ".global .u32 x;"],
     [".global .u64 a = {x};", ".global .u32 x;", ".global .u32 x$2;"]),
    ([".global .u32 x;", ".global .u64 a[2] = {x, x+4};\n.global .u32 x;"],
     [".global .u32 x;", ".global .u64 a[2] = {x$2, x$2+4};", ".global .u32 x$2;"]),
    ([".func add() { ret; }", ".func add() { .reg .f32 %f; add.f32 %f, %f, %f; @%p add.f32 %f, %f, %f; call add; }"],
     [".func add() { ret; }",
      ".func add$2() { .reg .f32 %f; add.f32 %f, %f, %f; @%p add.f32 %f, %f, %f; call add$2; }"]),
    ([".func mov() { ret; }", ".func mov() { mov.b64 {%a, %b}, %c; mov: mov.u64 %c, mov; { mov.u32 %a, 0; } ret; }"],
     [".func mov() { ret; }",
      ".func mov$2() { mov.b64 {%a, %b}, %c; mov$2: mov.u64 %c, mov$2; { mov.u32 %a, 0; } ret; }"]),
    (['.pragma "a \\"; x";', ".global .u32 a; // x\n/* ; } */"], ['.pragma "a \\"; x";', ".global .u32 a;"]),
])  # fmt: skip
def test_what_becomes_of_statements(texts: list[str], expected: list[str]) -> None:
    assert " ".join(statements(merged(*texts))) == " ".join(expected)


@pytest.mark.parametrize(("texts", "message"), [
    ([".visible .global .u32 a;"] * 2, "multiple definition of 'a'"),
    ([".visible .entry k() { ret; }", ".entry k() { ret; }"], "multiple definition of 'k'"),
    ([".common .global .u32 a;", ".common .global .u64 a;"], "multiple definition of 'a'"),
    ([".visible .func f() { ret; }", ".visible .global .u32 f;"], "multiple definition of 'f'"),
    ([".global .u32 a, b;", ""], "input 1: cannot link a declaration of several names, a, b"),
    (["", ".global .u32 a"], "input 2: the text ends within a statement"),
    (["", ".func f() { ret;"], "input 2: the text ends within a statement"),
    (["", "@@DWARF x;"], "input 2: expected a directive, found @"),
    (["", ".unheard of;"], "input 2: cannot link .unheard"),
    (["", ".global .u32 = 5;"], "input 2: a declaration without a name"),
    ([".version 8.0\n", ""], "input 1 has no .target"),
    ([".version 8\n.target sm_80", ""], "input 1: .version lacks what belongs to it"),
    ([".version 8.0\n.target sm_80\n.address_size 32", ""], "different sizes of addresses"),
    ([".version 8.0\n.target sm_80, texmode_independent\n.address_size 64", ""], "different options of .target"),
])  # fmt: skip
def test_what_does_not_go_together(texts: list[str], message: str) -> None:
    with pytest.raises(MergeError) as caught:
        merged(*texts)
    assert message in str(caught.value)
