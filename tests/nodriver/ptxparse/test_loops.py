"""Values in loops, iteration by iteration, against the interpreter: inductions, limits, what is left after a loop."""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ptxparse.flow import Flow
from ptxparse.inline import inline
from ptxparse.loops import Loops
from ptxparse.model import Module, parameter_layout
from ptxparse.parser import parse
from ptxparse.usage import Usage
from ptxparse.values import ZERO, Check, Graph, Sum, constant
from ptxparse.walk import RawAccess, Walk
from softgpu.reference import LoadedModule, Memory, launch
from tests.patterns import share
from tests.ptxtext import HEADER, REGISTERS
from tests.symbolic import Oracle, atoms_of

SIZE = 1 << 14
THREADS = 3
MARK = "ld.global.u8 %rs9, [%rd9];"
"""The first instruction of each loop's body: tells the test that an iteration begins."""

PROLOGUE = """
    ld.param.u64 %rd1, [data]; ld.param.u64 %rd9, [mark]; ld.param.u32 %r1, [n]; ld.param.u32 %r2, [m];
    mov.u32 %r3, %tid.x;
"""


def touch(index: str) -> str:
    """An access at ``data[index]``, 4 bytes each, for a signed 32-bit index."""
    return f"mul.wide.s32 %rd8, {index}, 4; add.s64 %rd8, %rd1, %rd8;\nld.global.u32 %r9, [%rd8];"


class Analysed(NamedTuple):
    """A kernel with its loops resolved."""

    module: Module
    walk: Walk
    loops: Loops

    @property
    def graph(self) -> Graph:
        return self.walk.graph

    def access(self, line: int) -> RawAccess:
        (found,) = [a for a in self.walk.accesses if a.instruction.line == line]
        return found


def analysed(body: str) -> Analysed:
    """Loops of a kernel ``k(data, mark, n, m)``; each statement of the body that is tested has a line of its own."""
    text = (f"{HEADER}.visible .entry k(.param .u64 data, .param .u64 mark, .param .u32 n, .param .u32 m)\n"
            f"{{\n{REGISTERS}{PROLOGUE}\n{body}\nret;\n}}\n")
    module = parse(text)
    inlined = inline(module, module.entries[0])
    flow = Flow(inlined.instructions, inlined.labels, inlined.targets)
    slots, _ = parameter_layout(inlined.function)
    walk = Walk(inlined, flow, Usage(inlined.instructions), slots)
    return Analysed(module, walk, Loops(walk))


class Event(NamedTuple):
    """An access that a thread made, with the iteration of every loop (by its number) that it was in."""

    line: int
    address: int
    iterations: dict[int, int]


