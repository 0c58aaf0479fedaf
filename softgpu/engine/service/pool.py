"""The service's workers: forked when needed, one job each at a time, replaced when they die."""

from __future__ import annotations

import os
import signal
import socket
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from softgpu.engine.service.protocol import Frame, FrameReader, ProtocolError, Status

REMEMBERED = 8  # modules that a worker is taken to have at hand, parsed
PATIENCE_SECONDS = 2.0  # for idle workers to end


@dataclass(eq=False)
class Job:
    """A request that is worked on. ``module`` is a digest of what the worker will have at hand afterwards; ``done`` is
    called once, with the reply. ``what`` names the work in errors."""

    request: Frame
    what: str
    module: bytes
    done: Callable[[Frame], None]


@dataclass(eq=False)
class Worker:
    """A worker process as its parent sees it."""

    process: int
    connection: socket.socket
    job: Job | None = None
    reader: FrameReader = field(default_factory=FrameReader)
    modules: deque[bytes] = field(default_factory=lambda: deque(maxlen=REMEMBERED))


def fork_worker(body: Callable[[socket.socket], None]) -> Worker:
    """A new process that runs ``body`` with a socket to us and ends with it.

    It keeps no other descriptor than that socket and the standard streams, so that what we close is closed. We have one
    thread only, so a fork is safe.
    """
    ours, theirs = socket.socketpair()
    process = os.fork()
    if process:
        theirs.close()
        return Worker(process, ours)
    status = 1
    try:
        kept = theirs.fileno()
        os.closerange(3, kept)
        os.closerange(kept + 1, os.sysconf("SC_OPEN_MAX"))
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        body(theirs)
        status = 0
    finally:
        os._exit(status)


class Pool:
    """At most ``limit`` workers. ``watch(socket, callback)`` and ``unwatch(socket)`` tie their sockets to the loop."""

    def __init__(self, body: Callable[[socket.socket], None], limit: int,
                 watch: Callable[[socket.socket, Callable[[], None]], Any],
                 unwatch: Callable[[socket.socket], Any]) -> None:
        self._body = body
        self._limit = limit
        self._watch = watch
        self._unwatch = unwatch
        self.workers: list[Worker] = []
        self.waiting: deque[Job] = deque()

    @property
    def busy(self) -> bool:
        return bool(self.waiting) or any(worker.job for worker in self.workers)

    def submit(self, job: Job) -> None:
        """Have a job done as soon as a worker is free."""
        self.waiting.append(job)
        self._assign()

    def _assign(self) -> None:
        while self.waiting:
            job = self.waiting[0]
            idle = [worker for worker in self.workers if worker.job is None]
            idle.sort(key=lambda worker: job.module not in worker.modules)
            if not idle and len(self.workers) >= self._limit:
                return
            self._start(idle[0] if idle else self._added(), self.waiting.popleft())

    def _added(self) -> Worker:
        worker = fork_worker(self._body)
        self.workers.append(worker)
        self._watch(worker.connection, lambda: self._heard(worker))
        return worker

    def _start(self, worker: Worker, job: Job) -> None:
        worker.job = job
        if job.module not in worker.modules:
            worker.modules.append(job.module)
        try:
            worker.connection.sendall(job.request.encode())
        except OSError:
            self._ended(worker)

    def _heard(self, worker: Worker) -> None:
        try:
            data = worker.connection.recv(1 << 20)
            frame = worker.reader.feed(data) if data else None
        except (OSError, ProtocolError):
            data, frame = b"", None
        if not data:
            self._ended(worker)
        elif frame and worker.job:
            job, worker.job = worker.job, None
            job.done(frame)
        self._assign()

    def _ended(self, worker: Worker) -> None:
        """Bury a worker that closed its socket or speaks nonsense, and fail its job."""
        self.workers.remove(worker)
        self._unwatch(worker.connection)
        worker.connection.close()
        os.kill(worker.process, signal.SIGKILL)
        status = os.waitstatus_to_exitcode(os.waitpid(worker.process, 0)[1])
        if worker.job:
            worker.job.done(Frame(Status.FAILED, f"{worker.job.what}: the compiler {_ending(status)}".encode()))

    def close(self) -> None:
        """End all workers and wait for them. Idle ones end by themselves, and tidy up; busy ones are killed."""
        for worker in self.workers:
            worker.connection.close()
        end = time.monotonic() + PATIENCE_SECONDS
        for worker in self.workers:
            while not worker.job and time.monotonic() < end:
                if os.waitpid(worker.process, os.WNOHANG)[0]:
                    break
                time.sleep(0.002)
            else:
                os.kill(worker.process, signal.SIGKILL)
                os.waitpid(worker.process, 0)
        self.workers.clear()


def _ending(status: int) -> str:
    if status == -signal.SIGALRM:
        return "took too long and was stopped"
    return f"was ended by signal {-status}" if status < 0 else f"ended with status {status}"
