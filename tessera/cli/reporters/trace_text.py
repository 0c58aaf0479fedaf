"""``tessera trace`` for people."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from rich.console import ConsoleRenderable
from rich.table import Table
from rich.text import Text

from tessera.cli.reporters import output

if TYPE_CHECKING:
    from orchestrator.traces.reader import Query
    from orchestrator.traces.summary import Summary

NS = 10**9


def write_info(found: Summary) -> None:
    """``tessera trace info`` to standard output."""
    output.show(info_parts(found))


def info_parts(found: Summary) -> list[ConsoleRenderable]:
    """The file, its programs, what they did, steps that repeat."""
    created = datetime.fromtimestamp(int(found.about.get("created_ns", "0")) // NS, UTC)
    state = "complete" if found.complete else "not complete"
    lines = [f"{found.path}: recorded {created:%Y-%m-%d %H:%M:%S} UTC, {state}"]
    if found.about.get("command"):
        lines.append(f"command: {found.about['command']}")
    lines += [f"not complete: {reason}" for reason in found.reasons]
    for client in found.clients:
        seconds = ((client["last_ns"] or 0) - (client["first_ns"] or 0)) / NS
        lines.append(f"client {client['client']}: {client['program']}, process {client['process']}, {seconds:.3f} s, "
                     f"driver {client['driver'] or 'unknown'} (CUDA {client['driver_version'] or 'unknown'}), GPUs: "
                     f"{', '.join(client['devices']) or 'none'}; {client['lost']} records lost")
    lines.append(", ".join([f"{count} {name.replace('_', ' ')}" for name, count in found.counts.items()]))
    lines.append(f"{found.payloads} contents of {found.payload_bytes} bytes, stored in {found.stored_bytes}")
    lines += [f"step {step['signature']}: {step['times']} times, {step['launches']} launches, first as step "
              f"{step['example']}" for step in found.steps]
    return [Text(line) for line in lines]


def write_rows(found: Query, missing: list[str], limit: int) -> None:
    """Rows of a view or a query to standard output; ``limit`` 0 is none."""
    rows = found.rows[:limit] if limit else found.rows
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for column in found.columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*[Text(cell(value)) for value in row])
    shown: list[ConsoleRenderable] = [table]
    if len(rows) < len(found.rows):
        shown.append(Text(f"more rows than these {len(rows)}: --limit 0 shows all"))
    output.show([*shown, *[Text(f"missing: {line}") for line in missing]])


def cell(value: Any) -> str:
    """A value as a cell of a table."""
    if value is None:
        return ""
    return value.hex() if isinstance(value, bytes) else str(value)
