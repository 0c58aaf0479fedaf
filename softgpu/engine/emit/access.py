"""Accesses to memory by all active lanes at once.

An access has addresses in its state space, and is checked before it is made: global ones against the allocation that
the same pointer hit last (kept in the worker's environment), the others against the size of their space. What fails the
check takes the slow path, where the run-time looks at every lane by itself; only there faults are found. Loads that
pass read all lanes, active or not, since the whole span has been checked; stores write active lanes only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from ptxparse.model import Address, Immediate, Register, Symbol
from softgpu.engine.emit.families import Family, family_of
from softgpu.engine.emit.lower import SCRATCH_BYTES, Mask
from softgpu.engine.ir import WARP, Builder, Value, bits, joined, lanes, shaped, split
from softgpu.engine.shapes import ZEROS, Shape, constant
from softgpu.engine.webs import Web

if TYPE_CHECKING:
    from softgpu.engine.emit.lower import Lower

GENERIC, GLOBAL, CONST, SHARED, LOCAL, PARAM = range(6)
SPACES = {"": GENERIC, "global": GLOBAL, "const": CONST, "shared": SHARED, "local": LOCAL, "param": PARAM}
NAMES = {number: name for name, number in SPACES.items()}
READ, WRITE, ATOMIC = 1, 2, 4
RESOLVE, LOAD, LOG, STORE, GATHER, SCATTER, COPY = 0, 1, 2, 12, 13, 14, 15
"""Numbers of helpers, see ``runtime/abi.h``."""
SPAN_BYTES = 512
"""Widest span of one access that is read as a whole and then picked from."""
SHORTEST_RUN = 8
RUN_BYTES = 64
"""Lanes at neighbouring addresses, or bytes of them, for which one vector is worth more than a gather."""
FEW = 4
ROW_BYTES = 16
"""Bytes at one lane's known place that are worth a load of their own."""
ADDRESSES = f"<{WARP} x i64>"
LIMIT_AT, CACHE_BYTES = 8, 32
"""Of ``struct sg_cache``; the start comes first."""
SHARED_ROOT = "shared memory"
AS_IN_MEMORY = 0xFFFF
"""``SG_AS_IN_MEMORY``."""


@dataclass
class Place:
    """Where an access goes. ``base`` is lane 0's address (i64) when ``shape`` is scalar, else all lanes' addresses as
    ``<32 x i64>`` or, in shared memory, ``<32 x i32>``. ``space`` is resolved from the variable where one is named.
    ``short``: a scalar shared address whose lanes may wrap around in 32 bits: (lane 0's register as i32, the constant
    added to it). Such lanes are outside every shared memory, so only the slow path has to know.
    ``register``: the register of a scalar address, and the constant added to it."""

    space: int
    base: Value
    shape: Shape
    root: object
    short: tuple[Value, int] | None = None
    register: tuple[Web, int] | None = None

    @property
    def scalar(self) -> bool:
        return self.shape.scalar


