"""Loads, stores, address conversion and what only hints at memory (PTX manual, section 9.7.9)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ptxparse.model import Operand, Register
from softgpu.reference.access import READ, WRITE, load, resolve, store
from softgpu.reference.decode import Decode, Decoder
from softgpu.reference.program import Read
from softgpu.reference.ptx_types import size_of
from softgpu.reference.spaces import WINDOWS

if TYPE_CHECKING:
    from softgpu.reference.issue import Issue

SPACES = {
    "global": "global", "shared": "shared", "shared::cta": "shared", "shared::cluster": "shared", "local": "local",
    "const": "const", "param": "param", "param::entry": "param", "param::func": "local",
}
SCOPES = ("cta", "cluster", "gpu", "sys")
_EVICTIONS = tuple(
    f"{level}::evict_{how}" for level in ("L1", "L2") for how in ("normal", "unchanged", "first", "last")
) + ("L1::no_allocate", "L1::no_evict", "L2::no_evict")
_PREFETCHES = ("L2::64B", "L2::128B", "L2::256B")
_VECTORS = {"": 1, "v2": 2, "v4": 4, "v8": 8}
_TYPES = ("b8", "b16", "b32", "b64", "b128", "u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64", "f32", "f64")


def _semantics(d: Decoder, ordered: str) -> None:
    """Consume the memory-ordering modifiers. All orderings are alike here: every access is performed at once, in
    program order, in one memory that all threads see."""
    if d.flag("volatile"):
        d.program.may_wait = True
        return
    d.flag("mmio")
    if d.take("relaxed", ordered):
        d.program.may_wait = True
        d.need(*SCOPES)
    else:
        d.flag("weak")


def _cache(d: Decoder, operators: tuple[str, ...]) -> bool:
    """Consume cache operators, eviction priorities and prefetch sizes, which change no value; True if a cache policy
    operand follows."""
    if not d.take(*operators):
        d.take(*_EVICTIONS)
        d.take(*_EVICTIONS)
    hinted = d.flag("L2::cache_hint")
    d.take(*_PREFETCHES)
    return hinted


def _space(d: Decoder) -> str:
    found = d.take(*SPACES)
    return SPACES[found] if found else ""


def _same_space(d: Decoder, named: str, actual: str) -> str:
    """The space of an access whose mnemonic names ``named`` and whose address lies in ``actual``."""
    if named and named != actual and not {named, actual} <= {"param", "local"}:
        d.fail(f"a {actual} address in an access to {named}")
    return actual


def _check_width(d: Decoder, space: str, kind: str, count: int) -> None:
    """Vectors have at most 128 bits, 256 in global memory."""
    width = size_of(kind) * count
    if count > 1 and (size_of(kind) == 16 or width > (32 if space in ("", "global") else 16)):
        d.fail(f"a vector of {count} elements of .{kind} in {space or 'generic'} memory")


def _vector_items(d: Decoder, index: int, count: int) -> tuple[Operand, ...]:
    return d.items(index, count) if count > 1 else d.items(index, 1)


def _ld(d: Decoder) -> None:
    _semantics(d, "acquire")
    space = _space(d)
    hinted = _cache(d, ("ca", "cg", "cs", "lu", "cv"))
    if d.flag("nc"):
        hinted = _cache(d, ("ca", "cg", "cs")) or hinted
    _load(d, space, hinted)


def _ldu(d: Decoder) -> None:
    _load(d, _space(d), False)


def _load(d: Decoder, space: str, hinted: bool) -> None:
    count = _VECTORS[d.take("v2", "v4", "v8")]
    kind = d.need(*_TYPES)
    d.flag("unified")
    d.done(3 if hinted else 2)
    size = size_of(kind)
    _check_width(d, space, kind, count)
    address, actual = d.address(d.operands[1], space)
    space = _same_space(d, space, actual)
    writers = [None if item == Register("_") else d.write(item, kind, wide=True)
               for item in _vector_items(d, 0, count)]
    _check_register_space(d, space)
    width = size * count

    def run(x: Issue) -> None:
        pieces = resolve(x, space, address(x), width, READ)
        # All elements are read before any is written: the address register may be a destination.
        values = [load(pieces, size, k, x.count) for k in range(count)]
        for write, value in zip(writers, values, strict=True):
            if write is not None:
                write(x, value)

    d.plain(run)


def _st(d: Decoder) -> None:
    _semantics(d, "release")
    space = _space(d)
    hinted = _cache(d, ("wb", "cg", "cs", "wt"))
    count = _VECTORS[d.take("v2", "v4", "v8")]
    kind = d.need(*_TYPES)
    d.done(3 if hinted else 2)
    if space == "const":
        d.fail("constant memory cannot be written")
    size = size_of(kind)
    _check_width(d, space, kind, count)
    address, actual = d.address(d.operands[0], space)
    space = _same_space(d, space, actual)
    _check_register_space(d, space)
    readers = [d.read(item, kind, wide=True) for item in _vector_items(d, 1, count)]
    width = size * count

    def run(x: Issue) -> None:
        pieces = resolve(x, space, address(x), width, WRITE)
        for k, read in enumerate(readers):
            store(x, pieces, size, k, read(x))

    d.plain(run)


def _check_register_space(d: Decoder, space: str) -> None:
    if space == "reg":
        d.fail("a register parameter has no address")


def _cvta(d: Decoder) -> None:
    to = d.flag("to")
    space = SPACES[d.need(*SPACES)]
    kind = d.need("u32", "u64")
    d.done(2)
    if kind != "u64":
        d.fail("32-bit generic addresses")
    if space == "param" and not d.code.function.is_entry:
        space = "local"
    write = d.destination(0, kind)
    read = d.source(1, kind)
    window = WINDOWS.get(space, 0)
    delta = np.uint64(-window & (1 << 64) - 1 if to else window)
    d.plain(lambda x: write(x, np.add(read(x), delta)))


def _isspacep(d: Decoder) -> None:
    space = SPACES[d.need(*SPACES)]
    d.done(2)
    write = d.destination(0, "pred")
    read = d.source(1, "u64", wide=False)
    windows = [np.uint64(window >> 32) for window in WINDOWS.values()]

    def run(x: Issue) -> None:
        addresses = read(x)
        high = addresses >> np.uint64(32)
        if space in WINDOWS:
            write(x, high == np.uint64(WINDOWS[space] >> 32))
            return
        memory = x.team.grid.memory
        constants = np.array([(b := memory.buffer_at(int(a))) is not None and b.constant for a in addresses])
        if space == "const":
            write(x, constants)
        else:
            write(x, ~np.isin(high, windows) & ~constants)

    d.plain(run)


def _prefetch(d: Decoder) -> None:
    space = _space(d)
    d.flag("tensormap")
    if not d.take("L1", "L2", "L2::evict_last", "L2::evict_normal"):
        d.fail("a prefetch of this kind")
    d.done(1)
    d.address(d.operands[0], space)
    d.plain(lambda x: None)


def _prefetchu(d: Decoder) -> None:
    d.need("L1")
    d.done(1)
    d.address(d.operands[0], "")
    d.plain(lambda x: None)


def _applypriority(d: Decoder) -> None:
    d.flag("global")
    d.need("L2::evict_normal")
    d.done(2)
    d.address(d.operands[0], "global")
    d.plain(lambda x: None)


def _discard(d: Decoder) -> None:
    """``discard`` leaves the bytes undefined: logged as a write; the bytes become zero."""
    space = _space(d)
    d.need("L2")
    d.done(2)
    if d.immediate(1) != 128:
        d.fail("a size other than 128")
    address, space = d.address(d.operands[0], space)

    def run(x: Issue) -> None:
        pieces = resolve(x, space, address(x), 128, WRITE)
        for word in range(16):
            store(x, pieces, 8, word, np.zeros(1, np.uint64))

    d.plain(run)


def _createpolicy(d: Decoder) -> None:
    """A cache policy is a hint and changes no value: its register holds 0."""
    kind = d.need("fractional", "range", "cvt")
    if kind == "range":
        d.flag("global")
    if kind == "cvt":
        d.need("L2")
    else:
        d.need(*_EVICTIONS)
        d.take(*_EVICTIONS)
    d.need("b64")
    d.done(1, 2, 3, 4)
    write = d.destination(0, "b64")
    d.plain(lambda x: write(x, np.zeros(1, np.uint64)))


def address_operand(d: Decoder, index: int, space: str) -> tuple[Read, str]:
    """Reader of an address operand and its space, checked against the space that the mnemonic names."""
    address, actual = d.address(d.operands[index], space)
    return address, _same_space(d, space, actual)



TABLE: dict[str, Decode] = {
    "ld": _ld, "ldu": _ldu, "st": _st, "cvta": _cvta, "isspacep": _isspacep, "prefetch": _prefetch,
    "prefetchu": _prefetchu, "applypriority": _applypriority, "discard": _discard, "createpolicy": _createpolicy,
}
