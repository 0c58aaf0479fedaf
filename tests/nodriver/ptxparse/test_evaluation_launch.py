"""Launches evaluated: ranges of random programs, rebasing, what is remembered, variables, contents, errors."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ptxparse.api import AccessProgram, Allocations, Evaluation, Evaluator, Range, analyze, evaluate
from ptxparse.evaluation.allocations import Allocation
from ptxparse.program import Base
from tessera.errors import UsageError
from tessera.reasons import Reason
from tests.boxes import Plans, Shape, box, box_steps, guard_plans, shapes, small
from tests.ptxtext import REGISTERS, module
from tests.symbolic import Step

START, POINTER, END = 1 << 44, 1 << 45, 1 << 46
some_spans = st.sampled_from([((0, 1),), ((0, 4),), ((0, 2), (4, 6)), ((0, 4), (8, 12), (12, 16)), ((-3, -1), (5, 9))])


@given(shapes, box_steps, guard_plans, some_spans, st.sampled_from("RWA"))
def test_ranges_hold_every_byte_and_sure_writes_are_made(
    shape: Shape, program: list[Step], plans: Plans, spans: tuple[tuple[int, int], ...], kind: str
) -> None:
    found = box(shape, program, plans, spans, kind)
    if small(found) is None:
        return
    if found.found.false:
        return
    result = evaluate(found.program, shape.launch[:3], shape.launch[3:], struct.pack("<qi", POINTER, shape.n),
                      [("heap", START, END - START)])
    assert result.opaque is None
    kinds = {"R": {"R"}, "A": {"A"}, "W": {"MAYW", "MUSTW"}}[kind]
    assert {r.kind for r in result.ranges} <= kinds and {r.allocation for r in result.ranges} <= {"heap"}
    shift = POINTER - START
    assert all(any(r.lo <= byte + shift < r.hi for r in result.ranges) for byte in found.touched())
    for r in result.ranges:
        assert 0 <= r.lo < r.hi <= END - START
        if r.kind == "MUSTW":
            assert found.sure() >= set(range(r.lo - shift, r.hi - shift))


def program_of(body: str, parameters: str = ".param .u64 a", before: str = "") -> AccessProgram:
    """The access program of one kernel."""
    parsed = module(f"{before}\n.visible .entry k({parameters})\n{{\n{REGISTERS}{body}\nret;\n}}\n")
    return analyze(parsed)[0]


ONE = "ld.param.u64 %rd1, [a]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4; add.s64 %rd3, %rd1, %rd2;"
FILL = f"{ONE} st.global.u32 [%rd3], %r1;"


def run(program: AccessProgram, *words: int, allocations: object = None, grid: int = 1, block: int = 8,
        **more: object) -> Evaluation:
    """A launch with 64-bit parameters; by default one allocation of 4096 bytes at 0x10000."""
    where = [("a", 0x10000, 4096)] if allocations is None else allocations
    params = struct.pack(f"<{len(words)}Q", *(w % 2**64 for w in words))
    return evaluate(program, (grid, 1, 1), (block, 1, 1), params, where, **more)  # type: ignore[arg-type]


def test_a_fill_is_exact() -> None:
    assert run(program_of(FILL), 0x10000) == Evaluation((Range("MUSTW", "a", 0, 32, True),), None, (), (0,),
                                                         ((Base(0),),))


@pytest.mark.parametrize("offset", [0, 4, 100, 4064])
def test_ranges_are_relative_to_the_allocation(offset: int) -> None:
    assert run(program_of(FILL), 0x10000 + offset).ranges == (Range("MUSTW", "a", offset, offset + 32, True),)


def test_ranges_move_with_the_allocation() -> None:
    program = program_of(FILL)
    near = run(program, 0x10010)
    far = run(program, 0x7F0000000010, allocations=[("a", 0x7F0000000000, 4096)])
    assert near == far


def test_what_hangs_over_an_allocation_is_cut_and_no_longer_sure() -> None:
    # A program stays in bounds, so the last threads cannot have run as the text says.
    assert run(program_of(FILL), 0x10000 + 4080).ranges == (Range("MAYW", "a", 4080, 4096, False),)
    before = program_of(FILL.replace("[%rd3]", "[%rd3+-16]"))
    assert run(before, 0x10000).ranges == (Range("MAYW", "a", 0, 16, False),)


def test_a_range_that_lies_outside_altogether_is_the_whole_allocation() -> None:
    away = program_of(FILL.replace("[%rd3]", "[%rd3+8192]"))
    assert run(away, 0x10000).ranges == (Range("MAYW", "a", 0, 4096, False),)


MOVED = """
    ld.param.u64 %rd1, [a]; ld.param.u64 %rd4, [d]; add.s64 %rd1, %rd1, %rd4;
    mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4; add.s64 %rd3, %rd1, %rd2; st.global.u32 [%rd3], %r1;
