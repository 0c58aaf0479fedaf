"""``tessera run --report FILE``: one object, described by ``docs/schema/run.json``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from tessera.errors import TesseraError

if TYPE_CHECKING:
    from orchestrator.session.messages import Session
    from orchestrator.summary import Summary
    from tessera.cli.under_shim import Done

SCHEMA = "tessera.run"
VERSION = 1


@contextmanager
def opened(path: Path) -> Iterator[TextIO]:
    """The file, before the program runs: one that cannot be written is no news for the end. Raises TesseraError."""
    try:
        out = path.open("w", encoding="utf-8")
    except OSError as error:
        raise TesseraError(f"--report {path}: {error.strerror}") from None
    with out:
        yield out


def write(done: Done, summary: Summary, out: TextIO) -> None:
    """Write it as one object, on several lines. Raises TesseraError."""
    try:
        json.dump(document(done, summary), out, indent=1, ensure_ascii=False)
        out.write("\n")
        out.flush()
    except OSError as error:
        raise TesseraError(f"--report {out.name}: {error.strerror}") from None


def document(done: Done, summary: Summary) -> dict[str, Any]:
    """The whole output as plain data."""
    return {
        "schema": SCHEMA,
        "version": VERSION,
        "command": list(done.wanted.command),
        "exit_code": done.code,
        "clients": [client_object(session, session.client.process in done.living) for session in done.sessions],
        "refused": dict(done.refused),
        "launches": dict(summary.launches.most_common()),
        "graph_launches": summary.graph_launches,
        "copies": [{"from": source, "to": to, "count": count, "bytes": size}
                   for (source, to), (count, size) in sorted(summary.copies.items())],
        "fills": {"count": summary.fills[0], "bytes": summary.fills[1]},
        "failed_calls": summary.failed,
    }


def client_object(session: Session, lives: bool) -> dict[str, Any]:
    return {
        "client": session.client.number,
        "process": session.client.process,
        "program": session.client.program,
        "records": session.records,
        "bytes": session.bytes,
        "kinds": {kind.name.lower(): count for kind, count in session.kinds.items()},
        "lost": session.lost,
        "missing": session.missing,
        "epochs": session.epochs,
        "lives": lives,
        "trouble": None if lives else session.trouble,
    }
