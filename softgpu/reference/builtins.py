"""Functions that the CUDA run-time of the device provides: vprintf and __assertfail."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ptxparse.model import Operand, Symbol, Vector
from softgpu.reference.access import load, load_bytes, store
from softgpu.reference.decode import Decoder
from softgpu.reference.errors import InterpreterError, KernelTrap
from softgpu.reference.issue import Issue
from softgpu.reference.printf import format_output
from softgpu.reference.program import Read, Value, Write
from softgpu.reference.ptx_types import size_of

Builtin = Callable[[Decoder, Vector, Vector], None]

LONGEST_STRING = 1 << 16


def _argument(d: Decoder, operand: Operand, kind: str) -> Read:
    """Reader of an actual parameter: a register, or a ``.param`` variable of the caller."""
    if not isinstance(operand, Symbol) or d.place(operand.name) is None:
        return d.read(operand, kind)
    address, space, size = d.address_of(operand), d.space_of(operand.name), size_of(kind)

    def read(x: Issue) -> Value:
        return load(x.team.locate(x, space, address(x), size), size, 0, x.count)

    return read


def _result(d: Decoder, results: Vector, kind: str) -> Write:
    """Writer of the single result, wherever it goes."""
    if not results.items:
        return lambda x, value: None
    operand = results.items[0]
    if not isinstance(operand, Symbol):
        return d.write(operand, kind)
    address, size = d.address_of(operand), size_of(kind)

    def write(x: Issue, value: Value) -> None:
        store(x, x.team.locate(x, "local", address(x), size, writing=True), size, 0, value)

    return write


def _arguments(d: Decoder, arguments: Vector, *kinds: str) -> list[Read]:
    if len(arguments.items) != len(kinds):
        d.fail(f"{len(arguments.items)} arguments, expected {len(kinds)}")
    return [_argument(d, operand, kind) for operand, kind in zip(arguments.items, kinds, strict=True)]


def read_string(x: Issue, address: int) -> bytes:
    """The zero-terminated string at a generic address."""
    buffer = x.team.grid.memory.buffer_at(address)
    if buffer is not None:
        start = address - buffer.start
        raw = buffer.data[start:buffer.size].tobytes()
        end = raw.find(b"\0")
        return raw if end < 0 else raw[:end]
    found = bytearray()
    while len(found) < LONGEST_STRING:
        octet = load_bytes(x, address + len(found), 1)
        if octet == b"\0":
            return bytes(found)
        found += octet
    raise InterpreterError(f"line {x.line}, {x.thread(0)}: a string longer than {LONGEST_STRING} bytes at {address:#x}")


def _vprintf(d: Decoder, results: Vector, arguments: Vector) -> None:
    """int vprintf(const char *format, const void *arguments): the number of arguments, as CUDA's printf returns."""
    text, values = _arguments(d, arguments, "u64", "u64")
    write = _result(d, results, "u32")

    def run(x: Issue) -> None:
        formats, buffers = x.full(text(x)), x.full(values(x))
        counts = np.zeros(x.count, np.uint32)
        for position in range(x.count):
            alone = x.only(np.array([position]))
            base = int(buffers[position])

            def at(offset: int, size: int, alone: Issue = alone, base: int = base) -> bytes:
                return load_bytes(alone, base + offset, size)

            def string(address: int, alone: Issue = alone) -> bytes:
                return read_string(alone, address)

            text_there = read_string(alone, int(formats[position]))
            output, counts[position] = format_output(text_there, at, string)
            x.team.grid.output += output
        write(x, counts)

    d.plain(run)


def _assertfail(d: Decoder, results: Vector, arguments: Vector) -> None:
    """void __assertfail(message, file, line, function, size of a character): the kernel ends."""
    message, file, line, function, _ = _arguments(d, arguments, "u64", "u64", "u32", "u64", "u64")

    def run(x: Issue) -> None:
        alone = x.only(np.arange(1))
        texts = [read_string(alone, int(read(alone)[0])).decode(errors="replace") for read in (message, file, function)]
        raise KernelTrap(f"assertion `{texts[0]}` failed in {texts[2]}, {texts[1]}:{int(line(alone)[0])}",
                         x.line, x.thread(0))

    d.plain(run)


BUILTINS: dict[str, Builtin] = {"vprintf": _vprintf, "__assertfail": _assertfail}
