"""Whatever parses can be analysed: broken kernels become opaque programs, never exceptions."""

from __future__ import annotations

import random
import re

import pytest

from ptxparse.api import AccessProgram, analyze, evaluate, program_from_json, program_to_json
from ptxparse.errors import PtxError
from ptxparse.model import Module
from ptxparse.parser import parse
from tests.ptxtext import HEADER, corpus_files, fixture_files

FILES = fixture_files() + corpus_files()
STATEMENT = re.compile(r"[^;{}]*[;{}]")
NUMBER = re.compile(r"(?<![\w.%$])-?\b\d+\b")
REGISTER = re.compile(r"%\w+")
MODIFIER = re.compile(r"\.[a-z]\w*")
STRANGE = [
    "frobnicate.b32 %r1, [%rd1];", "ret;", "exit;", "trap;", "bra $L__BB0_99;", "brx.idx %r1, nowhere;",
    "call nothing;",
    "call (x), %rd1, (y), z;", "ld.global.u32 %r1, [0];", "st.u64 [%rd1], %rd1;", "mov.u64 %rd1, nothing;",
    "atom.global.sideways.b32 %r1, [%rd1], %r2;", "cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r1], %r2;",
    "ld.param.u64 %rd1, [nowhere+4096];", "ld.param.u64 %rd1, [%rd2];", "add.s64 %rd1, %rd1, %rd1;", "ld.global.u32;",
    "mul.lo.s64 %rd1, %rd2, -9223372036854775808;", "shl.b64 %rd1, %rd1, 4294967295;", "div.s32 %r1, %r1, 0;",
    "rem.u64 %rd1, %rd1, 0;", "selp.b64 %rd1, %rd2, %rd3, %p1;", "@%p1 mov.u64 %rd1, %rd2;", "setp.lt.s32 %p1, %r1;",
    "ld.global.v4.f32 {%f1}, [%rd1];", "ld.global.v2.u64 {%rd1, %rd2}, [%rd1+-8];", "mov.b64 {%r1, %r2}, %rd1;",
    "{ .reg .b64 %rd1; mov.u64 %rd1, 5; }", "_x: bra _x;", "discard.global.L2 [%rd1], 128;", "add.s32 5, 6, 7;",
    "wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {%r1}, [%rd1];", "ld.global.u32 %tid.x, [%rd1];",
]  # fmt: skip


def analysed(text: str) -> list[AccessProgram]:
    """Programs of the text; none where it does not parse."""
    try:
        parsed: Module = parse(text)
    except PtxError:
        return []
    programs = analyze(parsed)
    assert [program.kernel for program in programs] == [entry.name for entry in parsed.entries]
    for program in programs:
        assert program_from_json(program_to_json(program)) == program
    return programs


def mutate(text: str, choice: random.Random) -> str:
    """Statements dropped, doubled and exchanged; registers, numbers and modifiers replaced by others of the file."""
    statements = STATEMENT.findall(text)
    registers, modifiers = REGISTER.findall(text), MODIFIER.findall(text)
    for _ in range(choice.randrange(1, 8)):
        i, j = choice.randrange(len(statements)), choice.randrange(len(statements))
        kind = choice.randrange(8)
        if kind == 0:
            statements[i] = "" if statements[i][-1:] == ";" else statements[i]
        elif kind == 1:
            statements[i], statements[j] = statements[j], statements[i]
        elif kind == 2:
            statements[i] += statements[j] if statements[j][-1:] == ";" else ""
        elif kind == 3:
            statements[i] += choice.choice(STRANGE) if statements[i][-1:] == ";" else ""
        elif kind == 4 and REGISTER.search(statements[i]):
            statements[i] = REGISTER.sub(lambda _: choice.choice(registers), statements[i], count=1)
        elif kind == 5:
            number = str(choice.choice([0, -1, 1, 31, 32, 63, 64, 2**31, 2**63, 2**64 - 1, 12345]))
            statements[i] = NUMBER.sub(number, statements[i], count=1)
        elif kind == 6:
            statements[i] = MODIFIER.sub(lambda _: choice.choice(modifiers), statements[i], count=1)
        elif kind == 7:
            statements[i] = statements[i].replace("@", "", 1) if "@" in statements[i] else "@%p1 " + statements[i]
    return "".join(statements)


