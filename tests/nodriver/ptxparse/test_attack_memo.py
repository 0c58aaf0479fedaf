"""Attempts to get a remembered answer where another is due, and answers about the wrong allocation."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from ptxparse.api import Allocations, Range, evaluate, program_from_json, program_to_json
from ptxparse.codec import ProgramFormatError
from tessera.reasons import Reason
from tests.small_kernels import At, Placed, Small, Value, check, one, place, small, sound, words

BASE = 1 << 20


def evaluated(
    kernel: Small, values: Sequence[int], allocations: Allocations, contents: object = None, threads: int = 1
) -> tuple[list[tuple[str, object, int, int]], Reason | None]:
    """Ranges without their exactness, for a kernel whose parameters are all 64-bit words."""
    block = b"".join((value & (1 << 64) - 1).to_bytes(8, "little") for value in values)
    found = evaluate(kernel.program, (1, 1, 1), (threads, 1, 1), block, allocations, None, contents)  # type: ignore[arg-type]
    return [(r.kind, r.allocation, r.lo, r.hi) for r in found.ranges], found.opaque


def fresh(body: str, parameters: str) -> Small:
    return small(body + " ret;", parameters)


A = Allocations([("a", BASE, 4096), ("b", BASE + 8192, 4096)])


@pytest.mark.parametrize("second", [0, 4, 1024, -512])
def test_a_byte_offset_is_no_pointer(second: int) -> None:
    kernel = fresh("add.s64 %rd1, %a, %n; st.global.u32 [%rd1], 0;", "a:u64 n:u64")
    for n in (0, second, 0, second):
        assert evaluated(kernel, (BASE + 512, n), A)[0] == [("MUSTW", "a", 512 + n, 516 + n)]


def test_a_word_that_is_a_pointer_now_and_a_number_then() -> None:
    """Of ``a + n`` either may be the pointer; the answer must follow."""
    kernel = fresh("add.s64 %rd1, %a, %n; st.global.u32 [%rd1], 0;", "a:u64 n:u64")
    assert evaluated(kernel, (BASE, 64), A)[0] == [("MUSTW", "a", 64, 68)]
    assert evaluated(kernel, (64, BASE), A)[0] == [("MUSTW", "a", 64, 68)]
    assert evaluated(kernel, (128, BASE), A)[0] == [("MUSTW", "a", 128, 132)]
    assert evaluated(kernel, (BASE, BASE + 8192), A)[1] is Reason.TWO_BASES
    assert evaluated(kernel, (8, 16), A)[1] is Reason.UNKNOWN_BASE


def test_a_pointer_that_is_a_number_too() -> None:
    """The low bits of the pointer are part of an offset: it may not be moved."""
    kernel = fresh("st.global.u32 [%a], 1; and.b64 %rd1, %a, 255; add.s64 %rd2, %b, %rd1; st.global.u8 [%rd2], 1;", "a:u64 b:u64")
    for low in (0, 64, 128, 64, 0):
        found, _ = evaluated(kernel, (BASE + low, BASE + 8192), A)
        assert ("MUSTW", "b", low, low + 1) in found and ("MUSTW", "a", low, low + 4) in found


def test_half_of_a_pointer_as_a_number() -> None:
    kernel = fresh("st.global.u32 [%a], 1; ld.param.u32 %r1, [a]; and.b32 %r2, %r1, 255; cvt.u64.u32 %rd1, %r2; "
                   "add.s64 %rd2, %b, %rd1; st.global.u8 [%rd2], 1;", "a:u64 b:u64")
    for low in (0, 64, 128, 64, 0):
        found, opaque = evaluated(kernel, (BASE + low, BASE + 8192), A)
        assert opaque is not None or any(a == "b" and lo <= low < hi for _, a, lo, hi in found)


def test_two_words_point_into_one_allocation() -> None:
    kernel = fresh("st.global.u32 [%a], 1; st.global.u32 [%b+4], 1;", "a:u64 b:u64")
    for first, second in ((0, 0), (0, 64), (64, 0), (0, 8192)):
        found, _ = evaluated(kernel, (BASE + first, BASE + second), A)
        low = second % 8192
        assert found == [("MUSTW", "a", first, first + 4), ("MUSTW", "b" if second == 8192 else "a", low + 4, low + 8)]


def test_the_same_addresses_with_other_allocations() -> None:
    kernel = fresh("mov.u32 %r1, %tid.x; mul.wide.u32 %rd1, %r1, 4; add.s64 %rd2, %a, %rd1; st.global.u32 [%rd2], 1;", "a:u64")
    for allocations, expected in (
        (Allocations([("x", BASE, 4096)]), [("MUSTW", "x", 256, 512)]),
        (Allocations([("y", BASE + 256, 256)]), [("MUSTW", "y", 0, 256)]),
        (Allocations([("z", BASE - 4096, 8192)]), [("MUSTW", "z", 4352, 4608)]),
        (Allocations([("x", BASE, 4096)]), [("MUSTW", "x", 256, 512)]),
    ):
        assert evaluated(kernel, (BASE + 256,), allocations, threads=64)[0] == expected
    assert evaluated(kernel, (BASE + 256,), Allocations(), threads=64)[1] is Reason.UNKNOWN_BASE


def test_allocations_made_afresh_are_not_mistaken_for_older_ones() -> None:
    """Identity decides, and an identity must not be reused when an old set was collected."""
    kernel = fresh("st.global.u32 [%a], 1;", "a:u64")
    block = BASE.to_bytes(8, "little")
    for number in range(200):
        found = evaluate(kernel.program, *one(), block, [(number, BASE - 4 * number, 4096)])
        assert found.ranges == (Range("MUSTW", number, 4 * number, 4 * number + 4, True),)


def test_grid_block_and_shared_bytes_are_part_of_the_question() -> None:
    kernel = small("mov.u32 %r1, %dynamic_smem_size; mov.u32 %r2, %nctaid.y; mov.u32 %r3, %ntid.z; mad.lo.u32 %r4, %r2, 4, %r3; "
                   "add.u32 %r4, %r4, %r1; mul.wide.u32 %rd1, %r4, 4; add.s64 %rd2, %a, %rd1; st.global.u32 [%rd2], 1; ret;")
    for grid, block, shared in (((1, 1, 1), (1, 1, 1), 0), ((1, 2, 1), (1, 1, 1), 0), ((1, 1, 1), (1, 1, 2), 0),
                                ((1, 1, 1), (1, 1, 1), 16), ((1, 1, 1), (1, 1, 1), 0)):
        found = sound(kernel, grid, block, {"a": words(64)}, shared=shared)
        word = 4 * grid[1] + block[2] + shared
        assert found.ranges("a") == [(4 * word, 4 * word + 4)]


def test_where_module_variables_lie_is_part_of_the_question() -> None:
    kernel = small("st.global.u32 [g+4], 1; ret;", "", ".global .align 4 .b8 g[16];")
    for allocations, places, expected in (
        (Allocations(), None, [("MUSTW", "g", 4, 8)]),
        (Allocations(), {"g": (BASE, 16)}, [("MUSTW", "g", 4, 8)]),
        (A, {"g": (BASE + 64, 16)}, [("MUSTW", "a", 68, 72)]),
        (A, {"g": (BASE + 8192, 16)}, [("MUSTW", "b", 4, 8)]),
    ):
        found = evaluate(kernel.program, *one(), b"", allocations, places)
        assert [(r.kind, r.allocation, r.lo, r.hi) for r in found.ranges] == expected


@pytest.mark.parametrize("element", [0, 1, 2])
def test_a_pointer_compared_with_a_variable(element: int) -> None:
    """A variable's address is not zero, nor anything else that is known."""
    body = "mov.u64 %rd1, g; setp.ne.u64 %p1, %a, %rd1; @%p1 bra E; st.global.u32 [%c], 1; E: ret;"
    kernel = small(body, "a:u64 c:u64", ".global .align 4 .b8 g[16];")
    at = place(kernel, {"a": 0, "c": words(4)})
    address = at.loaded.globals["g"][0] + 4 * element
    at = Placed(at.memory, at.loaded, at.allocations, address.to_bytes(8, "little") + at.parameters[8:], at.places)
    assert not check(kernel, *one(), {}, placed=at).violations


