"""Loads and stores of all lanes: which form of access fits the addresses.

Same address: one scalar. Neighbours: one vector. A few addresses, or a pattern within a short span: scalars or a wide
vector, and a shuffle. Anything else: gather and scatter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from softgpu.engine.emit import bands, rows
from softgpu.engine.emit.access import (
    FEW,
    GATHER,
    GLOBAL,
    LOCAL,
    ROW_BYTES,
    SCATTER,
    SPAN_BYTES,
    Access,
    deinterleaved,
    interleaved,
    vector_of,
)
from softgpu.engine.emit.lower import Mask
from softgpu.engine.ir import WARP, Builder, Value, joined, lanes

if TYPE_CHECKING:
    from softgpu.engine.emit.lower import Lower

ROUNDS_AHEAD = 4
"""How many rounds of a loop ahead loads are announced: steps are often multiples of what a cache divides addresses by,
so that more of them would displace each other from the few lines of one set."""
CACHE_LINE, LINES_AHEAD = 64, 4


def load(access: Access) -> list[Value]:
    """The elements, as integers: scalars when all lanes read one place, else vectors. One generic address may be a
    place in local memory for each lane."""
    lower, b = access.lower, access.lower.builder
    band = bands.band_of(access)
    if band is None or band.passes is None:
        return _load_alone(access)
    fast, slow, done = lower.label("read"), lower.label("unread"), lower.label("loaded")
    lower.branch(band.passes, fast, slow, likely=True)
    lower.place(fast)
    quick = bands.read(access, band)
    lower.jump(done)
    lower.place(slow)
    (careful,) = _load_alone(access)
    end = lower.present.label
    lower.jump(done)
    lower.place(done)
    return [b.emit(f"phi {quick.type} [ {quick.ref}, %{fast} ], [ {careful.ref}, %{end} ]", quick.type)]


def _load_alone(access: Access) -> list[Value]:
    """Without others."""
    lower, b = access.lower, access.lower.builder
    guess = access.guess()
    if guess is None:
        return _load(access)
    near, good = guess
    fast, slow, done = lower.label("near"), lower.label("far"), lower.label("loaded")
    lower.branch(good, fast, slow, likely=True)
    lower.place(fast)
    quick = _fast_load(near)
    lower.jump(done)
    lower.place(slow)
    careful = _load(access)
    end = lower.present.label
    lower.jump(done)
    lower.place(done)
    return [
        b.emit(f"phi {x.type} [ {x.ref}, %{fast} ], [ {y.ref}, %{end} ]", x.type)
        for x, y in zip(quick, careful, strict=True)
    ]


def _load(access: Access) -> list[Value]:
    """As far as the shape says."""
    lower, b = access.lower, access.lower.builder
    if access.rowwise:
        return _load_rows(access)
    passes = access.passes()
    if passes is None:
        return _fast_load(access)
    if access.image:
        return _load_image(access, passes)
    fast, slow, done = lower.label("fast"), lower.label("slow"), lower.label("loaded")
    lower.branch(passes, fast, slow, likely=True)
    lower.place(fast)
    quick = [b.splat(value) for value in _fast_load(access)]
    lower.jump(done)
    lower.place(slow)
    room = lower.room("values")
    status = access.moved_slowly(room, True)
    kind = vector_of(access.element)
    careful = [lower.load(kind, lower.at(room, k * WARP * access.size), WARP) for k in range(access.count)]
    lower.branch(b.icmp("ne", status, Value("0", "i32")), "stopped", done, likely=False)
    lower.place(done)
    return [
        b.emit(f"phi {x.type} [ {x.ref}, %{fast} ], [ {y.ref}, %{slow} ]", x.type)
        for x, y in zip(quick, careful, strict=True)
    ]


def _load_image(access: Access, passes: Value) -> list[Value]:
    """One load, from memory or from what the slow path put into scratch memory in the same way."""
    lower, b = access.lower, access.lower.builder
    slow, done = lower.label("slow"), lower.label("loaded")
    if access.neighbours and access.place.space == GLOBAL and lower.in_loop():
        _prefetch(access)
    pointer, before = access.pointer(), lower.present.label
    lower.branch(passes, done, slow, likely=True)
    lower.place(slow)
    room = lower.room("values")
    status = access.moved_slowly(room, True)
    lower.branch(b.icmp("ne", status, Value("0", "i32")), "stopped", done, likely=False)
    lower.place(done)
    access.instead = b.emit(f"phi ptr [ {pointer.ref}, %{before} ], [ {room.ref}, %{slow} ]", "ptr")
    return _fast_load(access)


def _prefetch(access: Access) -> None:
    """Ask for what the loop will read some rounds later, if it goes on in the same steps. Threads of a GPU's loop read
    far from where they read before, since all others read in between, and the CPU's own prefetcher does not see such
    steps. Asking for an address that does not exist does nothing."""
    lower, b = access.lower, access.lower.builder
    slot = Value(b.fresh("before"), "ptr")
    lower.entry += [f"  {slot.ref} = alloca i64", f"  store i64 0, ptr {slot.ref}"]
    base = access.place.base
    step = b.sub(base, lower.load("i64", slot))
    lower.store(base, slot)
    ahead = b.add(base, b.mul(step, b.constant(ROUNDS_AHEAD, "i64")))
    b.declarations.setdefault("llvm.prefetch.p0", "declare void @llvm.prefetch.p0(ptr, i32, i32, i32)")
    for offset in range(0, min(access.extent, LINES_AHEAD * CACHE_LINE), CACHE_LINE):
        at = b.add(ahead, b.constant(access.lowest + offset, "i64")) if access.lowest + offset else ahead
        line = b.emit(f"inttoptr i64 {at.ref} to ptr", "ptr")
        b.line(f"  call void @llvm.prefetch.p0(ptr {line.ref}, i32 0, i32 3, i32 1)")


def _load_rows(access: Access) -> list[Value]:
    element, count = access.element, access.count

    def columns(b: Builder, whole: Value) -> list[Value]:
        return deinterleaved(b, b.reinterpret(whole, vector_of(element, WARP * count)), count)

    return rows.load(access, f"{count}x{element}", [vector_of(element)] * count, columns)


def _fast_load(access: Access) -> list[Value]:
    lower, b = access.lower, access.lower.builder
    kind = f"i{access.element}"
    if access.place.shape.uniform and access.place.space != LOCAL:
        pointer = access.pointer()
        return [lower.load(kind, lower.at(pointer, k * access.size) if k else pointer, access.size)
                for k in range(access.count)]
    if access.place.scalar and access.place.space != LOCAL:
        relative = [o - access.lowest for o in access.offsets]
        if access.neighbours:
            whole = lower.load(vector_of(access.element, WARP * access.count), access.pointer(), access.size)
            return deinterleaved(b, whole, access.count)
        if len(set(relative)) <= FEW:
            return _few(access, relative)
        if access.extent <= SPAN_BYTES:
            return _span(access, relative)
        if access.width >= ROW_BYTES:
            return _run_loads(access, [lower.at(access.pointer(), o) for o in relative])
    runs = _runs(access)
    return _run_loads(access, runs) if runs else _gather(access)


def _runs(access: Access) -> list[Value]:
    """Pointers to the runs of neighbours that the lanes' places are, if they are."""
    if access.group_bases:
        return [access.host(base) for base in access.group_bases]
    if access.place.scalar and access.place.space != LOCAL and (starts := access.known_runs()):
        pointer = access.pointer()
        return [access.lower.at(pointer, start) for start in starts]
    return []


