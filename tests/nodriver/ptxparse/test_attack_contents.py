"""Attempts to mislead an evaluation that is given the contents of tables."""

from __future__ import annotations

import numpy as np
import pytest

from ptxparse.api import Allocations, evaluate
from tests.small_kernels import At, Placed, check, place, small, sound, words

GATHER = """
mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x; mad.lo.s32 %r4, %r1, %r2, %r3; setp.ge.s32 %p1, %r4, %n;
@%p1 bra E; mul.wide.s32 %rd1, %r4, 4; add.s64 %rd2, %x, %rd1; ld.global.u32 %r5, [%rd2];
mul.wide.u32 %rd3, %r5, 4; add.s64 %rd4, %a, %rd3; st.global.u32 [%rd4], 1; E: ret;"""


def table(*values: int) -> np.ndarray[tuple[int, ...], np.dtype[np.uint32]]:
    return np.array(values, np.uint32)


def test_a_gather_through_a_known_table_is_exact() -> None:
    arguments = {"a": words(64), "x": table(*([9, 17] * 16)), "n": 32}
    found = sound(small(GATHER, "a:u64 x:u64 n:s32"), (2, 1, 1), (32, 1, 1), arguments, known=["x"])
    assert found.ranges("a") == [(36, 40), (68, 72)]


@pytest.mark.parametrize("which", ["x", "y", "xy"])
def test_a_known_neighbour_is_not_the_table(which: str) -> None:
    """x, of which nothing is known, lies before y; the grid covers more threads than x has elements."""
    kernel = small(GATHER, "a:u64 x:u64 n:s32")
    at = place(kernel, {"a": words(64), "x": At("xy"), "xy": table(*([9] * 64 + [0] * 64)), "n": 64})
    start, target = at.places["xy"][0], at.places["a"]
    allocations = Allocations([("x", start, 256), ("y", start + 256, 256), ("a", *target)])
    at = Placed(at.memory, at.loaded, allocations, at.parameters, {"x": (start, 256), "y": (start + 256, 256), "a": target})
    found = check(kernel, (4, 1, 1), (32, 1, 1), {}, placed=at, known=list(which))
    assert not found.violations


def test_a_known_neighbour_before_the_table() -> None:
    kernel = small(GATHER.replace("add.s64 %rd2, %x, %rd1", "sub.s64 %rd2, %x, %rd1"), "a:u64 x:u64 n:s32")
    at = place(kernel, {"a": words(64), "x": At("yx", 508), "yx": table(*([0] * 64 + [9] * 64)), "n": 64})
    start, target = at.places["yx"][0], at.places["a"]
    allocations = Allocations([("y", start, 256), ("x", start + 256, 256), ("a", *target)])
    at = Placed(at.memory, at.loaded, allocations, at.parameters, {"y": (start, 256), "x": (start + 256, 256), "a": target})
    found = check(kernel, (4, 1, 1), (32, 1, 1), {}, placed=at, known=["y"])
    assert not found.violations


def test_part_of_a_table_is_known() -> None:
    kernel = small(GATHER, "a:u64 x:u64 n:s32")
    data = table(*range(32))
    at = place(kernel, {"a": words(64), "x": data, "n": 32})
    for low, high in ((0, 64), (64, 128), (16, 32), (0, 128)):
        found = evaluate(kernel.program, (1, 1, 1), (32, 1, 1), at.parameters, at.allocations, None,
                         [("x", low, data.tobytes()[low:high])])
        assert max(r.hi for r in found.ranges if r.allocation == "a") >= 128


def test_a_table_that_the_kernel_writes_is_not_known_for_long() -> None:
    body = """
    mov.u32 %r9, 0; L: ld.global.u32 %r1, [%x]; mul.wide.u32 %rd1, %r1, 4; add.s64 %rd2, %a, %rd1; st.global.u32 [%rd2], 1;
    add.u32 %r2, %r1, 5; st.global.u32 [%x], %r2; add.u32 %r9, %r9, 1; setp.lt.u32 %p1, %r9, 4; @%p1 bra L; ret;"""
    sound(small(body, "a:u64 x:u64"), (1, 1, 1), (1, 1, 1), {"a": words(64), "x": table(3)}, known=["x"])


def test_a_table_that_the_kernel_writes_under_another_name() -> None:
    body = """
    st.global.u32 [%y], 40; ld.global.u32 %r1, [%x]; mul.wide.u32 %rd1, %r1, 4; add.s64 %rd2, %a, %rd1;
    st.global.u32 [%rd2], 1; ret;"""
    arguments = {"a": words(64), "x": table(3), "y": At("x")}
    sound(small(body, "a:u64 x:u64 y:u64"), (1, 1, 1), (1, 1, 1), arguments, known=["x"])


