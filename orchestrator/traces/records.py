"""A trace as the records that it was made of: for whatever takes records, without the program.

What a trace does not keep comes back as follows.

- Numbers of records that leave no row (pieces of contents, what is announced once more) are given to the pieces of the
  contents that the next record names, and to what lived on where records were lost; what remains of them to DRIVER said
  again, so that no number is missing. Where there are more records than numbers, they have that of the next one.
- Ends in captured streams, which end nothing, are not there.
- Times that no row has are those of the record before; threads and functions are 0 but for work and doors, the kind of
  memory that the function of an END says is 0, as are the flags of MEMORY_OPERATIONS.
- Names that were no UTF-8 have U+FFFD where they were not.
"""

from __future__ import annotations

import heapq
import sqlite3
from collections.abc import Callable, Iterator
from itertools import chain

from orchestrator.traces.drafts import Draft, Names
from orchestrator.traces.errors import TraceError
from orchestrator.traces.reader import Trace
from orchestrator.traces.rows import unsigned
from orchestrator.traces.survivors import NEVER, NO_DEFAULT_STREAM, Survivors
from orchestrator.traces.thing_records import NODES, Things
from orchestrator.traces.timeline import DONE, THINGS, Happening, part
from orchestrator.traces.work_records import Work
from shim.layout import lib
from shim.wire import Head, Kind, WireError, encode

MOST_MISSING = 1 << 24
"""Numbers in a row that a trace may leave out. Each stands for a record, so that more would be gigabytes of them."""
OF_LINKS = """SELECT i.*, NOT EXISTS (SELECT 1 FROM link_input n WHERE n.link = i.link AND n.sequence > i.sequence
        AND n.sequence < coalesce((SELECT min(sequence) FROM gap WHERE client = l.client AND epoch IS NOT NULL
            AND sequence > i.sequence), n.sequence + 1)) AS last
    FROM link l JOIN link_input i ON i.link = l.id WHERE l.client = ? ORDER BY i.sequence"""
"""``last``: none comes behind it, or only when records were lost and it is said again."""
CHANGES = """SELECT born AS sequence, graph FROM node WHERE client = ? AND NOT EXISTS (
        SELECT 1 FROM graph WHERE graph.id = node.graph AND announced AND graph.born = node.born)
    GROUP BY born, graph ORDER BY born"""
MOMENTS = " UNION ALL ".join([
    f'SELECT client, {event} AS sequence, {event}_ticks AS ticks FROM "{table}"'
    for table in (*THINGS, "link") for event in ("born", "died")
])  # fmt: skip


def records(trace: Trace, client: int, most: int = 1 << 18) -> Iterator[bytes]:
    """The records of a client as :func:`shim.wire.records` reads them, whole ones, in batches of about ``most`` bytes.
    Raises TraceError for a client that is not there, and where the trace is damaged."""
    about = trace.row("SELECT * FROM client WHERE id = ?", client)
    if about is None:
        known = ", ".join([str(row["id"]) for row in trace.rows("SELECT id FROM client ORDER BY id")])
        raise TraceError(f"{trace.path}: no client {client}; there are: {known or 'none'}")
    batch: list[bytes] = []
    size = 0
    for record in _Client(trace, about).all():
        batch.append(record)
        size += len(record)
        if size >= most:
            yield b"".join(batch)
            batch, size = [], 0
    if batch:
        yield b"".join(batch)


