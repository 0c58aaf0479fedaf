"""mov: registers, constants, addresses, and packing and unpacking of vectors (PTX manual, section 9.7.9)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ptxparse.model import Operand, Register, Vector
from softgpu.reference.decode import Decode, Decoder
from softgpu.reference.program import Value
from softgpu.reference.ptx_types import size_of, unsigned

if TYPE_CHECKING:
    from softgpu.reference.issue import Issue

_TYPES = ("pred", "b16", "b32", "b64", "b128", "u16", "u32", "u64", "s16", "s32", "s64", "f32", "f64")


def _mov(d: Decoder) -> None:
    kind = d.need(*_TYPES)
    d.done(2)
    target, source = d.operands
    if isinstance(target, Vector):
        _unpack(d, kind, target.items)
    elif isinstance(source, Vector):
        _pack(d, kind, source.items)
    else:
        write, read = d.destination(0, kind), d.source(1, kind)
        d.plain(lambda x: write(x, read(x).copy()))


def _element(d: Decoder, kind: str, items: tuple[Operand, ...]) -> str:
    size = size_of(kind) // len(items)
    if size * len(items) != size_of(kind) or size not in (1, 2, 4, 8):
        d.fail(f"{len(items)} elements in .{kind}")
    return f"b{8 * size}"


def _pack(d: Decoder, kind: str, items: tuple[Operand, ...]) -> None:
    """The first element becomes the least significant part."""
    element = _element(d, kind, items)
    write = d.destination(0, kind)
    reads = [d.read(item, element) for item in items]

    def run(x: Issue) -> None:
        parts = [read(x) for read in reads]
        count = max(len(part) for part in parts)
        packed = np.empty((count, len(parts)), parts[0].dtype)
        for k, part in enumerate(parts):
            packed[:, k] = part
        write(x, packed.view(unsigned(size_of(kind))).reshape(count))

    d.plain(run)


def _unpack(d: Decoder, kind: str, items: tuple[Operand, ...]) -> None:
    element = _element(d, kind, items)
    dtype = unsigned(size_of(element))
    writes = [None if item == Register("_") else d.write(item, element) for item in items]
    read = d.source(1, kind)

    def run(x: Issue) -> None:
        value: Value = np.ascontiguousarray(read(x))
        parts = value.view(dtype).reshape(len(value), len(writes))
        # Copies first: the source may be among the destinations.
        columns = [parts[:, k].copy() for k in range(len(writes))]
        for write, column in zip(writes, columns, strict=True):
            if write is not None:
                write(x, column)

    d.plain(run)


TABLE: dict[str, Decode] = {"mov": _mov}

