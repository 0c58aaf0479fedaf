"""Wording of symbolic sums and conditions."""

from __future__ import annotations

import pytest

from ptxparse.program import AccessProgram, Base, Limit, Parameter
from ptxparse.values import Sum
from tessera.cli.reporters.formula import Formulas

TID, NTID, N, LOOP, SHIFTED, LOADED = range(6)
I4: Sum = (((TID,), 4),)
NODES = (
    ("tid", "x"),
    ("ntid", "x"),
    ("param", 8, 4, True),
    ("loop", 0),
    ("shift_right", (((TID,), 1),), 5),
    ("load", 3, (((TID,), 8),), 4, False),
    ("minimum", (((TID,), 1),), (((N,), 1),)),
    ("alternatives", (((((TID,), 1),), ()), ((((N,), 1),), ()))),
    ("lt", (((TID,), 1),), (((), 7),)),
    ("something_new", "z"),
    ("wrap", (((), 1), ((TID,), 1)), 32, True),
    ("each", 7, 16),
)
PROGRAM = AccessProgram(
    kernel="k", line=1,
    parameters=(Parameter("k_param_0", "u64", 0, 8, 8, None), Parameter("k_param_1", "b8", 8, 16, 8, None)),
    parameter_bytes=24, nodes=NODES, low=(0,) * len(NODES), high=(9,) * len(NODES), uniform=(), loops=(),
    accesses=(), global_sizes={},
)
WORDS = Formulas(PROGRAM)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ((), "0"),
        ((((), -3),), "-3"),
        ((((), 16), ((TID,), 4), ((TID, NTID), -1)), "4*tid.x - tid.x*ntid.x + 16"),
        ((((TID,), -1),), "-tid.x"),
        ((((N,), 1),), "param_1"),
        ((((LOOP,), 32),), "32*k0"),
        ((((SHIFTED,), 1),), "(tid.x >> 5)"),
        ((((LOADED,), 1),), "[8*tid.x]"),
        ((((6,), 2),), "2*min(tid.x, param_1)"),
        ((((7,), 1),), "(tid.x or param_1)"),
        ((((8,), 1),), "(tid.x < 7)"),
        ((((9,), 1),), "something_new.z"),
        ((((10,), 4),), "4*(tid.x + 1)"),
        ((((11,), 64),), "64*(0…15)"),
    ],
)
def test_sums(value: Sum, text: str) -> None:
    assert WORDS.sum(value) == text


@pytest.mark.parametrize(
    ("value", "relation", "text"),
    [
        ((((), 1), ((TID,), 1), ((N,), -1)), "le", "tid.x < param_1"),
        ((((TID,), 1), ((N,), -1)), "le", "tid.x <= param_1"),
        ((((), -9), ((TID,), 2)), "le", "2*tid.x <= 9"),
        ((((), -9), ((TID,), 2)), "ne", "2*tid.x != 9"),
    ],
)
def test_limits(value: Sum, relation: str, text: str) -> None:
    assert WORDS.limit(Limit(value, relation, ())) == text


def test_conditions_that_always_hold_are_left_out() -> None:
    always = Limit((((), -9), ((TID,), 1)), "le", ())
    sometimes = Limit((((), -8), ((TID,), 1)), "le", ())
    assert WORDS.conditions([always, sometimes]) == ["tid.x <= 8"]


def test_names_in_full() -> None:
    full = Formulas(PROGRAM, full_names=True)
    assert (full.base(Base(16)), full.sum((((N,), 1),))) == ("k_param_1+8", "k_param_1")


def test_bases() -> None:
    assert WORDS.base(Base(0)) == "param_0"
    assert WORDS.base(Base(16)) == "param_1+8"
    assert WORDS.bases((Base(0), Base(-1, "table"))) == "param_0 or table"


def test_shared_parts_do_not_make_a_text_grow_without_bound() -> None:
    twice = (("tid", "x"), *(("minimum", (((a,), 1),), (((a,), 3), ((a, a), 1))) for a in range(60)))
    program = AccessProgram("k", 1, (), 0, twice, (), (), (), (), (), {})
    assert len(Formulas(program).sum((((60,), 1), ((59,), 1)))) < 20_000


def test_deep_nesting_ends_in_an_ellipsis() -> None:
    nodes = (("tid", "x"), *(("shift_right", (((atom,), 1),), 1) for atom in range(4000)))
    program = AccessProgram("k", 1, (), 0, nodes, (), (), (), (), (), {})
    assert "…" in Formulas(program).sum((((4000,), 1),))
