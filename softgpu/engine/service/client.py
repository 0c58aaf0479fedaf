"""Asks the compile service from Python. Each request has its own connection, so threads may share a client."""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from softgpu.engine.errors import CompileError, EngineError, ServiceError
from softgpu.engine.options import Options
from softgpu.engine.service.paths import socket_path
from softgpu.engine.service.protocol import (
    FleetRequest,
    Frame,
    Kind,
    LinkRequest,
    Request,
    Status,
    UnpackRequest,
    peer_of,
    receive,
)
from softgpu.engine.service.start import START_SECONDS, start
from softgpu.engine.version import engine_version
from tessera.packed import Packing
from tessera.private import cache_folder

COMPILE_SECONDS = 120.0
PARTING_SECONDS = 1.0  # for which a process that is about to be gone may still take connections


class InvalidModule(EngineError):
    """The service found no valid PTX, or no such kernel in it."""


class UnsupportedByService(EngineError):
    """The service's text about what the engine does not compile: kernel, line and mnemonic."""


_ERRORS: dict[int, type[EngineError]] = {
    Status.UNSUPPORTED: UnsupportedByService,
    Status.INVALID: InvalidModule,
    Status.FAILED: CompileError,
    Status.REFUSED: ServiceError,
}


class Client:
    """The service of this user and engine version, started when first needed.

    ``seconds`` is the deadline of a request, ``cache`` the folder for results; ``extra`` are further arguments for a
    service that is started.
    """

    def __init__(self, seconds: float = COMPILE_SECONDS, cache: Path | None = None, extra: Sequence[str] = ()) -> None:
        self.seconds = seconds
        self.cache = cache or cache_folder()
        self.extra = extra

    def compile(self, ptx: bytes, kernel: str, options: Options | None = None) -> Path:
        """The shared object of a kernel. Raises what the service reports, and :class:`ServiceError` for the rest."""
        return Path(os.fsdecode(self._ask(Kind.COMPILE, self._request(ptx, kernel, options or Options()))))

    def describe(self, ptx: bytes) -> dict[str, Any]:
        """What a module consists of, as the engine's ``description`` says it; errors as :meth:`compile`."""
        return dict(json.loads(self._ask(Kind.DESCRIBE, self._request(ptx, "", Options()))))

    def unpack(self, packed: bytes, packing: Packing, size: int) -> bytes:
        """The ``size`` bytes that a packed image stands for; errors as :meth:`compile`."""
        engine, cache = bytes.fromhex(engine_version()), os.fsencode(self.cache)
        return self._ask(Kind.UNPACK, UnpackRequest(engine, packing, size, packed, cache).encode())

    def link(self, texts: Sequence[bytes]) -> bytes:
        """Several PTX texts as one, none of them with a zero byte; errors as :meth:`compile`."""
        return self._ask(Kind.LINK, LinkRequest(bytes.fromhex(engine_version()), tuple(texts)).encode())

    def fleet(self, path: Path) -> str:
        """The text of the fleet in a file; errors as :meth:`compile`."""
        engine = bytes.fromhex(engine_version())
        return os.fsdecode(self._ask(Kind.FLEET, FleetRequest(engine, os.fsencode(path.absolute())).encode()))

    def ping(self) -> dict[str, Any]:
        """The service's process id, engine version and number of workers."""
        return dict(json.loads(self._ask(Kind.PING, b"")))

    def _request(self, ptx: bytes, kernel: str, options: Options) -> bytes:
        return Request(bytes.fromhex(engine_version()), ptx, os.fsencode(self.cache), kernel, options).encode()

    def _ask(self, kind: Kind, payload: bytes) -> bytes:
        """One request; once more with a new service if this one ends before it answers.

        One that is about to be gone may still take connections for a moment; those are not counted.
        """
        request = Frame(kind, payload).encode()
        engine = engine_version()
        ended: set[int] = set()
        parting = 0.0
        while len(ended) < 2:
            with start(socket_path(engine), engine, time.monotonic() + START_SECONDS, self.extra) as connection:
                peer = peer_of(connection)
                if peer.user != os.geteuid():
                    raise ServiceError("the compile service's socket belongs to another user")
                reply = self._exchange(connection, request)
            if reply is not None:
                if reply.kind == Status.DONE:
                    return reply.payload
                raise _ERRORS.get(reply.kind, ServiceError)(reply.payload.decode(errors="replace"))
            if peer.process not in ended:
                parting = time.monotonic() + PARTING_SECONDS
                ended.add(peer.process)
            elif time.monotonic() > parting:
                break
            time.sleep(0.01)
        raise ServiceError("the compile service ended before it answered, twice")

    def _exchange(self, connection: socket.socket, request: bytes) -> Frame | None:
        """The reply; None if the service is gone."""
        deadline = time.monotonic() + self.seconds
        connection.settimeout(self.seconds)
        try:
            connection.sendall(request)
            return receive(connection, deadline)
        except TimeoutError:
            raise ServiceError(f"the compile service did not answer within {self.seconds:g} seconds") from None
        except OSError:
            return None