class _Client:
    """Gives the records of one client their numbers. ``_next`` is the first that no record has yet."""

    def __init__(self, trace: Trace, about: sqlite3.Row) -> None:
        self._trace, self._number = trace, about["id"]
        path = (about["driver"] or "").encode()
        self._again = Draft(Kind.DRIVER, {"version": about["driver_version"] or 0, "path_bytes": len(path)}, path)
        self._begins = about["driver"] is not None
        self._names = Names(trace)
        self._work = Work(trace, self._names)
        self._things = Things(trace, self._names, self._work)
        self._survivors = Survivors(trace, self._number)
        self._moments = _Moments(trace, self._number)
        self._sent: set[bytes] = set()
        self._next: int | None = None
        self._gap = self._settled = -1
        self._restated: set[int] = set()
        self._takers: dict[str, Callable[[Happening], Iterator[bytes]]] = {
            "gap": self._gaps, "operation": self._operation, "node": self._changes, "outcome": self._outcome,
            "link_input": self._link_input,
        }  # fmt: skip
        self._later: Iterator[tuple[int, Draft]] = iter(())

    def all(self) -> Iterator[bytes]:
        """The records, one by one."""
        where = "the first record"
        try:
            for happening in heapq.merge(*self._parts(), key=lambda happening: happening.sequence):
                where = f"record {happening.sequence}, in table {happening.table}"
                yield from self._takers.get(happening.table, self._thing)(happening)
                where = f"what comes behind record {happening.sequence}"
            settled = 0 if self._settled == NEVER else self._settled + 1
            yield from self._before(max(self._next or 0, self._gap + 1, settled))
        except (WireError, ValueError, TypeError, LookupError, AttributeError) as error:
            raise TraceError(f"{self._trace.path}: damaged: client {self._number}, {where} ({error})") from error

    def _parts(self) -> Iterator[Iterator[Happening]]:
        """Rows by table. Of rows of one record, those of the first part come first."""
        trace, client = self._trace, self._number
        yield part(trace, client, "gap", "sequence")
        yield part(trace, client, "device", "born")
        for table in THINGS:
            default = f" AND {NO_DEFAULT_STREAM}" if table == "stream" else ""
            yield part(trace, client, table, "born", f" AND announced{default}")
        yield part(trace, client, "link", "born", " AND NOT announced AND content IS NOT NULL")
        yield (Happening(row["sequence"], "link_input", row) for row in trace.rows(OF_LINKS, client))
        yield (Happening(row["sequence"], "node", row) for row in trace.rows(CHANGES, client))
        for table in ("door", *DONE):
            if table != "gap":
                yield part(trace, client, table, "sequence")

    # what rows are

    def _thing(self, happening: Happening) -> Iterator[bytes]:
        yield from self._record(happening.sequence, self._things.record(happening.table, happening.row))

    def _operation(self, happening: Happening) -> Iterator[bytes]:
        yield from self._record(happening.sequence, self._work.operation(happening.row))

    def _outcome(self, happening: Happening) -> Iterator[bytes]:
        sequence, row = happening.sequence, happening.row
        yield from self._record(sequence, self._things.record("outcome", row))
        if row["result"]:
            revived = self._survivors.revived(row["subject"], sequence)
            self._later = ((thing["id"], self._things.record(table, thing)) for table, thing in revived)

    def _link_input(self, happening: Happening) -> Iterator[bytes]:
        row = happening.row
        yield from self._record(happening.sequence, self._things.record("link_input", row))
        link = self._trace.row("SELECT * FROM link WHERE id = ?", row["link"])
        if row["last"] and link is not None and link["content"] is not None:
            self._later = iter([(link["id"], self._things.record("link", link))])

    def _changes(self, happening: Happening) -> Iterator[bytes]:
        """New parameters of a node; or of all, since the graph was restated."""
        sequence, number = happening.sequence, happening.row["graph"]
        nodes = list(self._trace.rows(NODES, number, sequence))
        graph = self._trace.row("SELECT * FROM graph WHERE id = ?", number)
        if graph is not None and graph["announced"] and number not in self._restated and (
                len(nodes) > 1 or graph["born"] < self._gap < sequence < self._settled):
            self._restated.add(number)
            yield from self._record(sequence, self._things.graph(graph, nodes), behind=number)
            return
        for change in self._things.changes(nodes):
            yield from self._record(sequence, change)

    def _gaps(self, happening: Happening) -> Iterator[bytes]:
        sequence, row = happening.sequence, happening.row
        yield from self._before(max(self._next or 0, sequence - row["lost"]))
        if row["epoch"] is None:
            self._next = sequence
            return
        fields = {"epoch": row["epoch"], "lost": unsigned(row["lost"])}
        yield self._encode(sequence, Draft(Kind.EPOCH, fields))
        self._next = sequence + 1
        self._gap, self._settled = sequence, self._survivors.settled(sequence)
        self._restated.clear()
        self._later = self._living()

    def _living(self) -> Iterator[tuple[int, Draft]]:
        """What is restated, by number. A graph of which rows say the nodes has its own place among the records."""
        there = "SELECT 1 FROM node WHERE graph = ? AND born > ? AND born < ?"
        for row in self._trace.rows("SELECT * FROM device WHERE client = ? AND born < ? ORDER BY id", self._number,
                                    self._gap):
            yield 0, self._things.record("device", row)._replace(flags=lib.WIRE_RESTATED)
        for table, row in self._survivors.living(self._gap, self._settled):
            if table != "graph":
                yield row["id"], self._things.record(table, row)._replace(flags=lib.WIRE_RESTATED)
            elif self._trace.row(there, row["id"], self._gap, self._settled) is None:
                yield row["id"], self._things.graph(row, ())._replace(flags=lib.WIRE_RESTATED)

    # numbers

    def _record(self, sequence: int, draft: Draft, behind: int | None = None) -> Iterator[bytes]:
        """A record with its number, behind those that must stand before it: of what is restated just now only things
        before number ``behind``, if that is given."""
        yield from self._before(sequence, draft.contents, behind)
        yield self._encode(sequence, draft)
        self._next = max(self._next or 0, sequence + 1)

    def _before(self, sequence: int, contents: tuple[bytes, ...] = (), behind: int | None = None) -> Iterator[bytes]:
        """What stands before a record and leaves no row, with all numbers up to it."""
        if self._next is None:
            self._next = max(0, sequence - 1) if self._begins else sequence
            if self._begins:
                yield self._encode(self._next, self._again)
                self._next = min(self._next + 1, sequence)
        if sequence - self._next > MOST_MISSING:
            raise TraceError(f"{self._trace.path}: damaged: of client {self._number} the records {self._next} to "
                             f"{sequence - 1} are missing; if records were lost, it should say so")
        for number, draft in self._later:
            if behind is not None and number > behind:
                self._later = chain([(number, draft)], self._later)
                break
            yield from self._data(draft.contents, sequence)
            yield from self._between(draft, sequence)
        yield from self._data(contents, sequence)
        while self._next < sequence:
            yield from self._between(self._again, sequence)

    def _between(self, draft: Draft, sequence: int) -> Iterator[bytes]:
        """A record with the next number that none has, at most one. What is restated stays before the first record that
        restates nothing, which may be one without a row."""
        assert self._next is not None
        most = sequence
        if draft.flags & lib.WIRE_RESTATED:
            most = min(sequence, self._settled)
        elif draft is not self._again and self._next == self._settled != sequence:
            yield from self._between(self._again, sequence)
        yield self._encode(self._next, draft)
        self._next = min(self._next + 1, most)

    def _data(self, contents: tuple[bytes, ...], sequence: int) -> Iterator[bytes]:
        """The bytes of contents that no record has brought yet."""
        for content in contents:
            if content in self._sent:
                continue
            for start, total, piece in self._trace.pieces(content):
                for offset in range(0, max(len(piece), 1), lib.WIRE_PIECE_BYTES):
                    data = piece[offset:offset + lib.WIRE_PIECE_BYTES]
                    fields = {"content": content, "total": total, "offset": start + offset, "bytes": len(data)}
                    yield from self._between(Draft(Kind.DATA, fields, data), sequence)
                self._sent.add(content)

    def _encode(self, sequence: int, draft: Draft) -> bytes:
        ticks = self._moments.at(sequence, draft.ticks)
        restating = self._gap < sequence < self._settled and draft.kind not in (Kind.DATA, Kind.OUTCOME)
        flags = draft.flags | (lib.WIRE_RESTATED if restating else 0)
        head = Head(flags, sequence, ticks, draft.thread, draft.function)
        return encode(draft.kind, head=head, place=draft.place, tail=draft.tail, **draft.fields)


class _Moments:
    """The ticks of records, from whatever came and went with them."""

    def __init__(self, trace: Trace, client: int) -> None:
        self._rows = trace.rows(f"SELECT sequence, ticks FROM ({MOMENTS}) WHERE client = ? AND sequence IS NOT NULL "
                                "ORDER BY sequence", client)
        self._ahead = next(self._rows, None)
        self._now = 0

    def at(self, sequence: int, known: int | None) -> int:
        """Those of a record; ``known`` if its own row has them."""
        while self._ahead is not None and self._ahead["sequence"] <= sequence:
            self._now = unsigned(self._ahead["ticks"])
            self._ahead = next(self._rows, None)
        if known is not None:
            self._now = unsigned(known)
        return self._now
