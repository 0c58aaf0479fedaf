"""The contexts, streams and events of a replay, and which GPU each is on."""

from __future__ import annotations

import sqlite3
from typing import Any

from orchestrator.traces.errors import ReplayError
from orchestrator.traces.objects import LEGACY, PER_THREAD
from orchestrator.traces.reader import Trace
from orchestrator.traces.replay.driver import CallFailed, call, cuda
from orchestrator.traces.replay.report import Report

INTERPROCESS = 4
"""CU_EVENT_INTERPROCESS."""
NON_BLOCKING = 1
MAPPED_HOST = 8
"""CU_CTX_MAP_HOST."""


class Machine:
    """What is there for one client."""

    def __init__(self, trace: Trace, report: Report, device: int | None) -> None:
        self._trace, self._report, self._device = trace, report, device
        self._count = int(call(cuda.cuDeviceGetCount(), "cuDeviceGetCount"))
        if not self._count:
            raise ReplayError("the driver has no GPU to replay on")
        if device is not None and not 0 <= device < self._count:
            raise ReplayError(f"--device {device}: the driver has GPUs 0 to {self._count - 1}")
        self._contexts: dict[int, Any] = {}
        self._devices: dict[int, int] = {}
        self._streams: dict[int, Any] = {}
        self._stream_contexts: dict[int, int] = {}
        self._events: dict[int, Any] = {}
        self._current: int | None = None
        self._own: dict[int, Any] = {}
        self._peers: set[tuple[int, int]] = set()
        self._event_contexts: dict[int, int] = {}
        self._lasting: Any = None

    def ordinal(self, recorded: int | None) -> int:
        """The GPU that stands for a recorded one."""
        if self._device is not None:
            return self._device
        if (recorded or 0) >= self._count:
            raise ReplayError(f"the trace uses GPU {recorded}, the driver has GPUs 0 to {self._count - 1}: "
                              "name one for all with --device")
        return max(recorded or 0, 0)

    @property
    def current(self) -> int | None:
        """The context of the trace that is current."""
        return self._current

    @property
    def ordinals(self) -> list[int]:
        """The GPUs on which there are contexts."""
        return sorted(set(self._devices.values()))

    def use(self, context: int | None) -> int:
        """Make a context of the trace current, or any if it says none; its number."""
        number = context if context is not None else next(iter(self._contexts), 0)
        if number not in self._contexts:
            row = self._trace.row("SELECT device FROM context WHERE id = ?", number) if number else None
            self._make_context(number, row["device"] if row else 0)
        if self._current != number:
            call(cuda.cuCtxSetCurrent(self._contexts[number]), "cuCtxSetCurrent")
            self._current = number
        return number

    def device_of(self, context: int | None) -> int:
        """The GPU of a context."""
        return self._devices[self.use(context)]

    def on(self, device: int | None) -> int:
        """Make a context on a recorded GPU current, any if there is none yet; its number."""
        wanted = self.ordinal(device)
        return self.use(next((number for number, there in self._devices.items() if there == wanted), None))

    def handle(self, context: int) -> Any:
        """The context itself."""
        self.use(context)
        return self._contexts[context]

    def _make_context(self, number: int, device: int | None) -> None:
        ordinal = self.ordinal(device)
        made = call(cuda.cuCtxCreate(None, MAPPED_HOST, ordinal), "cuCtxCreate")
        self._contexts[number], self._devices[number], self._current = made, ordinal, number
        for other, there in list(self._contexts.items()):
            self._befriend(number, made, other, there)
            self._befriend(other, there, number, made)
        call(cuda.cuCtxSetCurrent(made), "cuCtxSetCurrent")

    def _befriend(self, mine: int, one: Any, yours: int, other: Any) -> None:
        """The one context may access the other's memory, where GPUs can: programs may have asked for it."""
        first, second = self._devices[mine], self._devices[yours]
        if mine == yours or first == second or (mine, yours) in self._peers:
            return
        if int(call(cuda.cuDeviceCanAccessPeer(first, second), "cuDeviceCanAccessPeer")):
            call(cuda.cuCtxSetCurrent(one), "cuCtxSetCurrent")
            call(cuda.cuCtxEnablePeerAccess(other, 0), "cuCtxEnablePeerAccess")
            self._peers.add((mine, yours))

    def end_context(self, number: int) -> None:
        """A context is destroyed."""
        made = self._contexts.pop(number, None)
        if made is None:
            return
        self._own.pop(number, None)
        call(cuda.cuCtxSetCurrent(made), "cuCtxSetCurrent")
        call(cuda.cuCtxSynchronize(), "cuCtxSynchronize")
        call(cuda.cuCtxDestroy(made), "cuCtxDestroy")
        for things, contexts in ((self._streams, self._stream_contexts), (self._events, self._event_contexts)):
            for thing in [thing for thing, context in contexts.items() if context == number]:
                things.pop(thing, None)
        self._devices.pop(number, None)
        self._current = None

    def use_lasting(self) -> None:
        """Make a context current that no program ends: the first GPU's primary one."""
        ordinal = min(self.ordinals, default=0)
        if self._lasting is None:
            self._lasting = call(cuda.cuDevicePrimaryCtxRetain(ordinal), "cuDevicePrimaryCtxRetain"), ordinal
        call(cuda.cuCtxSetCurrent(self._lasting[0]), "cuCtxSetCurrent")
        self._current = None

    def own(self, context: int | None) -> Any:
        """A stream in a context that the trace knows nothing of, for what has to be there before anything else runs."""
        number = self.use(context)
        if number not in self._own:
            self._own[number] = call(cuda.cuStreamCreate(NON_BLOCKING), "cuStreamCreate")
        return self._own[number]

    def stream(self, number: int | None, context: int | None) -> Any:
        """A stream of the trace; its context is current then. Without a number it is the legacy stream."""
        if number is None:
            self.use(context)
            return cuda.CUstream(LEGACY)
        if number not in self._streams:
            row = self._trace.row("SELECT * FROM stream WHERE id = ?", number)
            self._make_stream(row, number, context)
        self.use(self._stream_contexts[number])
        return self._streams[number]

    def _make_stream(self, row: sqlite3.Row | None, number: int, context: int | None) -> None:
        handle = row["handle"] if row else LEGACY
        where = row["context"] if row and row["context"] is not None else context
        self._stream_contexts[number] = self.use(where)
        if handle == LEGACY:
            self._streams[number] = cuda.CUstream(LEGACY)
        elif handle == PER_THREAD:  # a thread of ours cannot be the recorded one; a blocking stream behaves the same
            self._streams[number] = call(cuda.cuStreamCreate(0), "cuStreamCreate")
        else:
            flags, priority = (row["flags"] or 0, row["priority"] or 0) if row else (0, 0)
            self._streams[number] = call(cuda.cuStreamCreateWithPriority(flags & NON_BLOCKING, priority),
                                         "cuStreamCreateWithPriority")

    def end_stream(self, number: int) -> None:
        """A stream is destroyed; what is in it is done all the same."""
        made = self._streams.pop(number, None)
        if made is not None and int(made) not in (LEGACY, PER_THREAD):
            self.use(self._stream_contexts[number])
            call(cuda.cuStreamDestroy(made), "cuStreamDestroy")

    def event(self, number: int) -> Any:
        """An event of the trace."""
        if number not in self._events:
            row = self._trace.row("SELECT * FROM event WHERE id = ?", number)
            flags = (row["flags"] or 0) & ~INTERPROCESS if row else 0
            if row and row["imported"]:
                self._report.doubts["an event of another process"] += 1
            self._event_contexts[number] = self.use(row["context"] if row else None)
            self._events[number] = call(cuda.cuEventCreate(flags), "cuEventCreate")
        return self._events[number]

    def end_event(self, number: int) -> None:
        made = self._events.pop(number, None)
        if made is not None:
            call(cuda.cuEventDestroy(made), "cuEventDestroy")

    def mark(self, stream: Any) -> Any:
        """A new event at the end of a stream, whose context is current."""
        event = call(cuda.cuEventCreate(2), "cuEventCreate")  # CU_EVENT_DISABLE_TIMING
        call(cuda.cuEventRecord(event, stream), "cuEventRecord")
        return event

    def wait_for_all(self) -> None:
        """Until every context is idle."""
        for number in list(self._contexts):
            self.use(number)
            call(cuda.cuCtxSynchronize(), "cuCtxSynchronize")

    def end(self) -> None:
        """Destroy everything."""
        self.wait_for_all()
        for number in list(self._contexts):
            try:
                self.end_context(number)
            except CallFailed as failed:
                self._report.notes[f"at the end: {failed}"] += 1
        if self._lasting is not None:
            call(cuda.cuDevicePrimaryCtxRelease(self._lasting[1]), "cuDevicePrimaryCtxRelease")
            self._lasting = None