TWO = ".global .align 4 .b8 g[16];\n.global .align 4 .b8 h[16];"
VARIABLES: list[tuple[str, str, dict[str, Value], str]] = [
    ("null_falls_back_to_a_variable", "mov.u64 %rd9, g; setp.eq.u64 %p1, %a, 0; selp.b64 %rd1, %rd9, %a, %p1; "
     "st.global.u32 [%rd1+4], 1;", {"a": 0}, "g"),
    ("a_pointer_and_no_variable", "mov.u64 %rd9, g; setp.eq.u64 %p1, %a, 0; selp.b64 %rd1, %rd9, %a, %p1; "
     "st.global.u32 [%rd1+4], 1;", {"a": words(4)}, "a"),
    ("one_of_two_variables", "mov.u64 %rd9, g; mov.u64 %rd8, h; setp.eq.u64 %p1, %a, 0; selp.b64 %rd1, %rd9, %rd8, %p1; "
     "st.global.u32 [%rd1+4], 1;", {"a": 3}, "h"),
    ("a_walk_through_a_variable", "mov.u64 %rd9, g; mov.u32 %r9, 0; L: st.global.u32 [%rd9], 1; add.s64 %rd9, %rd9, 4; "
     "add.u32 %r9, %r9, 1; setp.lt.u32 %p1, %r9, 3; @%p1 bra L;", {"a": 3}, "g"),
    ("the_distance_of_two_variables", "mov.u64 %rd9, g; mov.u64 %rd8, h; sub.s64 %rd7, %rd8, %rd9; add.s64 %rd6, %rd9, %rd7; "
     "st.global.u32 [%rd6], 1;", {"a": 3}, "h"),
    ("the_distance_of_a_pointer_and_a_variable", "mov.u64 %rd9, g; sub.s64 %rd7, %a, %rd9; add.s64 %rd6, %rd9, %rd7; "
     "st.global.u32 [%rd6], 1;", {"a": words(4)}, "a"),
    ("the_low_bits_of_a_variable's_address", "mov.u64 %rd9, g; and.b64 %rd8, %rd9, 12; add.s64 %rd6, %a, %rd8; "
     "st.global.u32 [%rd6], 1;", {"a": words(4)}, "a"),
]


