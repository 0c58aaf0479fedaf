"""The text of a device printf from its format and the packed argument buffer.

The buffer holds the arguments as C passes variable ones: int and unsigned in 4 bytes, long, long long, pointers and
double in 8, each aligned to its size (CUDA C++ Programming Guide, "Formatted output").
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable

_SPECIFIER = re.compile(rb"%([-+ #0]*)(\*|\d+)?(?:\.(\*|\d*))?(hh|h|ll|l|j|z|t|L)?([diouxXcpaAeEfFgGs%])")

ReadBytes = Callable[[int, int], bytes]
"""Bytes at an offset of the argument buffer, of a size."""


class _Arguments:
    def __init__(self, read: ReadBytes) -> None:
        self.read = read
        self.offset = 0
        self.count = 0

    def take(self, size: int) -> bytes:
        offset = -(-self.offset // size) * size
        self.offset = offset + size
        self.count += 1
        return self.read(offset, size)

    def integer(self, size: int, signed: bool) -> int:
        return int.from_bytes(self.take(size), "little", signed=signed)


def format_output(text: bytes, read: ReadBytes, string: Callable[[int], bytes]) -> tuple[bytes, int]:
    """The formatted text, and how many arguments it took. Unknown specifiers are kept as they stand."""
    arguments = _Arguments(read)
    output = bytearray()
    position = 0
    for found in _SPECIFIER.finditer(text):
        output += text[position:found.start()]
        position = found.end()
        output += _one(found, arguments, string)
    return bytes(output + text[position:]), arguments.count


def _one(found: re.Match[bytes], arguments: _Arguments, string: Callable[[int], bytes]) -> bytes:
    flags, width, precision, length, conversion = found.groups()
    kind = conversion.decode()
    if kind == "%":
        return b"%"
    pattern = flags.decode()
    if width == b"*":
        pattern += str(arguments.integer(4, True))
    elif width:
        pattern += width.decode()
    if precision == b"*":
        given = arguments.integer(4, True)
        pattern += f".{given}" if given >= 0 else ""
    elif precision is not None:
        pattern += f".{precision.decode() or 0}"
    if kind == "s":
        return f"%{pattern}s".encode() % string(arguments.integer(8, False))
    return _number(kind, pattern, length or b"", arguments).encode("latin-1")


def _number(kind: str, pattern: str, length: bytes, arguments: _Arguments) -> str:
    if kind == "p":
        return f"%{pattern}s" % hex(arguments.integer(8, False))
    if kind == "c":
        return f"%{pattern}c" % chr(arguments.integer(4, False) & 0xFF)
    if kind in "aA":
        return _hexadecimal_float(kind, pattern, struct.unpack("<d", arguments.take(8))[0])
    if kind in "eEfFgG":
        number: float = struct.unpack("<d", arguments.take(8))[0]
        return f"%{pattern}{kind}" % number
    size = 8 if length in (b"l", b"ll", b"j", b"z", b"t") else 4
    value = arguments.integer(size, kind in "di")
    if length in (b"h", b"hh"):
        bits = 16 if length == b"h" else 8
        value &= (1 << bits) - 1
        if kind in "di" and value >> (bits - 1):
            value -= 1 << bits
    if kind == "o" and "#" in pattern:
        text = f"%{pattern.replace('#', '')}o" % value
        return text if text.lstrip().startswith("0") else text.replace(text.lstrip(), "0" + text.lstrip())
    return f"%{pattern}{kind}" % value


def _hexadecimal_float(kind: str, pattern: str, value: float) -> str:
    digits = value.hex()
    if "p" in digits:
        mantissa, exponent = digits.split("p")
        mantissa = mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa
        digits = f"{mantissa}p{exponent}"
    width = pattern.split(".", maxsplit=1)[0]
    return f"%{width}s" % (digits.upper() if kind == "A" else digits)