"""


@pytest.mark.parametrize("distance", [0, 8, -8, -64, 2**63 - 8])
def test_addresses_are_numbers_modulo_2_to_the_64(distance: int) -> None:
    program = program_of(MOVED, ".param .u64 a, .param .u64 d")
    found = run(program, 0x10100 - distance, distance, allocations=[("a", 0x10000, 4096)])
    if (0x10100 - distance) % 2**64 in range(0x10000, 0x11000):
        assert found.ranges == (Range("MUSTW", "a", 0x100, 0x120, True),)
    else:
        # The parameter is no pointer then, and neither is the distance.
        assert found.opaque is Reason.UNKNOWN_BASE


@pytest.mark.parametrize("distance", [256, -256, 2**64 - 256])
def test_a_distance_may_be_written_as_unsigned_number(distance: int) -> None:
    program = program_of(MOVED, ".param .u64 a, .param .u64 d")
    found = run(program, 0x10200, distance)
    start = (0x200 + distance) % 2**64
    assert found.ranges == (Range("MUSTW", "a", start, start + 32, True),)


def test_of_two_words_the_pointer_is_the_one_in_an_allocation() -> None:
    program = program_of(MOVED, ".param .u64 a, .param .u64 d")
    assert run(program, 64, 0x10000).ranges == (Range("MUSTW", "a", 64, 96, True),)
    assert run(program, 64, 0x10000).pointers == (8,)
    both = run(program, 0x10000, 0x10000)
    assert both.opaque is Reason.TWO_BASES and not both.ranges
    assert run(program, 64, 64).opaque is Reason.UNKNOWN_BASE


def test_a_pointer_into_nothing_is_no_base() -> None:
    found = run(program_of(FILL), 0x99999)
    assert found == Evaluation((), Reason.UNKNOWN_BASE, (), ())
    # An access that cannot happen needs no base.
    guarded = program_of(f"setp.lt.u32 %p1, %tid.x, 0; @!%p1 bra END; {FILL} END:")
    assert run(guarded, 0).opaque is None and run(guarded, 0).ranges == ()


def test_a_pointer_to_the_end_of_an_allocation_may_reach_back_into_it() -> None:
    backward = program_of(FILL.replace("[%rd3]", "[%rd3+-64]"))
    found = run(backward, 0x10000 + 4096)
    assert found.opaque is None and found.pointers == (0,)
    assert [(r.allocation, r.lo, r.hi) for r in found.ranges] == [("a", 4032, 4064)]
    # With another allocation right behind, it may be either; nothing is sure then.
    two = [("a", 0x10000, 4096), ("b", 0x11000, 4096)]
    both = run(program_of(FILL), 0x11000, allocations=two)
    inside = [r for r in both.ranges if r.allocation == "b"]
    assert inside and all(r.lo <= 0 < 32 <= r.hi for r in inside)
    assert run(program_of(FILL), 0x10000 + 4097).opaque is Reason.UNKNOWN_BASE


def test_an_opaque_kernel_has_no_ranges() -> None:
    program = program_of(f"{FILL} call nothing;")
    assert run(program, 0x10000) == Evaluation((), Reason.UNDEFINED_CALLEE, (), ())


def test_an_escaping_pointer_pins_only_when_it_is_one() -> None:
    program = program_of(f"{FILL} st.global.u64 [%rd3], %rd1;")
    found = run(program, 0x10000)
    assert found.pinned == (Reason.POINTER_ESCAPES,) and found.pointers == () and found.opaque is None
    passed = program_of(f"{FILL} ld.param.u64 %rd5, [b]; st.global.u64 [%rd3], %rd5;", ".param .u64 a, .param .u64 b")
    assert run(passed, 0x10000, 12).pinned == ()
    assert run(passed, 0x10000, 0x10008).pinned == (Reason.POINTER_ESCAPES,)


@pytest.mark.parametrize("use", ["and.b32 %r3, %r2, 7;", "mov.u32 %r3, %r2;", "mov.u32 %r3, 0;"])
@pytest.mark.parametrize("value", ["popc.b32 %r2, %r4;", "mov.u32 %r2, %r4;", "prmt.b32 %r2, %r4, %r4, 5;"])
def test_a_guard_on_memory_is_never_sure(use: str, value: str) -> None:
    # Whether the one value that passes the guard ever comes is not known.
    program = program_of(f"""
        ld.param.u64 %rd1, [a]; ld.global.u32 %r4, [%rd1+2048]; {value} setp.lt.u32 %p1, %r2, 1; @!%p1 bra END;
        {use} mul.wide.u32 %rd2, %r3, 4; add.s64 %rd3, %rd1, %rd2; st.global.u32 [%rd3], 1; END:""")
    found = run(program, 0x10000)
    assert [r.kind for r in found.ranges if "W" in r.kind] == ["MAYW"]


# What is remembered.


def test_equal_launches_are_remembered() -> None:
    program, where = program_of(FILL), Allocations([("a", 0x10000, 4096)])
    first = run(program, 0x10000, allocations=where)
    assert run(program, 0x10000, allocations=where) is first
    assert run(program, 0x10004, allocations=where) is not first


def test_another_set_of_allocations_is_another_launch() -> None:
    program = program_of(FILL)
    places = [("a", 0x10000, 4096), ("b", 0x10000, 4096), ("a", 0xF000, 8192), ("a", 0x10000, 16)]
    for identity, address, size in places:
        (found,) = run(program, 0x10000, allocations=Allocations([(identity, address, size)])).ranges
        assert found.allocation == identity and found.lo == 0x10000 - address
        assert found.hi == min(found.lo + 32, size)


@pytest.mark.parametrize("change", ["grid", "block", "shared", "scalar", "pointer", "contents"])
def test_everything_the_result_depends_on_is_looked_at(change: str) -> None:
    program = program_of("""
        ld.param.u64 %rd1, [a]; ld.param.u32 %r2, [n]; mov.u32 %r1, %tid.x; mov.u32 %r3, %ctaid.x; mov.u32 %r4, %ntid.x;
        mad.lo.s32 %r1, %r3, %r4, %r1; add.s32 %r1, %r1, %r2; mov.u32 %r5, %dynamic_smem_size; add.s32 %r1, %r1, %r5;
        ld.param.u64 %rd4, [b]; ld.global.u8 %r6, [%rd4]; add.s32 %r1, %r1, %r6;
        mul.wide.s32 %rd2, %r1, 4; add.s64 %rd3, %rd1, %rd2; st.global.u32 [%rd3], %r1;""",
        ".param .u64 a, .param .u64 b, .param .u32 n")
    where = Allocations([("a", 0x10000, 65536), ("b", 0x30000, 64)])
    base: dict[str, object] = {
        "grid": (1, 1, 1), "block": (4, 1, 1), "params": struct.pack("<QQI", 0x10000, 0x30000, 3), "allocations": where,
        "shared": 0, "contents": [("b", 0, bytes([7]) * 64)]}
    changed = {
        "grid": {"grid": (2, 1, 1)}, "block": {"block": (5, 1, 1)}, "shared": {"shared": 64},
        "scalar": {"params": struct.pack("<QQI", 0x10000, 0x30000, 4)},
        "pointer": {"params": struct.pack("<QQI", 0x10010, 0x30000, 3)},
        "contents": {"contents": [("b", 0, bytes([9]) * 64)]},
    }[change]  # fmt: skip
    first = evaluate(program, **base)  # type: ignore[arg-type]
    assert evaluate(program, **{**base, **changed}) != first  # type: ignore[arg-type]
    assert evaluate(program, **base) == first  # type: ignore[arg-type]


def test_memory_of_launches_is_limited() -> None:
    program, where = program_of(FILL), Allocations([("a", 0x10000, 1 << 20)])
    evaluator = Evaluator(program)
    for number in range(9000):
        params = struct.pack("<Q", 0x10000 + 4 * number)
        (found,) = evaluator.evaluate((1, 1, 1), (8, 1, 1), params, where).ranges
        assert found.lo == 4 * number
    assert len(evaluator._whole) <= 4096 and len(evaluator._relative) == 1


def test_pointers_do_not_make_launches_different() -> None:
    program = program_of(FILL)
    evaluator = Evaluator(program)
    for number in range(20):
        evaluator.evaluate((1, 1, 1), (8, 1, 1), struct.pack("<Q", 0x10000 + 64 * number),
                           Allocations([("a", 0x10000, 4096)]))
    assert len(evaluator._relative) == 1


def test_a_pointer_that_is_also_a_number_is_not_moved() -> None:
    # The low bits of the address decide where the store goes.
    program = program_of("""
        ld.param.u64 %rd1, [a]; and.b64 %rd2, %rd1, 64; add.s64 %rd3, %rd1, %rd2; st.global.u32 [%rd3], 1;""")
    assert run(program, 0x10000).ranges == (Range("MUSTW", "a", 0, 4, True),)
    assert run(program, 0x10040).ranges == (Range("MUSTW", "a", 128, 132, True),)


def test_half_of_a_pointer_word_is_a_number() -> None:
    program = program_of("""
        ld.param.u64 %rd1, [a]; ld.param.u32 %r1, [a]; and.b32 %r1, %r1, 64; cvt.u64.u32 %rd2, %r1;
        add.s64 %rd3, %rd1, %rd2; st.global.u32 [%rd3], 1;""")
    (found,) = run(program, 0x10040).ranges
    assert found.lo <= 128 and found.hi >= 132
    assert found.kind == "MAYW" or (found.lo, found.hi) == (128, 132)


# Module variables.

VARIABLE = ".global .align 4 .b8 table[256];"
STORE_TABLE = """
    mov.u64 %rd1, table; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4; add.s64 %rd3, %rd1, %rd2;
    st.global.u32 [%rd3+16], %r1;
