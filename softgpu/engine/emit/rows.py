"""Accesses by each lane at a place of its own, where gather and scatter do not fit: in functions of the module.

A lane's bytes are its *row*. Written out at each place, the check, 32 loads and the slow path take LLVM as long as a
hundred other instructions; and beside 32 loads a call costs little. The functions take the addresses in memory, since
each is needed in a scalar register.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from softgpu.engine.emit.access import (
    ADDRESSES,
    GLOBAL,
    LIMIT_AT,
    LOAD,
    NAMES,
    SHARED,
    STORE,
    Access,
    rotated,
)
from softgpu.engine.emit.lower import ENV
from softgpu.engine.ir import WARP, Builder, Value, joined, lanes, shaped

Columns = Callable[[Builder, Value], list[Value]]
Rows = Callable[[Builder, Sequence[Value]], Value]

_ENV, _ROOM, _MASK, _SITE, _CACHE = (
    Value("%env", "ptr"), Value("%addresses", "ptr"), Value("%mask", "i32"), Value("%site", "i32"),
    Value("%cache", "ptr"))
_PARAMETERS = ", ".join([f"{v.type} {v.ref}" for v in (_ENV, _ROOM, _MASK, _SITE, _CACHE)])


def convention(builder: Builder) -> str:
    """Calling convention of functions that take and give vectors: in registers, where there are enough of these."""
    return "x86_regcallcc" if builder.wide_registers else "fastcc"


def load(access: Access, name: str, types: Sequence[str], columns: Columns) -> list[Value]:
    """What ``columns`` makes, as values of ``types``, of the rows, one behind another in a vector (``row_type``).
    ``name`` says what that is. Lanes that are not active have rows of zeros, or of anything."""
    lower, b = access.lower, access.lower.builder
    space = SHARED if access.place.space == SHARED else GLOBAL
    name = f"softgpu_read_{NAMES[space]}_{name}"
    result = f"{{{', '.join([*types, 'i32'])}}}"
    if name not in b.helpers:
        inner = Builder(b.wide_registers)
        _read(inner, space, access.width, lower.options.logs and space == GLOBAL, result, columns)
        head = f"define internal {convention(b)} {result} @{name}({_PARAMETERS})"
        b.helpers[name] = whole_text(b, inner, head)
    call = b.emit(f"call {convention(b)} {result} @{name}({_given(access)})", result)
    lower.stop_if(b.emit(f"extractvalue {result} {call.ref}, {len(types)}", "i32"))
    return [b.emit(f"extractvalue {result} {call.ref}, {k}", type_) for k, type_ in enumerate(types)]


def store(access: Access, name: str, values: Sequence[Value], rows: Rows) -> None:
    """Store the rows that ``rows`` makes of the values, one behind another in one vector."""
    lower, b = access.lower, access.lower.builder
    space = SHARED if access.place.space == SHARED else GLOBAL
    name = f"softgpu_write_{NAMES[space]}_{name}"
    given = [b.splat(value) for value in values]
    if name not in b.helpers:
        inner = Builder(b.wide_registers)
        parameters = [Value(f"%register{k}", value.type) for k, value in enumerate(given)]
        _write(inner, space, access.width, lower.options.logs and space == GLOBAL, parameters, rows)
        taken = ", ".join([_PARAMETERS, *[f"{v.type} {v.ref}" for v in parameters]])
        b.helpers[name] = whole_text(b, inner, f"define internal {convention(b)} i32 @{name}({taken})")
    operands = ", ".join([_given(access), *[f"{v.type} {v.ref}" for v in given]])
    lower.stop_if(b.emit(f"call {convention(b)} i32 @{name}({operands})", "i32"))


def _given(access: Access) -> str:
    """The operands that all functions take."""
    lower = access.lower
    room = lower.room("addresses", 8 * WARP)
    lower.store(access.addresses(), room, 64)
    given = (_ENV, room, access.mask.bits, access.site, access.cache())
    return ", ".join([f"{v.type} {v.ref}" for v in given])


def _field(inner: Builder, name: str) -> Value:
    offset, type_ = ENV[name]
    at = inner.emit(f"getelementptr i8, ptr %env, i64 {offset}", "ptr")
    return inner.emit(f"load {type_}, ptr {at.ref}", type_)


def helper(inner: Builder, number: int, operands: Sequence[Value]) -> Value:
    helpers = _field(inner, "helpers")
    at = inner.emit(f"getelementptr i8, ptr {helpers.ref}, i64 {8 * number}", "ptr")
    function = inner.emit(f"load ptr, ptr {at.ref}", "ptr")
    given = ", ".join([f"{v.type} {v.ref}" for v in operands])
    return inner.emit(f"call i32 {function.ref}({given})", "i32")


def _compared_with(inner: Builder, cache: Value) -> tuple[Value, Value]:
    """Start and limit of a cache."""
    start = inner.emit(f"load i64, ptr {cache.ref}", "i64")
    at = inner.emit(f"getelementptr i8, ptr {cache.ref}, i64 {LIMIT_AT}", "ptr")
    return start, inner.emit(f"load i64, ptr {at.ref}", "i64")


def outside(inner: Builder, addresses: Value, width: int, mask: Value, cache: Value) -> Value:
    """The lanes of ``mask`` (i32) whose bytes are not all where the cache says, or not aligned to their number."""
    start, limit = _compared_with(inner, cache)
    distance = rotated(inner, inner.sub(addresses, inner.splat(start)), width.bit_length() - 1)
    inside = inner.mask_bits(inner.icmp("ult", distance, inner.splat(limit)))
    return inner.and_(mask, inner.invert(inside))


def spare(inner: Builder, addresses: Value, space: int, active: Value, otherwise: str, room: Value) -> None:
    """Let lanes that are not active access ``otherwise`` (a pointer), put into ``room`` in place of their addresses."""
    some, on = inner.fresh("some")[1:], inner.fresh("all")[1:]
    full = inner.icmp("eq", active, Value("-1", "i32"))
    inner.line(f"  br i1 {full.ref}, label %{on}, label %{some}")
    inner.line(f"{some}:")
    other = inner.emit(f"ptrtoint ptr {otherwise} to i64", "i64")
    if space == SHARED:
        other = inner.sub(other, inner.emit(f"ptrtoint ptr {_field(inner, 'shared').ref} to i64", "i64"))
    safe = inner.select(inner.mask_lanes(active), addresses, inner.splat(other))
    inner.line(f"  store {safe.type} {safe.ref}, ptr {room.ref}, align 64")
    inner.line(f"  br label %{on}")
    inner.line(f"{on}:")


@dataclass(frozen=True)
class Places:
    """All lanes' places: addresses in ``room``, relative to ``base`` where that is not null."""

    inner: Builder
    room: Value
    base: Value | None
    width: int

    def _pointer(self, lane: int) -> Value:
        """Loaded where it is used: 32 of them at once find no registers."""
        at = self.inner.emit(f"getelementptr i64, ptr {self.room.ref}, i64 {lane}", "ptr")
        if self.base is None:
            return self.inner.emit(f"load ptr, ptr {at.ref}", "ptr")
        offset = self.inner.emit(f"load i64, ptr {at.ref}", "i64")
        return self.inner.emit(f"getelementptr i8, ptr {self.base.ref}, i64 {offset.ref}", "ptr")

    def load(self, lane: int) -> Value:
        """The bytes at a lane's place."""
        type_ = row_type(self.width)
        return self.inner.emit(f"load {type_}, ptr {self._pointer(lane).ref}, align {self.width}", type_)

    def bytes(self, lane: int, start: int) -> Value:
        """``width`` single bytes from a lane's place on, or from some bytes behind it, aligned or not."""
        at = self._pointer(lane)
        if start:
            at = self.inner.emit(f"getelementptr i8, ptr {at.ref}, i64 {start}", "ptr")
        type_ = shaped("i8", self.width)
        return self.inner.emit(f"load {type_}, ptr {at.ref}, align 1", type_)

    def store(self, row: Value, lane: int) -> None:
        self.inner.line(f"  store {row.type} {row.ref}, ptr {self._pointer(lane).ref}, align {self.width}")

    def load_all(self) -> Value:
        """The bytes at all lanes' places, as one vector."""
        found = [self.load(lane) for lane in range(WARP)]
        if self.width > 8:
            return joined(self.inner, found)
        whole = self.inner.poison(row_type(self.width, WARP))
        for lane, item in enumerate(found):
            whole = self.inner.insert(whole, item, lane)
        return whole

    def store_all(self, whole: Value) -> None:
        """The reverse, lane after lane."""
        words = max(self.width // 8, 1)
        for lane in range(WARP):
            chosen = list(range(lane * words, (lane + 1) * words))
            row = self.inner.shuffle(whole, None, chosen) if words > 1 else self.inner.extract(whole, lane)
            self.store(row, lane)


def places(inner: Builder, room: Value, space: int, width: int) -> Places:
    """The places that ``room`` has, once they are checked and ``spare`` has seen to the others."""
    return Places(inner, room, _field(inner, "shared") if space == SHARED else None, width)


RUN = 8
"""Lanes of a run. Threads at neighbouring places are often fewer than a warp: tiles of 8 or 16 columns, or two parts of
a warp of which one is a round of a loop behind the other."""


def _runs(inner: Builder, addresses: Value, space: int, width: int, whole_only: bool, otherwise: str,
          ) -> tuple[Value, list[str]]:
    """Whether each run of lanes is at neighbouring places inside, or not active; and pointers to the first ones, to
    ``otherwise`` for runs that are not active. ``whole_only``: no run may be active in part."""
    start, limit = _compared_with(inner, _CACHE)
    limit = inner.intrinsic("llvm.usub.sat", "i64", limit, inner.constant(RUN - 1, "i64"))
    offsets = inner.vector([lane % RUN * width for lane in range(WARP)], "i64")
    firsts = inner.shuffle(addresses, None, [lane // RUN * RUN for lane in range(WARP)])
    strays = inner.and_(_MASK, inner.mask_bits(inner.icmp("ne", addresses, inner.add(firsts, offsets))))
    good = inner.icmp("eq", strays, Value("0", "i32"))
    base = _field(inner, "shared") if space == SHARED else None
    pointers = []
    for lane in range(0, WARP, RUN):
        first = inner.extract(addresses, lane)
        distance = rotated(inner, inner.sub(first, start), width.bit_length() - 1)
        every = inner.constant(((1 << RUN) - 1) << lane, "i32")
        active = inner.and_(_MASK, every)
        none = inner.icmp("eq", active, Value("0", "i32"))
        fits = inner.icmp("ult", distance, limit)
        if whole_only:
            fits = inner.and_(fits, inner.icmp("eq", active, every))
        good = inner.and_(good, inner.or_(fits, none))
        pointer = inner.emit(f"inttoptr i64 {first.ref} to ptr", "ptr") if base is None else (
            inner.emit(f"getelementptr i8, ptr {base.ref}, i64 {first.ref}", "ptr"))
        pointers.append(inner.select(none, Value(otherwise, "ptr"), pointer).ref)
    return good, pointers


def frozen_addresses(inner: Builder, room: Value) -> Value:
    """All lanes' addresses; lanes that are not active may hold anything."""
    loaded = inner.emit(f"load {ADDRESSES}, ptr {room.ref}, align 64", ADDRESSES)
    return inner.emit(f"freeze {ADDRESSES} {loaded.ref}", ADDRESSES)


def zero_row(inner: Builder) -> str:
    """A place that lanes which read nothing read, room for a run of them."""
    inner.helpers.setdefault("softgpu_zero_row",
                             "@softgpu_zero_row = internal constant [256 x i8] zeroinitializer, align 64")
    return "@softgpu_zero_row"


def row_type(width: int, count: int = 1) -> str:
    """One lane's bytes, or those of several one behind another: words of 64 bits, or one smaller word."""
    words, element = (width // 8, 64) if width > 8 else (1, 8 * width)
    return shaped(f"i{element}", words * count if words * count > 1 else 0)


def begin(inner: Builder, width: int) -> Value:
    """The entry block's scratch memory: a row for each lane."""
    inner.line("entry:")
    inner.line(f"  %values = alloca [{width * WARP} x i8], align 64")
    return Value("%values", "ptr")


def divide(inner: Builder, beyond: Value, logs: bool) -> None:
    """Branch to ``fast`` or ``slow``."""
    good = Value("false", "i1") if logs else inner.icmp("eq", beyond, Value("0", "i32"))
    inner.line(f"  br i1 {good.ref}, label %fast, label %slow, !prof !0")


def whole_text(builder: Builder, inner: Builder, head: str) -> str:
    """The function; what it needs is added to the module."""
    builder.declarations.update(inner.declarations)
    builder.helpers.update(inner.helpers)
    return "\n".join([f"{head} noinline {{", *inner.lines, "}"])


def _read(inner: Builder, space: int, width: int, logs: bool, result: str, columns: Columns) -> None:
    values = begin(inner, width)
    addresses = frozen_addresses(inner, _ROOM)
    near, pointers = _runs(inner, addresses, space, width, False, zero_row(inner))
    if logs:
        near = Value("false", "i1")
    inner.line(f"  br i1 {near.ref}, label %runs, label %apart")
    inner.line("runs:")
    run = row_type(width, RUN)
    together = joined(inner, [inner.emit(f"load {run}, ptr {pointer}, align {width}", run) for pointer in pointers])
    inner.line("  br label %done")
    inner.line("apart:")
    divide(inner, outside(inner, addresses, width, _MASK, _CACHE), logs)
    inner.line("fast:")
    spare(inner, addresses, space, _MASK, zero_row(inner), _ROOM)
    quick = places(inner, _ROOM, space, width).load_all()
    inner.line("  br label %moved")
    inner.line("moved:")
    inner.line("  br label %done")
    inner.line("slow:")
    status = helper(inner, LOAD, (_ENV, Value("0", "i64"), Value("null", "ptr"), _ROOM, _MASK, _SITE, _CACHE, values))
    careful = inner.emit(f"load {quick.type}, ptr {values.ref}, align 64", quick.type)
    inner.line("  br label %done")
    inner.line("done:")
    whole = inner.emit(f"phi {quick.type} [ {together.ref}, %runs ], [ {quick.ref}, %moved ], "
                       f"[ {careful.ref}, %slow ]", quick.type)
    stopped = inner.emit(f"phi i32 [ 0, %runs ], [ 0, %moved ], [ {status.ref}, %slow ]", "i32")
    answer = Value("poison", result)
    for index, value in enumerate([*columns(inner, whole), stopped]):
        answer = inner.emit(f"insertvalue {result} {answer.ref}, {value.type} {value.ref}, {index}", result)
    inner.line(f"  ret {result} {answer.ref}")


def _write(inner: Builder, space: int, width: int, logs: bool, registers: Sequence[Value], rows: Rows) -> None:
    values = begin(inner, width)
    whole = inner.reinterpret(rows(inner, registers), row_type(width, WARP))
    addresses = frozen_addresses(inner, _ROOM)
    near, pointers = _runs(inner, addresses, space, width, True, values.ref)
    if logs:
        near = Value("false", "i1")
    inner.line(f"  br i1 {near.ref}, label %runs, label %apart")
    inner.line("runs:")
    words = lanes(whole.type) // len(pointers)
    for number, pointer in enumerate(pointers):
        run = inner.shuffle(whole, None, list(range(number * words, (number + 1) * words)))
        inner.line(f"  store {run.type} {run.ref}, ptr {pointer}, align {width}")
    inner.line("  ret i32 0")
    inner.line("apart:")
    divide(inner, outside(inner, addresses, width, _MASK, _CACHE), logs)
    inner.line("fast:")
    spare(inner, addresses, space, _MASK, values.ref, _ROOM)
    places(inner, _ROOM, space, width).store_all(whole)
    inner.line("  ret i32 0")
    inner.line("slow:")
    inner.line(f"  store {whole.type} {whole.ref}, ptr {values.ref}, align 64")
    status = helper(inner, STORE, (_ENV, Value("0", "i64"), Value("null", "ptr"), _ROOM, _MASK, _SITE, _CACHE, values))
    inner.line(f"  ret i32 {status.ref}")
