"""``tessera trace ... --json``: objects described by ``docs/schema/trace-info.json`` and ``trace-rows.json``."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from orchestrator.traces.reader import Query
    from orchestrator.traces.summary import Summary

INFO, ROWS = "tessera.trace-info", "tessera.trace-rows"
VERSION = 1


def write_info(found: Summary, out: TextIO) -> None:
    """``tessera trace info``."""
    _write({"schema": INFO, "version": VERSION, **asdict(found)}, out)


def write_rows(found: Query, missing: list[str], limit: int, out: TextIO) -> None:
    """``tessera trace ls`` and ``sql``; ``limit`` 0 is none. Blobs are hexadecimal."""
    rows = found.rows[:limit] if limit else found.rows
    _write({"schema": ROWS, "version": VERSION, "missing": missing, "columns": list(found.columns),
            "more": len(rows) < len(found.rows), "rows": [[plain(value) for value in row] for row in rows]}, out)


def plain(value: Any) -> Any:
    """A value as JSON has it."""
    return value.hex() if isinstance(value, bytes) else value


def _write(document: dict[str, Any], out: TextIO) -> None:
    json.dump(document, out, indent=1, ensure_ascii=False)
    out.write("\n")
