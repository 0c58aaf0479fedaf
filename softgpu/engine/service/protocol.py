"""Frames and messages between the C run-time, the compile service and its workers; all numbers little-endian.

Mirrored by ``runtime/client.c``. A frame is a header of 16 bytes and a payload: magic, protocol version, kind (of a
request) or status (of a reply), and the payload's length. Every length is checked before anything is read or kept.
"""

from __future__ import annotations

import socket
import struct
import time
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

from softgpu.engine.errors import ServiceError
from softgpu.engine.options import Options
from tessera.packed import Packing

MAGIC = 0x56534753  # "SGSV"
VERSION = 1
HEADER = struct.Struct("<IHHQ")
COMPILE_FIELDS = struct.Struct("<32s3IIIIIIQ")  # engine, block, flags, rounding, lengths: kernel, cache, 0, PTX
UNPACK_FIELDS = struct.Struct("<32sIIQQ")  # engine, packing, lengths: cache, unpacked, packed
ENGINE_BYTES = 32
MAX_PTX = 1 << 29
"""Longest text, and longest image, packed or not."""
MAX_PAYLOAD = MAX_PTX + (1 << 20)
MAX_NAME = 1 << 16
MAX_PATH = 4096
COUNTS, LOGS = 2, 4
"""SG_COUNTS and SG_LOGS of the run-time."""


class Kind(IntEnum):
    """What is asked."""

    PING = 1
    COMPILE = 2
    DESCRIBE = 3
    UNPACK = 4
    LINK = 5
    FLEET = 6


class Status(IntEnum):
    """What came of it. The payload of all but DONE is a text for people."""

    DONE = 0
    UNSUPPORTED = 1  # the kernel has an instruction that the engine does not compile
    INVALID = 2  # no PTX, or no such kernel
    FAILED = 3  # a defect of the engine, or no room for the result
    REFUSED = 4  # the request itself: malformed, or from a run-time of another engine version


class ProtocolError(ServiceError):
    """Bytes that are no frame or message of this protocol."""


@dataclass(frozen=True)
class Request:
    """``COMPILE`` or ``DESCRIBE``. ``engine``: version of the engine whose run-time asks, 32 bytes. ``cache``: absolute
    path of the folder for the result, in the file system's encoding. ``kernel`` is empty and the options are not used
    in ``DESCRIBE``."""

    engine: bytes
    ptx: bytes
    cache: bytes
    kernel: str = ""
    options: Options = field(default_factory=Options)

    def encode(self) -> bytes:
        block = self.options.block or (0, 0, 0)
        flags = COUNTS * self.options.counts | LOGS * self.options.logs
        kernel = self.kernel.encode()
        fields = COMPILE_FIELDS.pack(
            self.engine, *block, flags, self.options.rounding, len(kernel), len(self.cache), 0, len(self.ptx)
        )
        return fields + kernel + self.cache + self.ptx


@dataclass(frozen=True)
class UnpackRequest:
    """``UNPACK``: the ``size`` bytes that ``packed`` stands for; ``engine`` and ``cache`` as in :class:`Request`."""

    engine: bytes
    packing: Packing
    size: int
    packed: bytes
    cache: bytes

    def encode(self) -> bytes:
        sizes = (len(self.cache), self.size, len(self.packed))
        return UNPACK_FIELDS.pack(self.engine, self.packing, *sizes) + self.cache + self.packed


@dataclass(frozen=True)
class LinkRequest:
    """``LINK``: one text of several, each with a zero byte behind it. ``engine`` as in :class:`Request`."""

    engine: bytes
    texts: tuple[bytes, ...]

    def encode(self) -> bytes:
        return self.engine + b"".join(text + b"\0" for text in self.texts)


@dataclass(frozen=True)
class FleetRequest:
    """``FLEET``: the text of the fleet in a file; ``path`` is absolute, in the file system's encoding. ``engine`` as in
    :class:`Request`."""

    engine: bytes
    path: bytes

    def encode(self) -> bytes:
        return self.engine + self.path


AnyRequest = Request | UnpackRequest | LinkRequest | FleetRequest


def decode(kind: int, payload: bytes) -> AnyRequest:
    """The request of a kind; :class:`ProtocolError` for anything that ``encode`` does not make."""
    if kind == Kind.LINK:
        return decode_link(payload)
    if kind == Kind.FLEET:
        return decode_fleet(payload)
    return decode_unpack(payload) if kind == Kind.UNPACK else decode_request(payload)


def decode_link(payload: bytes) -> LinkRequest:
    if not ENGINE_BYTES < len(payload) <= ENGINE_BYTES + MAX_PTX or payload[-1]:
        raise ProtocolError("the request has no texts, or texts of a length that is not allowed")
    return LinkRequest(payload[:ENGINE_BYTES], tuple(payload[ENGINE_BYTES:-1].split(b"\0")))


def decode_fleet(payload: bytes) -> FleetRequest:
    path = payload[ENGINE_BYTES:]
    if not path.startswith(b"/") or b"\0" in path or len(path) > MAX_PATH:
        raise ProtocolError("the request's fleet file is not an absolute path")
    return FleetRequest(payload[:ENGINE_BYTES], path)


