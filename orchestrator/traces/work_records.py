"""Rows of what was done, and of nodes of graphs, as the records and nodes that they were: :mod:`.bodies` backwards."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from orchestrator.traces.drafts import Draft, Names
from orchestrator.traces.errors import TraceError
from orchestrator.traces.reader import Trace
from orchestrator.traces.rows import unsigned
from shim import tails
from shim.layout import layout, lib
from shim.wire import Kind, NodeKind

_attribute, _side = layout("wire_attribute"), layout("wire_side")


class Body(NamedTuple):
    """What :func:`shim.wire.encode` and :func:`shim.tails.encode_node` want of it; hashes of contents that it names."""

    fields: dict[str, Any]
    tail: bytes = b""
    contents: tuple[bytes, ...] = ()


class Work:
    """Operations and nodes of one trace."""

    def __init__(self, trace: Trace, names: Names) -> None:
        self._trace, self._names = trace, names
        self._bodies: dict[str, Callable[[int], Body]] = {
            "LAUNCH": self._launch, "COPY": self._copy, "SET": self._set, "GRAPH_LAUNCH": self._graph_launch,
            "EVENT_RECORD": self._event, "EVENT_WAIT": self._event, "HOST_FUNCTION": self._host_function,
            "MEMORY_OPERATIONS": self._memory_operations, "SYNCHRONIZE": self._synchronize,
            "CAPTURE_BEGIN": self._capture, "CAPTURE_END": self._capture,
            "ALLOCATE": self._memory, "FREE": self._memory,
        }  # fmt: skip

    def operation(self, row: sqlite3.Row) -> Draft:
        """The record of a row of ``operation``. Raises TraceError if what belongs to it is missing."""
        kind = Kind(row["kind"])
        body = self._body(kind.name, row["id"])
        stream, _ = self._names.stream(row["stream"])
        place = (stream, self._names.handle("context", row["context"]))
        flags = lib.WIRE_CAPTURED if row["captured"] else 0
        return Draft(kind, body.fields, body.tail, place, flags, row["thread"], row["function"], row["ticks"],
                     body.contents)

    def nodes(self, rows: Sequence[sqlite3.Row]) -> tuple[list[bytes], tuple[bytes, ...]]:
        """Rows of ``node`` as they stand in records, and the hashes of contents that they name."""
        made: list[bytes] = []
        contents: tuple[bytes, ...] = ()
        for row in rows:
            kind = NodeKind(row["kind"])
            body = self._body(kind.name, row["id"])
            made.append(tails.encode_node(
                kind, enabled=row["enabled"], node=unsigned(row["handle"]), parent=unsigned(row["parent"]),
                context=self._names.handle("context", row["context"]), tail=body.tail, body=body.fields))
            contents += body.contents
        return made, contents

    def _body(self, kind: str, number: int) -> Body:
        make = self._bodies.get(kind)
        return make(number) if make else Body({})

    def _row(self, table: str, number: int) -> sqlite3.Row:
        row = self._trace.row(f"SELECT * FROM {table} WHERE id = ?", number)
        if row is None:
            raise TraceError(f"{self._trace.path}: the trace lacks row {number} of table {table}")
        return row

    def _launch(self, number: int) -> Body:
        row = self._row("launch", number)
        parameters, attributes = row["parameters"], row["attributes"]
        fields = {
            "function": self._names.handle("kernel", row["kernel"]),
            "grid": (row["grid_x"], row["grid_y"], row["grid_z"]),
            "block": (row["block_x"], row["block_y"], row["block_z"]),
            "shared": row["shared"], "flags": row["flags"], "parameter_bytes": len(parameters),
            "attributes": len(attributes) // _attribute.size,
        }  # fmt: skip
        return Body(fields, tails.launch_tail(parameters) + attributes)

    def _copy(self, number: int) -> Body:
        row = self._row("copy", number)
        kind, content = row["content_kind"], row["content"]
        fields = {"width": unsigned(row["width"]), "height": unsigned(row["height"]), "depth": unsigned(row["depth"]),
                  "to": self._side(row, "to"), "from_": self._side(row, "from"), "flags": row["flags"]}
        if content is None:
            return Body({**fields, "content_kind": kind})
        if kind == lib.WIRE_INLINE_CONTENT and (not self._trace.missing or self._trace.has_content(content)):
            data = self._trace.content(content)
            return Body({**fields, "content_kind": kind, "content": content, "inline_bytes": len(data)}, data)
        return Body({**fields, "content_kind": lib.WIRE_HASHED_CONTENT, "content": content}, contents=(content,))

    def _side(self, row: sqlite3.Row, name: str) -> Any:
        sizes = {what: unsigned(row[f"{name}_{what}"]) for what in ("x", "y", "z", "pitch", "height")}
        return _side.zero()._replace(
            address=unsigned(row[f"{name}_address"]), context=self._names.handle("context", row[f"{name}_context"]),
            kind=row[f"{name}_kind"], level=row[f"{name}_level"], **sizes)

    def _set(self, number: int) -> Body:
        row = self._row("memset", number)
        sizes = {what: unsigned(row[what]) for what in ("address", "width", "height", "pitch")}
        return Body({**sizes, "context": self._names.handle("context", row["context"]),
                     "element_bytes": row["element_bytes"], "value": row["value"]})

    def _graph_launch(self, number: int) -> Body:
        return Body({"exec": self._names.handle("graph", self._row("graph_launch", number)["graph"])})

    def _event(self, number: int) -> Body:
        row = self._row("event_use", number)
        return Body({"event": self._names.handle("event", row["event"]), "flags": row["flags"]})

    def _host_function(self, number: int) -> Body:
        row = self._row("host_function", number)
        return Body({"function": unsigned(row["address"]), "data": unsigned(row["data"]), "callback": row["callback"]})

    def _memory_operations(self, number: int) -> Body:
        found = [(row["type"], row["flags"], unsigned(row["address"]), unsigned(row["value"])) for row in
                 self._trace.rows("SELECT * FROM memory_operation WHERE id = ? ORDER BY position", number)]
        return Body({"count": len(found)}, tails.memory_operations_tail(found))

    def _synchronize(self, number: int) -> Body:
        row = self._row("synchronization", number)
        return Body({"what": row["what"], "event": self._names.handle("event", row["event"]), "query": row["query"]})

    def _capture(self, number: int) -> Body:
        row = self._row("capture", number)
        return Body({"graph": unsigned(row["graph_handle"]), "mode": row["mode"]})

    def _memory(self, number: int) -> Body:
        row = self._row("node_memory", number)
        return Body({"address": unsigned(row["address"]), "bytes": unsigned(row["bytes"]), "device": row["device"]})
