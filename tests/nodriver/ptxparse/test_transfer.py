"""Each opcode's effect on sums against the PTX manual in plain integers, and random code against the interpreter."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ptxparse.transfer import alternatives, compare, evaluate, exclusive, select, width_of
from ptxparse.values import ONE, ZERO, Graph, Sum, add, constant, constant_of, scale
from tests.patterns import share
from tests.symbolic import Oracle, Unspecified, edges, truncated, wrapped

KINDS = {"u16": 16, "s16": 16, "u32": 32, "s32": 32, "u64": 64, "s64": 64}
BYTES = ("u8", "s8")
BITS = {"b16": 16, "b32": 32, "b64": 64}
Semantics = Callable[[str, list[int]], int]


def number(value: int, kind: str) -> int:
    """The low bits of a register as a number of the type."""
    return wrapped(value, int(kind[1:]), kind[0] == "s")


def shifted_right(kind: str, a: list[int]) -> int:
    # Shift amounts past the width are clamped to it (PTX manual, shr).
    return number(a[0], kind) >> min(a[1] % 2**32, int(kind[1:]))


def extracted(kind: str, a: list[int]) -> int:
    """bfe, as the manual's pseudo-code says it, bit by bit."""
    msb = int(kind[1:]) - 1
    position, length = a[1] & 0xFF, a[2] & 0xFF
    bit = [a[0] >> i & 1 for i in range(msb + 1)]
    sign = 0 if kind[0] == "u" or not length else bit[min(position + length - 1, msb)]
    return sum((bit[position + i] if i < length and position + i <= msb else sign) << i for i in range(msb + 1))


def inserted(kind: str, a: list[int]) -> int:
    """bfi, as the manual's pseudo-code says it, bit by bit."""
    msb = int(kind[1:]) - 1
    position, length = a[2] & 0xFF, a[3] & 0xFF
    result = [a[1] >> i & 1 for i in range(msb + 1)]
    for i in range(length):
        if position + i <= msb:
            result[position + i] = a[0] >> i & 1
    return sum(bit << i for i, bit in enumerate(result))


def converted(target: str, source: str, saturate: bool) -> Semantics:
    def semantics(_: str, a: list[int]) -> int:
        value = number(a[0], source)
        if not saturate:
            return value
        low, high = (-(1 << int(target[1:]) - 1), (1 << int(target[1:]) - 1) - 1) if target[0] == "s" else (
            0, (1 << int(target[1:])) - 1)
        return min(max(value, low), high)

    return semantics


def nums(kind: str, a: list[int]) -> list[int]:
    return [number(x, kind) for x in a]


