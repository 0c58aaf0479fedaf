"""Calls replaced by bodies: what is inlined computes the same, what is not is reported."""

from __future__ import annotations

import dataclasses
import struct

import numpy as np
import pytest

from ptxparse.inline import BUILTINS, Body, inline
from ptxparse.model import Function, Instruction, Module, Register, Symbol
from ptxparse.usage import registers_in
from softgpu.reference import LoadedModule, Memory, launch
from tessera.reasons import Reason
from tests.ptxtext import REGISTERS, module


def body_of(functions: str, kernel_body: str, name: str = "k") -> tuple[Module, Body]:
    parsed = module(f"{functions}\n.visible .entry {name}(.param .u64 out)\n{{\n{REGISTERS}{kernel_body}\n}}\n")
    found = parsed.function(name)
    assert found is not None
    return parsed, inline(parsed, found)


def inlined_module(parsed: Module, body: Body) -> Module:
    """The module with its kernel replaced by what inlining made of it."""
    used = {name for i in body.instructions for operand in (*i.operands, *([i.predicate] if i.predicate else ()))
            for name in registers_in(operand)}
    types = {name: kind for name in used if (kind := body.register_type(name)) is not None}
    function = dataclasses.replace(
        body.function, instructions=body.instructions, labels=body.labels, branch_targets=body.targets,
        register_types={**body.function.register_types, **types},
    )
    return dataclasses.replace(parsed, functions=[function])


def output(parsed: Module, threads: int = 8) -> list[int]:
    """What the kernel leaves in 2 words per thread."""
    memory = Memory()
    loaded = LoadedModule(parsed, memory)
    out = memory.allocate(16 * threads)
    launch(loaded, "k", (1, 1, 1), (threads, 1, 1), struct.pack("<Q", out))
    return [int(x) for x in np.frombuffer(memory.read(out, 16 * threads), np.uint64)]