def test_a_table_that_another_block_updates_atomically() -> None:
    body = """
    atom.global.add.u32 %r1, [%x], 5; bar.sync 0; ld.global.u32 %r1, [%x]; mul.wide.u32 %rd1, %r1, 4; add.s64 %rd2, %a, %rd1;
    st.global.u32 [%rd2], 1; ret;"""
    sound(small(body, "a:u64 x:u64"), (1, 1, 1), (4, 1, 1), {"a": words(64), "x": table(3)}, known=["x"])


def test_the_same_launch_with_other_contents() -> None:
    kernel = small(GATHER, "a:u64 x:u64 n:s32")
    at = place(kernel, {"a": words(64), "x": words(32), "n": 32})
    for value in (0, 9, 33, 9, 0):
        found = evaluate(kernel.program, (1, 1, 1), (32, 1, 1), at.parameters, at.allocations, None,
                         [("x", 0, table(*[value] * 32).tobytes())])
        assert [(r.lo, r.hi) for r in found.ranges if r.allocation == "a"] == [(4 * value, 4 * value + 4)]
    found = evaluate(kernel.program, (1, 1, 1), (32, 1, 1), at.parameters, at.allocations)
    assert [(r.lo, r.hi) for r in found.ranges if r.allocation == "a"] == [(0, 256)]


def test_indices_of_every_width() -> None:
    for kind, data in (("u8", bytes([200] * 32)), ("s16", b"\x30\x00" * 16), ("u16", b"\xc8\x00" * 16)):
        size = int(kind[1:]) // 8
        body = (f"mov.u32 %r1, %tid.x; mul.wide.u32 %rd1, %r1, {size}; add.s64 %rd2, %x, %rd1; ld.global.{kind} %r2, [%rd2]; "
                "mul.wide.s32 %rd3, %r2, 4; add.s64 %rd4, %a, %rd3; st.global.u32 [%rd4], 1; ret;")
        values = np.frombuffer(data, np.uint8)
        sound(small(body, "a:u64 x:u64"), (1, 1, 1), (16, 1, 1), {"a": words(256), "x": values}, known=["x"])


def test_negative_indices_from_a_table() -> None:
    body = ("mov.u32 %r1, %tid.x; mul.wide.u32 %rd1, %r1, 4; add.s64 %rd2, %x, %rd1; ld.global.s32 %r2, [%rd2]; "
            "mul.wide.s32 %rd3, %r2, 4; add.s64 %rd4, %a, %rd3; st.global.u32 [%rd4], 1; ret;")
    arguments = {"buffer": words(64), "a": At("buffer", 128), "x": np.array([-3, 5, -7, 0], np.int32)}
    found = sound(small(body, "a:u64 x:u64"), (1, 1, 1), (4, 1, 1), arguments, known=["x"])
    assert found.ranges("buffer") == [(100, 104), (116, 120), (128, 132), (148, 152)]


def test_two_levels_of_tables() -> None:
    body = ("mov.u32 %r1, %tid.x; mul.wide.u32 %rd1, %r1, 4; add.s64 %rd2, %x, %rd1; ld.global.u32 %r2, [%rd2]; "
            "mul.wide.u32 %rd3, %r2, 4; add.s64 %rd4, %y, %rd3; ld.global.u32 %r3, [%rd4]; "
            "mul.wide.u32 %rd5, %r3, 4; add.s64 %rd6, %a, %rd5; st.global.u32 [%rd6], 1; ret;")
    arguments = {"a": words(64), "x": table(1, 1, 2, 2), "y": table(60, 7, 9, 61)}
    found = sound(small(body, "a:u64 x:u64 y:u64"), (1, 1, 1), (4, 1, 1), arguments, known=["x", "y"])
    assert found.ranges("a") == [(28, 32), (36, 40)]


def test_a_loop_bounded_by_a_table() -> None:
    body = ("mov.u32 %r9, %tid.x; mul.wide.u32 %rd1, %r9, 4; add.s64 %rd2, %x, %rd1; ld.global.u32 %r5, [%rd2]; "
            "ld.global.u32 %r6, [%rd2+4]; L: setp.ge.u32 %p1, %r5, %r6; @%p1 bra E; mul.wide.u32 %rd3, %r5, 4; "
            "add.s64 %rd4, %a, %rd3; st.global.u32 [%rd4], 1; add.u32 %r5, %r5, 1; bra L; E: ret;")
    arguments = {"a": words(64), "x": table(3, 9, 9, 20, 41)}
    sound(small(body, "a:u64 x:u64"), (1, 1, 1), (4, 1, 1), arguments, known=["x"])


def test_equal_ids_and_empty_contents() -> None:
    kernel = small(GATHER, "a:u64 x:u64 n:s32")
    at = place(kernel, {"a": words(64), "x": words(32), "n": 32})
    for contents in ([], [("nobody", 0, bytes(4))], [("x", 0, b"")], [("x", 126, bytes(2))]):
        found = evaluate(kernel.program, (1, 1, 1), (32, 1, 1), at.parameters, at.allocations, None, contents)
        assert [(r.lo, r.hi) for r in found.ranges if r.allocation == "a"] == [(0, 256)]