ARITHMETIC: dict[str, tuple[int, Semantics]] = {
    "add": (2, lambda kind, a: a[0] + a[1]),
    "sub": (2, lambda kind, a: a[0] - a[1]),
    "mul.lo": (2, lambda kind, a: a[0] * a[1]),
    "mul.hi": (2, lambda kind, a: number(a[0], kind) * number(a[1], kind) >> int(kind[1:])),
    "mad.lo": (3, lambda kind, a: a[0] * a[1] + a[2]),
    "mad.hi": (3, lambda kind, a: (number(a[0], kind) * number(a[1], kind) >> int(kind[1:])) + a[2]),
    "div": (2, lambda kind, a: truncated(*nums(kind, a))),
    "rem": (2, lambda kind, a: nums(kind, a)[0] - nums(kind, a)[1] * truncated(*nums(kind, a))),
    "min": (2, lambda kind, a: min(nums(kind, a))),
    "max": (2, lambda kind, a: max(nums(kind, a))),
    "shr": (2, shifted_right),
}
WIDENING: dict[str, tuple[int, Semantics]] = {
    "mul.wide": (2, lambda kind, a: number(a[0], kind) * number(a[1], kind)),
    "mad.wide": (3, lambda kind, a: number(a[0], kind) * number(a[1], kind) + a[2]),
}
SIGNED: dict[str, tuple[int, Semantics]] = {
    "neg": (1, lambda kind, a: -a[0]),
    "abs": (1, lambda kind, a: abs(number(a[0], kind))),
}
WORDS: dict[str, tuple[int, Semantics]] = {
    "mul24.lo": (2, lambda kind, a: wrapped(a[0], 24, kind[0] == "s") * wrapped(a[1], 24, kind[0] == "s")),
    "mad24.lo": (3, lambda kind, a: wrapped(a[0], 24, kind[0] == "s") * wrapped(a[1], 24, kind[0] == "s") + a[2]),
}
LOGIC: dict[str, tuple[int, Semantics]] = {
    "and": (2, lambda kind, a: a[0] & a[1]),
    "or": (2, lambda kind, a: a[0] | a[1]),
    "xor": (2, lambda kind, a: a[0] ^ a[1]),
    "not": (1, lambda kind, a: ~a[0]),
    "shl": (2, lambda kind, a: a[0] << min(a[1] % 2**32, int(kind[1:]))),
    "mov": (1, lambda kind, a: a[0]),
}
CASES: list[tuple[str, str, int, int, Semantics]] = (
    [(f"{op}.{kind}", kind, n, KINDS[kind], f) for op, (n, f) in ARITHMETIC.items() for kind in KINDS]
    + [(f"{op}.{k}", k, n, 2 * KINDS[k], f) for op, (n, f) in WIDENING.items() for k in KINDS if KINDS[k] < 64]
    + [(f"{op}.{kind}", kind, n, KINDS[kind], f) for op, (n, f) in SIGNED.items() for kind in ("s16", "s32", "s64")]
    + [(f"{op}.{kind}", kind, n, 32, f) for op, (n, f) in WORDS.items() for kind in ("u32", "s32")]
    + [(f"{op}.{kind}", kind, n, BITS[kind], f) for op, (n, f) in LOGIC.items() for kind in BITS]
    + [(f"bfe.{kind}", kind, 3, KINDS[kind], extracted) for kind in ("u32", "s32", "u64", "s64")]
    + [(f"bfi.{kind}", kind, 4, BITS[kind], inserted) for kind in ("b32", "b64")]
    + [(f"cvt.{t}.{s}", s, 1, int(t[1:]), converted(t, s, False)) for t in (*BYTES, *KINDS) for s in (*BYTES, *KINDS)]
    + [(f"cvt.sat.{t}.{s}", s, 1, int(t[1:]), converted(t, s, True)) for t in ("u8", *KINDS) for s in ("s8", *KINDS)]
)

operands = st.lists(
    st.tuples(
        st.integers(0, 4), edges(-(2**64), 2**64), edges(0, 70),
        st.sampled_from([0, 1, 3, 4, 5, 8, 16, 24, 31, 32, 33, 63, 64, 65, 255, 256, -1, -4, 0x7FFFFFFF, 0x80000000]),
    ), min_size=4, max_size=4,
)  # fmt: skip
"""For each operand: which form it has, two numbers for its leaves, a constant."""


def build(graph: Graph, leaves: dict[int, int], position: int, form: int, big: int, small: int, fixed: int) -> Sum:
    """An operand: a constant, something unknown of 64 bits, a small index, or index * constant + constant."""
    if form == 0:
        return constant(fixed)
    if form == 1:
        leaf = graph.leaf(("unknown", 100 + position, -(2**64), 2**64), -(2**64), 2**64)
        leaves[leaf[0][0][0]] = big
        return leaf
    leaf = graph.leaf(("unknown", 200 + position, 0, 70), 0, 70)
    leaves[leaf[0][0][0]] = small
    if form == 2:
        return leaf
    if form == 3:
        return add(scale(leaf, fixed), constant(big % 1000))
    other = graph.leaf(("unknown", 300 + position, 0, 2**63), 0, 2**63)
    leaves[other[0][0][0]] = abs(big) % 2**63
    return add(scale(other, 1 << small % 9), leaf)


