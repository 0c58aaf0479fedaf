"""A program that writes records as the preload library does: a class for tests, and a program by itself.

    python client.py MODE [COUNT]

connects to the socket that the environment names; each mode is a function below.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import signal
import socket
import struct
import sys
import time
from collections.abc import Callable, Sequence

from shim.layout import ffi, layout, lib
from shim.messages import WELCOME, hello
from shim.wire import Head, Kind, encode
from tessera.environment import SOCKET

RING = layout("wire_ring")
_OFFSETS = {name: field.offset for name, field in ffi.typeof("struct wire_ring").fields}
SEALS = fcntl.F_SEAL_SHRINK
BYTES = lib.WIRE_HEAD_BYTES + lib.WIRE_RING_BYTES


def memory(size: int = BYTES, seals: int = SEALS, **fields: int) -> int:
    """A descriptor of a ring, with other values in its head."""
    descriptor = os.memfd_create("ring", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(descriptor, size)
    head = RING.zero()._replace(magic=lib.WIRE_MAGIC, version=lib.WIRE_VERSION, bytes=lib.WIRE_RING_BYTES,
                                process=os.getpid())
    os.pwrite(descriptor, RING.pack(head._replace(**fields)), 0)
    fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, seals)
    return descriptor


def greet(path: str, message: bytes, descriptors: Sequence[int]) -> socket.socket:
    """A connection on which a greeting was sent."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    connection.settimeout(10)
    connection.connect(path)
    socket.send_fds(connection, [message], descriptors)
    return connection


class FakeClient:
    """Says hello at a socket; ``accepted`` is what is answered."""

    def __init__(self, path: str) -> None:
        descriptor = memory()
        self.ring = mmap.mmap(descriptor, BYTES)
        with greet(path, hello(os.getpid(), sys.argv[0]), [descriptor]) as connection:
            self.welcome = WELCOME.read(connection.recv(100))
        os.close(descriptor)
        self.head = self.sequence = 0

    def number(self, name: str) -> int:
        return int(struct.unpack_from("<Q", self.ring, _OFFSETS[name])[0])

    def set(self, name: str, value: int) -> None:
        struct.pack_into("<Q", self.ring, _OFFSETS[name], value)

    def room(self) -> int:
        """How many bytes of the ring are free."""
        return int(lib.WIRE_RING_BYTES - (self.head - self.number("tail")))

    def place(self, data: bytes) -> None:
        """Put bytes behind the head without saying so."""
        begin = self.head % lib.WIRE_RING_BYTES
        first = min(len(data), lib.WIRE_RING_BYTES - begin)
        start = lib.WIRE_HEAD_BYTES
        self.ring[start + begin:start + begin + first] = data[:first]
        self.ring[start:start + len(data) - first] = data[first:]

    def write(self, data: bytes, seconds: float = 60) -> None:
        """Write bytes as soon as there is room."""
        end = time.monotonic() + seconds
        while self.room() < len(data):
            assert time.monotonic() < end, "nobody reads"
            time.sleep(0.001)
        self.place(data)
        self.head += len(data)
        self.set("head", self.head)

    def calls(self, count: int) -> None:
        """Write records of calls with numbers in a row."""
        self.write(b"".join([encode(Kind.CALL, head=Head(sequence=self.sequence + k)) for k in range(count)]))
        self.sequence += count

    def piece(self, size: int) -> bytes:
        """The next record: a piece of contents."""
        data = encode(Kind.DATA, head=Head(sequence=self.sequence), total=size, bytes=size, tail=bytes(size))
        self.sequence += 1
        return data


def connected() -> FakeClient:
    client = FakeClient(os.environ[SOCKET.name])
    assert client.welcome.accepted
    return client


def say(word: str) -> None:
    print(word, flush=True)


def calls(count: int) -> None:
    """Records of calls, in pieces."""
    client = connected()
    for _ in range(10):
        client.calls(count // 10)


def many(count: int) -> None:
    """So many children, which begin all at once; each writes 100 records."""
    begin, started = os.pipe()
    children = []
    for _ in range(count):
        children.append(os.fork())
        if not children[-1]:
            os.close(started)
            os.read(begin, 1)  # all hear the end of this pipe
            connected().calls(100)
            os._exit(0)
    os.close(started)
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * count


def fork(count: int) -> None:
    """A program that goes on in its child too."""
    client = connected()
    client.calls(count)
    child = os.fork()
    if not child:
        connected().calls(2 * count)
        os._exit(0)
    os.waitpid(child, 0)
    client.calls(count)


def killed(count: int) -> None:
    """Ends itself in the middle of a record."""
    client = connected()
    client.calls(count)
    client.place(encode(Kind.CALL)[:20])
    os.kill(os.getpid(), signal.SIGKILL)


def garbage(count: int) -> None:
    """Records, then what is none; goes on until its input ends."""
    client = connected()
    client.calls(count)
    client.write(b"\xff" * 64)
    sys.stdin.read()


def ruined(count: int) -> None:
    """Records, then a head that cannot be."""
    client = connected()
    client.calls(count)
    client.set("head", 1 << 60)
    sys.stdin.read()


def full(_: int) -> None:
    """Fills the ring as far as it goes, says how many records that were, and ends."""
    client = connected()
    while client.room() > (1 << 18) + 200:
        client.write(client.piece(1 << 18))
    say(str(client.sequence))


def wait(count: int) -> None:
    """Records, a word, and after the input's end as many again."""
    client = connected()
    client.calls(count)
    say("ready")
    sys.stdin.read()
    client.calls(count)


def large(count: int) -> None:
    """Records of the largest size, so that the ring goes round."""
    client = connected()
    for _ in range(count):
        client.write(client.piece(lib.WIRE_LARGEST_RECORD - ffi.sizeof("struct wire_data")))


def stopped_parent(count: int) -> None:
    """Stops its parent, which reads, fills the ring, and lets it go on."""
    client = connected()
    client.calls(count)
    os.kill(os.getppid(), signal.SIGSTOP)
    while client.room() > (1 << 18) + 200 and client.sequence < 400:
        client.write(client.piece(1 << 18))
    os.kill(os.getppid(), signal.SIGCONT)
    say(str(client.sequence))


def lossy(count: int) -> None:
    """Records, some of which are lost, then an epoch."""
    client = connected()
    client.calls(count)
    client.set("lost", 5)
    client.write(encode(Kind.EPOCH, head=Head(sequence=client.sequence + 5), epoch=1, lost=5))


def outlived(count: int) -> None:
    """Leaves a child behind that has written records, and writes as many again after the input's end."""
    ready, begun = os.pipe()
    if os.fork():
        os.read(ready, 1)
        os._exit(0)
    os.setsid()
    client = connected()
    client.calls(count)
    say("ready")
    os.write(begun, b"x")
    sys.stdin.read()
    client.calls(count)


MODES: dict[str, Callable[[int], None]] = {
    mode.__name__: mode for mode in (calls, many, fork, killed, garbage, ruined, full, wait, large, stopped_parent,
                                     lossy, outlived)
}

if __name__ == "__main__":
    MODES[sys.argv[1]](int(sys.argv[2]) if len(sys.argv) > 2 else 0)