def place_of(lower: Lower, address: Address, named: str) -> Place:
    """The place of an address operand; ``named`` is the space in the mnemonic ("" for generic)."""
    b = lower.builder
    if address.extra:
        lower.fail(f"operand {address!r} is not a plain address")
    base = address.base
    space = SPACES[named]
    if isinstance(base, Symbol):
        actual = lower.layout.space_of(base.name)
        if actual is None:
            lower.fail(f"{base.name} is not a variable of this module")
        if named and named != actual and not {named, actual} <= {"param", "local"}:
            lower.fail(f"a {actual} address in an access to {named}")
        value = lower.address_of(Symbol(base.name, base.offset + address.offset))
        known = lower.layout.constant_address(Symbol(base.name, base.offset + address.offset))
        shape = constant(known, 64) if known is not None else Shape(WARP)
        return Place(SPACES[actual], value, shape, base.name)
    if space == PARAM and lower.layout.locals and not lower.flat.kernel.is_entry:
        space = LOCAL
    if isinstance(base, Immediate):
        number = base.value + address.offset
        return Place(space, b.constant(number, "i64"), constant(number, 64), None)
    if not isinstance(base, Register):
        lower.fail(f"address base {base!r}")
    web = lower.used_web(base.name)
    if web is None or web.type == "pred" or bits(lower.web_type(web)) not in (32, 64):
        lower.fail("an address must be a register of 32 or 64 bits")
    shape = lower.shape(web)
    narrow = bits(lower.web_type(web)) == 32
    root: object = shape.root if shape.root is not None else f"web {web.number}"
    short: tuple[Value, int] | None = None
    if shape.scalar:
        value = lower.read(base, "b32" if narrow else "b64")
        if narrow and not shape.stays:
            if space == SHARED and -(1 << 31) < address.offset < 1 << 31:
                short = (value, address.offset)
            else:
                value = lower.read(base, "b32", vector=True)
                shape = Shape(1)
        value = b.resize(value, "i64")
    else:
        value = lower.read(base, "b32" if narrow else "b64", vector=True)
        if narrow:
            if space != SHARED:
                value = b.resize(value, "i64")
            if not shape.stays and shape.group > 1:
                shape = replace(shape, group=1, offsets=ZEROS, sure=True) if not shape.sure else (
                    replace(shape, sure=False))
    if not lanes(value.type) or bits(value.type) == 64 or address.offset == 0:
        value = b.add(value, b.like(address.offset, value)) if address.offset else value
        return Place(space, value, _moved(shape, address.offset), root, short, (web, address.offset))
    value = b.add(b.resize(value, "i64"), b.constant(address.offset, "i64", WARP))
    return Place(space, value, _moved(shape, address.offset), root)


def _moved(shape: Shape, offset: int) -> Shape:
    """A shape with a constant added; bounds stay only if nothing can wrap."""
    low = high = None
    if shape.low is not None and shape.high is not None and shape.low + offset >= 0:
        low, high = shape.low + offset, shape.high + offset
    return Shape(shape.group, shape.offsets, shape.sure, shape.align, (shape.residue + offset) % shape.align, low, high,
                 shape.root)


