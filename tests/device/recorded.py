"""Programs under the preload library, as ``tessera`` runs them, and the traces that are kept of them."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from orchestrator.traces.reader import Trace
from orchestrator.traces.summary import summary_of
from tests.device.machine import Machine, Program, outputs

DONE = ("launches", "graph_launches", "copies", "memsets", "verified", "mismatched", "unverifiable", "unchecked",
        "skipped", "doubts", "notes", "rebased", "allocations", "seconds")
"""Of what a replay reports, what is printed."""


def tessera(machine: Machine, *words: object, **more: str) -> Program:
    """A command on the machine's driver."""
    verb, *rest = map(str, words)
    return machine.command([sys.executable, "-m", "tessera", verb, "--driver", machine.driver, *rest], **more)


def recorded(machine: Machine, trace: Path, command: Sequence[str | Path], **more: str) -> str:
    """What a program prints, which is recorded for replay."""
    (text,) = outputs(tessera(machine, "record", "-o", trace, "--", *command, **more))
    return text


def check_complete(trace: Trace) -> dict[str, int]:
    """Nothing is missing: no record, no image, no kernel's parameters; there are launches. Counts of what there is."""
    found = summary_of(trace)
    assert found.complete, found.reasons
    assert found.counts["launches"] + found.counts["graph_launches"] > 0
    unknown = [row["name"] for row in trace.rows("SELECT name FROM kernel WHERE NOT announced OR known IS NOT 1")]
    assert not unknown, "kernels without the layout of their parameters"
    images = [row["content"] for row in trace.rows("SELECT content FROM module")]
    assert images and all(image is not None and trace.has_content(image) for image in images), "images of modules"
    return {**found.counts, "contents": found.payloads, "bytes of contents": found.payload_bytes}


def replayed(machine: Machine, trace: Path) -> dict[str, Any]:
    """What is found when all of it is done again on the same GPUs: each byte that came to the host is as it was."""
    program = tessera(machine, "replay", "--verify", "--json", trace)
    text, errors = program.end()
    assert program.process.returncode == 0, f"{text[-3000:]}\n{errors[-3000:]}"
    found: dict[str, Any] = json.loads(text)
    wrong = {name: found[name] for name in ("mismatched", "unverifiable", "unchecked", "skipped") if found[name]}
    assert not wrong and found["verified"] > 0, wrong
    return {name: found[name] for name in DONE}
