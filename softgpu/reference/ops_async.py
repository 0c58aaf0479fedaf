"""cp.async: asynchronous copies from global to shared memory (PTX manual, section 9.7.9.25)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from softgpu.reference.access import READ, load, resolve
from softgpu.reference.decode import Decode, Decoder
from softgpu.reference.ops_memory import address_operand
from softgpu.reference.program import Read, Value

if TYPE_CHECKING:
    from softgpu.reference.issue import Issue
    from softgpu.reference.memory import Addresses


def _cp(d: Decoder) -> None:
    d.need("async")
    if d.flag("commit_group"):
        d.done(0)
        d.plain(lambda x: x.team.copies.commit(x))
    elif d.flag("wait_group"):
        d.done(1)
        newest = d.immediate(0)
        d.plain(lambda x: x.team.copies.wait(x, newest))
    elif d.flag("wait_all"):
        d.done(0)
        d.plain(lambda x: x.team.copies.wait(x, None))
    else:
        _copy(d)


def _copy(d: Decoder) -> None:
    level = d.need("ca", "cg")
    d.need("shared", "shared::cta")
    d.need("global")
    hinted = d.flag("L2::cache_hint")
    d.take("L2::64B", "L2::128B", "L2::256B")
    count = len(d.operands) - int(hinted)
    if count not in (3, 4):
        d.fail(f"{len(d.operands)} operands")
    d.done(len(d.operands))
    size = d.immediate(2)
    if size not in ((16,) if level == "cg" else (4, 8, 16)):
        d.fail(f"copies of {size} bytes")
    destination, _ = address_operand(d, 0, "shared")
    source, _ = address_operand(d, 1, "global")
    given = _source_size(d, size) if count == 4 else None
    word = min(size, 8)

    def run(x: Issue) -> None:
        team = x.team
        to = team.locate(x, "shared", x.full(destination(x)), size, writing=True)[0]
        places = to.offsets >> (word.bit_length() - 1)
        addresses: Addresses = x.full(source(x))
        if given is None:
            pieces = resolve(x, "global", addresses, size, READ)
            values = [x.full(load(pieces, word, k, x.count)) for k in range(size // word)]
            team.copies.issue(x, word, places, np.stack(values))
        else:
            octets = _partial(x, addresses, x.full(given(x)), size)
            values_of_word = octets.view(np.dtype(f"u{word}"))
            team.copies.issue(x, word, places, np.ascontiguousarray(values_of_word.T))

    d.plain(run)


def _source_size(d: Decoder, size: int) -> Read:
    """Bytes to read: the fourth operand, or none of them where it is the predicate ``ignore-src``."""
    operand = d.operands[3]
    if d.is_predicate(operand):
        ignored = d.predicate(operand)
        return lambda x: np.where(ignored(x), np.uint32(0), np.uint32(size))
    return d.source(3, "u32")


def _partial(x: Issue, addresses: Addresses, sizes: Value, size: int) -> Value:
    """Copies of which only the first bytes are read; the rest is zero. (rows, size) bytes."""
    octets = np.zeros((x.count, size), np.uint8)
    for given in np.unique(sizes):
        chosen = np.flatnonzero(sizes == given)
        if given > size:
            raise x.undefined(f"cp.async of {size} bytes from {given} bytes", int(chosen[0]))
        if given == 0:
            continue
        part = x.only(chosen)
        pieces = resolve(part, "global", addresses[chosen], int(given), READ, align=size)
        for k in range(int(given)):
            octets[chosen, k] = load(pieces, 1, k, part.count)
    return octets


TABLE: dict[str, Decode] = {"cp": _cp}
