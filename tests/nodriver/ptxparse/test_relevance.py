"""Which registers are followed, and that values join exactly where several definitions can meet."""

from __future__ import annotations

import pytest
from hypothesis import given

from ptxparse.flow import Flow
from ptxparse.inline import inline
from ptxparse.model import Address, Immediate, Instruction, Register
from ptxparse.parser import mnemonic
from ptxparse.relevance import Relevance, space_of
from ptxparse.usage import Usage, registers_in
from tests.graphs import Ways, code, ways
from tests.ptxtext import REGISTERS, instruction, module

STORE = Instruction(mnemonic("st.global.u32"), (Address(Register("%sum")), Register("%r0")), 0)
ADD = [Instruction(mnemonic("add.s64"), (Register("%sum"), Register(f"%r{i}"), Register(f"%r{(i + 1) % 3}")), 0)
       for i in range(3)]  # fmt: skip


def with_uses(shape: Ways) -> tuple[Flow, Usage]:
    """Random flow in which every second block also uses two of the registers in an address."""
    instructions, labels, targets = code(shape)
    starts = {index: number for number, index in enumerate(labels.values())}
    grown: list[Instruction] = []
    moved: dict[int, int] = {}
    for index, found in enumerate(instructions):
        moved[index] = len(grown)
        number = starts.get(index, 0)
        uses = [ADD[number % 3], STORE] if number % 2 else []
        # Before the block's own write, or after it.
        grown += [*uses, found] if number % 4 == 1 else [found, *uses]
    flow = Flow(grown, {name: moved[index] for name, index in labels.items()}, targets)
    return flow, Usage(grown)


@given(ways(12))
def test_values_join_wherever_ways_bring_different_ones(shape: Ways) -> None:
    flow, usage = with_uses(shape)
    relevance = Relevance(flow, usage)
    followed = sorted(relevance.followed)
    # Number the definitions while walking down the dominator tree, as the analysis does; a join is a definition.
    at_start: dict[int, dict[str, object]] = {}
    at_end: dict[int, dict[str, object]] = {}
    for block in flow.preorder:
        above = flow.dominator[block]
        values: dict[str, object] = dict(at_end[above]) if above != -1 else {}
        for name in relevance.joined.get(block, ()):
            values[name] = ("joined", block)
        at_start[block] = dict(values)
        for index in range(flow.blocks[block].start, flow.blocks[block].end):
            for name in usage.writes[index]:
                values[name] = index
        at_end[block] = values
    live = live_names(flow, usage)
    for block in flow.order:
        for edge in flow.blocks[block].successors:
            for name in followed:
                if name in live[edge.target] and name not in relevance.joined.get(edge.target, ()):
                    assert at_end[block].get(name) == at_start[edge.target].get(name), (name, edge)


def live_names(flow: Flow, usage: Usage) -> dict[int, set[str]]:
    """Names whose value at the start of a block may still be read; a guarded write does not end that."""
    live: dict[int, set[str]] = {block: set() for block in flow.order}
    changed = True
    while changed:
        changed = False
        for block in flow.order:
            names = {name for edge in flow.blocks[block].successors for name in live[edge.target]}
            for index in reversed(range(flow.blocks[block].start, flow.blocks[block].end)):
                if flow.instructions[index].predicate is None:
                    names -= set(usage.writes[index])
                names |= set(usage.reads[index])
            changed = changed or names != live[block]
            live[block] = names
    return live


@given(ways(12))
def test_nothing_is_joined_that_comes_from_one_place(shape: Ways) -> None:
    flow, usage = with_uses(shape)
    relevance = Relevance(flow, usage)
    for block, names in relevance.joined.items():
        assert len(names) == len(set(names))
        assert block == flow.order[0] or len(flow.blocks[block].predecessors) > 1
        assert all(relevance.definitions[name] for name in names)


@given(ways(12))
def test_definitions_are_the_writes_that_can_be_reached(shape: Ways) -> None:
    flow, usage = with_uses(shape)
    reached = [i for b in flow.order for i in range(flow.blocks[b].start, flow.blocks[b].end)]
    wanted: dict[str, list[int]] = {}
    for index in reached:
        for name in usage.writes[index]:
            wanted.setdefault(name, []).append(index)
    assert Relevance(flow, usage).definitions == wanted


