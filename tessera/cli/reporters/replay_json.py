"""``tessera replay --json``: one object, described by ``docs/schema/replay.json``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from orchestrator.traces.replay.parent import Request
    from orchestrator.traces.replay.report import Report

SCHEMA = "tessera.replay"
VERSION = 1


def write(request: Request, report: Report, out: TextIO) -> None:
    """Write it as one object, on several lines."""
    document = {
        "schema": SCHEMA,
        "version": VERSION,
        "trace": str(request.trace),
        "client": request.client,
        "device": request.device,
        "verify": request.verify,
        **report.plain(),
    }
    json.dump(document, out, indent=1, ensure_ascii=False)
    out.write("\n")
