"""The relay of one program: takes records from its ring and sends them on with ZeroMQ, in a process of its own, which
:mod:`shim.listen` starts.

Standard input has one line of JSON, see :class:`Configuration`, and stays open as long as who started it lives. The
relay ends when its program has ended and all that it wrote has been received, when the reader wants no more, or with
its parent.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket as socket_module
import sys
import time
from dataclasses import asdict, dataclass

import zmq

from shim.errors import WireError
from shim.layout import lib
from shim.messages import BYE, batch
from shim.ring import Ring

MOST = 1 << 20
"""Bytes of records in a message, unless one record has more."""
FULL = 1 << 18
PAUSE_SECONDS = 0.001
"""After a message of fewer bytes than ``FULL``, so that records of a busy program come in few messages."""
WAIT_SECONDS = 0.1
HIGH_WATER = 2
"""Messages that wait on each side: a reader that stands still soon stops the relay, and records stay in the ring."""


@dataclass(frozen=True)
class Configuration:
    """``number`` is the program's process. Keys as ZeroMQ writes them, empty without encryption: the reader's public
    one, the relay's own two."""

    number: int
    client: int
    endpoint: str
    server_key: str = ""
    public_key: str = ""
    secret_key: str = ""

    def line(self) -> bytes:
        """What the relay reads."""
        return json.dumps(asdict(self)).encode() + b"\n"


class ParentEnded(Exception):
    """Nobody is there to send to."""


class NoMoreWanted(Exception):
    """The reader has said so, or has received the last message."""


def ready(descriptor: int) -> bool:
    """Whether a descriptor has something to read, or its other end is closed."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(0))


class Relay:
    """Sends a ring's records over a socket; ``process`` and ``parent`` are descriptors that become ready when the
    program and the parent end."""

    def __init__(self, ring: Ring, socket: zmq.Socket[bytes], told: Configuration, process: int, parent: int) -> None:
        self._ring, self._socket, self._told, self._process, self._parent = ring, socket, told, process, parent
        self._number = 0

    def run(self) -> None:
        """Until the program has ended and the reader has all. Raises ParentEnded and NoMoreWanted."""
        while True:
            ended = ready(self._process)  # asked first: whatever it wrote is there now
            try:
                data = self._ring.take(MOST)
            except WireError:
                self._send(b"", trouble=lib.WIRE_MALFORMED_RING)
                break
            if data:
                self._send(data)
                if len(data) < FULL:
                    time.sleep(PAUSE_SECONDS)
            elif ended:
                self._send(b"", last=1)
                break
            else:
                self._ring.wait(self._process, self._parent, round(WAIT_SECONDS * 1e6))
                self._look()
        while True:
            self._look(WAIT_SECONDS)

    def _look(self, seconds: float = 0) -> None:
        """What the reader or the parent's end have to say."""
        if self._socket.poll(round(seconds * 1000), zmq.POLLIN) and self._socket.recv(zmq.NOBLOCK) == BYE:
            raise NoMoreWanted
        if ready(self._parent):
            raise ParentEnded

    def _send(self, data: bytes, last: int = 0, trouble: int = 0) -> None:
        """Hand a message to ZeroMQ, then its room back to the program."""
        lost = self._ring.lost
        head = batch(client=self._told.client, process=self._told.number, number=self._number,
                     position=self._ring.position, bytes=len(data), lost=lost, ticks=lib.ticks(),
                     nanoseconds=time.time_ns(), last=last, trouble=trouble)
        while not self._socket.poll(round(WAIT_SECONDS * 1000), zmq.POLLOUT):
            self._look()
        self._socket.send_multipart((head, data), zmq.NOBLOCK)
        self._number += 1
        self._ring.advance(len(data))


def main() -> int:
    """The exit status: 0 when all was received, 1 when it ended before."""
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    context = zmq.Context()
    line = socket_module.socket(fileno=sys.stdin.fileno())
    message, descriptors, _, _ = socket_module.recv_fds(line, MOST, 2)
    if not message:
        return 1
    told = Configuration(**json.loads(message))
    memory, process = descriptors
    socket = context.socket(zmq.DEALER)
    socket.setsockopt(zmq.IDENTITY, identity(told.client))
    socket.set_hwm(HIGH_WATER)
    socket.setsockopt(zmq.LINGER, 0)
    if told.server_key:
        socket.curve_serverkey = told.server_key.encode()
        socket.curve_publickey = told.public_key.encode()
        socket.curve_secretkey = told.secret_key.encode()
    try:
        with Ring(memory) as ring:
            os.close(memory)
            socket.connect(told.endpoint)
            Relay(ring, socket, told, process, line.fileno()).run()
    except NoMoreWanted:
        return 0
    except ParentEnded:
        return 1
    finally:
        socket.close()
        context.term()
    return 0


def identity(client: int) -> bytes:
    """What a client's relay is called by ZeroMQ."""
    return f"client-{client}".encode()

