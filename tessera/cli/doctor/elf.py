"""What executables and libraries say of themselves: files in the format ELF, 64 bits, little-endian.

Files are only read, never loaded. What they say about where things are is checked against their size.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tessera.errors import TesseraError

X86_64 = 62
_PROGRAM, _SECTION = struct.Struct("<II6Q"), struct.Struct("<IIQQQQIIQQ")
_INTERPRETER = 3  # kind of a program header
_DYNAMIC, _SYMBOLS = 6, 11  # kinds of section headers
_NEEDED = 1
_LARGEST_PART = 256 << 20


class ElfError(TesseraError):
    """A file that is no ELF file for 64 bits, or a malformed one."""


@dataclass(frozen=True)
class Elf:
    """``machine``: its number, 62 for x86-64. ``interpreter``: the loader's path; None for what no loader starts, such
    as a program that is linked statically. ``needed``: names of libraries. ``defines`` and ``imports``: names of its
    dynamic symbols."""

    machine: int
    interpreter: str | None = None
    needed: tuple[str, ...] = ()
    defines: frozenset[str] = field(default=frozenset(), repr=False)
    imports: frozenset[str] = field(default=frozenset(), repr=False)


class _File:
    def __init__(self, path: Path, descriptor: int) -> None:
        self.path, self.descriptor = path, descriptor

    def wrong(self, what: str) -> ElfError:
        return ElfError(f"{self.path}: {what}")

    def part(self, offset: int, size: int) -> bytes:
        if offset + size > os.fstat(self.descriptor).st_size or size > _LARGEST_PART:
            raise self.wrong("it is cut off, or malformed")
        return os.pread(self.descriptor, size, offset)

    def rows(self, form: struct.Struct, offset: int, size: int, count: int) -> list[tuple[int, ...]]:
        """The entries of a table that have at least the size of ``form``."""
        if count and size < form.size:
            raise self.wrong(f"its entries of {size} bytes are too small")
        data = self.part(offset, size * count)
        return [form.unpack_from(data, k * size) for k in range(count)]


def read(path: Path) -> Elf:
    """Raises ElfError, and OSError if the file cannot be read."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        return _read(_File(path, descriptor))
    finally:
        os.close(descriptor)


def _read(file: _File) -> Elf:
    head = os.pread(file.descriptor, 64, 0)
    if head[:4] != b"\x7fELF":
        raise file.wrong("it is no ELF file")
    if len(head) < 64:
        raise file.wrong("it is cut off")
    machine: int = struct.unpack_from("<H", head, 18)[0]
    if head[4:6] != b"\x02\x01":
        return Elf(machine)
    programs_at, sections_at = struct.unpack_from("<2Q", head, 32)
    program_size, programs, section_size, sections = struct.unpack_from("<4H", head, 54)
    interpreter = None
    for kind, _, offset, _, _, size, *_ in file.rows(_PROGRAM, programs_at, program_size, programs):
        if kind == _INTERPRETER:
            interpreter = os.fsdecode(file.part(offset, size).rstrip(b"\0"))
    table = file.rows(_SECTION, sections_at, section_size, sections)
    needed: list[str] = []
    defined: set[str] = set()
    undefined: set[str] = set()
    for _, kind, _, _, offset, size, link, *_ in table:
        if kind not in (_DYNAMIC, _SYMBOLS):
            continue
        if link >= len(table):
            raise file.wrong("it is malformed: a section has no names")
        data, names = file.part(offset, size), file.part(table[link][4], table[link][5])
        if kind == _DYNAMIC:
            needed += [_name(names, value) for tag, value in _pairs(data) if tag == _NEEDED]
            continue
        for name, _, _, section, _, _ in struct.iter_unpack("<IBBHQQ", data[:len(data) // 24 * 24]):
            (defined if section else undefined).add(_name(names, name))
    return Elf(machine, interpreter, tuple(needed), frozenset(defined), frozenset(undefined - {""}))


def _pairs(data: bytes) -> Iterator[tuple[int, int]]:
    yield from struct.iter_unpack("<2Q", data[:len(data) // 16 * 16])


def _name(names: bytes, offset: int) -> str:
    end = names.find(b"\0", offset)
    return os.fsdecode(names[offset:end]) if 0 <= offset < len(names) and end >= 0 else ""