"""


def test_a_variable_is_reported_under_its_name() -> None:
    program = program_of(STORE_TABLE, before=VARIABLE)
    wanted = (Range("MUSTW", "table", 16, 48, True),)
    assert run(program, 0).ranges == wanted
    assert run(program, 0, module_globals={"table": (0x500000, 256)}).ranges == wanted


def test_a_variable_inside_an_allocation_is_a_part_of_it() -> None:
    program = program_of(STORE_TABLE, before=VARIABLE)
    found = run(program, 0, module_globals={"table": (0x10100, 256)})
    assert found.ranges == (Range("MUSTW", "a", 0x110, 0x130, True),)


def test_ranges_of_a_variable_end_with_it() -> None:
    program = program_of(STORE_TABLE, before=VARIABLE)
    assert run(program, 0, block=128).ranges == (Range("MAYW", "table", 16, 256, False),)
    inside = run(program, 0, block=128, module_globals={"table": (0x10100, 256)})
    assert inside.ranges == (Range("MAYW", "a", 0x110, 0x200, False),)


# Contents.

GATHER = f"""
    {ONE} ld.global.u32 %r2, [%rd3]; ld.param.u64 %rd4, [b]; mul.wide.u32 %rd5, %r2, 4; add.s64 %rd6, %rd4, %rd5;
    ld.global.f32 %f1, [%rd6];
