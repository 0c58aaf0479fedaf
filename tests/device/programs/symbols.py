"""The functions that a shared library exports, read from its file."""

from __future__ import annotations

import struct
from pathlib import Path

DYNAMIC_SYMBOLS = 11
"""SHT_DYNSYM."""
FUNCTION, LOCAL = 2, 0
"""STT_FUNC, STB_LOCAL."""


def exported(path: Path) -> list[str]:
    """Of an ELF file of 64 bits. Raises ValueError when it has no table of symbols."""
    data = path.read_bytes()
    (start,) = struct.unpack_from("<Q", data, 40)
    size, count = struct.unpack_from("<HH", data, 58)
    heads = [struct.unpack_from("<IIQQQQIIQQ", data, start + number * size) for number in range(count)]
    for _, kind, _, _, offset, length, link, _, _, entry in heads:
        if kind == DYNAMIC_SYMBOLS:
            names = heads[link][4]
            found = [struct.unpack_from("<IBBHQQ", data, offset + at) for at in range(0, length, entry)]
            return sorted({_text(data, names + name) for name, info, _, section, _, _ in found
                           if section and info & 15 == FUNCTION and info >> 4 != LOCAL})
    raise ValueError(f"{path} has no table of dynamic symbols")


def _text(data: bytes, start: int) -> str:
    return data[start : data.index(b"\0", start)].decode()
