"""``tessera doctor --json``: one object, described by ``docs/schema/doctor.json``."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from tessera.cli.doctor.report import Report

SCHEMA = "tessera.doctor"
VERSION = 1


def write(found: Report, out: TextIO) -> None:
    """Write it as one object, on several lines."""
    json.dump(document(found), out, indent=1, ensure_ascii=False)
    out.write("\n")


def document(found: Report) -> dict[str, Any]:
    """The whole output as plain data."""
    findings = [{"topic": finding.topic.value, "problem": finding.topic.problem, "text": finding.text}
                for finding in found.findings]
    return {"schema": SCHEMA, "version": VERSION, **asdict(found), "findings": findings}