@given(ways(12))
def test_what_addresses_are_made_of_is_followed(shape: Ways) -> None:
    flow, usage = with_uses(shape)
    relevance = Relevance(flow, usage)
    for block in flow.order:
        for index in range(flow.blocks[block].start, flow.blocks[block].end):
            found = flow.instructions[index]
            if found.opcode == "st":
                assert relevance.followed >= set(registers_in(found.operands[0]))
            if not relevance.followed.isdisjoint(usage.writes[index]):
                assert relevance.followed >= set(usage.reads[index])


def relevance_of(body: str, parameters: str = ".param .u64 a") -> Relevance:
    parsed = module(f".visible .entry k({parameters})\n{{\n{REGISTERS}{body}\n}}\n")
    inlined = inline(parsed, parsed.entries[0])
    flow = Flow(inlined.instructions, inlined.labels, inlined.targets)
    return Relevance(flow, Usage(inlined.instructions))


def test_arithmetic_that_only_makes_values_is_not_followed() -> None:
    found = relevance_of("""
        ld.param.u64 %rd1, [a]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4; add.s64 %rd3, %rd1, %rd2;
        ld.global.f32 %f1, [%rd3]; mul.f32 %f2, %f1, %f1; mov.u32 %r2, 7; add.s32 %r3, %r2, 1;
        st.global.f32 [%rd3], %f2; st.global.u32 [%rd3], %r3; ret;""")
    assert found.followed == {"%rd1", "%rd2", "%rd3", "%r1", "%tid.x"}
    assert found.pointers == {"%rd1", "%rd3"} or found.pointers >= {"%rd1", "%rd3"}


def test_guards_of_accesses_and_branches_are_followed() -> None:
    found = relevance_of("""
        ld.param.u64 %rd1, [a]; setp.lt.s32 %p1, %r1, %r2; @%p1 st.global.u32 [%rd1], %r9;
        setp.lt.s32 %p2, %r3, 5; @%p2 bra END; setp.lt.s32 %p3, %r4, 5; @%p3 mov.u32 %r9, 1; END: ret;""")
    assert {"%p1", "%r1", "%r2", "%p2", "%r3"} <= found.followed
    assert not {"%p3", "%r4", "%r9"} & found.followed


def test_a_guarded_definition_follows_its_guard() -> None:
    found = relevance_of("""
        ld.param.u64 %rd1, [a]; mov.u64 %rd2, 0; setp.lt.s32 %p1, %r1, %r2; @%p1 mov.u64 %rd2, 8;
        add.s64 %rd3, %rd1, %rd2; st.global.u32 [%rd3], %r9; ret;""")
    assert {"%p1", "%r1", "%r2"} <= found.followed


def test_a_guarded_write_needs_the_value_from_before() -> None:
    # %r2 is only read behind a guarded write to it, which keeps what either way brought.
    found = relevance_of("""
        ld.param.u64 %rd1, [a]; mov.u32 %r2, 1; setp.lt.s32 %p1, %r1, 5; @%p1 bra JOIN; mov.u32 %r2, 2;
        JOIN: setp.lt.s32 %p2, %r1, 3; @%p2 mov.u32 %r2, 4; mul.wide.u32 %rd2, %r2, 4; add.s64 %rd3, %rd1, %rd2;
        st.global.u32 [%rd3], %r9; ret;""")
    assert found.joined == {2: ["%r2"]}


def test_what_is_not_understood_is_a_leaf() -> None:
    # The result is an unknown, so its operands do not matter, but its guard does.
    found = relevance_of("""
        ld.param.u64 %rd1, [a]; setp.lt.s32 %p1, %r1, %r2; @%p1 prmt.b32 %r3, %r4, %r5, %r6; mul.wide.u32 %rd2, %r3, 4;
        add.s64 %rd3, %rd1, %rd2; st.global.u32 [%rd3], %r9; ret;""")
    assert {"%r3", "%p1"} <= found.followed
    assert not {"%r4", "%r5", "%r6"} & found.followed