@pytest.mark.parametrize(("name", "body", "arguments", "expected"), VARIABLES, ids=[v[0] for v in VARIABLES])
def test_module_variables_as_bases(name: str, body: str, arguments: dict[str, Value], expected: str) -> None:
    found = sound(small(f"{body} ret;", "a:u64", TWO), *one(), arguments)
    assert {r.allocation for r in found.evaluation.ranges} == {expected}


def adjacent(parameter: At) -> Placed:
    """One buffer that the evaluation is told are two, x and y of 64 bytes, without a gap."""
    kernel = small("st.global.u32 [%a+-4], 1; ret;")
    at = place(kernel, {"a": parameter, "xy": words(32)})
    start = at.places["xy"][0]
    allocations = Allocations([("x", start, 64), ("y", start + 64, 64)])
    return Placed(at.memory, at.loaded, allocations, at.parameters, {"x": (start, 64), "y": (start + 64, 64)})


def test_a_pointer_past_the_end_belongs_to_what_it_ends() -> None:
    """``*--p`` from the end of x, where y begins: the programs of C may do that."""
    kernel = small("st.global.u32 [%a+-4], 1; ret;")
    found = check(kernel, *one(), {}, placed=adjacent(At("xy", 64)))
    assert not found.violations


def test_a_pointer_past_the_end_of_everything() -> None:
    kernel = small("st.global.u32 [%a+-4], 1; ret;")
    found = check(kernel, *one(), {"a": At("x", 128), "x": words(32)})
    assert not found.violations


def test_a_negative_offset_from_the_middle() -> None:
    found = sound(small("st.global.u32 [%a+-64], 1; ret;"), *one(), {"a": At("x", 128), "x": words(64)})
    assert found.ranges("x") == [(64, 68)]


def test_an_offset_that_wraps_around_2_to_the_64() -> None:
    body = "mul.lo.u64 %rd1, %n, 8; add.s64 %rd2, %a, %rd1; st.global.u32 [%rd2], 1; ret;"
    for n in (-(1 << 61) + 2, (1 << 61) + 2, (1 << 60) + (1 << 60) + 2, 2):
        found = sound(small(body, "a:u64 n:u64"), *one(), {"a": words(64), "n": n})
        assert found.ranges("a") == [(16, 20)]


def test_a_launch_after_json_is_the_same() -> None:
    body = "mov.u32 %r1, %tid.x; setp.ge.u32 %p1, %r1, %n; @%p1 bra E; xor.b32 %r2, %r1, 5; mul.wide.u32 %rd1, %r2, 4; " \
           "add.s64 %rd2, %a, %rd1; st.global.u32 [%rd2], 1; E: ret;"
    kernel = small(body, "a:u64 n:u32")
    again = program_from_json(program_to_json(kernel.program))
    assert again == kernel.program
    block = BASE.to_bytes(8, "little") + (40).to_bytes(4, "little")
    assert evaluate(again, (1, 1, 1), (64, 1, 1), block, A) == evaluate(kernel.program, (1, 1, 1), (64, 1, 1), block, A)


FORGED = [
    ("shift_right", 2, "(print('executed') or 3)"), ("low_bits", 2, "3)+(0"), ("wrap", 2, "32"), ("param", 1, "0"),
    ("param", 3, "True"), ("ntid", 1, "x'"),
]


@pytest.mark.parametrize(("kind", "place_in_node", "value"), FORGED)
def test_a_stored_program_is_data(kind: str, place_in_node: int, value: str) -> None:
    """What is evaluated is generated from the program: text in place of a number must not get into it."""
    kernel = small("mov.u32 %r3, %ntid.x; mad.lo.u32 %r1, %n, 5, %r3; shr.u32 %r1, %r1, 3; cvt.u32.u8 %r2, %r1; and.b32 %r2, %r2, 7; "
                   "add.u32 %r1, %r1, %r2; mul.wide.u32 %rd1, %r1, 4; add.s64 %rd2, %a, %rd1; st.global.u32 [%rd2], 1; ret;",
                   "a:u64 n:u32")
    stored = json.loads(program_to_json(kernel.program))
    nodes = [node for node in stored["nodes"] if node[0] == kind]
    assert nodes
    for node in nodes:
        node[place_in_node] = value
    with pytest.raises(ProgramFormatError):
        program_from_json(json.dumps(stored))
