"""The other side of the library in one thread for each program: takes its ring and copies all records, until it ends.

It is apart from the relay on purpose: what it finds is what the library wrote.
"""

from __future__ import annotations

import os
import select
import socket
import struct
import threading
import time
from collections import Counter
from enum import Enum
from functools import cached_property
from pathlib import Path
from types import TracebackType

from shim.errors import WireError
from shim.layout import layout
from shim.messages import HELLO, read_hello, welcome
from shim.ring import Ring
from shim.wire import Kind, Record, records
from tessera.driver_api import functions

__all__ = ["Answer", "Client", "Kind", "Listener", "symbol"]

END_SECONDS = 5.0
LATE_SECONDS = 0.4
MOST = 256
PIECE = 1 << 22
_HEAD = struct.Struct("<IHHQ")


class Answer(Enum):
    """What a listener does with a program that says hello."""

    WELCOME = "takes it in"
    NOT_READ = "takes it in, and reads nothing until it has ended"
    LATE = "takes it in, after a while"
    REFUSAL = "refuses it"
    SILENCE = "says nothing"
    CLOSED = "closes the connection without an answer"
    NONSENSE = "answers with something else"


def symbol(record: Record) -> str:
    """The driver function that a record names."""
    return functions()[record.function].symbol


class Client:
    """A process: its file, and its records. ``lost``: how many found no room."""

    def __init__(self, process: int, program: str) -> None:
        self.process, self.program = process, program
        self.data: list[bytes] = []
        self.lost = 0

    @cached_property
    def heads(self) -> list[tuple[int, int]]:
        """Kind and number of each record: less work than all of them."""
        found, data, at = [], b"".join(self.data), 0
        while at < len(data):
            size, kind, _, sequence = _HEAD.unpack_from(data, at)
            found.append((kind, sequence))
            at += size
        return found

    @property
    def gaps(self) -> int:
        """How many numbers are missing among its records, which begin with 1."""
        numbers = [sequence for _, sequence in self.heads]
        assert sorted(set(numbers)) == numbers
        return numbers[-1] - len(numbers) if numbers else 0

    @cached_property
    def records(self) -> list[Record]:
        """All of them. Raises WireError if something else stands there."""
        return list(records(b"".join(self.data)))

    def kinds(self, *kinds: Kind) -> list[Record]:
        """Its records of some kinds."""
        return [record for record in self.records if record.kind in kinds]

    def counts(self, *kinds: Kind) -> dict[str, int]:
        """How many of some kinds there are of each function."""
        return dict(Counter([symbol(record) for record in self.kinds(*kinds)]))


class Listener:
    """Listens at a path as long as it is entered."""

    def __init__(self, path: Path, answer: Answer) -> None:
        self.connections = 0
        self._answer = answer
        self._clients: list[Client] = []
        self._threads: list[threading.Thread] = []
        self._faults: list[str] = []
        self._stop = threading.Event()
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket.bind(str(path))
        self._socket.listen(MOST)
        self._socket.settimeout(0.05)
        self._thread = threading.Thread(target=self._accept, daemon=True)

    def __enter__(self) -> Listener:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
                 ) -> None:
        self._stop.set()
        self._thread.join(END_SECONDS)
        self._socket.close()

    def ended(self) -> list[Client]:
        """All clients, in the order in which they came, once they have ended. Fails if one has not, or has said
        nonsense."""
        end = time.monotonic() + END_SECONDS
        for thread in self._threads:
            thread.join(max(0.0, end - time.monotonic()))
            assert not thread.is_alive(), "a program that connected has not ended"
        assert not self._faults, self._faults
        return self._clients

    def _accept(self) -> None:
        while not self._stop.is_set():
            try:
                connection, _ = self._socket.accept()
            except TimeoutError:
                continue
            self.connections += 1
            thread = threading.Thread(target=self._serve, args=(connection,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        descriptors: list[int] = []
        try:
            message, descriptors, _, _ = socket.recv_fds(connection, HELLO.size + 1, 4)
            peer, _, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
            said = read_hello(message)
            assert said.process == peer and len(descriptors) == 1, said
            descriptors.append(os.pidfd_open(peer))
            with Ring(descriptors[0]) as ring:
                self._answer_to(Client(peer, said.program), connection, ring, descriptors[1])
        except (WireError, OSError, AssertionError) as error:
            self._faults.append(repr(error))
        finally:
            connection.close()
            for descriptor in descriptors:
                os.close(descriptor)

    def _answer_to(self, client: Client, connection: socket.socket, ring: Ring, process: int) -> None:
        if self._answer is Answer.SILENCE:
            select.select([process], [], [])
        elif self._answer is Answer.REFUSAL:
            connection.send(welcome(None))
        elif self._answer is Answer.NONSENSE:
            connection.send(b"?" * layout("wire_welcome").size)
        elif self._answer is not Answer.CLOSED:
            self._clients.append(client)
            if self._answer is Answer.LATE:
                time.sleep(LATE_SECONDS)
            connection.send(welcome(len(self._clients)))
            connection.close()
            self._read(client, ring, process)

    def _read(self, client: Client, ring: Ring, process: int) -> None:
        if self._answer is Answer.NOT_READ:
            select.select([process], [], [])
        over = False
        while not over:
            over = bool(select.select([process], [], [], 0)[0])  # asked first: all that it wrote is there now
            while data := ring.take(PIECE):
                client.data.append(data)
                ring.advance(len(data))
            if not over:
                ring.wait(process, -1, 20_000)
        client.lost = ring.lost
