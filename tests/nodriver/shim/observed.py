"""A program on the software driver under the preload library: the records that it wrote, and what the driver logged."""

from __future__ import annotations

import os
import select
import socket
import struct
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import softgpu
from shim.layout import layout, lib
from shim.ring import Ring
from shim.wire import Record, records
from softgpu.instrument import Delay, Fail, Instrument
from tessera.driver_api import functions
from tessera.environment import DRIVER, SOCKET
from tools import shim

SECONDS = 120.0
PAUSE = 0.05
FLEET = "A100-80G,L40S;from=A100-80G:to=L40S:bandwidth_gb_s=23:peer=true"
WORK = Instrument(work=True)
STEADY = Instrument(work=True, reuse=True)
"""So that handles come back in the same order in every run."""


@dataclass
class Seen:
    """What is known of programs once they have ended. ``clients``: the records of each process that called the driver,
    in the order in which they came. ``log``: the lines of the driver's instrument. ``variables``: what the environment
    of the programs has to have."""

    variables: dict[str, str]
    options: int = 0
    clients: list[list[Record]] = field(default_factory=list)
    log: list[dict[str, Any]] = field(default_factory=list)

    @property
    def records(self) -> list[Record]:
        """Of the one process that there was; none of them lost, and numbered without gaps."""
        (only,) = self.clients
        assert [record.sequence for record in only] == list(range(1, len(only) + 1))
        return only

    def work(self, kind: str = "") -> list[dict[str, Any]]:
        """What was done, by the driver's log."""
        return [line for line in self.log if "work" in line and kind in ("", line["work"])]


@dataclass
class Observed(Seen):
    """Of a program that was run."""

    status: int = 0
    output: str = ""
    errors: str = ""


def symbol(record: Record) -> str:
    """The driver function that a record names."""
    return functions()[record.function].symbol


@contextmanager
def watch(options: int = 0, instrument: Instrument = WORK, preload: bool = True) -> Iterator[Seen]:
    """See programs that run meanwhile and have ended then. ``options``: enum wire_option. ``instrument``: without the
    name of its log. Without ``preload`` they run bare, so that there is only the log."""
    with tempfile.TemporaryDirectory(prefix="shim-") as name:
        folder = Path(name)  # short, as the path of a socket has to be
        logs = instrument.calls or instrument.work
        wanted = replace(instrument, log=folder / "log") if logs else instrument
        with wanted.variables() as told, Listener(folder / "socket", options) as listener:
            seen = Seen(dict(told), options)
            if preload:
                seen.variables |= preloaded(folder / "socket", softgpu.environ.FOLDER / "libcuda.so.1")
            yield seen
        seen.log = wanted.records()
        seen.clients = [list(records(b"".join(parts))) for parts in listener.taken]


def observe(command: Sequence[str | Path], *, devices: str = FLEET, options: int = 0, instrument: bool = True,
            calls: bool = False, rules: Sequence[Fail | Delay] = (), reuse: bool = False, preload: bool = True,
            base: Mapping[str, str] | None = None, cwd: Path | None = None, seconds: float = SECONDS, **variables: str
            ) -> Observed:
    """Run a program, which may start others, and :func:`watch` it. ``rules``: what fails or comes late in the driver;
    ``reuse``: it gives handles again at once."""
    wanted = Instrument(calls=calls and instrument, work=instrument, rules=rules, reuse=reuse)
    with watch(options, wanted, preload) as seen:
        environment = softgpu.environment(devices, base=os.environ if base is None else base)
        done = subprocess.run([str(word) for word in command], env=environment | seen.variables | variables, cwd=cwd,
                              capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=seconds, check=False)
    return Observed(seen.variables, options, seen.clients, seen.log, done.returncode, done.stdout, done.stderr)


def preloaded(listening: Path, driver: Path) -> dict[str, str]:
    """What a program needs in its environment to be under the library."""
    return {"LD_PRELOAD": str(shim.PRELOAD), SOCKET.name: str(listening), DRIVER.name: str(driver)}


class Listener:
    """Takes clients and reads their rings, each in a thread, until they have ended; but nothing while ``reading`` is
    not set. ``idle`` is set when a ring has nothing more just now."""

    def __init__(self, path: Path, options: int = 0) -> None:
        self.reading, self.idle = threading.Event(), threading.Event()
        self.reading.set()
        self._options = options
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket.bind(str(path))
        self._socket.listen()
        self._stop = os.eventfd(0)
        self._thread = threading.Thread(target=self._accept)
        self._readers: list[threading.Thread] = []
        self.taken: list[list[bytes]] = []
        self.errors: list[BaseException] = []

    def __enter__(self) -> Listener:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        os.eventfd_write(self._stop, 1)
        for thread in [self._thread, *self._readers]:
            thread.join(SECONDS)
            assert not thread.is_alive(), "a program of the test goes on"
        self._socket.close()
        os.close(self._stop)
        assert not self.errors, self.errors

    def _accept(self) -> None:
        poll = select.poll()
        for descriptor in (self._socket.fileno(), self._stop):
            poll.register(descriptor, select.POLLIN)
        while self._stop not in {descriptor for descriptor, _ in poll.poll()}:
            peer, _ = self._socket.accept()
            with peer:
                self._greet(peer)

    def _greet(self, peer: socket.socket) -> None:
        process, _, _ = struct.unpack("3i", peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        pidfd = os.pidfd_open(process)
        _, (memory, *_), _, _ = socket.recv_fds(peer, layout("wire_hello").size, 1)
        ring, parts = Ring(memory), list[bytes]()
        os.close(memory)
        self.taken.append(parts)
        self._readers.append(threading.Thread(target=self._read, args=(ring, pidfd, parts)))
        self._readers[-1].start()
        shape = layout("wire_welcome")
        peer.send(shape.pack(shape.zero()._replace(
            magic=lib.WIRE_MAGIC, version=lib.WIRE_VERSION, size=shape.size, accepted=1, options=self._options,
            client=len(self.taken),
        )))

    def _read(self, ring: Ring, pidfd: int, parts: list[bytes]) -> None:
        ended = select.poll()
        ended.register(pidfd, select.POLLIN)
        try:
            with ring:
                while True:
                    over = bool(ended.poll(0))  # asked first: whatever it wrote is there now
                    if not over and not self.reading.wait(PAUSE):
                        continue
                    data = ring.take(1 << 22)
                    if data:
                        parts.append(data)
                        ring.advance(len(data))
                    elif over:
                        return
                    else:
                        self.idle.set()
                        ring.wait(pidfd, -1, 50_000)
        except BaseException as error:  # for the test to see
            self.errors.append(error)
        finally:
            os.close(pidfd)
