"""A launch written down by a person: ``grid=2,1,1 block=128 shared=0 args=ptr:4096,i32:7,f32:1.5``.

``parse_launch`` reads the text, ``bind`` lays the arguments out as a kernel's parameter block. Every complaint is a
:class:`LaunchTextError` that quotes the token and says what was expected there.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ptxparse.model import Function, ParameterSlot, parameter_layout
from tessera.errors import UsageError

EXAMPLE = "grid=2,1,1 block=128 shared=0 args=ptr:4096,i32:7,f32:1.5"

GRID_LIMIT = (2**31 - 1, 65535, 65535)
"""Largest grid in blocks (CUDA programming guide, technical specifications per compute capability)."""
BLOCK_LIMIT = (1024, 1024, 64)
"""Largest block in threads, same source."""
THREADS_LIMIT = 1024
"""Most threads in one block, same source."""

INTEGERS = {"i8": "<b", "i16": "<h", "i32": "<i", "i64": "<q", "u8": "<B", "u16": "<H", "u32": "<I", "u64": "<Q"}
FLOATS = {"f32": "<f", "f64": "<d"}
KINDS = ("ptr", *INTEGERS, *FLOATS, "bytes")

ALLOCATION_BASE = 0x7_0000_0000
ALLOCATION_ALIGN = 0x1000
ALLOCATION_GAP = 0x10_0000
"""Fresh allocations start at the base, aligned, with unused gaps between them, so that no two are adjacent."""


class LaunchTextError(UsageError):
    """The text of a launch cannot be understood, or does not fit the kernel."""


class Argument(NamedTuple):
    """One argument: ``text`` as written; ``data`` its bytes, little-endian; for ``ptr:N`` ``data`` is empty and
    ``allocation`` is N, the bytes to allocate."""

    text: str
    data: bytes
    allocation: int | None = None

    @property
    def size(self) -> int:
        """Bytes that it takes in the parameter block."""
        return 8 if self.allocation is not None else len(self.data)


@dataclass(frozen=True)
class Launch:
    """Grid in blocks, block in threads, dynamic shared memory in bytes, the arguments in order."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared: int = 0
    arguments: tuple[Argument, ...] = ()


class FreshAllocation(NamedTuple):
    """Memory made up for a launch: the name of the parameter or variable it is for, address and size in bytes."""

    name: str
    address: int
    size: int


class BoundLaunch(NamedTuple):
    """A launch laid out for one kernel: the parameter block and the allocations behind its pointers, in order."""

    launch: Launch
    params: bytes
    allocations: tuple[FreshAllocation, ...]


def parse_launch(text: str) -> Launch:
    """The launch that ``text`` describes; raises LaunchTextError naming the token that is wrong."""
    fields: dict[str, str] = {}
    for token in text.split():
        key, equals, value = token.partition("=")
        if not equals or key not in ("grid", "block", "shared", "args"):
            raise LaunchTextError(
                f"launch: expected grid=, block=, shared= or args=, found '{token}'. An example: '{EXAMPLE}'"
            )
        if key in fields:
            raise LaunchTextError(f"launch: {key}= is given twice, the second time in '{token}'")
        fields[key] = value
    for key in ("grid", "block"):
        if key not in fields:
            raise LaunchTextError(f"launch: {key}= is missing. An example: '{EXAMPLE}'")
    block = _extent("block", fields["block"], BLOCK_LIMIT)
    threads = math.prod(block)
    if threads > THREADS_LIMIT:
        raise LaunchTextError(f"launch: block={fields['block']} has {threads} threads, at most {THREADS_LIMIT}")
    return Launch(
        grid=_extent("grid", fields["grid"], GRID_LIMIT),
        block=block,
        shared=_integer(f"shared={fields['shared']}", fields["shared"], 0, 2**31 - 1) if "shared" in fields else 0,
        arguments=_arguments(fields.get("args", "")),
    )


def _extent(key: str, text: str, limit: tuple[int, int, int]) -> tuple[int, int, int]:
    """One to three sizes; those not given are 1."""
    parts = text.split(",")
    if len(parts) > 3:
        raise LaunchTextError(f"launch: expected one to three sizes, found {len(parts)} in '{key}={text}'")
    sizes = [_integer(f"{key}={text}", part, 1, most) for part, most in zip(parts, limit, strict=False)]
    x, y, z = [*sizes, 1, 1][:3]
    return x, y, z


def _integer(token: str, text: str, least: int, most: int) -> int:
    """A decimal or 0x integer within bounds."""
    try:
        value = int(text, 0)
    except ValueError:
        raise LaunchTextError(f"launch: expected an integer, found '{text}' in '{token}'") from None
    if not least <= value <= most:
        raise LaunchTextError(f"launch: {text} in '{token}' is outside {least} to {most}")
    return value


