"""Variables and parameters: state spaces, types, dimensions, initialisers, and where parameters lie."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ptxparse.model import TYPE_BYTES, FloatImmediate, Symbol, Variable, parameter_layout
from tests.ptxtext import kernel, module


def variable(text: str) -> Variable:
    (found,) = module(text).variables
    return found


def f64(value: float) -> FloatImmediate:
    return FloatImmediate(int.from_bytes(struct.pack("<d", value), "little"), 64)


@pytest.mark.parametrize("space", ["global", "const", "shared", "local"])
@pytest.mark.parametrize("linkage", ["", ".visible ", ".extern ", ".weak ", ".common "])
def test_state_spaces_and_linkage(space: str, linkage: str) -> None:
    found = variable(f"\n{linkage}.{space} .align 16 .b8 x[32];")
    assert found == Variable("x", space, "b8", 32, 16, 5, (32,), 1, linkage.strip(" ."))


@pytest.mark.parametrize(
    ("text", "size", "align", "dims", "vector"),
    [
        (".global .u32 x;", 4, 4, (), 1),
        (".global .f64 x[3];", 24, 8, (3,), 1),
        (".global .b8 x[0x10];", 16, 1, (16,), 1),
        (".global .u16 x[2][3][4];", 48, 2, (2, 3, 4), 1),
        (".global .v4 .f32 x;", 16, 16, (), 4),
        (".global .v2 .u8 x[5];", 10, 2, (5,), 2),
        (".global .align 64 .v4 .f32 x[2];", 32, 64, (2,), 4),
        (".extern .shared .align 16 .b8 x[];", 0, 16, (None,), 1),
        (".extern .shared .f32 x[][8];", 0, 4, (None, 8), 1),
        (".global .b128 x;", 16, 16, (), 1),
        (".global .texref x;", 8, 8, (), 1),
        (".global .surfref x[2];", 16, 8, (2,), 1),
        (".global .f16 x[4];", 8, 2, (4,), 1),
        (".shared .b32 x[2*3+1];", 28, 4, (7,), 1),
        (".global .u32 x[0];", 0, 4, (0,), 1),
    ],
)
def test_sizes_and_alignments(text: str, size: int, align: int, dims: tuple[int | None, ...], vector: int) -> None:
    found = variable(text)
    assert (found.size, found.align, found.dims, found.vector) == (size, align, dims, vector)


def test_several_variables_in_one_statement() -> None:
    parsed = module(".global .u32 x, y = 5, z[3];")
    assert [(v.name, v.size, v.initial) for v in parsed.variables] == [("x", 4, None), ("y", 4, (5,)), ("z", 12, None)]


@pytest.mark.parametrize(
    ("text", "initial"),
    [
        ("u32 x = 5", (5,)),
        ("s64 x = -5", (-5,)),
        ("u32 x = 0xffffffff", (4294967295,)),
        ("u32 x = 017", (15,)),
        ("u32 x = 0b101U", (5,)),
        ("u32 x = 1 << 4 | 3", (19,)),
        ("u32 x = (2 + 3) * 4 - ~0", (21,)),
        ("u32 x = 7 > 3 ? 10 / 3 : 9", (3,)),
        ("f32 x = 1.5", (f64(1.5),)),
        ("f32 x = -2", (-2,)),
        ("f32 x = .5", (f64(0.5),)),
        ("f32 x = 1e-3", (f64(1e-3),)),
        ("f32 x = 0f3F800000", (FloatImmediate(0x3F800000, 32),)),
        ("f64 x = -0d3FF0000000000000", (FloatImmediate(0xBFF0000000000000, 64),)),
        ("u32 x[3] = {1, 2, 3}", (1, 2, 3)),
        ("u32 x[3] = {1}", (1,)),
        ("u8 x[4] = { 1 , 0x2, 03,\n 4 }", (1, 2, 3, 4)),
        ("u32 x[2][2] = {{1, 2}, {3, 4}}", (1, 2, 3, 4)),
        ("u32 x[2][3] = {{1, 2}, {3}}", (1, 2, 0, 3, 0, 0)),
        ("u32 x[2][2][2] = {{{1}, {2, 3}}, {{4}}}", (1, 0, 2, 3, 4, 0, 0, 0)),
        ("v4 .f32 x = {1.0, 2.0, 3.0, 4.0}", tuple(map(f64, (1.0, 2.0, 3.0, 4.0)))),
        ("v2 .u32 x[2] = {{1, 2}, {3}}", (1, 2, 3, 0)),
        ("u64 x = other", (Symbol("other"),)),
        ("u64 x[2] = {other + 8, other - 4}", (Symbol("other", 8), Symbol("other", -4))),
        ("u64 x[2] = {generic(other), generic(other)+16}", (Symbol("other"), Symbol("other", 16))),
        ("u64 x[2] = {0, k}", (0, Symbol("k"))),
    ],
)  # fmt: skip
def test_initialisers(text: str, initial: tuple[object, ...]) -> None:
    assert variable(f".visible .global .{text};").initial == initial


def test_an_open_dimension_takes_its_size_from_the_initialiser() -> None:
    assert variable(".global .u32 x[] = {1, 2, 3};").size == 12
    assert variable(".global .u32 x[][2] = {{1, 2}, {3}};").size == 16
    assert variable(".global .v2 .u32 x[] = {{1, 2}, {3, 4}};").size == 16


def test_masked_addresses_are_recorded() -> None:
    parsed = module(".const .u32 y = 1;\n.const .u8 p[3] = {0xff(y), 0xff00(y), 0xff0000(y+4)};\n.const .u32 z = 7;")
    assert [v.name for v in parsed.variables] == ["y", "p", "z"]
    assert [n.kind for n in parsed.notes] == ["masked initialiser"] * 3


def test_fields_of_samplers_are_recorded() -> None:
    parsed = module(".global .samplerref s = { addr_mode_0 = wrap, filter_mode = linear };\n.global .u32 z;")
    assert [v.name for v in parsed.variables] == ["s", "z"]
    assert [(n.kind, n.text) for n in parsed.notes] == [("sampler fields", "s")]


def test_long_tables_are_read_exactly() -> None:
    numbers = [(i * 2654435761) & 0xFF for i in range(20_000)]
    found = variable(f".global .align 1 .b8 t[20000] = {{{', '.join(map(str, numbers))}}};\n")
    assert found.initial == tuple(numbers)


@pytest.mark.parametrize(
    ("text", "pointee", "align"),
    [
        (".u64 p", None, 0),
        (".u64 .ptr p", "", 0),
        (".u64 .ptr .align 4 p", "", 4),
        (".u64 .ptr .global p", "global", 0),
        (".u64 .ptr .global .align 16 p", "global", 16),
        (".b64 .ptr .shared .align 8 p", "shared", 8),
        (".u32 .ptr.const.align 2 p", "const", 2),
        (".u64 .ptr .local p", "local", 0),
    ],
)
def test_pointer_parameters(text: str, pointee: str | None, align: int) -> None:
    (found,) = kernel("ret;", f".param {text}").parameters
    assert (found.name, found.space, found.pointee, found.pointee_align) == ("p", "param", pointee, align)


def test_layout_of_parameters() -> None:
    k = kernel(
        "ret;",
        """
        .param .u8 a,
        .param .u32 b,
        .param .u16 c,
        .param .u64 d,
        .param .align 4 .b8 e[5],
        .param .b8 f,
        .param .align 16 .b8 g[20],
        .param .f64 h,
        .param .u32 i[3],
        .param .v4 .f32 j,
        .param .align 8 .b8 l[1]
        """,
    )
    slots, size = parameter_layout(k)
    assert [(s.name, s.offset, s.size) for s in slots] == [
        ("a", 0, 1), ("b", 4, 4), ("c", 8, 2), ("d", 16, 8), ("e", 24, 5), ("f", 29, 1), ("g", 32, 20),
        ("h", 56, 8), ("i", 64, 12), ("j", 80, 16), ("l", 96, 1),
    ]  # fmt: skip
    assert size == 97
    assert slots[4].variable is k.parameters[4]


def test_layout_of_no_parameters() -> None:
    assert parameter_layout(kernel("ret;", "")) == ([], 0)


TYPES = sorted(set(TYPE_BYTES) - {"pred", "texref", "samplerref", "surfref", "b1024"})


@given(st.lists(st.tuples(st.sampled_from(TYPES), st.integers(0, 9), st.sampled_from([0, 1, 2, 4, 8, 16, 32]))))
def test_parameters_lie_in_order_aligned_and_apart(declared: list[tuple[str, int, int]]) -> None:
    text = ", ".join(
        f".param {f'.align {align} ' if align else ''}.{kind} p{i}{f'[{count}]' if count else ''}"
        for i, (kind, count, align) in enumerate(declared)
    )
    slots, size = parameter_layout(kernel("ret;", text))
    end = 0
    for (kind, count, align), slot in zip(declared, slots, strict=True):
        assert slot.size == TYPE_BYTES[kind] * (count or 1)
        assert slot.offset % (align or TYPE_BYTES[kind]) == 0
        assert end <= slot.offset < end + (align or TYPE_BYTES[kind])
        end = slot.offset + slot.size
    assert size == end


def test_variables_of_bodies() -> None:
    k = kernel(
        """
        .shared .align 16 .b8 tile[1024];
        .local .align 8 .b8 __local_depot0[24];
        .param .b64 param0;
        .param .align 8 .b8 param1[16];
        .shared .f32 x, y[4];
        .extern .shared .b8 dynamic[];
        """
    )
    assert [(v.name, v.space, v.size, v.align) for v in k.variables] == [
        ("tile", "shared", 1024, 16), ("__local_depot0", "local", 24, 8), ("param0", "param", 8, 8),
        ("param1", "param", 16, 8), ("x", "shared", 4, 4), ("y", "shared", 16, 4), ("dynamic", "shared", 0, 1),
    ]  # fmt: skip