def events(found: Analysed, n: int, m: int) -> list[tuple[int, int, dict[int, int], list[Event]]]:
    """For each thread: its number, the address of ``data``, how often each loop's body began, and what it accessed."""
    memory = Memory()
    loaded = LoadedModule(found.module, memory)
    data, mark = memory.allocate(SIZE), memory.allocate(4)
    parameters = struct.pack("<QQii", data + SIZE // 2, mark, n, m)
    log = launch(loaded, "k", (1, 1, 1), (THREADS, 1, 1), parameters, step_limit=200_000).log.entries
    walk = found.walk
    marks = {a.instruction.line: walk.flow.loop_of[a.block] for a in walk.accesses
             if a.instruction.mnemonic == "ld.global.u8"}
    result = []
    for thread in range(THREADS):
        now: dict[int, int] = {}
        counts = dict.fromkeys(range(len(walk.flow.loops)), 0)
        seen = []
        for entry in log[log["thread"] == thread]:
            line = int(entry["line"])
            if line in marks:
                number = marks[line]
                now[number] = now.get(number, -1) + 1
                counts[number] = max(counts[number], now[number] + 1)
                inner = {i for i, loop in enumerate(walk.flow.loops) if loop.blocks < walk.flow.loops[number].blocks}
                now = {i: k for i, k in now.items() if i not in inner}
            else:
                seen.append(Event(line, int(entry["address"]), dict(now)))
        result.append((thread, data + SIZE // 2, counts, seen))
    return result


def valuation(found: Analysed, thread: int, data: int, n: int, m: int, iterations: dict[int, int]) -> dict[int, int]:
    """Numbers of the leaves for one moment of one thread."""
    numbers: dict[Any, int] = {
        ("tid", "x"): thread, ("ntid", "x"): THREADS, ("param", 0, 8, True): data,
        ("param", 16, 4, False): n % 2**32, ("param", 20, 4, False): m % 2**32,
        ("param", 16, 4, True): n, ("param", 20, 4, True): m,
    }  # fmt: skip
    numbers |= {("loop", number): k for number, k in iterations.items()}
    return {atom: numbers[node] for atom, node in enumerate(found.graph.nodes) if node in numbers}


def conditions_hold(found: Analysed, oracle: Oracle, value: Sum) -> bool:
    """Whether all checks that a sum is provided with hold."""
    nodes = found.graph.nodes
    return all(oracle.all_hold(nodes[atom][2]) for atom in atoms_of(nodes, value) if nodes[atom][0] == "provided")


def is_known(found: Analysed, value: Sum) -> bool:
    """Whether a sum depends on nothing but the launch and iteration numbers."""
    return not any(found.graph.nodes[a][0] in ("unknown", "load", "phi") for a in atoms_of(found.graph.nodes, value))


class Seen(NamedTuple):
    """How much of a run was compared: addresses in loops, after them, and limits."""

    inside: int
    after: int
    limits: int


def compare(found: Analysed, n: int, m: int) -> Seen:
    """Runs the kernel and compares each access, and each limit at each iteration, with what was said of it."""
    inside = after = limits = 0
    flow = found.walk.flow
    for thread, data, counts, seen in events(found, n, m):
        for event in seen:
            raw = found.access(event.line)
            around = flow.loops_around(raw.block)
            iterations = {number: event.iterations[number] for number in around}
            oracle = Oracle(found.graph.nodes, valuation(found, thread, data, n, m, iterations))
            value = found.loops.resolve(raw.address, raw.block)
            counters = {found.graph.nodes[a][1] for a in atoms_of(found.graph.nodes, value)
                        if found.graph.nodes[a][0] == "loop"}
            if is_known(found, value) and counters <= set(around) and conditions_hold(found, oracle, value):
                assert oracle(value) == event.address, (event, thread)
                inside += bool(around)
                after += not around
            for number in around:
                limits += check_limits(found, number, oracle, iterations[number])
        for number, facts in enumerate(found.loops.facts):
            # A loop that is exact runs while its limits hold: the one after the last iteration fails.
            if facts.exact and flow.loops[number].parent == -1:
                check_end(found, number, thread, data, n, m, counts[number])
    return Seen(inside, after, limits)


def check_limits(found: Analysed, number: int, oracle: Oracle, iteration: int) -> int:
    compared = 0
    for limit in found.loops.facts[number].limits if iteration >= 1 else ():
        header = found.walk.flow.loops[number].header
        value = found.loops.resolve(limit.value, header)
        checks = [Check(found.loops.resolve(c.value, header), c.low, c.high) for c in limit.checks]
        sums = [value, *(c.value for c in checks)]
        if all(is_known(found, v) and conditions_hold(found, oracle, v) for v in sums) and oracle.all_hold(checks):
            assert oracle(value) <= 0 if limit.relation == "le" else oracle(value)
            compared += 1
    return compared


def check_end(found: Analysed, number: int, thread: int, data: int, n: int, m: int, count: int) -> None:
    """A loop whose body began ``count`` times was left then, so its limits do not admit another iteration."""
    loop, facts = found.walk.flow.loops[number], found.loops.facts[number]
    at_top = loop.exits[0].source == loop.header and loop.latches != [loop.header]
    if not count and not at_top:
        return
    # A loop tested at its top is entered once more than its body begins.
    entered = count + at_top
    oracle = Oracle(found.graph.nodes, valuation(found, thread, data, n, m, {number: entered}))
    values = [found.loops.resolve(limit.value, loop.header) for limit in facts.limits]
    if all(is_known(found, v) and conditions_hold(found, oracle, v) for v in values) and all(
            is_known(found, c.value) and oracle.holds(c) for limit in facts.limits for c in limit.checks):
        assert any(oracle(v) > 0 if limit.relation == "le" else not oracle(v)
                   for v, limit in zip(values, facts.limits, strict=True))
    if facts.last is not None and is_known(found, facts.last) and conditions_hold(found, oracle, facts.last):
        assert oracle(facts.last) == entered - 1


UP_END = """
    mov.u32 %r4, {start};
AGAIN:
    {mark}
    {touch}
    add.s32 %r4, %r4, {step}; setp.{relation}.{kind} %p1, %r4, {bound}; @%p1 bra AGAIN;
    {touch}
"""
UP_TOP = """
    mov.u32 %r4, {start};
AGAIN:
    setp.{opposite}.{kind} %p1, %r4, {bound}; @%p1 bra END;
    {mark}
    {touch}
    add.s32 %r4, %r4, {step}; bra AGAIN;
END:
    {touch}
"""
OPPOSITE = {"lt": "ge", "le": "gt", "gt": "le", "ge": "lt", "ne": "eq"}


def fill(template: str, **words: object) -> str:
    return template.format(mark=MARK, touch=touch("%r4"), **words)


@share(2)
@given(
    st.sampled_from([UP_END, UP_TOP]), st.sampled_from(["0", "1", "-7", "5", "%r3", "%r2"]),
    st.sampled_from([1, 2, 3, 4, 8]), st.sampled_from(["lt", "le", "ne"]),
    st.sampled_from(["s32", "u32"]), st.sampled_from(["12", "%r1"]),
    st.integers(-4, 25), st.integers(-4, 10),
)  # fmt: skip
def test_counting_up(
    template: str, start: str, step: int, relation: str, kind: str, bound: str, n: int, m: int
) -> None:
    if relation == "ne" and not ends_when_equal(template, start, step, bound, n, m):
        return
    if kind == "u32" and (n < 0 or m < 0 or start == "-7"):
        # As unsigned numbers these are huge: the loop would leave the buffer.
        return
    found = analysed(fill(template, start=start, step=step, relation=relation, opposite=OPPOSITE[relation], kind=kind,
                          bound=bound))
    compare(found, n, m)


def ends_when_equal(template: str, start: str, step: int, bound: str, n: int, m: int) -> bool:
    """Whether all threads meet the bound exactly."""
    for thread in range(THREADS):
        first = {"%r3": thread, "%r2": m}.get(start, 0 if start[0] == "%" else int(start) if start[0] != "%" else 0)
        distance = (n if bound == "%r1" else 12) - first
        if distance % step or distance < (step if template is UP_END else 0):
            return False
    return True


DOWN_END = UP_END.replace("add.s32 %r4", "sub.s32 %r4")
DOWN_TOP = UP_TOP.replace("add.s32 %r4", "sub.s32 %r4")


@share(3)
@given(
    st.sampled_from([DOWN_END, DOWN_TOP]), st.sampled_from(["12", "%r1"]), st.sampled_from([1, 2, 3]),
    st.sampled_from(["gt", "ge"]), st.sampled_from(["0", "-3", "%r2"]), st.integers(-4, 25), st.integers(-4, 10),
)
def test_counting_down(template: str, start: str, step: int, relation: str, bound: str, n: int, m: int) -> None:
    found = analysed(fill(template, start=start, step=step, relation=relation, opposite=OPPOSITE[relation], kind="s32",
                          bound=bound))
    compare(found, n, m)


@pytest.mark.parametrize(("template", "words"), [
    (UP_END, {"start": "0", "step": 1, "relation": "lt", "kind": "s32", "bound": "%r1"}),
    (UP_TOP, {"start": "%r3", "step": 4, "opposite": "ge", "kind": "s32", "bound": "%r1"}),
    (UP_END, {"start": "0", "step": 2, "relation": "ne", "kind": "s32", "bound": "12"}),
    (DOWN_END, {"start": "%r1", "step": 1, "relation": "gt", "kind": "s32", "bound": "0"}),
    (DOWN_TOP, {"start": "%r1", "step": 2, "opposite": "lt", "kind": "s32", "bound": "0"}),
], ids=str)  # fmt: skip
def test_plain_loops_are_known_exactly(template: str, words: dict[str, Any]) -> None:
    found = analysed(fill(template, **words))
    (facts,) = found.loops.facts
    assert facts.exact and facts.last is not None and facts.limits
    seen = compare(found, 13, 4)
    assert seen.inside >= THREADS * 3 and seen.after == THREADS and seen.limits >= THREADS * 2


BODIES: dict[str, tuple[str, Seen]] = {
    "a pointer that moves along": (f"""
    mov.u32 %r4, 0; mov.u64 %rd2, %rd1;
AGAIN:
    {MARK}
    ld.global.u32 %r9, [%rd2+8];
    add.s64 %rd2, %rd2, 12; add.s32 %r4, %r4, 1; setp.lt.s32 %p1, %r4, %r1; @%p1 bra AGAIN;
    ld.global.u32 %r9, [%rd2];
""", Seen(21, 3, 18)),
    "an index that moves by a parameter": (f"""
    mov.u32 %r4, 0; mov.u32 %r5, %r3;
AGAIN:
    {MARK}
    {touch("%r5")}
    add.s32 %r5, %r5, %r2; add.s32 %r4, %r4, 1; setp.lt.s32 %p1, %r4, %r1; @%p1 bra AGAIN;
    {touch("%r5")}
""", Seen(21, 3, 18)),
    "an index that is the counter times a parameter": (f"""
    mov.u32 %r4, 0;
AGAIN:
    {MARK}
    mad.lo.s32 %r5, %r4, %r2, %r3;
    {touch("%r5")}
    add.s32 %r4, %r4, 1; setp.lt.s32 %p1, %r4, %r1; @%p1 bra AGAIN;
""", Seen(21, 0, 18)),
    "a value from the iteration before": (f"""
    mov.u32 %r4, 0; mov.u32 %r5, 100;
AGAIN:
    {MARK}
    {touch("%r5")}
    mov.u32 %r5, %r4;
    add.s32 %r4, %r4, 2; setp.lt.s32 %p1, %r4, %r1; @%p1 bra AGAIN;
""", Seen(12, 0, 9)),
    "the rest after an unrolled loop": (f"""
    mov.u32 %r4, 0; and.b32 %r6, %r1, -4;
    setp.lt.s32 %p2, %r1, 4; @%p2 bra REST;
AGAIN:
    {MARK}
    {touch("%r4")}
    add.s32 %r4, %r4, 4; setp.ne.s32 %p1, %r4, %r6; @%p1 bra AGAIN;
REST:
    setp.ge.s32 %p3, %r4, %r1; @%p3 bra END;
TAIL:
    {MARK}
    {touch("%r4")}
    add.s32 %r4, %r4, 1; setp.lt.s32 %p4, %r4, %r1; @%p4 bra TAIL;
END:
""", Seen(3, 0, 0)),
    "a loop in a loop": (f"""
    mov.u32 %r4, 0;
OUTER:
    {MARK}
    {touch("%r4")}
    mov.u32 %r5, 0;
INNER:
    {MARK}
    mad.lo.s32 %r6, %r4, %r2, %r5;
    {touch("%r6")}
    add.s32 %r5, %r5, 1; setp.lt.s32 %p1, %r5, %r2; @%p1 bra INNER;
    {touch("%r5")}
    add.s32 %r4, %r4, 1; setp.lt.s32 %p2, %r4, %r1; @%p2 bra OUTER;
    {touch("%r6")}
""", Seen(100, 3, 100)),
    "a triangular loop": (f"""
    mov.u32 %r4, 0;
OUTER:
    {MARK}
    mov.u32 %r5, 0;
INNER:
    setp.gt.s32 %p1, %r5, %r4; @%p1 bra NEXT;
    {MARK}
    add.s32 %r6, %r4, %r5;
    {touch("%r6")}
    add.s32 %r5, %r5, 1; bra INNER;
NEXT:
    {touch("%r5")}
    add.s32 %r4, %r4, 1; setp.lt.s32 %p2, %r4, %r1; @%p2 bra OUTER;
""", Seen(90, 0, 80)),
    "an index that goes on through both loops": (f"""
    mov.u32 %r4, 0; mov.u32 %r6, %r3;
OUTER:
    {MARK}
    mov.u32 %r5, 0;
INNER:
    {MARK}
    {touch("%r6")}
    add.s32 %r6, %r6, 1;
    add.s32 %r5, %r5, 1; setp.lt.s32 %p1, %r5, 4; @%p1 bra INNER;
    add.s32 %r4, %r4, 1; setp.lt.s32 %p2, %r4, %r1; @%p2 bra OUTER;
    {touch("%r6")}
""", Seen(84, 3, 70)),
    "a loop with two ways out": (f"""
    mov.u32 %r4, 0;
AGAIN:
    {MARK}
    {touch("%r4")}
    add.s32 %r4, %r4, 1; setp.gt.s32 %p3, %r4, %r2; @%p3 bra END;
    setp.lt.s32 %p1, %r4, %r1; @%p1 bra AGAIN;
END:
    {touch("%r4")}
""", Seen(15, 0, 12)),
    "a loop that skips": (f"""
    mov.u32 %r4, 0;
AGAIN:
    {MARK}
    and.b32 %r5, %r4, 1; setp.eq.s32 %p3, %r5, 0; @%p3 bra SKIP;
    {touch("%r4")}
SKIP:
    add.s32 %r4, %r4, 1; setp.lt.s32 %p1, %r4, %r1; @%p1 bra AGAIN;
""", Seen(9, 0, 9)),
    "two loops, one after the other": (f"""
    mov.u32 %r4, 0;
FIRST:
    {MARK}
    {touch("%r4")}
    add.s32 %r4, %r4, 1; setp.lt.s32 %p1, %r4, %r1; @%p1 bra FIRST;
    mov.u32 %r5, %r4;
SECOND:
    {MARK}
    {touch("%r5")}
    add.s32 %r5, %r5, 2; setp.lt.s32 %p2, %r5, 20; @%p2 bra SECOND;
    {touch("%r5")}
""", Seen(40, 3, 36)),
    "a 64-bit counter": (f"""
    cvt.s64.s32 %rd3, %r1; mov.u64 %rd4, 0;
AGAIN:
    {MARK}
    shl.b64 %rd5, %rd4, 2; add.s64 %rd6, %rd1, %rd5;
    ld.global.u32 %r9, [%rd6];
    add.s64 %rd4, %rd4, 1; setp.lt.s64 %p1, %rd4, %rd3; @%p1 bra AGAIN;
""", Seen(21, 0, 18)),
}  # fmt: skip


@pytest.mark.parametrize("name", BODIES)
def test_loops_of_every_shape(name: str) -> None:
    body, least = BODIES[name]
    found = analysed(body)
    total = Seen(*map(sum, zip(*(compare(found, n, m) for n, m in ((7, 4), (1, 1), (8, 0), (-2, 5), (0, -1), (5, 9))),
                               strict=True)))
    first = compare(found, 7, 4)
    assert all(have >= need for have, need in zip(first, least, strict=True)), (first, total)


def test_a_counter_that_wraps_is_not_taken_for_a_number() -> None:
    # 16 bits wide: from 65530 on it comes back to 0, and the checks say that the sum is no longer the number.
    found = analysed(f"""
    mov.u16 %rs1, 65530; mov.u32 %r5, 0;
AGAIN:
    {MARK}
    cvt.u32.u16 %r4, %rs1; and.b32 %r4, %r4, 1023;
    {touch("%r4")}
    add.u16 %rs1, %rs1, 1; add.s32 %r5, %r5, 1; setp.lt.s32 %p1, %r5, 12; @%p1 bra AGAIN;
""")
    compare(found, 0, 0)


@pytest.mark.parametrize(("operation", "most"), [
    ("shr.u32 %r4, %r4, 1;", 64), ("mul.lo.s32 %r4, %r4, 3; and.b32 %r4, %r4, 1023;", 2**31 - 1),
    ("popc.b32 %r4, %r4;", 2**31 - 1),
])  # fmt: skip
def test_what_is_no_induction_stays_within_bounds(operation: str, most: int) -> None:
    found = analysed(f"""
    mov.u32 %r4, 64; mov.u32 %r5, 0;
AGAIN:
    {MARK}
    {touch("%r4")}
    {operation}
    add.s32 %r5, %r5, 1; setp.lt.s32 %p1, %r5, 9; @%p1 bra AGAIN;
""")
    for _, data, _, seen in events(found, 0, 0):
        for event in seen:
            raw = found.access(event.line)
            value = found.loops.resolve(raw.address, raw.block)
            rest = tuple((p, c) for p, c in value if found.graph.nodes[p[0]][0] != "param")
            low, high = found.graph.bounds(rest)
            assert low <= event.address - data <= high <= 4 * most


def test_swapped_buffers_are_one_of_two() -> None:
    found = analysed(f"""
    mov.u32 %r4, 0; mov.u32 %r5, 8; mov.u32 %r6, 100;
AGAIN:
    {MARK}
    {touch("%r5")}
    mov.u32 %r7, %r5; mov.u32 %r5, %r6; mov.u32 %r6, %r7;
    add.s32 %r4, %r4, 1; setp.lt.s32 %p1, %r4, 5; @%p1 bra AGAIN;
""")
    (raw,) = [a for a in found.walk.accesses if a.instruction.mnemonic == "ld.global.u32"]
    value = found.loops.resolve(raw.address, raw.block)
    options = {option for atom in atoms_of(found.graph.nodes, value) if found.graph.nodes[atom][0] == "alternatives"
               for option, _ in found.graph.nodes[atom][1]}
    assert options == {constant(8), constant(100)}


def test_a_loop_left_by_what_memory_holds_has_no_limit() -> None:
    found = analysed(f"""
AGAIN:
    {MARK}
    ld.global.u32 %r4, [%rd1]; setp.ne.s32 %p1, %r4, 0; @%p1 bra AGAIN;
""")
    (facts,) = found.loops.facts
    assert not facts.limits and facts.last is None


def test_an_endless_loop_has_no_limits() -> None:
    found = analysed(f"AGAIN:\n{MARK}\nbra AGAIN;")
    (facts,) = found.loops.facts
    assert not facts.limits and facts.last is None and not facts.exact


def test_no_phi_is_left_anywhere() -> None:
    for body, _ in BODIES.values():
        found = analysed(body)
        for raw in found.walk.accesses:
            value = found.loops.resolve(raw.address, raw.block)
            assert not [a for a in atoms_of(found.graph.nodes, value) if found.graph.nodes[a][0] == "phi"]
            assert value != ZERO
