"""Control flow against its definitions, by removing blocks and looking what is still reached."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ptxparse.flow import Edge, Flow
from ptxparse.model import Instruction, Register, Symbol
from ptxparse.parser import mnemonic
from tests.graphs import Ways, code, flow_of, reachable, successors_of, ways
from tests.ptxtext import kernel


@given(ways())
def test_blocks_and_edges_are_those_of_the_instructions(shape: Ways) -> None:
    flow = flow_of(shape)
    wanted = successors_of(shape)
    assert len(flow.blocks) == len(shape)
    for number, block in enumerate(flow.blocks):
        assert flow.instructions[block.start].line == number
        found = {edge.target for edge in block.successors} | ({flow.exit} if block.leaves else set())
        assert found == set(wanted[number])
        assert all(edge.source == number for edge in block.successors)
    assert sorted((e.source, e.target) for b in flow.blocks for e in b.successors) == sorted(
        (e.source, e.target) for b in flow.blocks for e in b.predecessors)


@given(ways(), st.booleans())
def test_a_predicate_chooses_one_way(shape: Ways, truth: bool) -> None:
    flow = flow_of(shape)
    for number, (kind, target, _) in enumerate(shape):
        if kind not in ("branch", "not"):
            assert kind == "indexed" or all(e.guard is None for e in flow.blocks[number].successors) or kind == "leave"
            continue
        jumps = truth if kind == "branch" else not truth
        chosen = [e.target for e in flow.blocks[number].successors if e.guard is None or e.taken == truth]
        if number + 1 < len(shape):
            assert chosen == [target % len(shape) if jumps else number + 1]
        else:
            # Past the last block the function ends.
            assert chosen == ([target % len(shape)] if jumps else []) and flow.blocks[number].leaves


@given(ways(14))
def test_order_is_a_reverse_postorder_of_what_is_reached(shape: Ways) -> None:
    flow = flow_of(shape)
    wanted = successors_of(shape)
    assert set(flow.order) == reachable(wanted, 0) - {flow.exit}
    assert len(set(flow.order)) == len(flow.order) and flow.order[0] == 0
    for block in flow.order:
        for target in wanted[block]:
            # Only an edge to something that can come back to this block may go backward in the order.
            backward = target != flow.exit and flow.position[target] <= flow.position[block]
            assert not backward or block in reachable(wanted, target)


@given(ways())
def test_dominators(shape: Ways) -> None:
    flow = flow_of(shape)
    wanted = successors_of(shape)
    for a in flow.order:
        still = reachable(wanted, 0, without=a)
        for b in flow.order:
            assert flow.dominates(a, b) == (b not in still)
    for b in flow.order:
        strict = [a for a in flow.order if a != b and flow.dominates(a, b)]
        nearest = [a for a in strict if all(flow.dominates(other, a) for other in strict)]
        assert [flow.dominator[b]] == (nearest or [-1])


@given(ways())
def test_post_dominators(shape: Ways) -> None:
    flow = flow_of(shape)
    wanted = successors_of(shape)
    for b in flow.order:
        if flow.exit not in reachable(wanted, b):
            continue
        for a in flow.order:
            assert flow.post_dominates(a, b) == (flow.exit not in reachable(wanted, b, without=a))


@given(ways())
def test_blocks_of_endless_loops_are_passed_on_no_way_to_the_end(shape: Ways) -> None:
    flow = flow_of(shape)
    wanted = successors_of(shape)
    for b in flow.order:
        if flow.exit not in reachable(wanted, b):
            assert [a for a in flow.order if flow.post_dominates(a, b)] == [b]


@given(ways(12))
def test_loops_are_the_natural_loops(shape: Ways) -> None:
    flow = flow_of(shape)
    wanted = successors_of(shape)
    backward: dict[int, set[int]] = {}
    for source in flow.order:
        for target in wanted[source]:
            if target != flow.exit and flow.dominates(target, source):
                backward.setdefault(target, set()).add(source)
    assert {loop.header: set(loop.latches) for loop in flow.loops} == backward
    for loop in flow.loops:
        # What reaches a latch without passing the header.
        inside = {loop.header} | {
            b for b in flow.order
            if b != loop.header and reachable(wanted, b, without=loop.header) & set(loop.latches)
        }
        assert loop.blocks == inside
        leaving = sorted((b, t) for b in inside for t in set(wanted[b]) if t not in inside)
        assert sorted((e.source, e.target) for e in loop.exits) == leaving


@given(ways(12))
def test_loops_nest(shape: Ways) -> None:
    flow = flow_of(shape)
    for number, loop in enumerate(flow.loops):
        holding = [i for i, other in enumerate(flow.loops) if i != number and loop.blocks <= other.blocks]
        smallest = min(holding, key=lambda i: len(flow.loops[i].blocks), default=-1)
        assert loop.parent == smallest and smallest < number
    for block in range(len(flow.blocks)):
        holding = [i for i, loop in enumerate(flow.loops) if block in loop.blocks]
        assert flow.loops_around(block) == sorted(holding, key=lambda i: len(flow.loops[i].blocks))
        assert flow.loop_of[block] == (flow.loops_around(block) or [-1])[0]


def is_reducible(successors: dict[int, list[int]], blocks: set[int]) -> bool:
    """Whether removing self-loops and merging blocks with their only predecessor leaves one block (T1 and T2)."""
    follow = {b: {t for t in successors[b] if t in blocks} for b in blocks}
    while len(follow) > 1:
        for b, targets in follow.items():
            targets.discard(b)
        into = {b: [a for a in follow if b in follow[a]] for b in follow}
        single = next((b for b in follow if len(into[b]) == 1 and b != 0), None)
        if single is None:
            return False
        (only,) = into[single]
        follow[only] = (follow[only] | follow.pop(single)) - {single}
    return True


@given(ways(12))
def test_irreducible_flow_is_found(shape: Ways) -> None:
    flow = flow_of(shape)
    assert bool(flow.irreducible) != is_reducible(successors_of(shape), set(flow.order))


@given(ways(12))
def test_the_walk_order_visits_dominators_first(shape: Ways) -> None:
    flow = flow_of(shape)
    assert sorted(flow.preorder) == sorted(flow.order)
    for block in flow.order[1:]:
        assert flow.preorder.index(flow.dominator[block]) < flow.preorder.index(block)
        assert block in flow.children[flow.dominator[block]]


def test_large_functions_do_not_exhaust_the_stack() -> None:
    choice = random.Random(1)
    shape = [(choice.choice(["branch", "not", "fall", "leave"]), choice.randrange(1000), 0) for _ in range(1000)]
    flow = flow_of(shape)
    assert len(flow.preorder) == len(flow.order) > 900
    chain = flow_of([("fall", 0, 0)] * 4000 + [("branch", 0, 0), ("return", 0, 0)])
    assert chain.dominates(0, 4001) and chain.post_dominates(4001, 0) and len(chain.loops[0].blocks) == 4001


def test_a_branch_to_nowhere_is_reported() -> None:
    body = [Instruction(mnemonic("bra"), (Symbol("gone"),), 1)]
    flow = Flow(body, {}, {})
    assert flow.undefined_targets == [0]
    indexed = [Instruction(mnemonic("brx.idx"), (Register("%r1"), Symbol("list")), 1)]
    assert Flow(indexed, {"a": 0}, {"list": ("a", "b")}).undefined_targets == [0]
    assert Flow(indexed, {"a": 0}, {"list": ("a",)}).undefined_targets == []
    assert Flow(indexed, {"a": 0}, {}).undefined_targets == [0]


def test_a_branch_to_the_next_instruction_is_unconditional() -> None:
    found = kernel("setp.eq.u32 %p1, %r1, 0; @%p1 bra NEXT; NEXT: mov.u32 %r2, 1; ret;")
    flow = Flow(found.instructions or [], found.labels, found.branch_targets)
    assert flow.blocks[0].successors == [Edge(0, 1)]


def test_a_label_at_the_end_is_a_block() -> None:
    found = kernel("setp.eq.u32 %p1, %r1, 0; @%p1 bra END; mov.u32 %r2, 1; END:")
    flow = Flow(found.instructions or [], found.labels, found.branch_targets)
    assert [(b.start, b.end, b.leaves) for b in flow.blocks] == [(0, 2, False), (2, 3, False), (3, 3, True)]
    assert flow.dominator[2] == 0 and flow.post_dominates(2, 0)


def test_an_empty_function_has_one_block_that_ends() -> None:
    flow = Flow([], {}, {})
    assert [(b.start, b.end, b.leaves) for b in flow.blocks] == [(0, 0, True)]
    assert flow.order == [0] and not flow.loops


@pytest.mark.parametrize("ending", ["ret", "exit"])
def test_code_after_the_end_is_not_reached(ending: str) -> None:
    found = kernel(f"{ending}; mov.u32 %r1, 1; L: bra L;")
    flow = Flow(found.instructions or [], found.labels, found.branch_targets)
    assert flow.order == [0] and not flow.loops


def test_random_flow_has_all_that_is_tested() -> None:
    # Loops in loops, and flow that is not reducible, do come up in the shapes.
    nested = [("fall", 0, 0), ("fall", 0, 0), ("branch", 1, 0), ("branch", 0, 0), ("return", 0, 0)]
    flow = Flow(*code(nested))
    assert [loop.parent for loop in flow.loops] == [-1, 0]
    crossed = [("branch", 2, 0), ("fall", 0, 0), ("branch", 1, 0), ("return", 0, 0)]
    assert Flow(*code(crossed)).irreducible in ({1}, {2}) and not Flow(*code(crossed)).loops
