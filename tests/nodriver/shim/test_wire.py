"""Records: what is written is read again, and no bytes whatever make a reader look outside them."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shim import tails
from shim.layout import ffi
from shim.wire import _SHAPES, Head, Kind, NodeKind, Record, WireError, encode, lib, records, span
from tests.material import ROOT
from tools import native

ONES = {1: 0xFF, 2: 0xFFFF, 4: 0xFFFFFFFF, 8: (1 << 64) - 1}
NO_TAIL = {"path_bytes", "name_bytes", "parameters", "parameter_bytes", "attributes", "inline_bytes", "count", "nodes",
           "edges", "total", "offset", "bytes"}
"""Fields that say how much stands behind the structure, in some kinds: 0 here."""


def numbers(width: int) -> st.SearchStrategy[int]:
    return st.integers(0, ONES[width])


@st.composite
def any_record(draw: st.DrawFn) -> tuple[Kind, dict[str, Any]]:
    """A kind, and values for its head, place and body."""
    kind = draw(st.sampled_from(Kind))
    fields: dict[str, Any] = {"head": Head(*[draw(numbers(width)) for width in (2, 8, 8, 4, 4)])}
    if _SHAPES[kind].placed:
        fields["place"] = (draw(numbers(8)), draw(numbers(8)))
    if kind is Kind.GRAPH_NODE:
        fields["tail"] = tails.encode_node(NodeKind.EMPTY)
    for name, value in _SHAPES[kind].body.zero()._asdict().items():
        if name in NO_TAIL:
            continue
        if isinstance(value, bytes):
            fields[name] = draw(st.binary(min_size=len(value), max_size=len(value)))
        elif isinstance(value, int):
            fields[name] = draw(st.integers(0, 0x7FFFFFFF))
        elif not hasattr(value, "_fields"):
            fields[name] = tuple([draw(numbers(4)) for _ in value])
    return kind, fields


@given(st.lists(any_record(), max_size=5))
def test_what_is_encoded_is_decoded(wanted: list[tuple[Kind, dict[str, Any]]]) -> None:
    found = list(records(b"".join([encode(kind, **fields) for kind, fields in wanted])))
    assert [record.kind for record in found] == [kind for kind, _ in wanted]
    for record, (_, fields) in zip(found, wanted, strict=True):
        assert record[1:6] == fields.pop("head")
        assert record.tail == fields.pop("tail", b"")
        assert record.place == fields.pop("place", None)
        assert {name: getattr(record.body, name) for name in fields} == fields


def test_every_kind_and_node_kind_of_the_header_is_known() -> None:
    def named(enumeration: str, prefix: str) -> dict[str, int]:
        elements = ffi.typeof(f"enum {enumeration}").elements
        return {name.removeprefix(prefix): value for value, name in elements.items()}

    assert {kind.name: kind.value for kind in Kind} == named("wire_kind", "WIRE_")
    assert {kind.name: kind.value for kind in NodeKind} == named("wire_node_kind", "WIRE_NODE_")


def only(data: bytes) -> Record:
    [record] = records(data)
    return record


@given(st.lists(st.tuples(numbers(4), numbers(4)), max_size=5), st.text(st.characters(exclude_categories=["Cs"])))
def test_functions_have_parameters_and_a_name(parameters: list[tuple[int, int]], name: str) -> None:
    record = only(encode(Kind.FUNCTION, parameters=len(parameters), name_bytes=len(name.encode()),
                         tail=tails.function_tail(parameters, name)))
    assert tails.name(record) == name
    assert [tuple(p) for p in tails.function_parameters(record)] == parameters


@given(st.binary(max_size=100), st.lists(st.tuples(numbers(4), st.binary(min_size=64, max_size=64)), max_size=3))
def test_launches_have_parameters_and_attributes(parameters: bytes, attributes: list[tuple[int, bytes]]) -> None:
    body = {"parameter_bytes": len(parameters), "attributes": len(attributes), "grid": (1, 2, 3), "block": (4, 5, 6)}
    tail = tails.launch_tail(parameters, attributes)
    exec_node = tails.encode_node(NodeKind.LAUNCH, node=9, tail=tail, **body)
    [node] = tails.nodes(only(encode(Kind.GRAPH_NODE, tail=exec_node)))
    for launch in (only(encode(Kind.LAUNCH, tail=tail, **body)), node):
        assert launch.body.grid == (1, 2, 3) and launch.body.block == (4, 5, 6)
        assert tails.launch_parameters(launch) == parameters
        assert [tuple(a) for a in tails.launch_attributes(launch)] == attributes


def test_copies_have_two_sides_and_contents() -> None:
    side = _SHAPES[Kind.COPY].body.zero().to
    record = only(encode(Kind.COPY, place=(3, 4), width=5, to=side._replace(address=7, kind=lib.WIRE_SIDE_DEVICE),
                         from_=side._replace(address=8, level=2), inline_bytes=5, tail=b"bytes"))
    assert record.place == (3, 4) and record.place.context == 4
    assert (record.body.to.address, record.body.to.kind, record.body.from_.address, record.body.from_.level) == (
        7, lib.WIRE_SIDE_DEVICE, 8, 2)
    assert tails.inline_content(record) == b"bytes"


def test_graphs_have_nodes_and_edges() -> None:
    operations = [(1, 2, 3, 4), (5, 6, 7, 8)]
    listed = [
        tails.encode_node(NodeKind.CHILD, node=1),
        tails.encode_node(NodeKind.SET, node=2, parent=1, enabled=0, context=6, width=12, value=3),
        tails.encode_node(NodeKind.MEMORY_OPERATIONS, node=3, count=2, tail=tails.memory_operations_tail(operations)),
        tails.encode_node(NodeKind.ALLOCATE, node=4, address=64, bytes=32, device=1),
    ]
    record = only(encode(Kind.GRAPH_EXEC, exec=5, nodes=4, edges=2,
                         tail=b"".join(listed) + tails.edges_tail([(1, 3), (3, 4)])))
    child, fill, work, allocate = tails.nodes(record)
    assert (child.kind, child.enabled, child.body) == (NodeKind.CHILD, 1, None)
    assert (fill.parent, fill.enabled, fill.context, fill.body.width, fill.body.value) == (1, 0, 6, 12, 3)
    assert [tuple(o) for o in tails.memory_operations(work)] == operations
    assert (allocate.body.address, allocate.body.bytes, allocate.body.device) == (64, 32, 1)
    assert [tuple(edge) for edge in tails.edges(record)] == [(1, 3), (3, 4)]
    assert [edge.from_ for edge in tails.edges(record)] == [1, 3]


def test_names_and_pieces() -> None:
    for kind, length in ((Kind.DRIVER, "path_bytes"), (Kind.MODULE, "path_bytes"), (Kind.DEVICE, "name_bytes"),
                         (Kind.MEMORY, "name_bytes"), (Kind.LINK_INPUT, "name_bytes")):
        assert tails.name(only(encode(kind, tail=b"a/b\xff", **{length: 4}))) == "a/b\udcff"
    assert tails.data(only(encode(Kind.DATA, total=9, offset=4, bytes=5, tail=b"bytes"))) == b"bytes"


@pytest.mark.parametrize("data, words", [
    (b"short", "record 0, at byte 0 of 5: it is shorter"),
    (encode(Kind.CALL) + b"\1\2", "record 1, at byte 32 of 34"),
    (encode(Kind.CALL)[:4] + b"\7\7" + encode(Kind.CALL)[6:], "of no known kind"),
    (encode(Kind.EVENT, tail=b"x")[:-8], "ends behind the last byte"),
    (b"\x18" + encode(Kind.CALL)[1:], "a size that cannot be"),
    (b"\x24" + encode(Kind.CALL)[1:] + bytes(8), "a size that cannot be"),
    (encode(Kind.DRIVER, path_bytes=9, tail=bytes(8)), "shorter than what it says it holds"),
    (encode(Kind.FUNCTION, parameters=0xFFFFFFFF, tail=bytes(64)), "shorter than what"),
    (encode(Kind.LAUNCH, parameter_bytes=8, attributes=0x20000000, tail=bytes(64)), "shorter than what"),
    (encode(Kind.COPY, inline_bytes=1 << 63), "too large to stand in it"),
    (encode(Kind.DATA, total=8, offset=(1 << 64) - 8, bytes=16, tail=bytes(16)), "outside the contents"),
    (encode(Kind.GRAPH_EXEC, nodes=3, tail=bytes(64)), "a node in it has a size"),
    (encode(Kind.GRAPH_EXEC, edges=3, tail=bytes(40)), "shorter than what"),
    (encode(Kind.GRAPH_NODE), "shorter than what"),
    (encode(Kind.GRAPH_NODE, tail=bytes(4) + b"\xff" + bytes(27)), "a node in it is of no known kind"),
])
def test_what_is_wrong_is_said(data: bytes, words: str) -> None:
    with pytest.raises(WireError, match=words):
        list(records(data))


@pytest.mark.parametrize("fields", [{"nonsense": 1}, {"handle": -1}, {"head": Head(flags=1 << 16)}, {"handle": "text"}])
def test_a_record_that_cannot_be_is_not_encoded(fields: dict[str, Any]) -> None:
    with pytest.raises(WireError, match="no record STREAM has these fields"):
        encode(Kind.STREAM, **fields)


SAMPLES = b"".join([
    encode(Kind.LAUNCH, parameter_bytes=20, attributes=1, tail=tails.launch_tail(bytes(20), [(1, bytes(64))])),
    encode(Kind.FUNCTION, parameters=2, name_bytes=3, tail=tails.function_tail([(0, 8), (8, 4)], "abc")),
    encode(Kind.COPY, inline_bytes=9, tail=bytes(9)),
    encode(Kind.MEMORY_OPERATIONS, count=2, tail=tails.memory_operations_tail([(1, 2, 3, 4)] * 2)),
    encode(Kind.GRAPH_EXEC, nodes=2, edges=1, tail=tails.encode_node(NodeKind.LAUNCH, tail=b"")
           + tails.encode_node(NodeKind.COPY, inline_bytes=8, tail=bytes(8)) + tails.edges_tail([(1, 2)])),
    encode(Kind.DATA, total=8, bytes=8, tail=bytes(8)),
    encode(Kind.MODULE, path_bytes=5, tail=b"a.ptx"),
])


def look_at_everything(data: bytes) -> None:
    """Decode all of it, tails too, up to what is wrong."""
    try:
        for record in records(data):
            if "name_bytes" in record.body._fields or "path_bytes" in record.body._fields:
                tails.name(record)
            if record.kind is Kind.LAUNCH:
                assert len(tails.launch_parameters(record)) == record.body.parameter_bytes
                assert len(tails.launch_attributes(record)) == record.body.attributes
            if record.kind is Kind.COPY:
                assert len(tails.inline_content(record)) == record.body.inline_bytes
            if record.kind in (Kind.GRAPH_EXEC, Kind.GRAPH_NODE):
                list(tails.nodes(record))
            if record.kind is Kind.GRAPH_EXEC:
                assert len(tails.edges(record)) == record.body.edges
    except WireError as error:
        assert f"at byte {span(data)}" in str(error)
    else:
        assert span(data) == len(data)


@given(st.binary(max_size=400))
def test_random_bytes_do_no_harm(data: bytes) -> None:
    look_at_everything(data)


MUTATIONS = st.lists(st.tuples(st.integers(0, len(SAMPLES) - 1), st.integers(0, 255)), min_size=1, max_size=6)


@given(MUTATIONS, st.integers(0, len(SAMPLES)))
@settings(max_examples=300)
def test_changed_bytes_do_no_harm(changes: list[tuple[int, int]], length: int) -> None:
    data = bytearray(SAMPLES)
    for place, value in changes:
        data[place] = value
    look_at_everything(bytes(data[:length] if length else data))


def test_the_check_reads_nothing_outside_under_sanitizers(tmp_path: Path) -> None:
    """Changes and lengths of all kinds, each in memory of exactly so many bytes, checked in C with AddressSanitizer."""
    sources = [ROOT / "tests" / "nodriver" / "shim" / "c" / "walk.c", ROOT / "shim" / "check.c"]
    program = tmp_path / "walk"
    made = subprocess.run([native.compiler(), *native.FLAGS, *native.sanitizer_flags("address,undefined"),
                           f"-I{ROOT / 'shim'}", *sources, "-o", program], capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    ran = subprocess.run([program, "20000"], input=SAMPLES, capture_output=True, timeout=120, check=False)
    assert ran.returncode == 0, ran.stderr.decode()
    accepted, refused = map(int, ran.stdout.split())
    assert accepted > 1000 and refused > 1000
