"""Images made by hand: containers, and machine code of which there is no more than where it says what it was made
from."""

from __future__ import annotations

import struct

PTX, CUBIN = 1, 2
LZ4, ZSTANDARD, ALONE, FAMILY = 0x2000, 0x8000, 0x100000, 0x200000
NAMES = b"\0.note.nv.cuinfo\0.shstrtab\0"


def text(target: int | str = 80, body: str = "ret;", name: str = "k", more: str = "") -> str:
    """A module with one kernel, which has a parameter of 8 bytes."""
    return (f".version 8.0\n.target sm_{target}\n.address_size 64\n{more}\n"
            f".visible .entry {name}(.param .u64 p) {{ .reg .b64 %rd<9>; .reg .b32 %r<9>; {body} }}\n")


def entry(kind: int, payload: bytes, target: int = 80, flags: int = 0, unpacked: int = 0, header: int = 64,
          length: int | None = None) -> bytes:
    """``unpacked``: the payload is packed, and has as many bytes when it is not."""
    fields = (kind, 0x101, header, len(payload) if length is None else length, len(payload) if unpacked else 0, 0, 0, 8,
              target, 0, 0, flags, 0, unpacked)
    return struct.pack("<HHIQIIHHIIIQQQ", *fields) + payload


def ptx(target: int = 80, flags: int = 0, body: str = "ret;") -> bytes:
    suffix = "a" if flags & ALONE else "f" if flags & FAMILY else ""
    return entry(PTX, text(f"{target}{suffix}", body).encode() + bytes(3), target, flags)


def container(*entries: bytes, version: int = 1, header: int = 16, more: int = 0) -> bytes:
    body = b"".join(entries)
    return struct.pack("<4sHHQ", b"\x50\xed\x55\xba", version, header, len(body) + more) + body


def cubin(virtual: int | None, version: int = 2) -> bytes:
    """An ELF file with the note that names a virtual architecture, None: with another note."""
    note = struct.pack("<III12sHHI", 12, 8, 1000, b"NVIDIA Corp\0", version, virtual or 0, 130)
    sections = [(1 if virtual is not None else 16, 64, len(note)), (16, 64 + len(note), len(NAMES))]
    end = 64 + len(note) + len(NAMES)
    head = struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\2\1\1\x41\x08", 2, 190, 1, 0, 0, end, 0, 64, 56, 0, 64, 3, 2)
    table = bytes(64) + b"".join([struct.pack("<IIQQQQIIQQ", name, 7, 0, 0, at, size, 0, 0, 4, 0)
                                  for name, at, size in sections])
    return head + note + NAMES + table


def machine(target: int, virtual: int | None, flags: int = 0) -> bytes:
    return entry(CUBIN, cubin(virtual), target, flags)
