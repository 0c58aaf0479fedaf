"""Nested scopes: what an inner ``{ }`` declares is renamed, so that names are unique in a function."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ptxparse.errors import PtxError
from ptxparse.model import Address, Function, Register, Symbol
from ptxparse.scope import DEEPEST_SCOPE
from tests.ptxtext import kernel, module


def targets(function: Function) -> list[int]:
    """Where the branches of a function go, as indices."""
    assert function.instructions is not None
    found = []
    for i in function.instructions:
        if i.opcode == "bra":
            (target,) = i.operands
            assert isinstance(target, Symbol)
            found.append(function.labels[target.name])
    return found


def test_an_inner_register_hides_the_outer_one() -> None:
    k = kernel(
        """.reg .b32 t;
        mov.u32 t, 1;
        { .reg .f32 t; mov.f32 t, 0f3F800000; { .reg .b64 t; mov.u64 t, 2; } mov.f32 t, 0f00000000; }
        mov.u32 t, 3;
        """
    )
    assert k.instructions is not None
    names = [i.operands[0].name for i in k.instructions if isinstance(i.operands[0], Register)]
    assert names[0] == names[4] == "t"
    assert names[1] == names[3] != "t"
    assert len(set(names)) == 3
    assert [k.register_type(n) for n in names] == ["b32", "f32", "b64", "f32", "b32"]


def test_sibling_scopes_may_declare_the_same_names() -> None:
    k = kernel(
        """
        { .reg .b32 t<3>; .reg .pred p; mov.u32 t1, 1; setp.eq.s32 p, t1, t2; @p bra L; L: }
        { .reg .b64 t<3>; .reg .pred p; mov.u64 t1, 1; @!p bra L; ret; L: }
        """
    )
    assert k.instructions is not None
    first, second = k.instructions[0].operands[0], k.instructions[3].operands[0]
    assert isinstance(first, Register) and isinstance(second, Register)
    assert (k.register_type(first.name), k.register_type(second.name)) == ("b32", "b64")
    assert k.instructions[2].predicate != k.instructions[4].predicate
    assert targets(k) == [3, 6]


def test_inline_assembly_as_compilers_write_it() -> None:
    k = kernel(
        """
        // begin inline asm
        {.reg .b16 low,high;
        mov.b32 {low,high}, %r1;
        cvt.f32.f16 %f1, low;}
        // end inline asm
        { .reg .b16 low,high;
        mov.b32 {low,high}, %r2;
        cvt.f32.f16 %f2, high;}
        """
    )
    assert k.instructions is not None
    a, b = k.instructions[1].operands[1], k.instructions[3].operands[1]
    assert isinstance(a, Register) and isinstance(b, Register)
    assert k.register_type(a.name) == k.register_type(b.name) == "b16" and a != b


def test_outer_names_are_seen_inside() -> None:
    k = kernel(".reg .b32 t; .shared .b8 s[4]; { { mov.u32 %r1, t; ld.shared.u8 %r1, [s+1]; bra E; } } E: ret;")
    assert k.instructions is not None
    assert k.instructions[0].operands == (Register("%r1"), Register("t"))
    assert k.instructions[1].operands[1] == Address(Symbol("s"), 1)
    assert targets(k) == [3]


def test_variables_of_inner_scopes() -> None:
    k = kernel(
        """
        { .param .b64 param0; st.param.b64 [param0], %rd1; call f, (param0); }
        { .param .b64 param0; st.param.b64 [param0], %rd2; call g, (param0); }
        """
    )
    assert k.instructions is not None
    assert len({v.name for v in k.variables}) == 2
    for store, call, variable in zip(k.instructions[::2], k.instructions[1::2], k.variables, strict=True):
        assert store.operands[0] == Address(Symbol(variable.name))
        assert call.operands[2].items == (Symbol(variable.name),)  # type: ignore[union-attr]


def test_a_label_is_found_in_the_innermost_scope_that_has_it() -> None:
    k = kernel("bra L; { bra L; bra M; { bra L; L: bra L; } L: bra L; } M: L: ret;")
    assert targets(k) == [6, 5, 6, 4, 4, 5]


def test_lists_of_labels_in_inner_scopes() -> None:
    k = kernel("{ brx.idx %r1, T; T: .branchtargets A, B, C; A: ret; { B: ret; } B: ret; } C: ret;")
    (name,) = k.branch_targets
    assert k.instructions is not None
    assert k.instructions[0].operands[1] == Symbol(name)
    assert [k.labels[t] for t in k.branch_targets[name]] == [1, 3, 4]


def test_labels_at_the_end_and_several_on_one_place() -> None:
    k = kernel("bra B; ret; A: B: C:")
    assert {n: k.labels[n] for n in "ABC"} == {"A": 2, "B": 2, "C": 2}


@pytest.mark.parametrize("body", ["L: ret; L: ret;", "{ L: ret; L: ret; }"])
def test_a_label_twice_in_one_scope_is_an_error(body: str) -> None:
    with pytest.raises(PtxError, match="label"):
        kernel(body)


def test_new_names_never_collide_with_written_ones() -> None:
    k = kernel(
        """.reg .b32 t$1, t$$2; mov.u32 t$1, 0;
        { .reg .b64 t; mov.u64 t, 1; bra L; L: }
        { .reg .b16 t; mov.b16 t, 1; bra L; L: }
        bra L$1; L$1: ret;
        """
    )
    assert k.instructions is not None
    moves = [i.operands[0].name for i in k.instructions if i.opcode == "mov" and isinstance(i.operands[0], Register)]
    assert [k.register_type(n) for n in moves] == ["b32", "b64", "b16"]
    assert targets(k) == [3, 5, 6]


def test_deep_nesting_within_the_limit() -> None:
    depth = DEEPEST_SCOPE - 1
    k = kernel("{ .reg .b32 t; mov.u32 t, 1; " * depth + "}" * depth + " mov.u32 %r1, 2;")
    assert k.instructions is not None and len(k.instructions) == depth + 1
    assert len({i.operands[0] for i in k.instructions}) == depth + 1


def test_nesting_beyond_the_limit_is_an_error() -> None:
    with pytest.raises(PtxError, match=f"at most {DEEPEST_SCOPE}"):
        kernel("{" * (DEEPEST_SCOPE + 2) + "}" * (DEEPEST_SCOPE + 2))


@given(st.recursive(st.just(()), lambda inner: st.lists(inner, max_size=3).map(tuple), max_leaves=20))
def test_every_scope_sees_its_own_register(tree: tuple[object, ...]) -> None:
    """Each scope declares ``t``, writes it before and after its children, and branches to its own ``L``."""

    def text(node: tuple[object, ...]) -> str:
        children = "".join(text(child) for child in node)  # type: ignore[arg-type]
        return "{ .reg .b32 t; bra L; mov.u32 t, 1; " + children + " mov.u32 t, 2; L: mov.u32 t, 3; }\n"

    k = kernel(text(tree))
    assert k.instructions is not None
    owners: list[str] = []
    for i in k.instructions:
        if i.opcode == "mov":
            register, value = i.operands
            assert isinstance(register, Register)
            if value.value == 1:  # type: ignore[union-attr]
                assert register.name not in owners
                owners.append(register.name)
            elif value.value == 2:  # type: ignore[union-attr]
                assert owners[-1] == register.name
            else:
                assert owners.pop() == register.name
    assert owners == []
    scopes = sum(1 for i in k.instructions if i.opcode == "bra")
    assert len(set(targets(k))) == scopes == len(k.labels)


def test_registers_of_one_function_do_not_leak_into_another() -> None:
    parsed = module(".func f() { .reg .b32 x; mov.u32 x, 1; ret; }\n.global .u32 x;\n.func g() { mov.u32 y, x; ret; }")
    f, g = parsed.functions
    assert f.instructions is not None and g.instructions is not None
    assert f.instructions[0].operands[0] == Register("x")
    assert g.instructions[0].operands[1] == Symbol("x")


def test_names_are_plain_identifiers() -> None:
    k = kernel("{ .reg .b32 t<2>; { .reg .b32 t<2>; mov.u32 t1, 1; } mov.u32 t1, 1; }")
    assert k.instructions is not None
    for i in k.instructions:
        register = i.operands[0]
        assert isinstance(register, Register) and re.fullmatch(r"[%\w$]+", register.name)
        assert k.register_type(register.name) == "b32"