FAMILIES = {case[0].rpartition(".")[0].removesuffix(".u8").split(".s")[0].split(".u")[0] for case in CASES}


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_results_are_those_of_the_manual(family: str) -> None:
    cases = [case for case in CASES if case[0].startswith(f"{family}.")]
    decided: dict[str, int] = {}

    @share(2)
    @given(operands)
    def check(drawn: list[tuple[int, int, int, int]]) -> None:
        for mnemonic, kind, count, bits, semantics in cases:
            opcode, *modifiers = mnemonic.split(".")
            graph = Graph()
            leaves: dict[int, int] = {}
            sums = [build(graph, leaves, i, *drawn[i]) for i in range(count)]
            if opcode in ("bfe", "bfi"):
                # The field is given by the last two operands, as constants nearly always.
                sums[-2:] = [constant(drawn[i][3]) if drawn[i][0] < 4 else sums[i] for i in (count - 2, count - 1)]
            found = evaluate(graph, tuple(modifiers), opcode, sums)
            if found is None:
                assert may_give_up(opcode, [constant_of(s) for s in sums], bits), mnemonic
                continue
            oracle = Oracle(graph.nodes, leaves)
            try:
                wanted = semantics(kind, [oracle(s) % 2**64 for s in sums])
            except Unspecified:
                continue
            assert (oracle(found) - wanted) % (1 << bits) == 0, (mnemonic, graph.nodes, sums, found)
            low, high = graph.bounds(found)
            assert low <= oracle(found) <= high, mnemonic
            decided[mnemonic] = decided.get(mnemonic, 0) + 1

    check()
    assert len(decided) == len(cases) and min(decided.values()) >= 5


def may_give_up(opcode: str, numbers: list[int | None], bits: int) -> bool:
    """Whether an opcode may have no result: when an operand that decides about its form is no constant, or when the
    field lies outside the register."""
    if opcode == "shl":
        return numbers[1] is None
    if opcode == "bfe":
        position, length = numbers[1:]
        return position is None or length is None or position & 0xFF >= bits
    return opcode == "bfi" and None in numbers[2:]


RELATIONS: dict[str, Callable[[int, int], bool]] = {
    "eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "lt": lambda a, b: a < b, "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b, "lo": lambda a, b: a < b, "ls": lambda a, b: a <= b,
    "hi": lambda a, b: a > b, "hs": lambda a, b: a >= b,
}  # fmt: skip
COMBINATIONS = {"": lambda t, c: t, "and": lambda t, c: t & c, "or": lambda t, c: t | c, "xor": lambda t, c: t ^ c}


@pytest.mark.parametrize("relation", RELATIONS)
@share(4)
@given(drawn=operands, kind=st.sampled_from(list(KINDS)), combination=st.sampled_from(list(COMBINATIONS)),
       third=st.sampled_from([0, 1, "leaf"]), bit=st.integers(0, 1))
def test_comparisons(
    relation: str, drawn: list[tuple[int, int, int, int]], kind: str, combination: str, third: int | str, bit: int
) -> None:
    if relation in ("lo", "ls", "hi", "hs"):
        kind = "u" + kind[1:]
    graph = Graph()
    leaves: dict[int, int] = {}
    a, b = (build(graph, leaves, i, *drawn[i]) for i in range(2))
    if third == "leaf":
        c = graph.leaf(("unknown", 400, 0, 1), 0, 1)
        leaves[c[0][0][0]] = bit
    else:
        bit, c = int(third), constant(int(third))
    modifiers = (relation, combination, kind) if combination else (relation, kind)
    found = evaluate(graph, modifiers, "setp", [a, b, c] if combination else [a, b])
    assert found is not None
    oracle = Oracle(graph.nodes, leaves)
    truth = RELATIONS[relation](number(oracle(a), kind), number(oracle(b), kind))
    assert oracle(found) & 1 == COMBINATIONS[combination](int(truth), bit)


@pytest.mark.parametrize("kind", ["f16", "f16x2", "bf16", "bf16x2", "f32", "f64"])
def test_comparisons_of_floats_are_unknown(kind: str) -> None:
    graph = Graph()
    x = graph.leaf(("unknown", 0, 0, 65535), 0, 65535)
    for relation in ("lt", "ltu", "eq", "num"):
        # As integers, nothing is below zero; as floats, half of all patterns are.
        found = evaluate(graph, (relation, kind), "setp", [x, ZERO])
        assert found is not None and constant_of(found) is None
        assert graph.nodes[found[0][0][0]][0] == "unknown"