@pytest.mark.parametrize("number", range(len(FILES)), ids=[file.stem for file in FILES])
def test_mutations_of_real_modules_are_analysed(number: int, long_run: bool) -> None:
    text = FILES[number].read_text()
    text = re.sub(r"//[^\n]*", "", text)
    choice = random.Random(number)
    for _ in range(50 if long_run else 5):
        for program in analysed(mutate(text, choice)):
            if choice.random() < 0.3:
                evaluate(program, (2, 1, 1), (32, 1, 1), bytes(program.parameter_bytes), [("a", 1 << 20, 1 << 12)])


def body(text: str) -> str:
    registers = ".reg .b16 %h<9>; .reg .b32 %r<99>; .reg .b64 %rd<99>; .reg .f32 %f<9>; .reg .pred %p<9>;"
    return f"{HEADER}.visible .entry k(.param .u64 a, .param .u32 n)\n{{\n{registers}\n{text}\n}}\n"


@pytest.mark.parametrize("statement", STRANGE)
def test_strange_statements_are_analysed(statement: str) -> None:
    prologue = "ld.param.u64 %rd1, [a]; ld.param.u32 %r1, [n]; cvta.to.global.u64 %rd1, %rd1;"
    (program,) = analysed(body(f"{prologue}\n{statement}\nst.global.u32 [%rd1], %r1;\nret;"))
    evaluate(program, (1, 1, 1), (1, 1, 1), bytes(program.parameter_bytes), [])


@pytest.mark.parametrize(
    "text",
    [
        "",
        "ret;",
        "A: bra A;",
        "A: bra B; B: bra A;",
        "bra A; B: ret; A: bra B;",
        "@%p1 bra A; ret; A:",
        "A: @%p1 bra C; B: @%p2 bra A; bra C; C: @%p3 bra B; ret;",
        "brx.idx %r1, T; T: .branchtargets A, B, nowhere; A: bra B; B: bra A;",
        "mov.u32 %r1, %r1; add.s32 %r1, %r1, %r1; st.global.u32 [%r1], %r1;",
        "{ { { bra A; } A: } bra A; }",
        "ld.param.u64 %rd1, [a]; L: add.s64 %rd1, %rd1, 4; st.global.u32 [%rd1], %r1; @%p1 bra L;",
        "call k, ();",
        "call (%r1), k, (%rd1, %r1);",
    ],
)
def test_strange_shapes_of_control_flow_are_analysed(text: str) -> None:
    assert len(analysed(body(text))) == 1


def test_recursive_functions_are_analysed() -> None:
    text = HEADER + ".func f(.param .b64 p) { call g, (p); ret; }\n.func g(.param .b64 p) { call f, (p); ret; }\n"
    text += ".entry k(.param .u64 a) { .param .b64 x; call f, (x); ret; }\n"
    (program,) = analysed(text)
    assert program.opaque is not None


def test_a_long_straight_kernel_is_analysed() -> None:
    lines = [f"add.s32 %r{i % 90 + 1}, %r{i % 77 + 1}, %r{i % 91};" for i in range(5000)]
    assert len(analysed(body("\n".join(lines) + "\nst.global.u32 [%rd1], %r3;"))) == 1


def test_many_diamonds_and_loops_are_analysed() -> None:
    diamonds = "".join(f"@%p1 bra E{i}; add.s32 %r1, %r1, {i}; E{i}:\n" for i in range(300))
    assert len(analysed(body(f"ld.param.u64 %rd1, [a];\n{diamonds}\nst.global.u32 [%rd1], %r1;\nret;"))) == 1
    loops = "".join(f"L{i}: add.s32 %r{i + 1}, %r{i + 1}, 1;\n" for i in range(40))
    ends = "".join(f"setp.lt.s32 %p1, %r{i + 1}, 9;\n@%p1 bra L{i};\n" for i in reversed(range(40)))
    assert len(analysed(body(f"ld.param.u64 %rd1, [a];\n{loops}{ends}st.global.u32 [%rd1], %r1;\nret;"))) == 1


def test_five_hundred_scopes_deep() -> None:
    assert len(analysed(body("{" * 400 + "st.global.u32 [%rd1], %r1;" + "}" * 400))) == 1


def test_a_thousand_kernels_are_analysed() -> None:
    one = ".entry k{0}(.param .u64 a) {{ .reg .b64 %rd<2>; .reg .b32 %r<2>; ld.param.u64 %rd1, [a];\n"
    one += "mov.u32 %r1, %tid.x; mad.wide.u32 %rd1, %r1, 4, %rd1; st.global.u32 [%rd1], %r1; ret; }}\n"
    programs = analysed(HEADER + "".join(one.format(i) for i in range(1000)))
    assert len(programs) == 1000 and all(program.opaque is None for program in programs)
