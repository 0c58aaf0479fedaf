"""Rows of things, and of what is said of them, as the records that they were."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Sequence
from typing import Any

from orchestrator.traces.drafts import Draft, Names
from orchestrator.traces.reader import Trace
from orchestrator.traces.rows import unsigned
from orchestrator.traces.work_records import Work
from shim import tails
from shim.layout import lib
from shim.wire import Kind

NODES = "SELECT * FROM node WHERE graph = ? AND born = ? ORDER BY id"
EDGES = """SELECT o.handle AS origin, t.handle AS target FROM edge LEFT JOIN node o ON o.id = edge.origin
    LEFT JOIN node t ON t.id = edge.target WHERE edge.graph = ? ORDER BY edge.rowid"""

TO = "SELECT to_kind FROM operation o JOIN copy ON copy.id = o.id WHERE o.client = ? AND o.sequence = ?"


class Things:
    """Announcements, ends, and other records of one trace that are no work."""

    def __init__(self, trace: Trace, names: Names, work: Work) -> None:
        self._trace, self._names, self._work = trace, names, work
        self._makers: dict[str, Callable[[sqlite3.Row], Draft]] = {
            "device": self._device, "context": self._context, "module": self._module, "kernel": self._kernel,
            "stream": self._stream, "event": self._event, "memory": self._memory, "reservation": self._reservation,
            "physical": self._physical, "array": self._array, "graph": self._graph, "link": self._link_output,
            "link_input": self._link_input, "access": self._access, "export": self._export, "ending": self._ending,
            "outcome": self._outcome, "door": self._door,
        }  # fmt: skip

    def record(self, table: str, row: sqlite3.Row) -> Draft:
        """The record of a row. Raises TraceError if what belongs to it is missing."""
        return self._makers[table](row)

    def changes(self, rows: Sequence[sqlite3.Row]) -> list[Draft]:
        """The records of rows of ``node`` that came after their graph."""
        made = []
        for row in rows:
            (node,), contents = self._work.nodes([row])
            exec_ = self._names.handle("graph", row["graph"])
            made.append(Draft(Kind.GRAPH_NODE, {"exec": exec_}, node, contents=contents))
        return made

    def graph(self, row: sqlite3.Row, nodes: Sequence[sqlite3.Row]) -> Draft:
        """A graph with these nodes, and its edges between them."""
        made, contents = self._work.nodes(nodes)
        there = {node["handle"] for node in nodes} | {None}
        edges = [(unsigned(edge["origin"] or 0), unsigned(edge["target"] or 0))
                 for edge in self._trace.rows(EDGES, row["id"]) if {edge["origin"], edge["target"]} <= there]
        fields = {"exec": unsigned(row["handle"]), "graph": unsigned(row["graph_handle"]),
                  "context": self._names.handle("context", row["context"]), "nodes": len(made), "edges": len(edges),
                  "whole": row["whole"], "flags": row["flags"]}
        return Draft(Kind.GRAPH_EXEC, fields, b"".join(made) + tails.edges_tail(edges), contents=contents)

    def _graph(self, row: sqlite3.Row) -> Draft:
        return self.graph(row, list(self._trace.rows(NODES, row["id"], row["born"])))

    def _context_of(self, row: sqlite3.Row) -> int:
        return self._names.handle("context", row["context"])

    def _device(self, row: sqlite3.Row) -> Draft:
        name = row["name"].encode()
        return Draft(Kind.DEVICE, {**_same(row, "ordinal", "capability", "processors"), **_sizes(row, "memory"),
                                   "uuid": bytes.fromhex(row["uuid"]), "name_bytes": len(name)}, name)

    def _context(self, row: sqlite3.Row) -> Draft:
        return Draft(Kind.CONTEXT, {**_sizes(row, "handle"), "device": row["device"], "primary": row["is_primary"]})

    def _module(self, row: sqlite3.Row) -> Draft:
        path, content = row["path"].encode(), row["content"]
        fields = {**_sizes(row, "handle", "bytes"), **_same(row, "library", "image"), "context": self._context_of(row),
                  "content": content or bytes(lib.WIRE_CONTENT_BYTES),
                  "of": self._names.handle("module", row["library_of"]), "path_bytes": len(path)}
        return Draft(Kind.MODULE, fields, path, contents=(content,) if content else ())

    def _kernel(self, row: sqlite3.Row) -> Draft:
        sizes = [(offset, size) for offset, size in json.loads(row["parameters"])]
        fields = {**_sizes(row, "handle"), **_same(row, "known", "parameter_bytes"), "kernel": row["is_kernel"],
                  "module": self._names.handle("module", row["module"]), "parameters": len(sizes),
                  "name_bytes": len(row["name"].encode())}
        return Draft(Kind.FUNCTION, fields, tails.function_tail(sizes, row["name"]))

    def _stream(self, row: sqlite3.Row) -> Draft:
        return Draft(Kind.STREAM, {**_sizes(row, "handle"), **_same(row, "flags", "priority"),
                                   "context": self._context_of(row)})

    def _event(self, row: sqlite3.Row) -> Draft:
        return Draft(Kind.EVENT, {**_sizes(row, "handle"), **_same(row, "flags", "imported"),
                                  "context": self._context_of(row)})

    def _memory(self, row: sqlite3.Row) -> Draft:
        stream, thread = self._names.stream(row["stream"])
        owners = {lib.WIRE_VARIABLE: "module", lib.WIRE_MAPPED: "physical"}
        kind, owner, name = row["kind"], row["owner"], row["name"].encode()
        fields = {**_sizes(row, "address", "bytes", "device_address", "pitch", "width", "height"),
                  **_same(row, "kind", "flags", "device"), "context": self._context_of(row), "stream": stream,
                  "owner": self._names.handle(owners[kind], owner) if kind in owners else unsigned(owner),
                  "offset": unsigned(row["start"]), "name_bytes": len(name)}
        return Draft(Kind.MEMORY, fields, name, thread=thread)

    def _reservation(self, row: sqlite3.Row) -> Draft:
        return Draft(Kind.RESERVATION, _sizes(row, "address", "bytes"))

    def _physical(self, row: sqlite3.Row) -> Draft:
        more = _same(row, "type", "location_type", "location", "shareable", "imported")
        return Draft(Kind.PHYSICAL, {**_sizes(row, "handle", "bytes"), **more})

    def _array(self, row: sqlite3.Row) -> Draft:
        more = _same(row, "format", "channels", "flags", "element_bytes", "levels", "level")
        return Draft(Kind.ARRAY, {**_sizes(row, "handle", "width", "height", "depth"), **more,
                                  "context": self._context_of(row), "of": self._names.handle("array", row["mipmap"])})

    def _link_input(self, row: sqlite3.Row) -> Draft:
        name = row["name"].encode()
        fields = {"state": self._names.handle("link", row["link"]), "type": row["type"], **_sizes(row, "bytes"),
                  "content": row["content"], "name_bytes": len(name)}
        return Draft(Kind.LINK_INPUT, fields, name, contents=(row["content"],))

    def _link_output(self, row: sqlite3.Row) -> Draft:
        fields = {"state": unsigned(row["handle"]), "bytes": unsigned(row["bytes"]), "content": row["content"]}
        return Draft(Kind.LINK_OUTPUT, fields, contents=(row["content"],))

    def _access(self, row: sqlite3.Row) -> Draft:
        more = _same(row, "location_type", "location", "flags")
        return Draft(Kind.ACCESS, {**_sizes(row, "address", "bytes"), **more})

    def _export(self, row: sqlite3.Row) -> Draft:
        return Draft(Kind.EXPORT, {"address": unsigned(row["handle"]), "kind": row["kind"]})

    def _ending(self, row: sqlite3.Row) -> Draft:
        stream, thread = self._names.stream(row["stream"])
        return Draft(Kind.END, {**_sizes(row, "handle", "bytes"), "kind": row["kind"], "stream": stream}, thread=thread)

    def _outcome(self, row: sqlite3.Row) -> Draft:
        content = row["content"]
        fields = {"of": unsigned(row["subject"]), "result": row["result"]}
        if content is None:
            return Draft(Kind.OUTCOME, fields, ticks=row["ticks"])
        to = self._trace.row(TO, row["client"], row["subject"])
        came = to is not None and to["to_kind"] == lib.WIRE_SIDE_HOST  # of that there are no bytes, if not by chance
        return Draft(Kind.OUTCOME, {**fields, "has_content": 1, **_sizes(row, "bytes"), "content": content},
                     ticks=row["ticks"], contents=() if came else (content,))

    def _door(self, row: sqlite3.Row) -> Draft:
        name = row["name"].encode()
        return Draft(Kind.DOOR, {"how": row["how"], "name_bytes": len(name)}, name, function=row["function"])


def _same(row: sqlite3.Row, *columns: str) -> dict[str, Any]:
    """Fields of 32 bits, which are as they stand there."""
    return {column: row[column] for column in columns}


def _sizes(row: sqlite3.Row, *columns: str) -> dict[str, int]:
    """Fields of 64 bits."""
    return {column: unsigned(row[column]) for column in columns}
