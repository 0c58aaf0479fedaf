"""Formatting of device printf against the C library's snprintf."""

from __future__ import annotations

import ctypes
import struct

import pytest

from softgpu.reference.printf import format_output

LIBC = ctypes.CDLL(None)


def packed(values: list[object]) -> tuple[bytes, dict[int, bytes], list[object]]:
    """The argument buffer, strings by pointer, and the same arguments for ctypes."""
    buffer, strings, c_values = bytearray(), {}, []
    for value in values:
        kind: object
        if isinstance(value, float):
            raw, kind = struct.pack("<d", value), ctypes.c_double(value)
        elif isinstance(value, bytes):
            pointer = 0x1000 + len(strings)
            strings[pointer] = value
            raw, kind = struct.pack("<Q", pointer), ctypes.c_char_p(value)
        elif isinstance(value, tuple):
            raw, kind = struct.pack("<q", value[0]), ctypes.c_longlong(value[0])
        else:
            assert isinstance(value, int)
            raw, kind = struct.pack("<I", value & 0xFFFFFFFF), ctypes.c_int(value)
        buffer += bytes(-len(buffer) % len(raw)) + raw
        c_values.append(kind)
    return bytes(buffer), strings, c_values


@pytest.mark.parametrize(("text", "values"), [
    ("plain 100%%", []), ("%d %i %u", [-5, 7, -1]), ("[%8d|%-8d|%08d|%+d|% d]", [1, 2, 3, 4, 5]),
    ("%x %X %#x %o %#o", [255, 255, 255, 8, 8]), ("%5.3d|%.0d", [7, 3]), ("%hhd %hd %hhu", [511, 70000, 511]),
    ("%lld %ld %llu %lx %zu", [(-1,), (2**40,), (2**60,), (255,), (12,)]),
    ("%f %.2f %10.3f|%-10.1f| %+f", [1.5, 2.345, -3.14159, 2.0, 0.5]),
    ("%e %.3E %g %G", [12345.678, 0.00012, 1e20, 1e-5]),
    ("%s|%10s|%-6s|%.2s", [b"abc", b"abc", b"ab", b"abcdef"]), ("%c%c", [72, 105]),
    ("%*d|%.*f|%-*d|", [6, 42, 3, 2.5, 4, 7]),
    ("%a", [1.0]), ("%d then %f then %d then %lld", [1, 2.5, 3, (4,)]),
    ("%f %f %f", [float("inf"), float("-inf"), 0.0]),
])
def test_same_text_as_the_c_library(text: str, values: list[object]) -> None:
    buffer, strings, c_values = packed(values)
    output, count = format_output(text.encode(), lambda offset, size: buffer[offset:offset + size], strings.__getitem__)
    room = ctypes.create_string_buffer(400)
    LIBC.snprintf(room, 400, text.encode(), *c_values)
    assert output == room.value
    assert count == len(values)


def test_pointers_and_unknown_specifiers() -> None:
    output, count = format_output(b"%p %y %", lambda offset, size: (0xABC).to_bytes(size, "little"), lambda p: b"")
    assert (output, count) == (b"0xabc %y %", 1)