NOT_INTEGERS = [
    "add.sat.s32", "sub.sat.s32", "mad.hi.sat.s32", "mul24.hi.u32", "mad24.hi.s32", "cvt.rn.f32.s32", "cvt.rzi.s32.f32",
    "cvt.rn.bf16.s32", "cvt.rni.s32.bf16", "cvt.rn.f16.u16", "cvt.pack.sat.u16.s32", "cvt.pack.sat.s8.s32.b32",
    "add.f16x2", "add.bf16", "mul.lo.f32", "min.u16x2", "max.s16x2.relu", "add.u16x2", "abs.bf16", "neg.f16x2",
    "prmt.b32", "dp4a.s32.s32", "sad.s32", "lop3.b32", "shf.l.wrap.b32", "brev.b32", "addc.u32", "fma.rn.f32",
]  # fmt: skip


@pytest.mark.parametrize("mnemonic", NOT_INTEGERS)
def test_what_is_no_plain_integer_operation_gives_nothing(mnemonic: str) -> None:
    graph = Graph()
    x = graph.leaf(("tid", "x"), 0, 1023)
    opcode, *modifiers = mnemonic.split(".")
    assert evaluate(graph, tuple(modifiers), opcode, [x, ONE, x, x]) is None


@pytest.mark.parametrize(("opcode", "kind"), [("popc", "b32"), ("clz", "b32"), ("popc", "b64"), ("clz", "b64")])
def test_bit_counts_are_bounded_by_the_width(opcode: str, kind: str) -> None:
    graph = Graph()
    found = evaluate(graph, (kind,), opcode, [graph.leaf(("tid", "x"), 0, 1023)])
    assert found is not None and graph.bounds(found) == (0, width_of(kind))


@given(st.integers(0, 1), st.booleans(), edges(-9, 9), edges(-9, 9))
def test_selection(bit: int, known: bool, yes: int, no: int) -> None:
    graph = Graph()
    leaf = graph.leaf(("unknown", 0, 0, 1), 0, 1)
    condition = constant(bit) if known else leaf
    found = select(graph, condition, constant(yes), constant(no))
    assert Oracle(graph.nodes, {leaf[0][0][0]: bit})(found) == (yes if bit else no)
    assert (constant_of(found) is not None) == (known or yes == no)


def test_selection_by_any_odd_number_is_true() -> None:
    # nvcc writes true as mov.pred %p, -1.
    graph = Graph()
    assert constant_of(select(graph, constant(-1), ONE, ZERO)) == 1


def test_alternatives_are_exclusive_when_their_conditions_contradict() -> None:
    graph = Graph()
    p, q = (graph.leaf(("unknown", i, 0, 1), 0, 1) for i in range(2))
    assert exclusive(((ONE, ((p, True),)), (ZERO, ((p, False),))))
    assert exclusive(((ONE, ((q, True), (p, True))), (ZERO, ((p, False),))))
    assert not exclusive(((ONE, ((q, True),)), (ZERO, ((p, False),))))
    assert not exclusive(((ONE, ()), (ZERO, ())))


def test_alternatives_without_telling_conditions_are_never_uniform() -> None:
    graph = Graph()
    a, b = (graph.leaf(("param", i * 8, 8, True), -(2**63), 2**63 - 1) for i in range(2))
    assert not graph.is_uniform(alternatives(graph, ((a, ()), (b, ()))))
    n = graph.leaf(("param", 16, 4, True), -(2**31), 2**31 - 1)
    chosen = select(graph, compare(graph, "lt", n, ZERO), a, b)
    assert graph.is_uniform(chosen)


@example(5, 5)
@given(edges(0, 40), edges(0, 40))
def test_relations_of_bounded_numbers_fold(m: int, n: int) -> None:
    graph = Graph()
    a = graph.leaf(("unknown", 0, m, m + 3), m, m + 3)
    b = graph.leaf(("unknown", 1, n, n + 3), n, n + 3)
    for relation, holds in list(RELATIONS.items())[:6]:
        truths = {holds(x, y) for x in range(m, m + 4) for y in range(n, n + 4)}
        found = constant_of(compare(graph, relation, a, b))
        assert found is None or truths == {bool(found)}
        assert found is not None or len(truths) == 2
