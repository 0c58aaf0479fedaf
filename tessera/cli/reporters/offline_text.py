"""``tessera replay --offline`` for people."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from orchestrator.session.jobs import Decision
    from orchestrator.session.offline import Findings, Moved, StepCounts, Why
    from orchestrator.traces.offline import NamedGpu

MOST_REASONS = 8
MOST_ALLOCATIONS = 8
MOST_STEPS = 8
GIB = 1 << 30


class Lines:
    """Writes what is found of each client as it comes."""

    def __init__(self, trace: Path, placement: str, promised: bool, gpus: Sequence[NamedGpu], notes: Iterable[str],
                 clients: Mapping[int, str], out: TextIO) -> None:
        self._clients, self._out = clients, out
        self._begun: int | None = None
        promise = ", opaque kernels promised to touch only what is in their parameters" if promised else ""
        self._lines([f"{trace}: placement {placement}{promise}"])
        self._lines([f"GPU {number}: {one.name}, {one.gpu.memory / GIB:g} GiB, capability {one.gpu.capability / 10}"
                     for number, one in enumerate(gpus)])
        self._lines([f"note: {note}" for note in notes if note])

    def decided(self, client: int, decision: Decision) -> None:
        """A decision."""
        from orchestrator.session.words import decision_text

        self._begin(client)
        self._lines([f"  {decision_text(decision)}"])

    def client(self, client: int, found: Findings) -> None:
        """All that was found of a client."""
        self._begin(client)
        self._lines([f"  {line}" for line in lines(found)])

    def end(self) -> None:
        """Nothing more comes."""

    def _begin(self, client: int) -> None:
        if client != self._begun:
            self._begun = client
            self._lines([f"client {client}: {self._clients[client]}"])

    def _lines(self, lines: Iterable[str]) -> None:
        self._out.write("".join([f"{line}\n" for line in lines]))


def lines(found: Findings) -> list[str]:
    """What stands of one client."""
    moved = [f"GPU {number}: {gpu.home} launches at home, {gpu.sent} sent there, {gpu.mirrored} mirrored; "
             f"{gpu.gathered} bytes gathered, {gpu.weights} of them of weights, {gpu.applied} applied"
             for number, gpu in enumerate(found.gpus)]
    shown = [f"trouble: {found.trouble}; all that follows is of the records before"] if found.trouble else []
    shown += [f"{found.records} records, {found.launches} launches, {found.jobs} jobs, {found.gaps} gaps", *moved]
    for title, why in (("refused", found.refused), ("pinned", found.pinned), ("opaque", found.opaque)):
        shown += _why(title, why)
    shown += [_step(step) for step in found.steps[:MOST_STEPS]]
    if len(found.steps) + found.forgotten > MOST_STEPS:
        shown.append(f"{max(len(found.steps) - MOST_STEPS, 0) + found.forgotten} more step classes")
    shown += [_allocation(moved) for moved in found.allocations[:MOST_ALLOCATIONS]]
    if len(found.allocations) > MOST_ALLOCATIONS:
        shown.append(f"{len(found.allocations) - MOST_ALLOCATIONS} more replicas")
    return shown


def _why(title: str, why: Why) -> list[str]:
    found = [f"{title}: {reason.value}, {count} times{f' by {kernel}' if kernel else ''}"
             for (reason, kernel), count in why.most_common(MOST_REASONS)]
    rest = why.total() - sum([count for _, count in why.most_common(MOST_REASONS)])
    return found + ([f"{title}: {rest} times for more reasons or kernels"] if rest else [])


def _step(step: StepCounts) -> str:
    gpus = sorted(step.gathered.keys() | step.applied.keys())
    last = ", ".join([f"GPU {gpu} {step.gathered[gpu]} bytes gathered and {step.applied[gpu]} applied" for gpu in gpus])
    state = f"steady, weights of {step.weights} bytes" if step.steady else "not steady"
    return (f"step {step.signature}: {step.count} times, {state}, {step.launches} launches; in the last: {step.jobs} "
            f"jobs{', ' + last if last else ''}")


def _allocation(moved: Moved) -> str:
    name = f"a{moved.allocation}" + (f" (variable {moved.variable})" if moved.variable else "")
    return (f"{name} of {moved.bytes} bytes on GPU {moved.gpu}: {moved.gathered} gathered, {moved.weights} of them of "
            f"weights, {moved.applied} applied")