def _arguments(text: str) -> tuple[Argument, ...]:
    return tuple(_argument(token) for token in text.split(",")) if text else ()


def _argument(token: str) -> Argument:
    kind, colon, value = token.partition(":")
    if not colon or kind not in KINDS:
        raise LaunchTextError(f"launch: expected TYPE:VALUE, found '{token}'. Types: {', '.join(KINDS)}")
    if kind == "ptr":
        return Argument(token, b"", _integer(token, value, 1, 2**47))
    if kind in INTEGERS:
        bits = 8 * struct.calcsize(INTEGERS[kind])
        least, most = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if kind.startswith("i") else (0, 2**bits - 1)
        return Argument(token, struct.pack(INTEGERS[kind], _integer(token, value, least, most)))
    if kind == "bytes":
        return Argument(token, _hexadecimal(token, value))
    return Argument(token, _float(token, value, FLOATS[kind]))


def _hexadecimal(token: str, value: str) -> bytes:
    try:
        data = bytes.fromhex(value)
    except ValueError:
        raise LaunchTextError(f"launch: expected an even number of hexadecimal digits in '{token}'") from None
    if not data:
        raise LaunchTextError(f"launch: expected at least one byte in '{token}'")
    return data


def _float(token: str, value: str, form: str) -> bytes:
    """The bytes of a float; ``inf`` and ``nan`` may be written, a finite number may not become infinite."""
    try:
        number = float(value)
    except ValueError:
        raise LaunchTextError(f"launch: expected a number, found '{value}' in '{token}'") from None
    try:
        data = struct.pack(form, number)
    except OverflowError:
        data = b""
    if not data or (math.isinf(number) and "inf" not in value.lower()):
        raise LaunchTextError(f"launch: {value} in '{token}' is too large for its type")
    return data


def fresh_allocations(sizes: Sequence[tuple[str, int]], start: int = ALLOCATION_BASE) -> tuple[FreshAllocation, ...]:
    """An allocation for every (name, size in bytes), from ``start`` on, aligned, with gaps between them."""
    made = []
    for name, size in sizes:
        start = -(-start // ALLOCATION_ALIGN) * ALLOCATION_ALIGN
        made.append(FreshAllocation(name, start, size))
        start += size + ALLOCATION_GAP
    return tuple(made)


def bind(launch: Launch, kernel: Function) -> BoundLaunch:
    """The launch laid out for ``kernel``; raises LaunchTextError when arguments or block do not fit it."""
    slots, size = parameter_layout(kernel)
    _check_block(launch, kernel)
    _check_count(launch, kernel, slots)
    pairs = list(zip(slots, launch.arguments, strict=True))
    for number, (slot, argument) in enumerate(pairs, 1):
        if argument.size != slot.size:
            raise LaunchTextError(
                f"launch: argument {number} of {kernel.name}, '{argument.text}', has {argument.size} bytes; "
                f"{describe_slot(slot)} has {slot.size}"
            )
    allocations = fresh_allocations([(s.name, a.allocation) for s, a in pairs if a.allocation is not None])
    params = bytearray(size)
    pointers = iter(allocations)
    for slot, argument in pairs:
        data = argument.data if argument.allocation is None else struct.pack("<Q", next(pointers).address)
        params[slot.offset : slot.offset + slot.size] = data
    return BoundLaunch(launch, bytes(params), allocations)


def _check_block(launch: Launch, kernel: Function) -> None:
    """The block against ``.reqntid`` and ``.maxntid`` (PTX manual, performance-tuning directives)."""
    required = kernel.directives.get("reqntid")
    if required and (*required, 1, 1)[:3] != launch.block:
        raise LaunchTextError(f"launch: {kernel.name} requires block={','.join(map(str, required))} (.reqntid)")
    most = kernel.directives.get("maxntid")
    if most and math.prod(launch.block) > math.prod(most):
        raise LaunchTextError(f"launch: {kernel.name} allows at most {math.prod(most)} threads in a block (.maxntid)")


def _check_count(launch: Launch, kernel: Function, slots: list[ParameterSlot]) -> None:
    given = len(launch.arguments)
    if given == len(slots):
        return
    listed = "; ".join(f"{number}: {describe_slot(slot)}" for number, slot in enumerate(slots, 1))
    parameters = f"Its parameters: {listed}" if slots else "It has no parameters"
    raise LaunchTextError(f"launch: {kernel.name} takes {len(slots)} arguments, {given} given. {parameters}")


def describe_slot(slot: ParameterSlot) -> str:
    """A parameter in words: name, type, and what to write for it."""
    variable = slot.variable
    if variable.dims:
        return f"{slot.name} (by value, {slot.size} bytes: bytes:HEX)"
    hint = " or ptr:N" if slot.size == 8 else ""
    return f"{slot.name} (.{variable.type}, {slot.size} bytes{hint})"