"""
TWO = [("a", 0x10000, 64), ("b", 0x20000, 4096)]


def spans(found: Evaluation) -> list[tuple[str, object, int, int]]:
    return [(r.kind, r.allocation, r.lo, r.hi) for r in found.ranges]


def test_loads_through_known_contents_are_exact() -> None:
    program = program_of(GATHER, ".param .u64 a, .param .u64 b")
    blind = run(program, 0x10000, 0x20000, allocations=TWO, block=4)
    assert blind.ranges == (Range("R", "a", 0, 16, True), Range("R", "b", 0, 4096, False))
    table = struct.pack("<4I", 40, 7, 100, 8)
    known = run(program, 0x10000, 0x20000, allocations=TWO, block=4, contents=[("a", 0, table)])
    assert spans(known) == [("R", "a", 0, 16), ("R", "b", 28, 36), ("R", "b", 160, 164), ("R", "b", 400, 404)]


def test_contents_are_found_by_where_the_pointer_points() -> None:
    program = program_of(GATHER, ".param .u64 a, .param .u64 b")
    table = struct.pack("<8I", 0, 0, 40, 7, 100, 8, 0, 0)
    shifted = run(program, 0x10008, 0x20000, allocations=TWO, block=4, contents=[("a", 0, table)])
    assert spans(shifted) == [("R", "a", 8, 24), ("R", "b", 28, 36), ("R", "b", 160, 164), ("R", "b", 400, 404)]
    piece = run(program, 0x10008, 0x20000, allocations=TWO, block=4, contents=[("a", 8, table[8:24])])
    assert piece.ranges == shifted.ranges
    short = run(program, 0x10008, 0x20000, allocations=TWO, block=4, contents=[("a", 8, table[8:20])])
    assert Range("R", "b", 0, 4096, False) in short.ranges
    other = run(program, 0x10008, 0x20000, allocations=TWO, block=4, contents=[("b", 8, table)])
    assert Range("R", "b", 0, 4096, False) in other.ranges


def test_contents_of_an_unknown_allocation_say_nothing() -> None:
    program = program_of(GATHER, ".param .u64 a, .param .u64 b")
    found = run(program, 0x10000, 0x20000, allocations=TWO, block=4, contents=[("c", 0, bytes(64))])
    assert Range("R", "b", 0, 4096, False) in found.ranges


def test_a_table_that_the_kernel_itself_writes_is_not_known() -> None:
    program = program_of(GATHER + FILL, ".param .u64 a, .param .u64 b")
    found = run(program, 0x10000, 0x20000, allocations=TWO, block=4, contents=[("a", 0, bytes(16))])
    assert Range("R", "b", 0, 4096, False) in found.ranges


# Errors, and launch values that have none.


def test_too_few_parameter_bytes_are_an_error() -> None:
    program = program_of(FILL, ".param .u64 a, .param .u32 n")
    with pytest.raises(UsageError, match="k takes 12 bytes of parameters, got 8"):
        run(program, 0x10000)
    assert run(program, 0x10000, 0).opaque is None


def test_a_launch_value_that_divides_by_zero_leaves_everything_possible() -> None:
    program = program_of("""
        ld.param.u64 %rd1, [a]; ld.param.u32 %r1, [n]; mov.u32 %r2, %ntid.x; div.u32 %r3, %r2, %r1;
        mul.wide.u32 %rd2, %r3, 4; add.s64 %rd3, %rd1, %rd2; st.global.u32 [%rd3], %r1;""",
        ".param .u64 a, .param .u64 n")
    assert run(program, 0x10000, 2).ranges == (Range("MUSTW", "a", 16, 20, True),)
    assert run(program, 0x10000, 0).ranges == (Range("MAYW", "a", 0, 4096, False),)


# Allocations.

places = st.lists(st.tuples(st.integers(1, 30), st.integers(1, 30)), max_size=8)


@given(places, st.integers(-5, 500))
def test_an_address_belongs_to_the_allocation_that_holds_it(parts: list[tuple[int, int]], address: int) -> None:
    items, end = [], 0
    for number, (gap, size) in enumerate(parts):
        items.append(Allocation(number, end + gap - 1, size))
        end += gap - 1 + size
    found = Allocations(reversed(items)).find(address)
    assert [found] == ([a for a in items if a.address <= address < a.address + a.size] or [None])
    assert all(Allocations(items).by_id(a.id) == a for a in items)
    assert Allocations(items).by_id("other") is None


def test_every_set_of_allocations_has_a_token_of_its_own() -> None:
    assert Allocations().token != Allocations().token


@pytest.mark.parametrize(("grid", "block"), [((0, 1, 1), (32, 1, 1)), ((1, 1, 1), (32, 0, 1))])
def test_a_launch_without_threads_is_refused(grid: tuple[int, int, int], block: tuple[int, int, int]) -> None:
    with pytest.raises(UsageError, match="cannot be launched"):
        evaluate(program_of(FILL), grid, block, bytes(8), [])
