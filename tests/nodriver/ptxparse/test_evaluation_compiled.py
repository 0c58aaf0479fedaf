"""Launch values: the generated code against the sums by definition."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ptxparse.evaluation.compiled import Compiled, DivisionByZero, divide, remainder
from ptxparse.transfer import compare, evaluate, select
from ptxparse.values import Graph, Sum, add, constant
from tests.boxes import one_access, program_of
from tests.symbolic import Growth, Leaf, Oracle, Step, Unspecified, edges, steps, truncated, valuations

UNIFORM = (
    Leaf(("ntid", "x"), 1, 1024, 1024),
    Leaf(("nctaid", "y"), 1, 65535, 65535),
    Leaf(("param", 0, 8, True), -(2**63), 2**63 - 1, 2**63 - 1),
    Leaf(("param", 8, 4, True), -(2**31), 2**31 - 1, 2**31 - 1),
    Leaf(("param", 12, 4, False), 0, 2**32 - 1, 2**32 - 1),
    Leaf(("param", 16, 1, True), -128, 127, 127),
    Leaf(("shared_size",), 0, 2**31 - 1, 2**31 - 1),
)


def launched(graph: Graph, sums: list[Sum], numbers: tuple[int, ...]) -> list[int]:
    """The sums' values as the generated code computes them. Raises :class:`DivisionByZero`."""
    compiled = Compiled(program_of(graph, tuple(one_access("R", s, ((0, 1),)) for s in sums)))
    width, height, word, signed, unsigned, byte, shared = numbers
    params = struct.pack("<qiIb", word, signed, unsigned, byte)
    values = compiled.uniforms(params, (1, height, 1, width, 1, 1), shared)
    assert all(not form.terms for form in compiled.offsets)
    return [values[form.constant] + access.spans[0][0]
            for form, access in zip(compiled.offsets, compiled.program.accesses, strict=True)]


@given(valuations(UNIFORM), steps)
def test_launch_values_are_exact(numbers: tuple[int, ...], program: list[Step]) -> None:
    growth = Growth(numbers, UNIFORM)
    growth.run(program)
    oracle = growth.oracle()
    try:
        wanted = [oracle(value) for value in growth.sums]
    except Unspecified:
        with pytest.raises(DivisionByZero):
            launched(growth.graph, growth.sums, numbers)
        return
    assert launched(growth.graph, growth.sums, numbers) == wanted


@given(edges(-(2**40), 2**40), edges(-40, 40))
def test_quotients_are_truncated(a: int, b: int) -> None:
    if not b:
        for operation in (divide, remainder):
            with pytest.raises(DivisionByZero):
                operation(a, b)
        return
    assert divide(a, b) == truncated(a, b)
    assert remainder(a, b) == a - b * truncated(a, b)


@given(edges(0, 2**32 - 1), st.integers(-(2**31), 2**31 - 1), st.sampled_from(["shr.s32", "shr.u32", "shl.b32"]))
def test_shifts_by_a_launch_value(count: int, value: int, mnemonic: str) -> None:
    graph = Graph()
    leaves = [graph.leaf(leaf.node, leaf.low, leaf.high) for leaf in UNIFORM]
    opcode, kind = mnemonic.split(".")
    found = evaluate(graph, (kind,), opcode, [leaves[3], leaves[4]])
    assert found is not None and graph.is_uniform(found)
    (number,) = launched(graph, [found], (1, 1, 0, value, count, 0, 0))
    unsigned = value % 2**32
    wanted = {"shr.s32": value >> min(count, 32), "shr.u32": unsigned >> min(count, 32),
              "shl.b32": unsigned << min(count, 32)}[mnemonic]
    assert (number - wanted) % 2**32 == 0


def test_a_choice_between_launch_values() -> None:
    graph = Graph()
    leaves = [graph.leaf(leaf.node, leaf.low, leaf.high) for leaf in UNIFORM]
    chosen = select(graph, compare(graph, "lt", leaves[3], constant(0)), leaves[0], add(leaves[1], constant(100)))
    assert launched(graph, [chosen], (7, 9, 0, -1, 0, 0, 0)) == [7]
    assert launched(graph, [chosen], (7, 9, 0, 0, 0, 0, 0)) == [109]


def test_what_varies_stays_a_term() -> None:
    graph = Graph()
    x = graph.leaf(("tid", "x"), 0, 1023)
    width = graph.leaf(("ntid", "x"), 1, 1024)
    n = graph.leaf(("param", 8, 4, True), -(2**31), 2**31 - 1)
    offset = add(add(graph.multiply(x, width), graph.multiply(x, n)), add(width, n))
    compiled = Compiled(program_of(graph, (one_access("R", offset, ((0, 1),)),)))
    values = compiled.uniforms(bytes(8) + struct.pack("<i", -5), (1, 1, 1, 32, 1, 1), 0)
    (form,) = compiled.offsets
    ((coefficient, term),) = form.terms
    assert values[form.constant] == 27 and values[coefficient] == 27
    assert compiled.terms[term] == (0,) and compiled.plain[term]
    assert compiled.term_of(0) == term and compiled.term_of(1) == -1


def test_oracle_and_code_agree_on_negative_remainders() -> None:
    graph = Graph()
    leaves = [graph.leaf(leaf.node, leaf.low, leaf.high) for leaf in UNIFORM]
    value = graph.remainder(leaves[3], constant(7))
    assert launched(graph, [value], (1, 1, 0, -8, 0, 0, 0)) == [-1]
    assert Oracle(graph.nodes, {3: -8})(value) == -1