class Access:
    """One access of ``count`` elements of ``element`` bits at each active lane's place."""

    def __init__(self, lower: Lower, place: Place, element: int, count: int, kind: int, mask: Mask) -> None:
        self.lower = lower
        self.place = place
        self.element = element
        self.size = element // 8
        self.count = count
        self.width = self.size * count
        self.kind = kind
        self.mask = mask
        self.groups = self._groups()
        self.group_bases: list[Value] = []
        self.checked: Value | None = None
        offsets = place.shape.offsets if place.scalar else ZEROS
        self.offsets = offsets
        self.lowest = min(offsets)
        self.extent = max(offsets) + self.width - self.lowest
        self.guessable = self._guessable()
        self.rowwise = self._rowwise()
        self.image = self._image()
        word = 0 if self.rowwise else AS_IN_MEMORY if self.image else self.size
        self.site = lower.site(self.width, self.width, place.space, kind, word)
        self.instead: Value | None = None

    def _groups(self) -> int:
        """How many runs of neighbours the lanes' addresses are, as far as the shape says; 0 when there are too many."""
        shape = self.place.shape
        if self.place.scalar or self.place.space == LOCAL or shape.group == 1:
            return 0
        if shape.group < SHORTEST_RUN and shape.group * self.width < RUN_BYTES:
            return 0
        if any(offset != lane % shape.group * self.width for lane, offset in enumerate(shape.offsets)):
            return 0
        return WARP // shape.group

    def _image(self) -> bool:
        """Whether scratch memory can hold all lanes' bytes as they lie in memory, so that the slow path only has to
        put another pointer in place of the right one."""
        place = self.place
        if self.rowwise or not place.scalar or place.short is not None or place.space == LOCAL or (
                self.extent > SCRATCH_BYTES):
            return False
        places = sorted(self.offsets)
        if place.space == GENERIC and any(b - a < self.width for a, b in pairwise(places)):
            return False  # one address may be a place in local memory for each lane
        return place.shape.uniform or self.kind == READ or (self.neighbours and self.vectors)

    def _rowwise(self) -> bool:
        """Whether each lane's bytes are moved on their own, by a function (``rows.py``): where there is no pattern, and
        where they are too many or too few for gather and scatter, or the machine has no such instruction."""
        if self.place.space in (LOCAL, PARAM) or self._patterned():
            return False
        if self.guessable:
            return True
        easy = self.lower.target.has("avx512f") or (self.kind == READ and self.mask.full)
        return not (easy and self.size >= 4 and self.width <= 8)

    def _guessable(self) -> bool:
        """Whether the shape says nothing about the lanes' places, so that they may well follow each other; not worth
        its instructions where gather and scatter are fast."""
        if self.lower.target.has("avx512f"):
            return False
        unknown = not self.place.scalar and self.place.shape.group == 1 and self.place.space not in (LOCAL, PARAM)
        return unknown and self.kind in (READ, WRITE) and self.vectors and not self.always_slow()

    def guess(self) -> tuple[Access, Value] | None:
        """The access as it is where the lanes' places turn out to follow each other, and whether they do and are
        inside. None where the shape says something about them: then it says what else they are."""
        if not self.guessable:
            return None
        lower, b, place = self.lower, self.lower.builder, self.place
        base = place.base if self.mask.full else b.emit(f"freeze {place.base.type} {place.base.ref}", place.base.type)
        offsets = tuple([self.width * lane for lane in range(WARP)])
        first = b.extract(base, 0)
        strays = b.mask_bits(b.icmp("ne", base, b.add(b.splat(first), b.vector(offsets, f"i{bits(base.type)}"))))
        if not self.mask.full:
            strays = b.and_(strays, self.mask.bits)
        near = Access(lower, Place(place.space, b.resize(first, "i64"), Shape(WARP, offsets), place.root),
                      self.element, self.count, self.kind, self.mask)
        return near, b.and_(near._compare(False), b.icmp("eq", strays, Value("0", "i32")))

    def _patterned(self) -> bool:
        """Whether few vectors hold all lanes' bytes, as far as the shape says."""
        if self.groups or not self.place.scalar:
            return self.groups > 0 and self.vectors
        if self.place.shape.uniform or (self.vectors and (self.neighbours or self.known_runs())):
            return True
        return self.kind == READ and (
            len(set(self.offsets)) <= FEW or self.extent <= SPAN_BYTES or self.width >= ROW_BYTES)

    @property
    def vectors(self) -> bool:
        """Whether the machine can move the active lanes' part of a vector."""
        return self.kind == READ or self.mask.full or self.element >= 32 or self.lower.target.has("avx512bw")

    @property
    def neighbours(self) -> bool:
        """Whether the lanes' places follow each other, known from the shape."""
        return self.place.scalar and all(
            offset - self.lowest == self.width * lane for lane, offset in enumerate(self.offsets))

    def known_runs(self) -> list[int]:
        """Offsets of runs of equal length that a scalar shape's addresses are, from the lowest one; none when the
        runs are too many or too short."""
        relative = [o - self.lowest for o in self.offsets]
        for count in (2, 4, 8):
            length = WARP // count
            if length < SHORTEST_RUN and length * self.width < RUN_BYTES:
                break
            starts = relative[::length]
            if all(o == starts[lane // length] + lane % length * self.width for lane, o in enumerate(relative)):
                return starts
        return []

    # Checks.

    def passes(self) -> Value | None:
        """An i1 that is true when the fast path may be taken; None when that is known."""
        space = self.place.space
        if self.always_slow():
            return Value("false", "i1")
        if self.place.scalar and any(o % self.width for o in self.offsets):
            return Value("false", "i1")
        if space in (SHARED, PARAM, LOCAL):
            return self._in_space()
        return self._compare(False)

    def always_slow(self) -> bool:
        """Whether the run-time has to see every access."""
        return self.lower.options.logs and self._is_global()

    def _in_space(self) -> Value | None:
        lower, place = self.lower, self.place
        known = {SHARED: lower.layout.static_shared, PARAM: lower.layout.param_bytes,
                 LOCAL: lower.layout.local_bytes}[place.space]
        shape = place.shape
        aligned = shape.align % self.width == 0 and shape.residue % self.width == 0 and (
            not any(o % self.width for o in self.offsets))
        bounded = shape.low is not None and shape.high is not None and shape.high + self.width <= known
        if not self.groups and aligned and bounded:
            return None
        return self._compare(aligned)

    def _compare(self, aligned: bool) -> Value:
        """Whether all active lanes are inside and aligned."""
        lower, b, place = self.lower, self.lower.builder, self.place
        shift = 0 if aligned else self.width.bit_length() - 1
        if self.groups:
            return self._groups_pass(shift)
        if place.scalar:
            family = self._family()
            if family is not None and family.passes is None:
                family.passes = self._span_passes(family)
            if family is not None and family.passes is not None:
                return family.passes
            first = place.base
            if self.lowest:
                first = b.add(first, b.constant(self.lowest, "i64"))
            return self._inside(first, self.extent, shift)
        inside = lower.bits_of(self._inside(place.base, self.width, shift))
        outside = b.invert(inside) if self.mask.full else b.and_(self.mask.bits, b.invert(inside))
        return b.icmp("eq", outside, Value("0", "i32"))

    def _inside(self, first: Value, extent: int, shift: int) -> Value:
        """Whether ``extent`` bytes from an address, or from each of a vector of them, are inside, and the address is a
        multiple of 2**shift as the start is: one comparison of the distance, rotated so that low bits that should be
        clear make it huge."""
        lower, b, space = self.lower, self.lower.builder, self.place.space
        distance = first
        if space in (PARAM, LOCAL):
            size = lower.layout.param_bytes if space == PARAM else lower.layout.local_bytes
            limit = b.constant((max(size - extent + 1, 0) + (1 << shift) - 1) >> shift, "i64")
        else:
            cache = self._cache_of(extent, shift)
            limit = lower.load("i64", lower.at(cache, LIMIT_AT))
            if space != SHARED:
                start = lower.load("i64", cache)
                distance = b.sub(first, b.splat(start) if lanes(first.type) else start)
        if bits(first.type) == 32:
            limit = b.trunc(limit, "i32")
        return b.icmp("ult", rotated(b, distance, shift), b.splat(limit) if lanes(first.type) else limit)

    def _family(self) -> Family | None:
        """Other accesses of the block that are checked together with this one."""
        if self.place.register is None or self.lower.instruction.predicate is not None or (
                self.lower.instruction.opcode not in ("ld", "st")):
            return None
        return family_of(self.lower, self.place.register[0], NAMES[self.place.space])

    def _span_passes(self, family: Family) -> Value | None:
        """The check of all that a family accesses, by all lanes."""
        b = self.lower.builder
        assert self.place.register is not None
        if any(offset % family.align for offset in self.offsets):
            return None
        moved = family.low - self.place.register[1] + self.lowest
        first = b.add(self.place.base, b.constant(moved, "i64")) if moved else self.place.base
        extent = family.high - family.low + max(self.offsets) - self.lowest
        return self._inside(first, extent, family.align.bit_length() - 1)

    def _groups_pass(self, shift: int) -> Value:
        """Every run is inside, and one run where that is not sure: its last address is where it should be."""
        b, shape = self.lower.builder, self.place.shape
        span = self.width * shape.group
        result: Value | None = None
        for group in range(self.groups):
            first = b.resize(b.extract(self.place.base, group * shape.group), "i64")
            self.group_bases.append(first)
            good = self._inside(first, span, shift)
            if not shape.sure:
                last = b.resize(b.extract(self.place.base, (group + 1) * shape.group - 1), "i64")
                good = b.and_(good, b.icmp("eq", b.sub(last, first), b.constant(span - self.width, "i64")))
            result = good if result is None else b.and_(result, good)
        assert result is not None
        return result

    # Addresses.

    def addresses(self) -> Value:
        """Every lane's address in its own space, as ``<32 x i64>``."""
        b = self.lower.builder
        base = self.place.base
        if self.place.short is not None:
            register, offset = self.place.short
            lanes32 = b.add(b.splat(register), b.vector(self.offsets, "i32"))
            return b.add(b.zext(lanes32, "i64"), b.constant(offset, "i64", WARP))
        if not lanes(base.type):
            base = b.splat(base)
            if any(self.offsets):
                base = b.add(base, b.vector(self.offsets, "i64"))
            return base
        return b.resize(base, "i64")

    def pointer(self) -> Value:
        """Host pointer to lane 0's place plus the lowest offset; ``instead`` where that is given."""
        if self.instead is not None:
            return self.instead
        b = self.lower.builder
        first = self.place.base
        if self.lowest:
            first = b.add(first, b.constant(self.lowest, "i64"))
        return self.host(first)

    def host(self, first: Value) -> Value:
        """Host pointer of an address in the access's space that has been checked."""
        lower, b, space = self.lower, self.lower.builder, self.place.space
        if space == SHARED:
            return lower.at(lower.env("shared"), first)
        if space == PARAM:
            return lower.at(lower.env("params"), first)
        return b.emit(f"inttoptr i64 {first.ref} to ptr", "ptr")

    def pointers(self) -> Value:
        """Host pointers of all lanes, as ``<32 x ptr>``; the check has passed."""
        lower, b, space = self.lower, self.lower.builder, self.place.space
        base = self.place.base
        type_ = f"<{WARP} x ptr>"
        if space == LOCAL:
            whole = b.add(lower.local_bases(), self.addresses())
            return b.emit(f"inttoptr {whole.type} {whole.ref} to {type_}", type_)
        if not lanes(base.type):
            relative = b.vector([o - self.lowest for o in self.offsets], "i64")
            return b.emit(f"getelementptr i8, ptr {self.pointer().ref}, {relative.type} {relative.ref}", type_)
        if space in (SHARED, PARAM):
            origin = lower.env("shared" if space == SHARED else "params")
            return b.emit(f"getelementptr i8, ptr {origin.ref}, {base.type} {base.ref}", type_)
        return b.emit(f"inttoptr {base.type} {base.ref} to {type_}", type_)

    # The slow path, out of the way: where it takes few instructions, and functions that all accesses share.

    def resolved(self) -> Value:
        """Scratch memory with the host addresses of the active lanes, checked by the run-time one by one."""
        lower = self.lower
        room = lower.room("addresses", 8 * WARP)
        lower.store(self.addresses(), room, 64)
        if self.always_slow():
            lower.helper(LOG, "void", room, self.mask.bits, self.site)
        lower.checked_helper(RESOLVE, room, self.mask.bits, self.site, self.cache())
        return room

    def moved_slowly(self, values: Value, to_lanes: bool) -> Value:
        """Checked as by :meth:`resolved`, then copied to or from scratch memory with a place for each lane. Returns the
        status; with one that is not 0 the kernel must stop."""
        lower = self.lower
        room = lower.room("addresses", 8 * WARP)
        base, offsets = Value("0", "i64"), Value("null", "ptr")
        if self.place.scalar and self.place.short is None:
            base, offsets = self.place.base, offset_table(lower, self.offsets)
        else:
            lower.store(self.addresses(), room, 64)
        status = lower.helper(LOAD if to_lanes else STORE, "i32", base, offsets, room, self.mask.bits, self.site,
                              self.cache(), values)
        return status

    def _is_global(self) -> bool:
        return self.place.space in (GLOBAL, CONST, GENERIC)

    def cache(self) -> Value:
        """What the access is checked against, and what the run-time is to fill."""
        if self.place.space not in (GENERIC, GLOBAL, CONST, SHARED):
            return Value("null", "ptr")
        return self.checked or self._cache_of(self.width, self.width.bit_length() - 1)

    def _cache_of(self, extent: int, shift: int) -> Value:
        """A cache for a comparison of ``extent`` bytes with an alignment of 2**shift."""
        self.checked = cache_of(self.lower, self.place, extent, shift)
        return self.checked

    def guard_fast(self, fast: str, slow: str) -> bool:
        """Branch to the fast or the slow path; False when there is only the fast one."""
        condition = self.passes()
        if condition is None:
            return False
        self.lower.branch(condition, fast, slow, likely=True)
        return True


def cache_of(lower: Lower, place: Place, extent: int, shift: int) -> Value:
    """Where the worker has start and limit for a comparison (``struct sg_cache``)."""
    root = SHARED_ROOT if place.space == SHARED else place.root
    new = (root, extent, shift) not in lower.caches
    number = lower.caches.setdefault((root, extent, shift), len(lower.caches))
    if new:
        lower.entry.append(f"  %cache{number} = getelementptr i8, ptr {lower.env('caches').ref}, "
                           f"i64 {CACHE_BYTES * number}")
    return Value(f"%cache{number}", "ptr")


def rotated(b: Builder, distance: Value, shift: int) -> Value:
    """Turned right by ``shift`` bits."""
    if not shift:
        return distance
    return b.intrinsic("llvm.fshr", bits_type(distance), distance, distance, b.like(shift, distance))


def bits_type(value: Value) -> str:
    return f"i{bits(value.type)}"


def offset_table(lower: Lower, offsets: tuple[int, ...]) -> Value:
    """A constant array with the lanes' offsets from lane 0."""
    name = lower.tables.setdefault(offsets, f"softgpu_offsets{len(lower.tables)}")
    if name not in lower.builder.helpers:
        numbers = ", ".join([f"i64 {o}" for o in offsets])
        lower.builder.helpers[name] = f"@{name} = internal constant [{WARP} x i64] [{numbers}], align 64"
    return Value(f"@{name}", "ptr")


def deinterleaved(b: Builder, whole: Value, count: int) -> list[Value]:
    """``<32 count x T>`` with all elements of lane 0 first, as one vector per element."""
    return [joined(b, parts) for parts in _apart(b, split(b, [whole]), count)] if count > 1 else [whole]


def _apart(b: Builder, parts: list[Value], count: int) -> list[list[Value]]:
    """Halving it again and again, each register is made of two."""
    if count == 1:
        return [parts]
    halves = []
    for first in range(2):
        if len(parts) == 1:
            half = [b.shuffle(parts[0], None, list(range(first, lanes(parts[0].type), 2)))]
        else:
            half = [b.shuffle(x, y, list(range(first, 2 * lanes(x.type), 2)))
                    for x, y in zip(parts[0::2], parts[1::2], strict=True)]
        halves.append(_apart(b, half, count // 2))
    return [parts for pair in zip(*halves, strict=True) for parts in pair]


def interleaved(b: Builder, values: Sequence[Value]) -> Value:
    """The reverse: elements of lane 0, then those of lane 1, ..."""
    return joined(b, _together(b, values)) if len(values) > 1 else values[0]


def _together(b: Builder, values: Sequence[Value]) -> list[Value]:
    if len(values) == 1:
        return split(b, values)
    found = []
    for x, y in zip(_together(b, values[0::2]), _together(b, values[1::2]), strict=True):
        size = lanes(x.type)
        for start in (0, size // 2):
            found.append(b.shuffle(x, y, [i + size * k for i in range(start, start + size // 2) for k in range(2)]))
    return found


def vector_of(element: int, count: int = WARP) -> str:
    return shaped(f"i{element}", count)
