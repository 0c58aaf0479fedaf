"""``tessera replay --offline --json``: one object, described by ``docs/schema/replay-offline.json``."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from orchestrator.session.jobs import Decision, Span
    from orchestrator.session.offline import Findings, Why
    from orchestrator.traces.offline import NamedGpu

SCHEMA = "tessera.replay-offline"
VERSION = 1


class Document:
    """Collects what is found, and writes it at the end."""

    def __init__(self, trace: Path, placement: str, promised: bool, gpus: Sequence[NamedGpu], notes: Iterable[str],
                 clients: Mapping[int, str], out: TextIO) -> None:
        self._programs, self._out = clients, out
        self._decisions: dict[int, list[dict[str, Any]]] = {}
        self._clients: list[dict[str, Any]] = []
        self._document = {
            "schema": SCHEMA, "version": VERSION, "trace": str(trace), "placement": placement, "promised": promised,
            "gpus": [{"name": one.name, "memory": one.gpu.memory, "capability": one.gpu.capability} for one in gpus],
            "notes": [note for note in notes if note], "clients": self._clients,
        }  # fmt: skip

    def decided(self, client: int, decision: Decision) -> None:
        """A decision."""
        self._decisions.setdefault(client, []).append(plain(decision))

    def client(self, client: int, found: Findings) -> None:
        """All that was found of a client."""
        self._clients.append({
            **asdict(found), "client": client, "program": self._programs[client], "trouble": found.trouble or None,
            "refused": _why(found.refused), "pinned": _why(found.pinned), "opaque": _why(found.opaque),
            "steps": [{**asdict(step), "gathered": _by_gpu(step.gathered), "applied": _by_gpu(step.applied)}
                      for step in found.steps],
            "decisions": self._decisions.pop(client, []),
        })  # fmt: skip

    def end(self) -> None:
        """Nothing more comes."""
        json.dump(self._document, self._out, indent=1, ensure_ascii=False)
        self._out.write("\n")


def plain(decision: Decision) -> dict[str, Any]:
    """A decision as JSON has it: without parameters and contents."""
    from orchestrator.session.jobs import Rest

    if isinstance(decision, Rest):
        return {"decision": "rest", "sequence": decision.sequence, "nodes": list(decision.nodes)}
    found = {
        "number": decision.number, "device": decision.device, "home": decision.home,
        "stream": decision.stream._asdict(), "mirrored": decision.mirrored,
        "launches": [{"sequence": one.sequence, "node": one.node, "kernel": one.launch.kernel.name}
                     for one in decision.launches],
    }  # fmt: skip
    return found | _end(decision)


def _end(decision: Decision) -> dict[str, Any]:
    from orchestrator.session.jobs import Job, Refused

    if isinstance(decision, Refused):
        return {"decision": "refused", "reason": decision.reason.value, "kernel": decision.kernel}
    assert isinstance(decision, Job)
    return {
        "decision": "job", "runs_home": decision.runs_home, "evicted": list(decision.evicted),
        "assumed": sum([len(one.data) for one in decision.assumed]), "gather": _spans(decision.gather),
        "apply": _spans(decision.apply),
    }  # fmt: skip


def _spans(spans: Iterable[Span]) -> list[dict[str, int]]:
    return [{"allocation": span.allocation, "offset": span.offset, "bytes": span.bytes} for span in spans]


def _why(why: Why) -> list[dict[str, Any]]:
    return [{"reason": reason.value, "kernel": kernel, "count": count} for (reason, kernel), count in why.most_common()]


def _by_gpu(counts: Mapping[int, int]) -> list[dict[str, int]]:
    return [{"gpu": gpu, "bytes": count} for gpu, count in sorted(counts.items())]
