"""Launches written as text: what is understood, what is refused and in which words, and how they meet a kernel."""

from __future__ import annotations

import itertools
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ptxparse.launch_text import (
    BLOCK_LIMIT,
    GRID_LIMIT,
    INTEGERS,
    Launch,
    LaunchTextError,
    bind,
    fresh_allocations,
    parse_launch,
)
from ptxparse.model import Function, Variable
from tessera.errors import ExitCode, TesseraError

DOCUMENTED = "grid=2,1,1 block=128 shared=0 args=ptr:4096,i32:7,f32:1.5"


def parameter(name: str, kind: str, size: int, dims: tuple[int | None, ...] = (), align: int = 0) -> Variable:
    return Variable(name, "param", kind, size, align or min(size, 8), 1, dims)


def kernel(*parameters: Variable, **directives: tuple[int, ...]) -> Function:
    return Function("k", True, 1, parameters=list(parameters), directives=dict(directives), instructions=[])


POINTER, COUNT, FACTOR = parameter("p", "u64", 8), parameter("n", "u32", 4), parameter("a", "f32", 4)


def test_the_documented_example() -> None:
    launch = parse_launch(DOCUMENTED)
    assert (launch.grid, launch.block, launch.shared) == ((2, 1, 1), (128, 1, 1), 0)
    bound = bind(launch, kernel(POINTER, COUNT, FACTOR))
    assert [(a.name, a.size) for a in bound.allocations] == [("p", 4096)]
    assert bound.params == struct.pack("<Qif", bound.allocations[0].address, 7, 1.5)


def test_order_spaces_and_defaults() -> None:
    assert parse_launch("  block=8,8  grid=3 ") == Launch((3, 1, 1), (8, 8, 1))
    assert parse_launch("grid=0x10 block=1").grid == (16, 1, 1)


def test_by_value_struct_and_padding() -> None:
    wide = parameter("s", "b8", 12, (12,), align=4)
    small = parameter("c", "u8", 1)
    launch = parse_launch("grid=1 block=1 args=u8:255,bytes:000102030405060708090a0b,f64:-0.5")
    bound = bind(launch, kernel(small, wide, parameter("d", "f64", 8)))
    assert bound.params == b"\xff\0\0\0" + bytes(range(12)) + struct.pack("<d", -0.5)
    assert bound.allocations == ()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "grid= is missing"),
        ("grid=1", "block= is missing"),
        ("grid=1 block=1 grid=2", "grid= is given twice"),
        ("grid=1 block=1 blocks=2", "expected grid=, block=, shared= or args=, found 'blocks=2'"),
        ("grid=1 block", "found 'block'"),
        ("grid=1,2,3,4 block=1", "expected one to three sizes, found 4 in 'grid=1,2,3,4'"),
        ("grid=0 block=1", "0 in 'grid=0' is outside 1 to 2147483647"),
        ("grid=1,65536 block=1", "65536 in 'grid=1,65536' is outside 1 to 65535"),
        ("grid=1 block=1,1,65", "outside 1 to 64"),
        ("grid=1 block=32,32,2", "has 2048 threads, at most 1024"),
        ("grid=x block=1", "expected an integer, found 'x' in 'grid=x'"),
        ("grid=1 block=1 shared=-1", "outside 0 to 2147483647"),
        ("grid=1 block=1 shared=", "expected an integer, found '' in 'shared='"),
        ("grid=1 block=1 args=7", "expected TYPE:VALUE, found '7'"),
        ("grid=1 block=1 args=i32:1,", "expected TYPE:VALUE, found ''"),
        ("grid=1 block=1 args=int:7", "expected TYPE:VALUE, found 'int:7'. Types: ptr, i8"),
        ("grid=1 block=1 args=ptr:0", "0 in 'ptr:0' is outside 1 to"),
        ("grid=1 block=1 args=i32:1.5", "expected an integer, found '1.5' in 'i32:1.5'"),
        ("grid=1 block=1 args=u8:256", "256 in 'u8:256' is outside 0 to 255"),
        ("grid=1 block=1 args=i8:-129", "-129 in 'i8:-129' is outside -128 to 127"),
        ("grid=1 block=1 args=f32:one", "expected a number, found 'one' in 'f32:one'"),
        ("grid=1 block=1 args=f32:1e39", "1e39 in 'f32:1e39' is too large"),
        ("grid=1 block=1 args=f64:1e999", "1e999 in 'f64:1e999' is too large"),
        ("grid=1 block=1 args=bytes:abc", "even number of hexadecimal digits in 'bytes:abc'"),
        ("grid=1 block=1 args=bytes:", "at least one byte in 'bytes:'"),
    ],
)
def test_malformed_text_is_refused_by_name(text: str, said: str) -> None:
    with pytest.raises(LaunchTextError) as caught:
        parse_launch(text)
    assert said in str(caught.value)
    assert caught.value.exit_code is ExitCode.USAGE