def decode_unpack(payload: bytes) -> UnpackRequest:
    if len(payload) < UNPACK_FIELDS.size:
        raise ProtocolError("the request is too short")
    engine, packing, paths, size, packed = UNPACK_FIELDS.unpack_from(payload)
    if paths > MAX_PATH or size > MAX_PTX or packed > MAX_PTX:
        raise ProtocolError("the request has a length that is not allowed")
    if UNPACK_FIELDS.size + paths + packed != len(payload):
        raise ProtocolError("the request's lengths do not add up")
    if packing not in set(Packing):
        raise ProtocolError(f"packing {packing} is not known")
    cache = payload[UNPACK_FIELDS.size:UNPACK_FIELDS.size + paths]
    _check_folder(cache)
    return UnpackRequest(engine, Packing(packing), size, payload[UNPACK_FIELDS.size + paths:], cache)


def _check_folder(cache: bytes) -> None:
    if not cache.startswith(b"/") or b"\0" in cache:
        raise ProtocolError("the request's cache folder is not an absolute path")


def decode_request(payload: bytes) -> Request:
    if len(payload) < COMPILE_FIELDS.size:
        raise ProtocolError("the request is too short")
    engine, x, y, z, flags, rounding, names, paths, zero, texts = COMPILE_FIELDS.unpack_from(payload)
    if names > MAX_NAME or paths > MAX_PATH or texts > MAX_PTX or zero:
        raise ProtocolError("the request has a length that is not allowed")
    if COMPILE_FIELDS.size + names + paths + texts != len(payload):
        raise ProtocolError("the request's lengths do not add up")
    if flags & ~(COUNTS | LOGS) or rounding > 1:
        raise ProtocolError("the request has an option that is not known")
    block = (x, y, z)
    if any(block) and (min(block) < 1 or x * y * z > 1024):
        raise ProtocolError(f"the request has an impossible block, {x} x {y} x {z}")
    kernel_at, cache_at = COMPILE_FIELDS.size, COMPILE_FIELDS.size + names
    cache = payload[cache_at:cache_at + paths]
    _check_folder(cache)
    try:
        kernel = payload[kernel_at:cache_at].decode()
    except UnicodeDecodeError:
        raise ProtocolError("the request's kernel name is not UTF-8") from None
    options = Options(block if any(block) else None, bool(flags & COUNTS), bool(flags & LOGS), rounding)
    return Request(engine, payload[cache_at + paths:], cache, kernel, options)


def subject(kind: int, request: AnyRequest) -> str:
    """What a request is about, for errors; empty where these say it themselves."""
    if isinstance(request, FleetRequest):
        return ""
    if not isinstance(request, Request):
        return "link" if isinstance(request, LinkRequest) else "packed image"
    return f"kernel {request.kernel}" if kind == Kind.COMPILE else "module"


@dataclass(frozen=True)
class Frame:
    """``kind`` is a :class:`Kind` or a :class:`Status`, by direction; any number that fits may arrive."""

    kind: int
    payload: bytes

    def encode(self) -> bytes:
        return HEADER.pack(MAGIC, VERSION, self.kind, len(self.payload)) + self.payload


def payload_length(header: bytes) -> tuple[int, int]:
    """Kind and payload length of a header's bytes; :class:`ProtocolError` if they are none."""
    magic, version, kind, length = HEADER.unpack(header)
    if magic != MAGIC or version != VERSION:
        raise ProtocolError("not this protocol, or another version of it")
    if length > MAX_PAYLOAD:
        raise ProtocolError("the message is longer than allowed")
    return kind, length


class FrameReader:
    """Puts frames together from bytes as they come."""

    def __init__(self) -> None:
        self._bytes = bytearray()

    def feed(self, data: bytes) -> Frame | None:
        """Take more bytes; the frame once it is complete. What follows a complete frame is an error: one side speaks
        at a time."""
        self._bytes += data
        if len(self._bytes) < HEADER.size:
            return None
        kind, length = payload_length(bytes(self._bytes[:HEADER.size]))
        if len(self._bytes) < HEADER.size + length:
            return None
        if len(self._bytes) > HEADER.size + length:
            raise ProtocolError("bytes follow the message")
        frame = Frame(kind, bytes(self._bytes[HEADER.size:]))
        self._bytes.clear()
        return frame


def receive(connection: socket.socket, deadline: float | None = None) -> Frame | None:
    """The next frame from a blocking socket; None if the other side closed it before one was complete.

    Raises ``TimeoutError`` past ``deadline`` (of ``time.monotonic``) and :class:`ProtocolError`.
    """
    reader = FrameReader()
    while True:
        if deadline is not None:
            connection.settimeout(max(deadline - time.monotonic(), 0.001))
        data = connection.recv(1 << 20)
        if not data:
            return None
        if frame := reader.feed(data):
            return frame


class Peer(NamedTuple):
    """The process at the other end of a Unix socket, as the kernel knows it."""

    process: int
    user: int
    group: int


def peer_of(connection: socket.socket) -> Peer:
    """Who is at the other end; for a client that is the process that made the listening socket."""
    return Peer(*struct.unpack("<iII", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)))
