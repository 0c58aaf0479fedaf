"""What a worker process does: one request at a time from the service, one reply each.

A worker is a process so that several kernels compile at once (LLVM's binding lets one thread in) and so that a crash of
the compiler costs one kernel and not the service.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import signal
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from softgpu.engine.cache import DESCRIPTION, UNPACKED, ObjectCache, description_key, object_key, unpacked_key
from softgpu.engine.errors import CompileError, ServiceError, UnsupportedKernel
from softgpu.engine.linker import shared_object
from softgpu.engine.merge import merge
from softgpu.engine.options import Options
from softgpu.engine.service.protocol import (
    AnyRequest,
    FleetRequest,
    Frame,
    Kind,
    LinkRequest,
    Request,
    Status,
    UnpackRequest,
    decode,
    receive,
    subject,
)
from softgpu.engine.version import engine_version
from tessera.errors import TesseraError
from tessera.fleet import FleetError, parse_fleet
from tessera.packed import unpack

OTHER_ENGINE = "this library was built for another version of the engine than the one installed: build it again"


class Backend(NamedTuple):
    """The compiler: ``compile_ptx`` makes a relocatable object, ``describe`` plain data for JSON."""

    compile_ptx: Callable[[bytes, str, Options], bytes]
    describe: Callable[[bytes], dict[str, Any]]


def load_backend(name: str = "") -> Backend:
    """The engine, or for tests the functions of another module by its name."""
    compiler = importlib.import_module(name or "softgpu.engine.compiler")
    description = importlib.import_module(name or "softgpu.engine.description")
    return Backend(compiler.compile_ptx, description.describe)


def _compiled(request: Request, backend: Backend, cache: ObjectCache) -> bytes:
    key = object_key(hashlib.sha256(request.ptx).digest(), request.kernel, request.options)
    path = cache.get(key)
    if path is None:
        path = cache.put(key, shared_object(backend.compile_ptx(request.ptx, request.kernel, request.options)))
    return os.fsencode(path)


def _described(request: Request, backend: Backend, cache: ObjectCache) -> bytes:
    key = description_key(hashlib.sha256(request.ptx).digest())
    content = cache.content(key, DESCRIPTION)
    if content is None:
        content = json.dumps(backend.describe(request.ptx), separators=(",", ":"), allow_nan=False).encode()
        cache.put(key, content, DESCRIPTION)
    return content


def _unpacked(request: UnpackRequest, cache: ObjectCache) -> bytes:
    key = unpacked_key(hashlib.sha256(request.packed).digest(), request.packing)
    content = cache.content(key, UNPACKED)
    if content is None or len(content) != request.size:
        content = unpack(request.packed, request.packing, request.size)
        cache.put(key, content, UNPACKED)
    return content


def _fleet(path: Path) -> bytes:
    if path.exists() and not path.is_file():
        raise FleetError(f"fleet file {path} is not a file")  # nobody may have us wait for a pipe
    fleet = parse_fleet(f"@{path}")
    if fleet.real:
        raise FleetError(f"fleet file {path}: the software driver has no real GPUs, as {fleet.gpus[0].name}")
    return os.fsencode(fleet.text)


def answer(frame: Frame, backend: Backend, caches: dict[bytes, ObjectCache]) -> Frame:
    """The reply to a request; every failure is one, with a text that names the kernel."""
    try:
        request = decode(frame.kind, frame.payload)
    except ServiceError as error:
        return Frame(Status.REFUSED, str(error).encode())
    if request.engine.hex() != engine_version():
        return Frame(Status.REFUSED, OTHER_ENGINE.encode())
    what = subject(frame.kind, request)
    try:
        return Frame(Status.DONE, _made(frame.kind, request, backend, caches))
    except UnsupportedKernel as error:
        return _failure(Status.UNSUPPORTED, what, error)
    except CompileError as error:
        return _failure(Status.FAILED, what, error)
    except TesseraError as error:
        return _failure(Status.INVALID, what, error)
    except Exception as error:
        return _failure(Status.FAILED, what, error, f"{type(error).__name__}: ")


def _made(kind: int, request: AnyRequest, backend: Backend, caches: dict[bytes, ObjectCache]) -> bytes:
    if isinstance(request, LinkRequest):
        return merge(request.texts)
    if isinstance(request, FleetRequest):
        return _fleet(Path(os.fsdecode(request.path)))
    if request.cache not in caches:
        caches[request.cache] = ObjectCache(Path(os.fsdecode(request.cache)))
    cache = caches[request.cache]
    if isinstance(request, UnpackRequest):
        return _unpacked(request, cache)
    return (_compiled if kind == Kind.COMPILE else _described)(request, backend, cache)


def _failure(status: Status, what: str, error: Exception, kind: str = "") -> Frame:
    return Frame(status, f"{what}{': ' if what else ''}{kind}{error}".encode(errors="backslashreplace"))


def work(service: socket.socket, backend: Backend, seconds: int) -> None:
    """Answer the service's requests until it closes the connection. A request that takes longer than ``seconds`` ends
    the process by SIGALRM, whatever state the compiler is in."""
    caches: dict[bytes, ObjectCache] = {}
    try:
        while (frame := receive(service)) is not None:
            signal.alarm(seconds)
            reply = answer(frame, backend, caches).encode()
            signal.alarm(0)
            service.sendall(reply)
    except (OSError, ServiceError):
        return  # the service is gone
    finally:
        for cache in caches.values():
            cache.close()