@pytest.mark.parametrize(
    ("arguments", "target", "said"),
    [
        ("ptr:8", kernel(POINTER, COUNT), "k takes 2 arguments, 1 given. Its parameters: 1: p (.u64, 8 bytes or ptr"),
        ("ptr:8", kernel(), "k takes 0 arguments, 1 given. It has no parameters"),
        ("i32:1", kernel(POINTER), "argument 1 of k, 'i32:1', has 4 bytes; p (.u64, 8 bytes or ptr:N) has 8"),
        ("ptr:8", kernel(parameter("s", "b8", 24, (24,))), "s (by value, 24 bytes: bytes:HEX) has 24"),
        ("ptr:8", kernel(POINTER, reqntid=(64,)), "k requires block=64 (.reqntid)"),
        ("ptr:8", kernel(POINTER, maxntid=(8, 2)), "k allows at most 16 threads in a block (.maxntid)"),
    ],
)
def test_misfit_is_refused_by_name(arguments: str, target: Function, said: str) -> None:
    with pytest.raises(LaunchTextError) as caught:
        bind(parse_launch(f"grid=1 block=32 args={arguments}"), target)
    assert said in str(caught.value)


def test_required_block_is_accepted() -> None:
    bind(parse_launch("grid=1 block=64,1 args=ptr:8"), kernel(POINTER, reqntid=(64, 1, 1), maxntid=(64, 1, 1)))


extents = st.tuples(*(st.integers(1, most) for most in GRID_LIMIT))
blocks = st.tuples(*(st.integers(1, most) for most in BLOCK_LIMIT)).filter(lambda b: b[0] * b[1] * b[2] <= 1024)
integers = st.sampled_from(sorted(INTEGERS)).flatmap(
    lambda kind: st.binary(min_size=struct.calcsize(INTEGERS[kind]), max_size=struct.calcsize(INTEGERS[kind])).map(
        lambda raw: (f"{kind}:{struct.unpack(INTEGERS[kind], raw)[0]}", raw)
    )
)
floats = st.floats(width=32, allow_nan=False).map(lambda value: (f"f32:{value!r}", struct.pack("<f", value)))
doubles = st.floats(allow_nan=False).map(lambda value: (f"f64:{value!r}", struct.pack("<d", value)))
raw_bytes = st.binary(min_size=1, max_size=40).map(lambda raw: (f"bytes:{raw.hex()}", raw))


arguments_and_bytes = st.lists(st.one_of(integers, floats, doubles, raw_bytes), max_size=8)


@given(extents, blocks, st.integers(0, 2**31 - 1), arguments_and_bytes)
def test_what_is_written_is_what_is_read(
    grid: tuple[int, int, int], block: tuple[int, int, int], shared: int, arguments: list[tuple[str, bytes]]
) -> None:
    text = f"grid={','.join(map(str, grid))} block={','.join(map(str, block))} shared={shared}"
    launch = parse_launch(f"{text} args={','.join(token for token, _ in arguments)}")
    assert (launch.grid, launch.block, launch.shared) == (grid, block, shared)
    assert [argument.data for argument in launch.arguments] == [data for _, data in arguments]
    slots = [parameter(f"p{i}", "b8", len(data), (len(data),), align=1) for i, (_, data) in enumerate(arguments)]
    assert bind(launch, kernel(*slots)).params == b"".join(data for _, data in arguments)


@given(st.text(max_size=60) | st.text("grid=block shared args:,x0123456789iu8f", max_size=60))
def test_any_text_gives_a_launch_or_a_complaint(text: str) -> None:
    try:
        parse_launch(text)
    except TesseraError as error:
        assert str(error).startswith("launch: ")


@given(st.lists(st.integers(1, 2**40), max_size=20), st.integers(1, 2**46))
def test_fresh_allocations_are_apart(sizes: list[int], start: int) -> None:
    made = fresh_allocations([(f"p{i}", size) for i, size in enumerate(sizes)], start)
    assert [a.size for a in made] == sizes
    for before, after in itertools.pairwise(made):
        assert after.address >= before.address + before.size + 0x10_0000
    assert all(a.address >= start and a.address % 0x1000 == 0 for a in made)