def test_addresses_in_shared_memory_are_not_followed() -> None:
    found = relevance_of("ld.param.u64 %rd1, [a]; st.shared.u32 [%r1], %r2; ld.shared.u32 %r3, [%r4]; ret;")
    assert not {"%r1", "%r4"} & found.followed


def test_pointers_are_followed_through_copies() -> None:
    found = relevance_of("""
        ld.param.u64 %rd1, [a]; cvta.to.global.u64 %rd2, %rd1; mov.b64 %rd3, %rd2; add.s64 %rd4, %rd3, 8;
        selp.b64 %rd5, %rd4, %rd6, %p1; ld.param.u32 %r1, [n]; mul.lo.s64 %rd7, %rd8, 2; ret;""",
        ".param .u64 a, .param .u32 n")
    assert {"%rd1", "%rd2", "%rd3", "%rd4", "%rd5"} <= found.pointers
    assert not {"%rd6", "%rd7", "%rd8", "%r1"} & found.pointers


@pytest.mark.parametrize(("text", "space"), [
    ("ld.global.u32 %r1, [%rd1];", "global"), ("ld.volatile.global.u32 %r1, [%rd1];", "global"),
    ("ld.u32 %r1, [%rd1];", ""), ("st.shared.u32 [%r1], %r2;", "shared"), ("st.shared::cta.u32 [%r1], %r2;", "shared"),
    ("ld.param.u64 %rd1, [a];", "param"), ("ld.local.u32 %r1, [%rd1];", "local"),
    ("ld.const.u32 %r1, [%rd1];", "const"), ("atom.global.add.u32 %r1, [%rd1], %r2;", "global"),
    ("ld.acquire.gpu.global.u32 %r1, [%rd1];", "global"),
])  # fmt: skip
def test_state_spaces(text: str, space: str) -> None:
    assert space_of(instruction(text)) == space


@pytest.mark.parametrize(("text", "writes", "reads"), [
    ("add.s32 %r1, %r2, 3;", ["%r1"], ["%r2"]),
    ("@%p1 add.s32 %r1, %r2, %r3;", ["%r1"], ["%r2", "%r3", "%p1"]),
    ("ld.global.v2.u32 {%r1, %r2}, [%rd1+8];", ["%r1", "%r2"], ["%rd1"]),
    ("st.global.v2.u32 [%rd1], {%r1, %r2};", [], ["%rd1", "%r1", "%r2"]),
    ("setp.lt.and.s32 %p1|%p2, %r1, %r2, !%p3;", ["%p1", "%p2"], ["%r1", "%r2", "%p3"]),
    ("shfl.sync.bfly.b32 %r1|%p1, %r2, 1, 31, -1;", ["%r1", "%p1"], ["%r2"]),
    ("atom.global.add.u32 %r1, [%rd1], %r2;", ["%r1"], ["%rd1", "%r2"]),
    ("red.global.add.u32 [%rd1], %r2;", [], ["%rd1", "%r2"]),
    ("mov.b64 {%r1, _}, %rd1;", ["%r1"], ["%rd1"]),
    ("call (%r1), f, (%r2, %r3);", ["%r1"], ["%r2", "%r3"]),
    ("cp.async.ca.shared.global [%r1], [%rd1], 4, %r2;", [], ["%r1", "%rd1", "%r2"]),
])  # fmt: skip
def test_what_instructions_read_and_write(text: str, writes: list[str], reads: list[str]) -> None:
    usage = Usage([instruction(text)])
    assert sorted(usage.writes[0]) == sorted(writes)
    assert sorted(usage.reads[0]) == sorted(reads)


def test_an_unknown_opcode_may_write_every_register_it_names() -> None:
    usage = Usage([Instruction(mnemonic("frobnicate.b32"), (Register("%r1"), Register("%r2"), Immediate(3)), 1)])
    assert set(usage.writes[0]) == {"%r1", "%r2"} and usage.rows == [None]
