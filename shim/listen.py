"""Takes programs in: a Unix socket where the preload library says hello, and a relay for each that may stay.

A program that says hello waits for the answer, so it gets one as soon as there is a process for its relay. The first
relay is started before any program, as Python takes longer to start than a busy program to fill its ring. What says
something else is refused, and why is counted.
"""

from __future__ import annotations

import os
import selectors
import socket
import struct
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import NamedTuple

from shim.errors import WireError
from shim.messages import HELLO, read_hello, welcome
from shim.relay import Configuration
from shim.ring import Ring
from tessera.environment import SOCKET

MOST_CLIENTS = 256
"""Programs at a time, and connections that have not said hello yet."""
HELLO_SECONDS = 1.0
TICK_SECONDS = 0.05
END_SECONDS = 5.0
_CREDENTIALS = struct.Struct("3i")
_FLAGS = socket.MSG_CMSG_CLOEXEC | socket.MSG_DONTWAIT
_MOST_DESCRIPTORS = 16
_RELAY = "import sys; sys.path[:] = sys.argv[1:]; from shim.relay import main; sys.exit(main())"
"""Finds modules where this process does, so that it is the relay that belongs to it."""


class Client(NamedTuple):
    """A program that was accepted: a number that the listener gives once, its process, its file."""

    number: int
    process: int
    program: str


class Way(NamedTuple):
    """How a relay reaches the reader: the endpoint and keys of :class:`shim.relay.Configuration`."""

    endpoint: str
    server_key: str = ""
    public_key: str = ""
    secret_key: str = ""


class Refused(Exception):
    """A program or something else that is not let in, and why."""


@dataclass
class _Relay:
    """A relay that runs, and the socket by which it is told what to do; it ends when that is closed."""

    process: subprocess.Popen[bytes]
    line: socket.socket


@dataclass
class _Served:
    client: Client
    process: int  # a pidfd
    started: _Relay

    @property
    def relay(self) -> subprocess.Popen[bytes]:
        return self.started.process

    @property
    def lives(self) -> bool:
        """Whether the program does."""
        with selectors.PollSelector() as selector:
            selector.register(self.process, selectors.EVENT_READ)
            return not selector.select(0)


