"""What stands behind the structures of records and of the nodes of graphs, and how it is written.

Every function here takes a record of :func:`shim.wire.records`, whose tail has been found to be long enough.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from shim.layout import Layout, layout
from shim.wire import Kind, NodeKind, Record, padded

_NODE, _PARAMETER, _EDGE = layout("wire_node"), layout("wire_parameter"), layout("wire_edge")
_ATTRIBUTE, _OPERATION = layout("wire_attribute"), layout("wire_memory_operation")
_NODE_BODIES: dict[NodeKind, Layout] = {
    NodeKind.LAUNCH: layout("wire_launch_body"),
    NodeKind.COPY: layout("wire_copy_body"),
    NodeKind.SET: layout("wire_set_body"),
    NodeKind.HOST_FUNCTION: layout("wire_host_function_body"),
    NodeKind.EVENT_RECORD: layout("wire_event_body"),
    NodeKind.EVENT_WAIT: layout("wire_event_body"),
    NodeKind.ALLOCATE: layout("wire_allocation"),
    NodeKind.FREE: layout("wire_allocation"),
    NodeKind.MEMORY_OPERATIONS: layout("wire_memory_operations_body"),
}


class Node(NamedTuple):
    """A node of an executable graph. ``body`` has the fields of its kind's structure, None if there is none."""

    kind: NodeKind
    enabled: int
    node: int
    parent: int
    context: int
    body: Any
    tail: memoryview


def _many(shape: Layout, data: memoryview, offset: int, count: int) -> list[Any]:
    return [shape.read(data, offset + k * shape.size) for k in range(count)]


def name(record: Record) -> str:
    """The path of DRIVER and MODULE, the name of DOOR, DEVICE, FUNCTION, MEMORY and LINK_INPUT; empty without."""
    body, start = record.body, 0
    length: int = body.path_bytes if record.kind in (Kind.DRIVER, Kind.MODULE) else body.name_bytes
    if record.kind is Kind.FUNCTION:
        start = body.parameters * _PARAMETER.size
    return bytes(record.tail[start:start + length]).decode(errors="surrogateescape")


def function_parameters(record: Record) -> list[Any]:
    """Of a FUNCTION: tuples with ``offset`` and ``bytes``."""
    return _many(_PARAMETER, record.tail, 0, record.body.parameters)


def data(record: Record) -> memoryview:
    """The piece of contents in a record of DATA."""
    return record.tail[:record.body.bytes]


def launch_parameters(launch: Record | Node) -> memoryview:
    """The block of parameters of a launch, or of a node of that kind."""
    return launch.tail[:launch.body.parameter_bytes]


def launch_attributes(launch: Record | Node) -> list[Any]:
    """Tuples with ``id`` and ``value`` (64 bytes)."""
    return _many(_ATTRIBUTE, launch.tail, (launch.body.parameter_bytes + 7) // 8 * 8, launch.body.attributes)


def inline_content(copy: Record | Node) -> memoryview:
    """The bytes that were copied, as far as they stand in the record of a copy, or in a node of that kind."""
    return copy.tail[:copy.body.inline_bytes]


def memory_operations(work: Record | Node) -> list[Any]:
    """Of MEMORY_OPERATIONS, or of a node of that kind: tuples with ``type``, ``flags``, ``address`` and ``value``."""
    return _many(_OPERATION, work.tail, 0, work.body.count)


def nodes(record: Record) -> Iterator[Node]:
    """Of GRAPH_EXEC all nodes, the nodes of a child graph right behind it; of GRAPH_NODE the one."""
    count = record.body.nodes if record.kind is Kind.GRAPH_EXEC else 1
    for offset, end in pairwise(_node_offsets(record.tail, count)):
        head = _NODE.read(record.tail, offset)
        kind = NodeKind(head.kind)
        offset += _NODE.size
        shape = _NODE_BODIES.get(kind)
        body = shape.read(record.tail, offset) if shape else None
        tail = record.tail[offset + (shape.size if shape else 0):end]
        yield Node(kind, head.enabled, head.node, head.parent, head.context, body, tail)


def _node_offsets(tail: memoryview, count: int) -> Iterator[int]:
    """Where nodes begin, and where the last one ends."""
    offset = 0
    for _ in range(count):
        yield offset
        offset += int.from_bytes(tail[offset:offset + 4], "little")
    yield offset


def edges(record: Record) -> list[Any]:
    """Of GRAPH_EXEC: tuples with ``from_`` and ``to``, which are nodes."""
    *_, start = _node_offsets(record.tail, record.body.nodes)
    return _many(_EDGE, record.tail, start, record.body.edges)


def function_tail(parameters: Sequence[tuple[int, int]], symbol: str) -> bytes:
    """The tail of a FUNCTION: offsets and bytes of its parameters, its name."""
    return b"".join([_PARAMETER.pack(p) for p in parameters]) + padded(symbol.encode(errors="surrogateescape"))


def launch_tail(parameters: bytes, attributes: Sequence[tuple[int, bytes]] = ()) -> bytes:
    """The tail of a LAUNCH, or of a node of that kind."""
    return padded(parameters) + b"".join([_ATTRIBUTE.pack(a) for a in attributes])


def memory_operations_tail(operations: Sequence[tuple[int, int, int, int]]) -> bytes:
    """The tail of MEMORY_OPERATIONS: types, flags, addresses and values."""
    return b"".join([_OPERATION.pack(operation) for operation in operations])


def edges_tail(pairs: Sequence[tuple[int, int]]) -> bytes:
    """What stands behind the nodes of GRAPH_EXEC: from which to which."""
    return b"".join([_EDGE.pack(pair) for pair in pairs])


def encode_node(kind: NodeKind, /, *, enabled: int = 1, node: int = 0, parent: int = 0, context: int = 0,
                tail: bytes = b"", body: Mapping[str, Any] | None = None, **fields: Any) -> bytes:
    """A node in the tail of GRAPH_EXEC or GRAPH_NODE, with fields of its body; those not named are 0. ``body`` has
    more of them: those whose names the node has as well."""
    shape = _NODE_BODIES.get(kind)
    own = shape.pack(shape.zero()._replace(**fields, **(body or {}))) if shape else b""
    rest = padded(tail)
    size = _NODE.size + len(own) + len(rest)
    return _NODE.pack(_NODE.type(size, int(kind), enabled, node, parent, context)) + own + rest