STORE = """
    ld.param.u64 %rd9, [out]; mov.u32 %r9, %tid.x; mul.wide.u32 %rd8, %r9, 16; add.s64 %rd9, %rd9, %rd8;
    st.global.u64 [%rd9], %rd1; st.global.u32 [%rd9+8], %r1; ret;
"""
SQUARE = """
.func (.param .b32 result) square(.param .b32 x)
{
    .reg .b32 %r<4>;
    ld.param.u32 %r1, [x];
    mul.lo.s32 %r2, %r1, %r1;
    st.param.b32 [result], %r2;
    ret;
}
"""
CALL_SQUARE = """
    { .param .b32 x; st.param.b32 [x], %r1; .param .b32 result;
      call.uni (result), square, (x); ld.param.b32 %r1, [result]; }
"""
POWER = SQUARE + """
.func (.param .b64 result) fourth(.param .b32 x, .param .b64 more)
{
    .reg .b32 %r<4>; .reg .b64 %rd<4>; .reg .pred %p<2>;
    ld.param.u32 %r1, [x];
    setp.gt.s32 %p1, %r1, 5;
    @%p1 bra LARGE;
    { .param .b32 x1; st.param.b32 [x1+0], %r1; .param .b32 y1; call.uni (y1), square, (x1); ld.param.b32 %r1, [y1+0]; }
    { .param .b32 x1; st.param.b32 [x1+0], %r1; .param .b32 y1; call.uni (y1), square, (x1); ld.param.b32 %r1, [y1+0]; }
    ld.param.u64 %rd2, [more];
    cvt.u64.u32 %rd1, %r1;
    add.s64 %rd1, %rd1, %rd2;
    st.param.b64 [result], %rd1;
    ret;
LARGE:
    mov.u64 %rd1, 77;
    st.param.b64 [result], %rd1;
    ret;
}
"""
PROGRAMS = {
    "a call": (SQUARE, f"mov.u32 %r1, %tid.x; mov.u64 %rd1, 5; {CALL_SQUARE}"),
    "two calls of one function": (SQUARE, f"mov.u32 %r1, %tid.x; mov.u64 %rd1, 5; {CALL_SQUARE} {CALL_SQUARE}"),
    "a call in a loop": (SQUARE, f"""
        mov.u32 %r1, %tid.x; mov.u32 %r2, 0; mov.u64 %rd1, 0;
        AGAIN: {CALL_SQUARE} add.s32 %r1, %r1, 1; add.s32 %r2, %r2, 1; setp.lt.s32 %p1, %r2, 3; @%p1 bra AGAIN;"""),
    "calls in calls, with early returns": (POWER, """
        mov.u32 %r1, %tid.x; mov.u64 %rd1, 1000;
        { .param .b32 x; st.param.b32 [x], %r1; .param .b64 m; st.param.b64 [m], %rd1; .param .b64 y;
          call.uni (y), fourth, (x, m); ld.param.b64 %rd1, [y]; }"""),
    "a guarded call": (SQUARE, """
        mov.u32 %r1, %tid.x; mov.u64 %rd1, 0; setp.lt.u32 %p1, %r1, 3;
        { .param .b32 x; st.param.b32 [x], %r1; .param .b32 y; mov.u32 %r2, 9; st.param.b32 [y], %r2;
          @%p1 call (y), square, (x); ld.param.b32 %r1, [y]; }"""),
    "a call guarded by a negated predicate": (SQUARE, """
        mov.u32 %r1, %tid.x; mov.u64 %rd1, 0; setp.lt.u32 %p1, %r1, 3;
        { .param .b32 x; st.param.b32 [x], %r1; .param .b32 y; mov.u32 %r2, 9; st.param.b32 [y], %r2;
          @!%p1 call (y), square, (x); ld.param.b32 %r1, [y]; }"""),
    "registers as parameters and results": ("""
        .func (.reg .b32 %r1) twice(.reg .b32 %r2, .reg .b64 %rd3)
        { cvt.u32.u64 %r1, %rd3; add.s32 %r1, %r1, %r2; add.s32 %r1, %r1, %r2; ret; }""", """
        mov.u32 %r4, %tid.x; mov.u64 %rd1, 3; call (%r1), twice, (%r4, %rd1);"""),
    "a constant argument": ("""
        .func (.reg .b32 %r1) plus(.reg .b32 %r2, .reg .b32 %r3) { add.s32 %r1, %r2, %r3; ret; }""", """
        mov.u32 %r4, %tid.x; mov.u64 %rd1, 3; call (%r1), plus, (%r4, 40);"""),
    "a parameter of two words": ("""
        .func (.param .align 8 .b8 r[16]) swapped(.param .align 8 .b8 p[16])
        { .reg .b64 %rd<3>; ld.param.v2.u64 {%rd1, %rd2}, [p]; st.param.b64 [r+0], %rd2; st.param.b64 [r+8], %rd1;
          ret; }
        """, """
        mov.u32 %r1, %tid.x; cvt.u64.u32 %rd1, %r1; mov.u64 %rd2, 500;
        { .param .align 8 .b8 p[16]; st.param.v2.b64 [p], {%rd1, %rd2}; .param .align 8 .b8 r[16];
          call.uni (r), swapped, (p); ld.param.b64 %rd1, [r+0]; ld.param.b64 %rd3, [r+8]; cvt.u32.u64 %r1, %rd3; }"""),
    "a call by an alias": (SQUARE + ".visible .func (.param .b32 result) other(.param .b32 x); .alias other, square;",
                           "mov.u32 %r1, %tid.x; mov.u64 %rd1, 5;" + CALL_SQUARE.replace("square", "other")),
    "labels and loops of the callee": ("""
        .func (.reg .b32 %r1) sum(.reg .b32 %r2)
        { .reg .pred %p<2>; mov.u32 %r1, 0; AGAIN: setp.eq.s32 %p1, %r2, 0; @%p1 bra DONE; add.s32 %r1, %r1, %r2;
          sub.s32 %r2, %r2, 1; bra AGAIN; DONE: ret; }""", """
        mov.u32 %r4, %tid.x; mov.u64 %rd1, 3; call (%r1), sum, (%r4);
        AGAIN: add.s32 %r4, %r4, 1; call (%r5), sum, (%r4); add.s32 %r1, %r1, %r5;
        setp.lt.u32 %p1, %r4, 9; @%p1 bra AGAIN;"""),
}  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_what_is_inlined_computes_the_same(program: tuple[str, str]) -> None:
    functions, code = program
    parsed, body = body_of(functions, code + STORE)
    assert not body.problems and not body.pins
    assert not [i for i in body.instructions if i.opcode == "call"]
    assert output(inlined_module(parsed, body)) == output(parsed)


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_every_register_has_a_type_and_every_target_a_label(program: tuple[str, str]) -> None:
    functions, code = program
    _, body = body_of(functions, code + STORE)
    for instruction in body.instructions:
        names = [name for operand in instruction.operands for name in registers_in(operand)]
        for name in names:
            assert body.register_type(name) is not None or name in ("%tid.x",), name
        if instruction.opcode == "bra":
            (goal,) = instruction.operands
            assert isinstance(goal, Symbol) and goal.name in body.labels


def test_each_copy_has_names_of_its_own() -> None:
    _, body = body_of(SQUARE, f"mov.u32 %r1, 2; {CALL_SQUARE} {CALL_SQUARE} {STORE}")
    products = [i for i in body.instructions if i.mnemonic == "mul.lo.s32"]
    assert len(products) == 2
    assert {registers_in(i.operands[0]) for i in products} == {("%r2@1",), ("%r2@2",)}


def test_lines_stay_those_of_the_text() -> None:
    parsed, body = body_of(SQUARE, f"mov.u32 %r1, 2; {CALL_SQUARE} {STORE}")
    square = parsed.function("square")
    assert square is not None and square.instructions is not None
    (product,) = [i for i in body.instructions if i.mnemonic == "mul.lo.s32"]
    assert product.line == square.instructions[1].line


