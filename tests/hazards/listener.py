"""The other side of the library in one thread for each program: takes its ring and copies all records, until it ends.

It is apart from the relay on purpose: what it finds is what the library wrote.
"""

from __future__ import annotations

import mmap
import os
import re
import select
import socket
import struct
import threading
import time
from enum import Enum, IntEnum
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

from tessera.driver_api import functions

WIRE = Path(__file__).resolve().parents[2] / "shim" / "wire.h"
Kind = IntEnum("Kind", {name: int(value) for name, value in re.findall(  # type: ignore[misc]
    r"^  WIRE_(\w+) = (\d+)", re.search(r"enum wire_kind \{(.*?)\};", WIRE.read_text(), re.DOTALL)[1],  # type: ignore[index]
    re.MULTILINE)})
"""``enum wire_kind``."""
HEAD = struct.Struct("<IHHQQII")
HELLO = struct.Struct("<6IQ256s")
WELCOME = struct.Struct("<6I")
MAGIC, VERSION = 0x41525345, 1
PAGE, RING = 4096, 64 << 20
HEAD_AT, TAIL_AT, LOST_AT = 64, 128, 192
END_SECONDS = 5.0
LATE_SECONDS = 0.4
MOST = 256


class Answer(Enum):
    """What a listener does with a program that says hello."""

    WELCOME = "takes it in"
    NOT_READ = "takes it in, and reads nothing until it has ended"
    LATE = "takes it in, after a while"
    REFUSAL = "refuses it"
    SILENCE = "says nothing"
    CLOSED = "closes the connection without an answer"
    NONSENSE = "answers with something else"


class Record(NamedTuple):
    """``symbol``: of the driver function; ``data``: all of it, with its head."""

    kind: int
    flags: int
    sequence: int
    thread: int
    symbol: str
    data: bytes


class Client:
    """A process: what it said, and its records. ``lost``: how many found no room."""

    def __init__(self, process: int, program: str) -> None:
        self.process, self.program = process, program
        self.records: list[Record] = []
        self.lost = 0

    def kinds(self, *kinds: int) -> list[Record]:
        """Its records of some kinds."""
        return [record for record in self.records if record.kind in kinds]

    def counts(self, *kinds: int) -> dict[str, int]:
        """How many of some kinds there are of each function."""
        found: dict[str, int] = {}
        for record in self.kinds(*kinds):
            found[record.symbol] = found.get(record.symbol, 0) + 1
        return found


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
        """All clients, in the order in which they came, once they have ended. Fails if one has not, or wrote nonsense."""
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
        with connection:
            message, descriptors, _, _ = socket.recv_fds(connection, HELLO.size + 1, 4)
            peer, _, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
            said = HELLO.unpack(message)
            if said[:2] != (MAGIC, VERSION) or said[3] != peer or len(descriptors) != 1:
                self._faults.append(f"another greeting of process {peer}: {said}")
                return
            process = os.pidfd_open(peer)
            client = Client(peer, said[7].rstrip(b"\0").decode())
            if self._answer is Answer.SILENCE:
                select.select([process], [], [])
            elif self._answer is Answer.REFUSAL:
                connection.send(WELCOME.pack(MAGIC, VERSION, WELCOME.size, 0, 0, 0))
            elif self._answer is Answer.NONSENSE:
                connection.send(b"?" * WELCOME.size)
            elif self._answer is not Answer.CLOSED:
                with mmap.mmap(descriptors[0], PAGE + RING) as ring:
                    self._clients.append(client)
                    if self._answer is Answer.LATE:
                        time.sleep(LATE_SECONDS)
                    connection.send(WELCOME.pack(MAGIC, VERSION, WELCOME.size, 1, 0, len(self._clients)))
                    connection.close()
                    self._read(client, ring, process)
            for descriptor in (process, *descriptors):
                os.close(descriptor)

    def _read(self, client: Client, ring: mmap.mmap, process: int) -> None:
        symbols = [function.symbol for function in functions()]
        tail, lives = 0, True
        while True:
            (head,) = struct.unpack_from("<Q", ring, HEAD_AT)
            if head == tail and not lives:
                break
            if head == tail or (lives and self._answer is Answer.NOT_READ):
                lives = not select.select([process], [], [], 0.001)[0]
                continue
            begin, rest = tail % RING, head - tail
            data = ring[PAGE + begin : PAGE + min(begin + rest, RING)]
            data += ring[PAGE : PAGE + rest - len(data)]
            at = 0
            while at < rest:
                size, kind, flags, sequence, _, thread, number = HEAD.unpack_from(data, at)
                if size < HEAD.size or size % 8 or at + size > rest or number >= len(symbols):
                    self._faults.append(f"process {client.process}: no record at position {tail + at}")
                    return
                client.records.append(Record(kind, flags, sequence, thread, symbols[number], data[at : at + size]))
                at += size
            tail = head
            struct.pack_into("<Q", ring, TAIL_AT, tail)
        (client.lost,) = struct.unpack_from("<Q", ring, LOST_AT)
