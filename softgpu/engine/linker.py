"""Links one relocatable object of LLVM into a shared object.

A kernel's object is a special case that leaves little of a linker's work: one input, one exported symbol, no data that
changes, and nothing from outside but a few functions of the C library. The image is what a linker would make of it: a
read-only segment, one with code, and one that is read-only after relocation. File offsets and addresses of a segment
agree modulo the page size, so that no page of the file is padding.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

from softgpu.engine import elf
from softgpu.engine.elf import Relocatable, Section
from softgpu.engine.errors import CompileError

EXPORTED = "softgpu_kernel"

LIBRARIES = {
    **dict.fromkeys(("memcpy", "memmove", "memset"), "libc.so.6"),
    **dict.fromkeys(("fmod", "fmodf", "round", "roundf"), "libm.so.6"),
}
"""The functions that code may call by name, with their library: those with one right result."""

_PAGE = 4096
_PROGRAMS = 7
_STUB = struct.Struct("<BBixx")  # jmp *slot(%rip), and padding
_READ, _READ_EXECUTE, _READ_WRITE = 4, 5, 6


@dataclass
class Segment:
    """A part of the image with one permission; ``address`` is that of its first byte."""

    offset: int
    address: int
    data: bytearray = field(default_factory=bytearray)

    def put(self, data: bytes, align: int = 16) -> int:
        """Append bytes at the next aligned address, and return that."""
        self.data += bytes(-(self.address + len(self.data)) % align)
        self.data += data
        return self.address + len(self.data) - len(data)

    def replace(self, address: int, data: bytes) -> None:
        self.data[address - self.address:address - self.address + len(data)] = data

    @property
    def end(self) -> int:
        """Offset in the file of the byte after the last."""
        return self.offset + len(self.data)


class _Strings(bytearray):
    def intern(self, name: str) -> int:
        """Append a name and return its offset."""
        self += name.encode() + b"\0"
        return len(self) - len(name) - 1


class _Link:
    """The making of one image."""

    def __init__(self, data: bytes) -> None:
        self.object = Relocatable(data)
        used = {r.symbol for r in self.object.relocations}
        self.imports = sorted({self.object.symbols[i].name for i in used if self.is_import(i)})
        self.check()
        self.slot_symbols = sorted({
            r.symbol for r in self.object.relocations
            if r.kind in elf.R_GOT or (self.is_import(r.symbol) and r.kind != elf.R_64)
        })  # fmt: skip
        words = sum(r.kind == elf.R_64 for r in self.object.relocations)
        self.readable = Segment(0, 0, bytearray(elf.HEADER.size + _PROGRAMS * elf.PROGRAM.size))
        self.symbols_at = self.readable.put(bytes((2 + len(self.imports)) * elf.SYMBOL.size))
        self.relocations_at = self.readable.put(bytes((len(self.slot_symbols) + words) * elf.RELA.size))
        self.relocations: list[tuple[int, int, int]] = []

    def is_import(self, symbol: int) -> bool:
        return self.object.symbols[symbol].section == 0

    def check(self) -> None:
        """Raise :class:`CompileError` for what this linker, or a kernel, does not do."""
        if unknown := [name for name in self.imports if name not in LIBRARIES]:
            raise CompileError(f"the kernel calls what it may not: {', '.join(unknown)}")
        for section in self.object.loaded(elf.WRITE) + self.object.loaded(elf.WRITE | elf.EXECUTE):
            if not section.name.startswith(".data.rel.ro"):
                raise CompileError(f"the kernel has data that changes, in {section.name}")
        for section in self.object.sections:
            if section.flags & elf.ALLOC and (section.flags & elf.THREAD_LOCAL or section.align > _PAGE):
                raise CompileError(f"the kernel has data of a kind that is not linked, in {section.name}")
        for symbol in self.object.symbols:
            if symbol.section == elf.COMMON or symbol.kind == elf.INDIRECT_FUNCTION:
                raise CompileError(f"the kernel has a symbol of a kind that is not linked: {symbol.name}")
        for relocation in self.object.relocations:
            if relocation.kind not in (elf.R_64, elf.R_PC32, elf.R_PLT32, elf.R_PC64, *elf.R_GOT):
                raise CompileError(f"the kernel needs a relocation of type {relocation.kind}")
            if relocation.kind == elf.R_64 and not relocation.section.flags & elf.WRITE:
                raise CompileError(f"the kernel has an absolute address in {relocation.section.name}")

    def image(self) -> bytes:
        """The shared object."""
        readable = self.readable
        self.place(readable, self.object.loaded(0))
        unwind = self.unwind_header()
        strings, hashes, names = self.names()
        strings_at, hashes_at = readable.put(strings), readable.put(hashes)
        code = Segment(readable.end, readable.end + _PAGE)
        self.place(code, self.object.loaded(elf.EXECUTE))
        self.stubs_at = code.put(bytes(len(self.imports) * _STUB.size))
        fixed = Segment(code.end, code.end + 2 * _PAGE)
        self.place(fixed, self.object.loaded(elf.WRITE))
        self.relocate(code, fixed)
        relative_first = sorted(self.relocations, key=lambda entry: entry[1] != elf.R_RELATIVE)
        table = b"".join([elf.RELA.pack(*entry) for entry in relative_first])
        readable.replace(self.relocations_at, table)
        readable.replace(self.symbols_at, self.symbol_table(names))
        needed = sorted({LIBRARIES[name] for name in self.imports})
        tags = [(1, names[library]) for library in needed] + [
            (4, hashes_at), (5, strings_at), (6, self.symbols_at), (10, len(strings)), (11, elf.SYMBOL.size),
            (7, self.relocations_at), (8, len(table)), (9, elf.RELA.size), (30, 8), (0x6FFFFFFB, 1), (0, 0),
        ]  # fmt: skip  # NEEDED; HASH, STRTAB, SYMTAB, STRSZ, SYMENT, RELA, RELASZ, RELAENT, bind now twice; end
        dynamic = b"".join([struct.pack("<QQ", *tag) for tag in tags])
        return self.assemble(code, fixed, (fixed.put(dynamic), len(dynamic)), unwind)

    def place(self, segment: Segment, sections: list[Section]) -> None:
        """Put sections into a segment, unwind tables last: what follows them is their end."""
        for section in sorted(sections, key=lambda s: (s.name == ".eh_frame", -s.align)):
            section.address = segment.put(self.object.contents(section), section.align)

    def unwind_header(self) -> int:
        """Address of the header that lets debuggers find the unwind tables (without an index); 0 without tables."""
        frames = [s for s in self.object.sections if s.name == ".eh_frame" and s.size]
        if not frames:
            return 0
        self.readable.put(bytes(4), 1)
        at = self.readable.put(bytes(8), 4)
        self.readable.replace(at, struct.pack("<BBBBi", 1, 0x1B, 0xFF, 0xFF, frames[0].address - at - 4))
        return at

    def names(self) -> tuple[bytes, bytes, dict[str, int]]:
        """The dynamic strings, the hash table (one bucket with all symbols in its chain), and offsets by name."""
        strings = _Strings(1)
        symbols = [EXPORTED, *self.imports]
        offsets = {name: strings.intern(name) for name in [*symbols, *{LIBRARIES[name] for name in self.imports}]}
        count = 1 + len(symbols)
        return bytes(strings), struct.pack(f"<{3 + count}I", 1, count, 1, 0, *range(2, count), 0), offsets

    def address_of(self, symbol: int) -> int:
        found = self.object.symbols[symbol]
        return found.value + (0 if found.section == elf.ABSOLUTE else self.object.sections[found.section].address)

    def stub_of(self, symbol: int) -> int:
        return self.stubs_at + self.imports.index(self.object.symbols[symbol].name) * _STUB.size

    def word(self, at: int, symbol: int, addend: int) -> None:
        """Have the loader make the word at an address the symbol's address plus the addend."""
        if self.is_import(symbol):
            number = 2 + self.imports.index(self.object.symbols[symbol].name)
            self.relocations.append((at, number << 32 | elf.R_64, addend))
        else:
            self.relocations.append((at, elf.R_RELATIVE, self.address_of(symbol) + addend))

    def relocate(self, code: Segment, fixed: Segment) -> None:
        """Make the address slots and stubs, and change code and data for the addresses that everything now has."""
        slots: dict[int, int] = {}
        for symbol in self.slot_symbols:
            slots[symbol] = fixed.put(bytes(8), 8)
            self.word(slots[symbol], symbol, 0)
            if self.is_import(symbol):
                stub = self.stub_of(symbol)
                code.replace(stub, _STUB.pack(0xFF, 0x25, slots[symbol] - stub - 6))
        for r in self.object.relocations:
            at = r.section.address + r.offset
            if r.kind == elf.R_64:
                self.word(at, r.symbol, r.addend)
                continue
            if r.kind in elf.R_GOT:
                target = slots[r.symbol]
            else:
                target = self.stub_of(r.symbol) if self.is_import(r.symbol) else self.address_of(r.symbol)
            segment = code if r.section.flags & elf.EXECUTE else fixed if r.section.flags & elf.WRITE else self.readable
            segment.replace(at, struct.pack("<q" if r.kind == elf.R_PC64 else "<i", target + r.addend - at))

    def symbol_table(self, names: dict[str, int]) -> bytes:
        """The dynamic symbols: the exported one, then the imported functions."""
        found = [i for i, s in enumerate(self.object.symbols) if s.name == EXPORTED and s.binding == elf.GLOBAL_BINDING]
        if not found or self.is_import(found[0]):
            raise CompileError(f"the kernel's module does not define {EXPORTED}")
        size, info = self.object.symbols[found[0]].size, elf.GLOBAL_BINDING << 4
        exported = elf.SYMBOL.pack(names[EXPORTED], info | elf.OBJECT_SYMBOL, 0, 1, self.address_of(found[0]), size)
        imported = [elf.SYMBOL.pack(names[name], info | elf.FUNCTION_SYMBOL, 0, 0, 0, 0) for name in self.imports]
        return b"".join([bytes(elf.SYMBOL.size), exported, *imported])

    def assemble(self, code: Segment, fixed: Segment, dynamic: tuple[int, int], unwind: int) -> bytes:
        """Headers, segments, and a table of the functions for profilers and debuggers."""
        pages = len(fixed.data) + -(fixed.address + len(fixed.data)) % _PAGE  # whole pages can be protected
        programs = [
            *[(1, flags, s.offset, s.address, len(s.data), len(s.data), _PAGE)
              for flags, s in ((_READ, self.readable), (_READ_EXECUTE, code))],
            (1, _READ_WRITE, fixed.offset, fixed.address, len(fixed.data), pages, _PAGE),
            (2, _READ_WRITE, dynamic[0] - fixed.address + fixed.offset, dynamic[0], dynamic[1], dynamic[1], 8),
            (0x6474E552, _READ, fixed.offset, fixed.address, len(fixed.data), pages, 1),  # GNU_RELRO
            (0x6474E551, _READ_WRITE, 0, 0, 0, 0, 16),  # GNU_STACK
            (0x6474E550 if unwind else 0, _READ, unwind, unwind, 8, 8, 4),  # GNU_EH_FRAME
        ]  # fmt: skip
        strings, table = _Strings(1), bytearray(elf.SYMBOL.size)
        sections = [strings.intern(name) for name in (".text", ".symtab", ".strtab")]
        for index, symbol in enumerate(self.object.symbols):
            if symbol.kind == elf.FUNCTION_SYMBOL and symbol.section:
                name = strings.intern(symbol.name)
                table += elf.SYMBOL.pack(name, elf.FUNCTION_SYMBOL, 0, 1, self.address_of(index), symbol.size)
        image = bytearray().join([self.readable.data, code.data, fixed.data])
        image += bytes(-len(image) % 8)
        headers = [
            (0,) * 10,
            (sections[0], 1, elf.ALLOC | elf.EXECUTE, code.address, code.offset, len(code.data), 0, 0, 1, 0),
            (sections[1], 2, 0, 0, len(image), len(table), 3, len(table) // elf.SYMBOL.size, 8, elf.SYMBOL.size),
            (sections[2], 3, 0, 0, len(image) + len(table), len(strings), 0, 0, 1, 0),
        ]
        image += table + strings
        image += bytes(-len(image) % 8)
        image[:elf.HEADER.size] = elf.HEADER.pack(
            elf.IDENTITY, elf.SHARED, elf.X86_64, 1, 0, elf.HEADER.size, len(image), 0, elf.HEADER.size,
            elf.PROGRAM.size, len(programs), elf.SECTION.size, len(headers), 3,
        )  # fmt: skip
        for index, (kind, flags, offset, address, *rest) in enumerate(programs):
            at = elf.HEADER.size + index * elf.PROGRAM.size
            elf.PROGRAM.pack_into(image, at, kind, flags, offset, address, address, *rest)
        return bytes(image + b"".join([elf.SECTION.pack(*header) for header in headers]))


def shared_object(relocatable: bytes) -> bytes:
    """The shared object that an object file of LLVM makes: exports ``softgpu_kernel``, needs at most libc and libm.

    Raises :class:`CompileError` for an object that calls other functions (naming them), has data that changes, or
    uses what no kernel needs (thread-local data, absolute addresses in code).
    """
    return _Link(relocatable).image()
