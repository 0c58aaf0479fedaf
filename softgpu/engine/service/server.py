"""The loop of the compile service: takes requests from clients and passes them to workers. One thread, no waiting."""

from __future__ import annotations

import hashlib
import json
import os
import selectors
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

from softgpu.engine.service.pool import Job, Pool
from softgpu.engine.service.protocol import (
    Frame,
    FrameReader,
    Kind,
    ProtocolError,
    Request,
    Status,
    decode,
    peer_of,
    subject,
)
from softgpu.engine.version import engine_version


class _Client:
    """A connection: reads one request at a time, writes its reply, and so on until the client closes it."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.reader = FrameReader()
        self.unsent = b""
        self.last = False  # close when everything is sent

    def send(self) -> None:
        """Send what the socket takes now."""
        with suppress(BlockingIOError):
            self.unsent = self.unsent[self.connection.send(self.unsent):]


class Server:
    """Serves a listening socket until nothing was asked for ``idle`` seconds. ``body`` is what a worker runs."""

    def __init__(self, path: Path, listener: socket.socket, body: Callable[[socket.socket], None], idle: float,
                 workers: int) -> None:
        self._path = path
        self._listener = listener
        self._idle = idle
        self._selector = selectors.DefaultSelector()
        self._pool = Pool(body, workers, self._watch, self._selector.unregister)
        self._clients: set[_Client] = set()
        self._jobs: dict[bytes, list[_Client]] = {}
        self._heard = time.monotonic()
        listener.setblocking(False)
        self._watch(listener, self._accept)

    def _watch(self, watched: socket.socket, callback: Callable[[], None]) -> None:
        self._selector.register(watched, selectors.EVENT_READ, callback)

    def serve(self) -> None:
        """Run until idle. The socket's name goes first, and who was already connected then is still answered."""
        try:
            while not self._is_idle():
                self._turn(max(self._heard + self._idle - time.monotonic(), 0.01))
            self._path.unlink(missing_ok=True)
            self._turn(0)
            while self._pool.busy or any(client.unsent for client in self._clients):
                self._turn(1)
        finally:
            self._pool.close()
            for client in self._clients:
                client.connection.close()

    def _is_idle(self) -> bool:
        return not self._pool.busy and time.monotonic() - self._heard >= self._idle

    def _turn(self, seconds: float) -> None:
        for key, _ in self._selector.select(seconds):
            key.data()

    def _accept(self) -> None:
        with suppress(OSError):
            connection, _ = self._listener.accept()
            if peer_of(connection).user != os.geteuid():
                connection.close()
                return
            connection.setblocking(False)
            client = _Client(connection)
            self._clients.add(client)
            self._watch(connection, partial(self._ready, client))

    def _ready(self, client: _Client) -> None:
        """The client sent something, or can take more of a reply, or went away."""
        try:
            if client.unsent:
                client.send()
            else:
                self._read(client)
        except OSError:
            self._drop(client)
            return
        self._settle(client)

    def _read(self, client: _Client) -> None:
        data = client.connection.recv(1 << 20)
        self._heard = time.monotonic()
        if not data:
            client.last = True
            return
        try:
            frame = client.reader.feed(data)
            if frame:
                self._asked(client, frame)
        except ProtocolError as error:
            client.last = True
            self._reply(client, Frame(Status.REFUSED, str(error).encode()))

    def _asked(self, client: _Client, frame: Frame) -> None:
        if any(client in waiting for waiting in self._jobs.values()):
            raise ProtocolError("a request came before the last one was answered")
        if frame.kind == Kind.PING:
            about = {"process": os.getpid(), "engine": engine_version(), "workers": len(self._pool.workers)}
            self._reply(client, Frame(Status.DONE, json.dumps(about).encode()))
        elif frame.kind in set(Kind):
            request = decode(frame.kind, frame.payload)
            key = hashlib.sha256(bytes([frame.kind]) + frame.payload).digest()
            if key in self._jobs:
                self._jobs[key].append(client)
                return
            self._jobs[key] = [client]
            module = hashlib.sha256(request.ptx).digest() if isinstance(request, Request) else b""
            self._pool.submit(Job(frame, subject(frame.kind, request), module, partial(self._done, key)))
        else:
            raise ProtocolError(f"request {frame.kind} is not known")

    def _done(self, key: bytes, reply: Frame) -> None:
        self._heard = time.monotonic()
        for client in self._jobs.pop(key):
            if client in self._clients:
                self._reply(client, reply)
                self._settle(client)

    def _reply(self, client: _Client, reply: Frame) -> None:
        client.unsent = reply.encode()
        try:
            client.send()
        except OSError:
            client.unsent, client.last = b"", True

    def _settle(self, client: _Client) -> None:
        """Wait for what the client's state needs next, or let it go."""
        if client.last and not client.unsent:
            self._drop(client)
        else:
            wanted = selectors.EVENT_WRITE if client.unsent else selectors.EVENT_READ
            self._selector.modify(client.connection, wanted, partial(self._ready, client))

    def _drop(self, client: _Client) -> None:
        if client in self._clients:
            self._clients.remove(client)
            self._selector.unregister(client.connection)
            client.connection.close()
