"""Bytes that every lane reads one behind another, at constant distances from one register: packed weights of a model,
of which each thread has a row of its own.

The first such load of a block checks that all of them are inside, in all lanes, reads them from each lane as whole
vectors, and turns these, so that what follows finds one vector for each byte. Where the check does not hold each load
is made as if it were alone. Nothing in between writes to memory or waits for anybody.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ptxparse.model import Address, Instruction, Register
from softgpu.engine.emit.access import CONST, GENERIC, GLOBAL, READ, Access, cache_of
from softgpu.engine.emit.rows import frozen_addresses, outside, places, spare, whole_text, zero_row
from softgpu.engine.ir import WARP, Builder, Value, joined, lanes

if TYPE_CHECKING:
    from softgpu.engine.emit.lower import Lower
    from softgpu.engine.webs import Web

CHUNKS = (16, 8)
"""Bytes of a lane that are read at once: those of as many lanes are turned in registers."""
MOST = 64
FEWEST = 8
"""Loads that make it worth while."""
MOST_BANDS = 16
"""Of a block: each has memory of the function."""
BYTES = ("b8", "u8", "s8")
PURE = frozenset((
    "abs", "add", "addc", "and", "bfe", "bfi", "bfind", "bmsk", "brev", "clz", "cnot", "copysign", "cos", "cvt", "cvta",
    "div", "dp2a", "dp4a", "ex2", "fma", "lg2", "lop3", "mad", "mad24", "madc", "max", "min", "mov", "$move", "mul",
    "mul24", "neg", "not", "or", "popc", "prmt", "rcp", "rem", "rsqrt", "sad", "selp", "set", "setp", "shf", "shl",
    "shr", "sin", "slct", "sqrt", "sub", "subc", "szext", "tanh", "testp", "xor",
))  # fmt: skip
"""Opcodes that may stand between the loads, beside loads that promise nothing about order."""
PLAIN = frozenset(("weak", "global", "const", "nc", "ca", "cg", "cs", "lu", *BYTES))
"""Modifiers of loads of a band."""


@dataclass
class Band:
    """Distances [low, low + length) from the register; ``members``: instructions; ``room``: memory of the function with
    a vector for each byte, from ``passes`` on, which says whether it has them."""

    low: int
    length: int
    members: frozenset[int]
    room: str
    passes: Value | None = None


def band_of(access: Access) -> Band | None:
    """The band of the present load, whose bytes are read when it is the first one; None when it has no others."""
    lower, index = access.lower, access.lower.index
    web = _register(lower.flow.instructions[index], lower.webs.used[index])
    if web is None or not access.rowwise or (access.width, access.kind) != (1, READ) or access.always_slow() or (
            access.place.space not in (GENERIC, GLOBAL, CONST)):
        return None
    for band in lower.bands:
        if index in band.members:
            access.checked = _cache(access, band)
            return band
    found = _ahead(lower, web, index) if len(lower.bands) < MOST_BANDS else None
    if found is not None:
        lower.bands.append(found)
        _fill(access, found)
    return found


def read(access: Access, band: Band) -> Value:
    """A byte of each lane, which the band has."""
    lower = access.lower
    at = WARP * (_distance(lower.flow.instructions[lower.index]) - band.low)
    return lower.load(f"<{WARP} x i8>", lower.at(lower.room(band.room, WARP * MOST), at), WARP)


def _register(instruction: Instruction, used: dict[str, Web]) -> Web | None:
    """The register that a plain load of one byte goes through."""
    if instruction.opcode != "ld" or instruction.predicate is not None or not PLAIN.issuperset(instruction.modifiers):
        return None
    address = instruction.operands[1]
    if not isinstance(address, Address) or not isinstance(address.base, Register) or address.extra:
        return None
    return used.get(address.base.name) if instruction.modifiers[-1] in BYTES else None


def _distance(instruction: Instruction) -> int:
    address = instruction.operands[1]
    assert isinstance(address, Address)
    return address.offset


def _orderly(instruction: Instruction) -> bool:
    """Whether loads may be made before it that stand behind it."""
    if instruction.opcode == "ld":
        return not {"volatile", "relaxed", "acquire", "mmio"} & set(instruction.modifiers)
    return instruction.opcode in PURE


def _ahead(lower: Lower, web: Web, start: int) -> Band | None:
    block = lower.flow.blocks[lower.analysis.block_of[start]]
    first = lower.flow.instructions[start]
    found: dict[int, int] = {}
    for index in range(start, block.end):
        instruction = lower.flow.instructions[index]
        if not _orderly(instruction):
            break
        if instruction.modifiers == first.modifiers[:-1] + instruction.modifiers[-1:] and (
                _register(instruction, lower.webs.used[index]) is web):
            found[index] = _distance(instruction)
        if any(defined is web for defined in lower.webs.defined[index].values()):
            break
    low, high = _dense(sorted(set(found.values())), found.get(start, 0))
    members = frozenset(index for index, distance in found.items() if low <= distance < high)
    if len(members) < FEWEST:
        return None
    return Band(low, high - low, members, f"band{len(lower.bands)}")


def _dense(distances: list[int], of: int) -> tuple[int, int]:
    """The longest part around a distance, at most MOST bytes, without gaps."""
    low = high = of
    while low - 1 in distances and high - low < MOST - 1:
        low -= 1
    while high + 1 in distances and high - low < MOST - 1:
        high += 1
    return low, high + 1


def _cache(access: Access, band: Band) -> Value:
    return cache_of(access.lower, access.place, band.length, 0)


def _fill(access: Access, band: Band) -> None:
    lower, b = access.lower, access.lower.builder
    access.checked = _cache(access, band)
    name = f"softgpu_band_{band.length}"
    if name not in b.helpers:
        b.helpers[name] = _function(b, name, band.length)
    room = lower.room("addresses", 8 * WARP)
    back = band.low - _distance(lower.flow.instructions[lower.index])
    addresses = access.addresses()
    lower.store(b.add(addresses, b.constant(back, "i64", WARP)) if back else addresses, room, 64)
    given = (room, access.mask.bits, access.checked, lower.room(band.room, WARP * MOST))
    band.passes = b.emit(f"call fastcc i1 @{name}({', '.join([f'{v.type} {v.ref}' for v in given])})", "i1")


def _function(b: Builder, name: str, length: int) -> str:
    """Reads ``length`` bytes at each active lane's address, which is in memory, and puts a vector for each of them
    behind ``into``; whether they are inside."""
    inner = Builder(b.wide_registers)
    room, mask, cache, into = (Value("%addresses", "ptr"), Value("%mask", "i32"), Value("%cache", "ptr"),
                               Value("%into", "ptr"))
    inner.line("entry:")
    addresses = frozen_addresses(inner, room)
    beyond = outside(inner, addresses, 1, mask, cache)
    inside = inner.icmp("eq", beyond, Value("0", "i32"))
    inner.line(f"  br i1 {inside.ref}, label %fast, label %none, !prof !0")
    inner.line("none:")
    inner.line("  ret i1 false")
    inner.line("fast:")
    spare(inner, addresses, GLOBAL, mask, zero_row(inner), room)
    chunk = next(c for c in CHUNKS if c <= length)
    bytes_of = places(inner, room, GLOBAL, chunk).bytes
    for start in [*range(0, length - chunk, chunk), length - chunk]:
        for number, column in enumerate(_turned(inner, [bytes_of(lane, start) for lane in range(WARP)])):
            at = inner.emit(f"getelementptr i8, ptr {into.ref}, i64 {WARP * (start + number)}", "ptr")
            inner.line(f"  store {column.type} {column.ref}, ptr {at.ref}, align {WARP}")
    inner.line("  ret i1 true")
    parameters = ", ".join([f"{v.type} {v.ref}" for v in (room, mask, cache, into)])
    return whole_text(b, inner, f"define internal fastcc i1 @{name}({parameters})")


def _turned(inner: Builder, rows: list[Value]) -> list[Value]:
    """A vector of all lanes for each of their bytes, of which there are n. Parts of n bytes of a vector are those of n
    lanes. Interleaving rows i and i + n / 2 moves the highest bit of a byte's row to the end of its column; when all
    bits have moved, rows are columns."""
    size = lanes(rows[0].type)
    half = size // 2
    held = [joined(inner, rows[i::size]) for i in range(size)]
    for _ in range(size.bit_length() - 1):
        held = [
            inner.shuffle(held[i], held[i + half], [
                side * WARP + part + first + k
                for part in range(0, WARP, size) for k in range(half) for side in range(2)])
            for i in range(half) for first in (0, half)
        ]  # fmt: skip
    return held