def _run_loads(access: Access, pointers: list[Value]) -> list[Value]:
    """One vector from each pointer."""
    lower, b = access.lower, access.lower.builder
    size = WARP * access.count // len(pointers)
    parts = [lower.load(vector_of(access.element, size), pointer, access.size) for pointer in pointers]
    return deinterleaved(b, joined(b, parts), access.count)


def _few(access: Access, relative: list[int]) -> list[Value]:
    """Some scalars, spread over the lanes."""
    lower, b = access.lower, access.lower.builder
    pointer = access.pointer()
    distinct = sorted(set(relative))
    found = []
    for k in range(access.count):
        small = b.poison(vector_of(access.element, len(distinct)))
        for number, offset in enumerate(distinct):
            at = offset + k * access.size
            item = lower.load(f"i{access.element}", lower.at(pointer, at) if at else pointer, access.size)
            small = b.insert(small, item, number)
        found.append(b.shuffle(small, None, [distinct.index(o) for o in relative]))
    return found


def _span(access: Access, relative: list[int]) -> list[Value]:
    """All bytes between the lowest and the highest address, and a choice from them."""
    lower, b = access.lower, access.lower.builder
    count = access.extent // access.size
    whole = lower.load(vector_of(access.element, count), access.pointer(), access.size)
    return [b.shuffle(whole, None, [o // access.size + k for o in relative]) for k in range(access.count)]


def _gather(access: Access) -> list[Value]:
    lower, b = access.lower, access.lower.builder
    pointers = access.pointers()
    if access.element < 32:
        room = lower.room("values")
        _copy(lower, pointers, access.width, access.mask, room, True)
        whole = lower.load(vector_of(access.element, WARP * access.count), room, 64)
        return deinterleaved(b, whole, access.count)
    found = []
    for k in range(access.count):
        at = pointers
        if k:
            at = b.emit(f"getelementptr i8, {pointers.type} {pointers.ref}, i64 {k * access.size}", pointers.type)
        found.append(gathered(lower, at, access.element, access.size, access.mask))
    return found


def _copy(lower: Lower, pointers: Value, width: int, mask: Mask, room: Value, to_lanes: bool) -> None:
    """Copy bytes between places that have been checked and scratch memory with a place for each lane."""
    addresses = lower.room("addresses", 8 * WARP)
    type_ = f"<{WARP} x i64>"
    lower.store(lower.builder.emit(f"ptrtoint {pointers.type} {pointers.ref} to {type_}", type_), addresses, 64)
    size = lower.builder.constant(width, "i32")
    lower.helper(GATHER if to_lanes else SCATTER, "void", addresses, mask.bits, size, room)


def gathered(lower: Lower, pointers: Value, element: int, align: int, mask: Mask) -> Value:
    """One integer of ``element`` bits for each active lane, from places that have been checked."""
    b = lower.builder
    kind = vector_of(element)
    if element < 32:
        room = lower.room("values")
        _copy(lower, pointers, element // 8, mask, room, True)
        return lower.load(kind, room, 64)
    name = f"llvm.masked.gather.v{WARP}i{element}.v{WARP}p0"
    b.declarations.setdefault(name, f"declare {kind} @{name}(<{WARP} x ptr>, <{WARP} x i1>, {kind})")
    active = lower.mask_lanes(mask)
    return b.emit(f"call {kind} @{name}({pointers.type} align {align} {pointers.ref}, {active.type} {active.ref}, "
                  f"{kind} zeroinitializer)", kind)


def store(access: Access, values: list[Value]) -> None:
    """Store integers: scalars where all lanes store the same, else vectors. Of lanes that store to one place the last
    one wins."""
    lower = access.lower
    guess = access.guess()
    if guess is None:
        _store(access, values)
        return
    near, good = guess
    fast, slow, done = lower.label("near"), lower.label("far"), lower.label("stored")
    lower.branch(good, fast, slow, likely=True)
    lower.place(fast)
    _fast_store(near, values)
    lower.jump(done)
    lower.place(slow)
    _store(access, values)
    lower.jump(done)
    lower.place(done)


def _store(access: Access, values: list[Value]) -> None:
    """As far as the shape says."""
    lower, b = access.lower, access.lower.builder
    if access.rowwise:
        rows.store(access, f"{access.count}x{access.element}", values, interleaved)
        return
    passes = access.passes()
    if passes is None:
        _fast_store(access, values)
        return
    if access.image:
        _store_image(access, values, passes)
        return
    fast, slow, done = lower.label("fast"), lower.label("slow"), lower.label("stored")
    lower.branch(passes, fast, slow, likely=True)
    lower.place(fast)
    _fast_store(access, values)
    lower.jump(done)
    lower.place(slow)
    room = lower.room("values")
    for k, value in enumerate(values):
        lower.store(b.splat(value), lower.at(room, k * WARP * access.size), WARP)
    status = access.moved_slowly(room, False)
    lower.branch(b.icmp("ne", status, Value("0", "i32")), "stopped", done, likely=False)
    lower.place(done)


def _store_image(access: Access, values: list[Value], passes: Value) -> None:
    """One store, to memory or to scratch memory, from where the slow path takes it."""
    lower, b = access.lower, access.lower.builder
    slow, done = lower.label("slow"), lower.label("stored")
    room = lower.room("values")
    access.instead = b.select(passes, access.pointer(), room)
    _fast_store(access, values)
    lower.branch(passes, done, slow, likely=True)
    lower.place(slow)
    status = access.moved_slowly(room, False)
    lower.branch(b.icmp("ne", status, Value("0", "i32")), "stopped", done, likely=False)
    lower.place(done)


def _fast_store(access: Access, values: list[Value]) -> None:
    if access.place.scalar and access.place.space != LOCAL:
        if access.place.shape.uniform:
            _store_last(access, values)
            return
        if access.neighbours and access.vectors:
            _store_neighbours(access, values)
            return
    if access.vectors:
        runs = _runs(access)
        if runs:
            _store_runs(access, values, runs)
            return
    _scatter(access, values)


def _store_last(access: Access, values: list[Value]) -> None:
    """One address: the last active lane's value stays."""
    lower, b = access.lower, access.lower.builder
    skip = lower.label("stored")
    if not access.mask.full:
        some = b.icmp("ne", access.mask.bits, Value("0", "i32"))
        some_label = lower.label("some")
        lower.branch(some, some_label, skip)
        lower.place(some_label)
    pointer = access.pointer()
    last = Value("31", "i32")
    if not access.mask.full and any(lanes(v.type) for v in values):
        zeros = b.intrinsic("llvm.ctlz", "i32", access.mask.bits, extra=(Value("true", "i1"),))
        last = b.sub(Value("31", "i32"), zeros)
    for k, value in enumerate(values):
        if lanes(value.type):
            value = b.extract(value, last)
        lower.store(value, lower.at(pointer, k * access.size) if k else pointer, access.size)
    if not access.mask.full:
        lower.jump(skip)
        lower.place(skip)


def _store_neighbours(access: Access, values: list[Value]) -> None:
    b = access.lower.builder
    whole = interleaved(b, [b.splat(v) for v in values])
    _store_vector(access, whole, access.pointer(), None if access.mask.full else _repeated(access))


def _store_runs(access: Access, values: list[Value], runs: list[Value]) -> None:
    b = access.lower.builder
    whole = interleaved(b, [b.splat(v) for v in values])
    active = None if access.mask.full else _repeated(access)
    size = WARP * access.count // len(runs)
    for number, pointer in enumerate(runs):
        chosen = list(range(number * size, (number + 1) * size))
        part = b.shuffle(whole, None, chosen)
        _store_vector(access, part, pointer, None if active is None else b.shuffle(active, None, chosen))


def _repeated(access: Access) -> Value:
    """The active lanes, once for every element of a lane."""
    active = access.lower.mask_lanes(access.mask)
    if access.count == 1:
        return active
    return access.lower.builder.shuffle(active, None, [lane for lane in range(WARP) for _ in range(access.count)])


def _store_vector(access: Access, whole: Value, pointer: Value, active: Value | None) -> None:
    lower, b = access.lower, access.lower.builder
    if active is None:
        lower.store(whole, pointer, access.size)
        return
    if lower.target.has("avx512f"):
        _store_masked(access, whole, pointer, active)
        return
    # Some CPUs take ten times as long for a store with a mask, even with a full one.
    unmasked, masked, done = lower.label("unmasked"), lower.label("masked"), lower.label("written")
    lower.branch(b.icmp("eq", access.mask.bits, Value("-1", "i32")), unmasked, masked, likely=True)
    lower.place(unmasked)
    lower.store(whole, pointer, access.size)
    lower.jump(done)
    lower.place(masked)
    _store_masked(access, whole, pointer, active)
    lower.jump(done)
    lower.place(done)


def _store_masked(access: Access, whole: Value, pointer: Value, active: Value) -> None:
    b = access.lower.builder
    name = f"llvm.masked.store.v{lanes(whole.type)}i{access.element}.p0"
    b.declarations.setdefault(name, f"declare void @{name}({whole.type}, ptr, {active.type})")
    b.line(f"  call void @{name}({whole.type} {whole.ref}, ptr align {access.size} {pointer.ref}, "
           f"{active.type} {active.ref})")


def _scatter(access: Access, values: list[Value]) -> None:
    lower, b = access.lower, access.lower.builder
    pointers = access.pointers()
    if access.element < 32:
        room = lower.room("values")
        lower.store(interleaved(b, [b.splat(v) for v in values]), room, 64)
        _copy(lower, pointers, access.width, access.mask, room, False)
        return
    for k, value in enumerate(values):
        at = pointers
        if k:
            at = b.emit(f"getelementptr i8, {pointers.type} {pointers.ref}, i64 {k * access.size}", pointers.type)
        scattered(lower, at, b.splat(value), access.element, access.size, access.mask)


def scattered(lower: Lower, pointers: Value, value: Value, element: int, align: int, mask: Mask) -> None:
    """Store one integer of ``element`` bits for each active lane, to places that have been checked."""
    b = lower.builder
    if element < 32:
        room = lower.room("values")
        lower.store(value, room, 64)
        _copy(lower, pointers, element // 8, mask, room, False)
        return
    active = lower.mask_lanes(mask)
    name = f"llvm.masked.scatter.v{WARP}i{element}.v{WARP}p0"
    b.declarations.setdefault(name, f"declare void @{name}({value.type}, <{WARP} x ptr>, <{WARP} x i1>)")
    b.line(f"  call void @{name}({value.type} {value.ref}, {pointers.type} align {align} {pointers.ref}, "
           f"{active.type} {active.ref})")
