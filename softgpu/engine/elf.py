"""The parts of the ELF format that kernels need (System V gABI chapters 4 and 5, AMD64 supplement 1.0 chapter 4), and
the reader of the relocatable objects that LLVM makes."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from softgpu.engine.errors import CompileError

HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
PROGRAM = struct.Struct("<IIQQQQQQ")
SECTION = struct.Struct("<IIQQQQIIQQ")
SYMBOL = struct.Struct("<IBBHQQ")
RELA = struct.Struct("<QQq")
IDENTITY = b"\x7fELF\x02\x01\x01" + bytes(9)
RELOCATABLE, SHARED, X86_64 = 1, 3, 62

R_64, R_PC32, R_PLT32, R_RELATIVE, R_PC64 = 1, 2, 4, 8, 24
R_GOT = (9, 41, 42)  # GOTPCREL and its relaxable forms, which are used as they are
WRITE, ALLOC, EXECUTE, THREAD_LOCAL = 1, 2, 4, 0x400
SYMTAB, RELA_TABLE, NOBITS = 2, 4, 8
ABSOLUTE, COMMON = 0xFFF1, 0xFFF2
OBJECT_SYMBOL, FUNCTION_SYMBOL, INDIRECT_FUNCTION = 1, 2, 10
GLOBAL_BINDING = 1


@dataclass
class Section:
    """A section of the object: what its header says, and where it comes to lie."""

    name: str
    kind: int
    flags: int
    offset: int
    size: int
    link: int
    info: int
    align: int
    address: int = 0


@dataclass(frozen=True)
class Symbol:
    """A symbol of the object; ``section`` is 0 for one that is defined elsewhere."""

    name: str
    info: int
    section: int
    value: int
    size: int

    @property
    def kind(self) -> int:
        return self.info & 15

    @property
    def binding(self) -> int:
        return self.info >> 4


@dataclass(frozen=True)
class Relocation:
    """A place in a section to change: ``symbol`` is an index into the object's symbols."""

    section: Section
    offset: int
    kind: int
    symbol: int
    addend: int


class Relocatable:
    """A relocatable object, taken apart: ``sections`` and ``symbols`` in the file's order, and all ``relocations`` of
    what is loaded. Raises :class:`CompileError` for anything else than a relocatable x86-64 object."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        header = HEADER.unpack_from(data)
        if data[:6] != IDENTITY[:6] or header[1:3] != (RELOCATABLE, X86_64):
            raise CompileError("not a relocatable x86-64 object")
        start, count, names = header[6], header[12], header[13]
        fields = [SECTION.unpack_from(data, start + i * SECTION.size) for i in range(count)]
        self.sections = [
            Section(self._string(fields[names][4] + f[0]), f[1], f[2], f[4], f[5], f[6], f[7], max(f[8], 1))
            for f in fields
        ]
        self.symbols: list[Symbol] = []
        for table in [s for s in self.sections if s.kind == SYMTAB]:
            strings = self.sections[table.link].offset
            for name, info, _, section, value, size in SYMBOL.iter_unpack(self.contents(table)):
                self.symbols.append(Symbol(self._string(strings + name), info, section, value, size))
        self.relocations = list(self._relocations())

    def _string(self, offset: int) -> str:
        return self._data[offset:self._data.index(b"\0", offset)].decode()

    def _relocations(self) -> Iterator[Relocation]:
        for table in self.sections:
            if table.kind == RELA_TABLE and self.sections[table.info].flags & ALLOC:
                for offset, info, addend in RELA.iter_unpack(self.contents(table)):
                    yield Relocation(self.sections[table.info], offset, info & 0xFFFFFFFF, info >> 32, addend)

    def contents(self, section: Section) -> bytes:
        """A section's bytes; zeros where the file holds none."""
        if section.kind == NOBITS:
            return bytes(section.size)
        return self._data[section.offset:section.offset + section.size]

    def loaded(self, flags: int) -> list[Section]:
        """The sections with exactly these flags (of write and execute) that are in memory at run time."""
        return [s for s in self.sections if s.flags & ALLOC and s.flags & (WRITE | EXECUTE) == flags and s.size]