def test_a_kernel_without_calls_is_left_as_it_is() -> None:
    parsed, body = body_of("", STORE)
    kernel = parsed.function("k")
    assert kernel is not None and body.instructions is kernel.instructions


def test_variables_of_the_module_and_of_callees_are_known() -> None:
    functions = """
        .global .b32 counter;
        .func touch() { .local .b32 scratch; .reg .b64 %rd<2>; mov.u64 %rd1, scratch; ret; }
    """
    _, body = body_of(functions, ".shared .b32 tile; call.uni touch; ret;")
    assert {name: v.space for name, v in body.variables.items()} == {
        "counter": "global", "tile": "shared", "out": "param", "scratch@1": "local"}
    (move,) = [i for i in body.instructions if i.opcode == "mov"]
    assert move.operands[1] == Symbol("scratch@1")


def problems(functions: str, code: str) -> list[Reason]:
    _, body = body_of(functions, code)
    return [reason for reason, _ in body.problems]


RECURSIVE = ".func again(.reg .b32 %r1) { call again, (%r1); ret; }"
MUTUAL = """
.func two(.reg .b32 %r1);
.func one(.reg .b32 %r1) { call two, (%r1); ret; }
.func two(.reg .b32 %r1) { call one, (%r1); ret; }
"""


@pytest.mark.parametrize(("functions", "code", "reason"), [
    (RECURSIVE, "call again, (%r1); ret;", Reason.RECURSIVE_CALL),
    (MUTUAL, "call one, (%r1); ret;", Reason.RECURSIVE_CALL),
    (".extern .func gone(.param .b32 x);", "call gone, (%r1); ret;", Reason.UNDEFINED_CALLEE),
    ("", "call nothing, (%r1); ret;", Reason.UNDEFINED_CALLEE),
    ("", "P: .callprototype _ (.param .b32 _); call %rd1, (%r1), P; ret;", Reason.INDIRECT_CALL),
])  # fmt: skip
def test_what_cannot_be_inlined_is_a_problem(functions: str, code: str, reason: Reason) -> None:
    assert problems(functions, code) == [reason]


def test_the_line_of_a_problem_is_that_of_the_call() -> None:
    _, body = body_of("", "mov.u32 %r1, 0;\n\ncall nothing;\nret;")
    (call,) = [i for i in body.instructions if i.opcode == "call"]
    assert body.problems == [(Reason.UNDEFINED_CALLEE, call.line)]


@pytest.mark.parametrize("name", BUILTINS)
def test_functions_of_the_runtime_pin_the_kernel(name: str) -> None:
    _, body = body_of(f".extern .func {name}(.param .b64 x);", f"call {name}, (%rd1); ret;")
    assert not body.problems
    assert [reason for reason, _ in body.pins] == [BUILTINS[name]]


def test_a_function_of_that_name_with_a_body_is_an_ordinary_one() -> None:
    _, body = body_of(".func free(.param .b64 x) { ret; }", "call free, (%rd1); ret;")
    assert not body.problems and not body.pins


def doubling(levels: int) -> str:
    """Functions that call the one before twice."""
    parts = [".func f0(.reg .b32 %r1) { add.s32 %r1, %r1, 1; ret; }"]
    for i in range(1, levels):
        parts.append(f".func f{i}(.reg .b32 %r1) {{ call f{i - 1}, (%r1); call f{i - 1}, (%r1); ret; }}")
    return "\n".join(parts)


def test_the_size_of_what_is_inlined_is_limited() -> None:
    assert problems(doubling(8), "call f7, (%r1); ret;") == []
    found = problems(doubling(40), "call f39, (%r1); ret;")
    assert found and set(found) == {Reason.INLINE_LIMIT}


def test_a_long_chain_of_calls_does_not_exhaust_the_stack() -> None:
    parts = [".func f0(.reg .b32 %r1) { add.s32 %r1, %r1, 1; ret; }"]
    parts += [f".func f{i}(.reg .b32 %r1) {{ call f{i - 1}, (%r1); ret; }}" for i in range(1, 2000)]
    _, body = body_of("\n".join(parts), "call f1999, (%r1); ret;")
    assert not body.problems
    assert [i.mnemonic for i in body.instructions].count("add.s32") == 1


def test_types_of_instructions_survive() -> None:
    _, body = body_of(SQUARE, f"mov.u32 %r1, 2; {CALL_SQUARE} {STORE}")
    assert all(isinstance(i, Instruction) for i in body.instructions)
    assert isinstance(body.function, Function)
    passed = [i for i in body.instructions if i.mnemonic == "mov.b32" and isinstance(i.operands[0], Register)]
    # The argument goes in, the result comes out, through registers named for the variables.
    assert len(passed) == 4 and all(body.register_type(r) == "b32" for i in passed for o in i.operands
                                    for r in registers_in(o))