class Listener:
    """Listens at a path from :meth:`start` to :meth:`close`, in a thread of its own.

    ``begun`` is called with each client before it is answered and says how its relay reaches the reader; ``ended`` with
    each client whose relay has ended or could not be started, and its exit status. Both are called in that thread.
    ``refused`` counts reasons.
    """

    def __init__(self, path: Path, options: int, begun: Callable[[Client], Way], ended: Callable[[Client, int], None]
                 ) -> None:
        self.path, self._options, self._begun, self._ended = path, options, begun, ended
        self.refused: Counter[str] = Counter()
        self._numbers = count(1)
        self._pending: dict[socket.socket, float] = {}
        self._served: list[_Served] = []
        self._spare: _Relay | None = None
        self._stop = threading.Event()
        self._selector = selectors.DefaultSelector()
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._thread = threading.Thread(target=self._run, name="listener", daemon=True)

    def start(self) -> None:
        """Begin to listen. Raises OSError."""
        self._socket.bind(str(self.path))
        self._socket.listen(MOST_CLIENTS)
        self._socket.setblocking(False)
        self._selector.register(self._socket, selectors.EVENT_READ)
        self._spare = _start()
        self._thread.start()

    def living(self) -> list[Client]:
        """The clients whose programs live."""
        return [served.client for served in list(self._served) if served.lives]

    def close(self) -> None:
        """Take in nobody any more, and end all relays."""
        self._stop.set()
        self._thread.join(END_SECONDS)
        for connection in self._pending:
            connection.close()
        self._socket.close()
        self.path.unlink(missing_ok=True)
        relays = [served.started for served in self._served] + ([self._spare] if self._spare else [])
        for relay in relays:
            relay.line.close()  # by which it knows
        end = time.monotonic() + END_SECONDS
        for relay in relays:
            try:
                relay.process.wait(max(0.0, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                relay.process.kill()
                relay.process.wait(END_SECONDS)
        for served in self._served:
            os.close(served.process)
        self._served.clear()
        self._spare = None
        self._selector.close()

    def _run(self) -> None:
        while not self._stop.is_set():
            for key, _ in self._selector.select(TICK_SECONDS):
                if key.fileobj is self._socket:
                    self._connect()
                elif isinstance(key.fileobj, socket.socket):
                    self._greet(key.fileobj)
            now = time.monotonic()
            for connection in [c for c, deadline in self._pending.items() if deadline < now]:
                self._dismiss(connection, "no greeting in time")
            self._collect()

    def _connect(self) -> None:
        with suppress(OSError):
            connection, _ = self._socket.accept()
            connection.setblocking(False)
            self._pending[connection] = time.monotonic() + HELLO_SECONDS
            self._selector.register(connection, selectors.EVENT_READ)
            if len(self._pending) > MOST_CLIENTS:
                self._dismiss(connection, "too many connections")

    def _dismiss(self, connection: socket.socket, reason: str) -> None:
        self.refused[reason] += 1
        with suppress(OSError):
            connection.send(welcome(None), socket.MSG_NOSIGNAL)
        self._drop(connection)

    def _drop(self, connection: socket.socket) -> None:
        self._selector.unregister(connection)
        del self._pending[connection]
        connection.close()

    def _greet(self, connection: socket.socket) -> None:
        descriptors: list[int] = []
        reason = None
        try:
            self._take_in(connection, _receive(connection, descriptors), descriptors)
        except Refused as refused:
            reason = str(refused)
        except OSError as error:
            reason = f"its connection failed: {error.strerror}"
        finally:
            for descriptor in descriptors:
                os.close(descriptor)
        if reason is None:
            self._drop(connection)
        else:
            self._dismiss(connection, reason)

    def _take_in(self, connection: socket.socket, message: bytes, descriptors: list[int]) -> None:
        """Answer a greeting and start the relay. Raises Refused."""
        number, user, _ = _CREDENTIALS.unpack(
            connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
        if user != os.geteuid():
            raise Refused("it is of another user")
        if not number:
            raise Refused("its process cannot be seen from here")
        if len(descriptors) != 1:
            raise Refused(f"it sent {len(descriptors)} descriptors, and must send the one of its ring")
        if len(self._served) >= MOST_CLIENTS:
            raise Refused(f"there are {MOST_CLIENTS} programs already")
        try:
            said = read_hello(message)
            with Ring(descriptors[0]):
                pass
        except WireError as error:
            raise Refused(str(error).replace(f"descriptor {descriptors[0]}", "its descriptor")) from None
        client = Client(next(self._numbers), number, said.program)
        process = os.pidfd_open(number)  # it waits for the answer, so it is still this process
        way = self._begun(client)
        try:
            relay = self._relay()
            told = Configuration(number, client.number, *way)
            socket.send_fds(relay.line, [told.line()], [descriptors[0], process])
        except OSError as error:
            os.close(process)
            self._ended(client, 1)
            raise Refused(f"no relay for it: {error.strerror}") from None
        self._served.append(_Served(client, process, relay))
        with suppress(OSError):  # who is gone already has a relay that will see it
            connection.send(welcome(client.number, self._options), socket.MSG_NOSIGNAL)

    def _relay(self) -> _Relay:
        """The one that is ready, if it still is, or a new one. Raises OSError."""
        ready, self._spare = self._spare, None
        if ready and ready.process.poll() is None:
            return ready
        if ready:
            ready.line.close()
        return _start()

    def _collect(self) -> None:
        for served in [one for one in self._served if one.relay.poll() is not None]:
            self._served.remove(served)
            served.started.line.close()
            os.close(served.process)
            self._ended(served.client, served.relay.returncode)


def _receive(connection: socket.socket, descriptors: list[int]) -> bytes:
    """A message, and the descriptors that came with it, however many. Raises Refused if there is none."""
    message, control, _, _ = connection.recvmsg(HELLO.size + 1, socket.CMSG_SPACE(4 * _MOST_DESCRIPTORS), _FLAGS)
    for level, kind, data in control:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            descriptors += struct.unpack(f"{len(data) // 4}i", data[:len(data) // 4 * 4])
    if not message:
        raise Refused("it closed the connection without a greeting")
    return message


def _start() -> _Relay:
    """A relay in a session of its own, so that what a terminal sends to the program does not end it. Raises OSError."""
    environment = {name: value for name, value in os.environ.items() if name not in ("LD_PRELOAD", SOCKET.name)}
    command = [sys.executable, "-c", _RELAY, *map(os.path.abspath, sys.path)]
    line, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        with other:
            process = subprocess.Popen(command, stdin=other.fileno(), stdout=subprocess.DEVNULL, cwd="/",
                                       env=environment, start_new_session=True)
    except OSError:
        line.close()
        raise
    return _Relay(process, line)
