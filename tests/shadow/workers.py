"""GPUs that jobs are sent to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from orchestrator.session.jobs import Assumed, Job, Placed, Span
from tests.shadow.errors import Fault
from tests.shadow.modules import Copy, Sent
from tests.shadow.outcome import Outcome
from tests.shadow.queues import Entry, Queue, Schedule
from tests.shadow.space import FORGOTTEN, Grid, Space

POINTER_BYTES = 8


@dataclass(eq=False)
class Sending:
    """A job on its way. ``copies``: the program's modules of its launches. ``snapshot`` and ``results``: bytes of what
    is gathered and of what is applied. ``cancelled``: it has to be run at home."""

    job: Job
    copies: list[Copy]
    snapshot: list[bytes] = field(default_factory=list)
    results: list[bytes] = field(default_factory=list)
    cancelled: bool = False
    done: bool = False


class Worker:
    """One GPU. ``modules``: the program's modules by the tracker's numbers. ``withdrawn`` is told of a mismatch."""

    def __init__(self, device: int, space: Space, schedule: Schedule, outcome: Outcome, modules: dict[int, Copy],
                 withdrawn: Callable[[int], None]) -> None:
        self._device, self._space, self._schedule, self._outcome = device, space, schedule, outcome
        self._modules, self._withdrawn = modules, withdrawn
        self._queue = Queue(f"GPU {device}")
        self._sent = Sent(space)
        self._replicas: dict[int, tuple[int, int]] = {}
        self._own: Counter[int] = Counter()
        self._waiting: list[Sending] = []

    def put(self, sending: Sending, gathered: Entry) -> Entry:
        """Queue a job behind the earlier ones, and behind its gathering."""
        self._waiting.append(sending)
        label = f"job {sending.job.number} on GPU {self._device}"
        return self._schedule.put(self._queue, label, lambda: self._carry_out(sending), [gathered])

    def close(self) -> None:
        self._space.close()

    def _carry_out(self, sending: Sending) -> None:
        self._waiting.remove(sending)
        sending.done = True
        if sending.cancelled:
            return
        job = sending.job
        self._have(job)
        for span, data in zip(job.gather, sending.snapshot, strict=True):
            self._space.write(self._inside(span), data)
        if not all(_lies(assumed, job.gather, sending.snapshot) for assumed in job.assumed):
            self._mismatch(sending)
            return
        for placed, copy in zip(job.launches, sending.copies, strict=True):
            self._launch(placed, copy)
        sending.results = [self._space.read(self._inside(span), span.bytes) for span in job.apply]

    def _have(self, job: Job) -> None:
        """Give memory back, and have all that the job needs."""
        for allocation in job.evicted:
            address, _ = self._replicas.pop(allocation, (0, 0))
            if self._own.pop(allocation, None) is not None:
                self._space.remove(address)
        for replica in job.replicas:
            known, size = self._replicas.get(replica.allocation), replica.bytes
            if replica.variable:
                self._replicas[replica.allocation] = known or self._variable(replica.module, replica.variable)
            elif known is None:
                address = self._space.allocate(size)
                self._space.write(address, bytes([FORGOTTEN]) * size)
                self._own[replica.allocation] = size
                self._replicas[replica.allocation] = address, size
            elif known[1] != size:
                raise Fault(f"allocation {replica.allocation} has a replica of {known[1]} bytes, not {size}")
        self._outcome.replicas[self._device] = max(self._outcome.replicas[self._device], self._own.total())

    def _variable(self, module: int, name: str) -> tuple[int, int]:
        """Where it is, and its bytes."""
        if module not in self._modules:
            raise Fault(f"module {module}, whose variable {name} is a replica, is that of no launch so far")
        found = self._sent.copy(self._modules[module]).globals.get(name)
        if found is None:
            raise Fault(f"module {module} has no variable {name}")
        return found

    def _replica(self, allocation: int, offset: int, size: int) -> int:
        """The address of a part of a replica."""
        if allocation not in self._replicas:
            raise Fault(f"allocation {allocation} has no replica")
        address, whole = self._replicas[allocation]
        if not 0 <= offset <= offset + size <= whole:
            raise Fault(f"{size} bytes at {offset} of allocation {allocation}, which has {whole}")
        return address + offset

    def _inside(self, span: Span) -> int:
        return self._replica(span.allocation, span.offset, span.bytes)

    def _mismatch(self, sending: Sending) -> None:
        """What was decided so far for this GPU is run at home, and nothing that is here counts."""
        for one in [sending, *self._waiting]:
            one.cancelled = True
        self._outcome.mismatches.append((sending.job.number, self._device))
        own = [self._replicas[allocation] for allocation in self._own]
        own += [loaded.globals[name] for loaded in self._sent.all() for name in loaded.globals
                if not loaded.constant(name)]
        for address, size in own:
            self._space.write(address, bytes([FORGOTTEN]) * size)
        self._withdrawn(self._device)

    def _launch(self, placed: Placed, copy: Copy) -> None:
        launch = placed.launch
        parameters = bytearray(launch.parameters)
        for pointer in launch.pointers:
            word = slice(pointer.word, pointer.word + POINTER_BYTES)
            parameters[word] = self._replica(pointer.allocation, pointer.offset, 0).to_bytes(POINTER_BYTES, "little")
        grid = Grid(launch.grid, launch.block, launch.shared, bytes(parameters))
        try:
            self._sent.copy(copy).run(launch.kernel.name, grid, False)
        except Fault as fault:
            where = f"record {placed.sequence}, node {placed.node}, kernel {launch.kernel.name}"
            raise Fault(f"{where}: {fault}") from fault
        self._outcome.launches[self._device] += 1


def _lies(assumed: Assumed, spans: tuple[Span, ...], snapshot: list[bytes]) -> bool:
    """Whether gathered bytes are those assumed. Raises Fault if they were not gathered."""
    address, data = assumed
    while data:
        found: tuple[Span, Any] | None = next(
            ((span, there) for span, there in zip(spans, snapshot, strict=True)
             if span.address <= address < span.address + span.bytes), None)
        if found is None:
            raise Fault(f"the byte at {address:#x} is assumed, and not gathered")
        span, there = found
        part = there[address - span.address:][:len(data)]
        if part != data[:len(part)]:
            return False
        address, data = address + len(part), data[len(part):]
    return True
