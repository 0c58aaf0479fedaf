"""atom and red (PTX manual, section 9.7.13): every operation and type, in global, shared and generic memory."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ptxparse.model import Register, Vector
from softgpu.reference.access import ATOMIC, resolve
from softgpu.reference.atomics import Bits, Update, apply
from softgpu.reference.decode import Decode, Decoder
from softgpu.reference.memory import Piece
from softgpu.reference.numerics import add, fmax, fmin
from softgpu.reference.ops_memory import SCOPES, SPACES, address_operand
from softgpu.reference.program import Read, Value, Write
from softgpu.reference.ptx_types import B128, signed, size_of, unsigned

if TYPE_CHECKING:
    from softgpu.reference.issue import Issue

_ORDERS = ("relaxed", "acquire", "release", "acq_rel")
_ATOMIC_SPACES = ("global", "shared", "shared::cta", "shared::cluster")

_BITWISE = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}
_TYPES: dict[str, tuple[str, ...]] = {
    "and": ("b32", "b64"), "or": ("b32", "b64"), "xor": ("b32", "b64"),
    "cas": ("b16", "b32", "b64", "b128"), "exch": ("b32", "b64", "b128"),
    "add": ("u32", "s32", "u64", "f32", "f64", "f16", "f16x2", "bf16", "bf16x2"),
    "inc": ("u32",), "dec": ("u32",),
    "min": ("u32", "s32", "u64", "s64", "f16", "f16x2", "bf16", "bf16x2"),
    "max": ("u32", "s32", "u64", "s64", "f16", "f16x2", "bf16", "bf16x2"),
}
"""Operations and their types. Untyped forms of older compilers (``and.u32``, ``cas.u64``, ...) are not PTX."""

_VECTOR_TYPES = {"v2": ("f32", "f16", "bf16", "f16x2", "bf16x2"), "v4": ("f32", "f16", "bf16", "f16x2", "bf16x2"),
                 "v8": ("f16", "bf16")}


def _update(operation: str, kind: str, space: str) -> Update:
    """New memory contents as a function of the old ones and the operands."""
    if operation in _BITWISE:
        function = _BITWISE[operation]
        return lambda old, operands: function(old, operands[0])
    if operation == "exch":
        return lambda old, operands: operands[0]
    if operation == "cas":
        return lambda old, operands: np.where(old == operands[0], operands[1], old)
    if operation == "inc":
        return lambda old, operands: np.where(old >= operands[0], np.uint32(0), old + np.uint32(1))
    if operation == "dec":
        return lambda old, operands: np.where((old == 0) | (old > operands[0]), operands[0], old - np.uint32(1))
    if kind[0] in "us":
        view = signed(size_of(kind)) if kind[0] == "s" else unsigned(size_of(kind))
        extreme = np.minimum if operation == "min" else np.maximum
        if operation == "add":
            return lambda old, operands: old + operands[0]
        return lambda old, operands: extreme(old.view(view), operands[0].view(view)).view(old.dtype)
    if operation == "add":
        # f32 in global memory flushes subnormals, in shared memory it does not (manual, atom).
        flush = partial(add, kind=kind, ftz=kind == "f32" and space != "shared")
        return lambda old, operands: flush(old, operands[0])
    float_extreme = partial(fmin if operation == "min" else fmax, kind=kind)
    return lambda old, operands: float_extreme(old, operands[0])


class _Atomic:
    """Modifiers of atom and red, consumed. Orders and scopes are alike here: memory is sequentially consistent."""

    def __init__(self, d: Decoder) -> None:
        d.take(*_ORDERS)
        d.take(*SCOPES)
        found = d.take(*_ATOMIC_SPACES)
        self.space = SPACES[found] if found else ""
        self.operation = d.need(*_TYPES)
        self.noftz = d.flag("noftz")
        self.hinted = d.flag("L2::cache_hint")
        self.vector = d.take("v2", "v4", "v8")
        self.kind = d.need(*_TYPES[self.operation])
        self.elements = int(self.vector[1:]) if self.vector else 1
        half = self.kind in ("f16", "f16x2", "bf16", "bf16x2")
        if self.noftz != half:
            d.fail(".noftz goes with half precision, and only there")
        if self.kind == "b128" and self.hinted and self.operation == "cas":
            d.fail("a cache policy here")
        if self.vector and (self.space != "global" or self.kind not in _VECTOR_TYPES[self.vector]
                            or (self.operation != "add" and self.kind == "f32")):
            d.fail(f"a vector of .{self.kind} here")
        if half and self.operation != "add" and not self.vector:
            d.fail("minimum and maximum of half precision exist for vectors only")

    def prepare(self, d: Decoder, first: int) -> _Prepared:
        """Readers of the address (operand ``first``) and what follows."""
        operands = 2 if self.operation == "cas" else 1
        d.done(*((first + 1 + operands + int(self.hinted),)))
        address, space = address_operand(d, first, self.space)
        if space not in ("", "global", "shared"):
            d.fail(f"an atomic in {space} memory")
        if self.vector:
            value = d.operands[first + 1]
            if not isinstance(value, Vector) or len(value.items) != self.elements:
                d.fail(f"a vector of {self.elements} registers expected")
            reads = [[d.read(item, self.kind)] for item in value.items]
        else:
            reads = [[d.source(first + 1 + k, self.kind) for k in range(operands)]]
        return _Prepared(self, address, space, reads)


class _Prepared:
    def __init__(self, atomic: _Atomic, address: Read, space: str, reads: list[list[Read]]) -> None:
        self.size = size_of(atomic.kind)
        self.address = address
        self.space = space
        self.reads = reads
        self.wrapping_add = atomic.operation == "add" and atomic.kind[0] in "us"
        self.updates = {s: _update(atomic.operation, atomic.kind, s) for s in ("global", "shared")}
        self.exchanges = atomic.operation == "exch"

    def perform(self, x: Issue) -> list[Value]:
        """The atomic in all active rows; the old value of each element."""
        pieces = resolve(x, self.space, self.address(x), self.size * len(self.reads), ATOMIC)
        if self.size == 16:
            return [self._wide(x, pieces)]
        return [self._element(x, pieces, k) for k in range(len(self.reads))]

    def _element(self, x: Issue, pieces: list[Piece], element: int) -> Value:
        operands = [x.full(read(x)) for read in self.reads[element]]
        shift = self.size.bit_length() - 1
        old: Bits = np.empty(x.count, unsigned(self.size))
        for piece in pieces:
            places: npt.NDArray[Any] = (piece.offsets >> shift) + element
            shared = piece.views is x.team.shared.views
            update = self.updates["shared" if shared else "global"]
            selected = piece.selected
            if selected is None:
                places = places if len(places) == x.count else np.repeat(places, x.count)
                old = apply(piece.views[self.size], places, operands, update, self.wrapping_add)
            else:
                chosen = [operand[selected] for operand in operands]
                old[selected] = apply(piece.views[self.size], places, chosen, update, self.wrapping_add)
        return old


    def _wide(self, x: Issue, pieces: list[Piece]) -> Value:
        """Exchange, or compare and swap, of 128 bits, one thread after the other."""
        operands = [np.ascontiguousarray(x.full(read(x))).view(np.uint64).reshape(-1, 2) for read in self.reads[0]]
        old = np.empty((x.count, 2), np.uint64)
        for piece in pieces:
            words = piece.views[8].reshape(-1, 2)
            positions = np.arange(x.count) if piece.selected is None else piece.selected
            places = np.broadcast_to(piece.offsets >> 4, len(positions))
            for position, place in zip(positions, places, strict=True):
                old[position] = words[place]
                if self.exchanges or (old[position] == operands[0][position]).all():
                    words[place] = operands[-1][position]
        return old.view(B128).reshape(x.count)


def _atom(d: Decoder) -> None:
    atomic = _Atomic(d)
    d.program.may_wait = True
    prepared = atomic.prepare(d, 1)
    writes: list[Write | None] = [
        None if item == Register("_") else d.write(item, atomic.kind) for item in d.items(0, atomic.elements)
    ]

    def run(x: Issue) -> None:
        for write, old in zip(writes, prepared.perform(x), strict=True):
            if write is not None:
                write(x, old)

    d.plain(run)


def _red(d: Decoder) -> None:
    atomic = _Atomic(d)
    if atomic.operation in ("cas", "exch"):
        d.fail("red has no such operation")
    prepared = atomic.prepare(d, 0)

    def run(x: Issue) -> None:
        prepared.perform(x)

    d.plain(run)


TABLE: dict[str, Decode] = {"atom": _atom, "red": _red}
