"""atom and red: one lane after another, in order of lanes, each a real atomic of the machine.

Sums of integers whose old value nobody reads and that go to one address are added up within the warp first.
Floating-point operations are compare-and-swap loops around the arithmetic of the tables.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxparse.model import TYPE_BYTES, Operand, Register, Vector
from softgpu.engine.emit import each_lane
from softgpu.engine.emit.access import ATOMIC, SHARED, Access
from softgpu.engine.emit.lower import CANONICAL_NAN
from softgpu.engine.emit.memory import SCOPES, address
from softgpu.engine.emit.modifiers import Modifiers
from softgpu.engine.ir import WARP, Builder, Value, lanes
from softgpu.engine.ops.operation import TYPES

if TYPE_CHECKING:
    from softgpu.engine.emit.lower import Lower

_SPACES = {"global": "global", "shared": "shared", "shared::cta": "shared"}
_TYPES: dict[str, tuple[str, ...]] = {
    "and": ("b32", "b64"), "or": ("b32", "b64"), "xor": ("b32", "b64"),
    "cas": ("b16", "b32", "b64", "b128"), "exch": ("b32", "b64", "b128"),
    "add": ("u32", "s32", "u64", "f32", "f64", "f16", "f16x2", "bf16", "bf16x2"),
    "inc": ("u32",), "dec": ("u32",),
    "min": ("u32", "s32", "u64", "s64", "f16", "f16x2", "bf16", "bf16x2"),
    "max": ("u32", "s32", "u64", "s64", "f16", "f16x2", "bf16", "bf16x2"),
}
_VECTOR_TYPES = {"v2": ("f32", "f16", "bf16", "f16x2", "bf16x2"), "v4": ("f32", "f16", "bf16", "f16x2", "bf16x2"),
                 "v8": ("f16", "bf16")}
_HALF = ("f16", "f16x2", "bf16", "bf16x2")
_FLOAT = (*_HALF, "f32", "f64")


def atom(lower: Lower) -> None:
    _emit(lower, True)


def red(lower: Lower) -> None:
    _emit(lower, False)


def _emit(lower: Lower, returns: bool) -> None:
    m = Modifiers(lower)
    m.anywhere("relaxed", "acquire", "release", "acq_rel")
    m.anywhere(*SCOPES)
    found = m.anywhere(*_SPACES)
    operation = m.need(*_TYPES)
    if not returns and operation in ("cas", "exch"):
        lower.fail("red has no such operation")
    noftz = bool(m.take("noftz"))
    hinted = bool(m.take("L2::cache_hint"))
    vector = m.take("v2", "v4", "v8")
    kind = m.need(*_TYPES[operation])
    if noftz != (kind in _HALF):
        lower.fail(".noftz goes with half precision, and only there")
    if vector and (found != "global" or kind not in _VECTOR_TYPES[vector]
                   or (operation != "add" and kind == "f32")):
        lower.fail(f"a vector of .{kind} here")
    if kind in _HALF and operation != "add" and not vector:
        lower.fail("minimum and maximum of half precision exist for vectors only")
    first = 1 if returns else 0
    count = 2 if operation == "cas" else 1
    m.done(first + 1 + count + int(hinted))
    place = address(lower, lower.instruction.operands[first], _SPACES.get(found, ""))
    elements = int(vector[1:]) if vector else 1
    size = TYPE_BYTES[kind]
    access = Access(lower, place, 8 * size, elements, ATOMIC, lower.guarded())
    values = lower.instruction.operands[first + 1:first + 1 + count]
    old = _perform(lower, access, operation, kind, values, elements, returns)
    if returns:
        targets: tuple[Operand, ...] = (lower.instruction.operands[0],)
        if elements > 1:
            given = lower.instruction.operands[0]
            assert isinstance(given, Vector)
            targets = given.items
        for target, value in zip(targets, old, strict=True):
            if target != Register("_"):
                lower.write(target, kind, lower.builder.bitcast(value, TYPES[kind]))


def _perform(lower: Lower, access: Access, operation: str, kind: str, values: tuple[Operand, ...], elements: int,
             returns: bool) -> list[Value]:
    """The atomic in all active lanes; old values as integers."""
    b = lower.builder
    integer = f"i{8 * TYPE_BYTES[kind]}"
    rows: list[list[Value]] = []
    for number in range(elements):
        given = []
        for operand in values:
            item = operand.items[number] if elements > 1 and isinstance(operand, Vector) else operand
            given.append(b.bitcast(lower.read(item, kind, vector=True), integer))
        rows.append(given)
    if not returns and _sums_up(lower, access, operation, kind):
        return _one_sum(lower, access, rows[0][0], operation)
    room = _host_addresses(lower, access)
    found = []
    flush = kind == "f32" and access.place.space != SHARED
    name = _function(lower, operation, kind, flush)
    out = lower.room("values")
    for number, given in enumerate(rows):
        a = lower.room("wide_first", 16 * WARP)
        lower.store(given[0], a, 64)
        second = Value("null", "ptr")
        if len(given) > 1:
            second = lower.room("wide_second", 16 * WARP)
            lower.store(given[1], second, 64)
        b.call(name, "void", room, b.constant(number * TYPE_BYTES[kind], "i64"), access.mask.bits, a, second, out)
        found.append(lower.load(f"<{WARP} x {integer}>", out, 64))
    return found


def _host_addresses(lower: Lower, access: Access) -> Value:
    """Scratch memory with every active lane's host address."""
    b = lower.builder
    fast, slow, done = lower.label("fast"), lower.label("slow"), lower.label("addressed")
    room = lower.room("addresses", 8 * WARP)
    branched = access.guard_fast(fast, slow)
    if branched:
        lower.place(fast)
    pointers = access.pointers()
    whole = b.emit(f"ptrtoint {pointers.type} {pointers.ref} to <{WARP} x i64>", f"<{WARP} x i64>")
    lower.store(whole, room, 64)
    if branched:
        lower.jump(done)
        lower.place(slow)
        access.resolved()
        lower.jump(done)
        lower.place(done)
    return room


def _sums_up(lower: Lower, access: Access, operation: str, kind: str) -> bool:
    return operation == "add" and kind in ("u32", "s32", "u64") and access.place.shape.uniform and (
        access.count == 1 and access.place.space != 4)


def _one_sum(lower: Lower, access: Access, values: Value, operation: str) -> list[Value]:
    """red.add of the whole warp to one address."""
    b = lower.builder
    chosen = values if access.mask.full else b.select(lower.mask_lanes(access.mask), values, b.zero(values.type))
    element = values.type.split(" x ")[1].rstrip(">")
    total = b.call(f"llvm.vector.reduce.add.v{WARP}{element}", element, chosen)
    some, done = lower.label("some"), lower.label("added")
    if access.mask.full:
        lower.jump(some)
    else:
        lower.branch(b.icmp("ne", access.mask.bits, Value("0", "i32")), some, done)
    lower.place(some)
    room = _host_addresses(lower, access)
    lane = Value("0", "i32")
    if not access.mask.full:
        lane = b.intrinsic("llvm.cttz", "i32", access.mask.bits, extra=(Value("true", "i1"),))
    at = b.emit(f"getelementptr i64, ptr {room.ref}, i32 {lane.ref}", "ptr")
    pointer = b.emit(f"inttoptr i64 {lower.load('i64', at).ref} to ptr", "ptr")
    b.emit(f"atomicrmw add ptr {pointer.ref}, {element} {total.ref} seq_cst", element)
    lower.jump(done)
    lower.place(done)
    return []


_READ_MODIFY_WRITE = {"and": "and", "or": "or", "xor": "xor", "exch": "xchg", "add": "add", "inc": "uinc_wrap",
                      "dec": "udec_wrap"}


def _function(lower: Lower, operation: str, kind: str, flush: bool) -> str:
    """An internal function that does one atomic for each lane of a mask and stores the old values."""
    b = lower.builder
    name = f"softgpu_atom_{operation}_{kind}{'_ftz' if flush else ''}"
    if name in b.helpers:
        return name
    integer = f"i{8 * TYPE_BYTES[kind]}"
    body = f"""\
  %address_at = getelementptr i64, ptr %addresses, i64 %lane
  %address = load i64, ptr %address_at
  %moved = add i64 %address, %offset
  %place = inttoptr i64 %moved to ptr
  %first_at = getelementptr {integer}, ptr %first, i64 %lane
  %a = load {integer}, ptr %first_at
{_one_lane(lower, operation, kind, integer, flush)}
  %out_at = getelementptr {integer}, ptr %out, i64 %lane
  store {integer} %old, ptr %out_at
  br label %next
"""
    each_lane.define(b, name, "ptr %addresses, i64 %offset, i32 %mask, ptr %first, ptr %second, ptr %out", body)
    return name


def _one_lane(lower: Lower, operation: str, kind: str, integer: str, flush: bool) -> str:
    """IR that leaves the old value in %old, ending in an open block."""
    if operation == "cas":
        return f"""  %second_at = getelementptr {integer}, ptr %second, i64 %lane
  %new = load {integer}, ptr %second_at
  %pair = cmpxchg ptr %place, {integer} %a, {integer} %new seq_cst seq_cst
  %old = extractvalue {{ {integer}, i1 }} %pair, 0"""
    if kind not in _FLOAT:
        word = _READ_MODIFY_WRITE.get(operation) or (operation if kind[0] == "s" else f"u{operation}")
        return f"  %old = atomicrmw {word} ptr %place, {integer} %a seq_cst"
    inner = Builder()
    inner._names = 1000
    result = _float_update(lower, inner, operation, kind, flush, Value("%seen", integer), Value("%a", integer))
    lower.builder.declarations.update(inner.declarations)
    lower.builder.helpers.update(inner.helpers)
    lines = "\n".join(inner.lines)
    return f"""  %before = load atomic {integer}, ptr %place monotonic, align {TYPE_BYTES[kind]}
  br label %try
try:
  %seen = phi {integer} [ %before, %one ], [ %now, %again ]
{lines}
  br label %again
again:
  %pair = cmpxchg ptr %place, {integer} %seen, {integer} {result.ref} seq_cst seq_cst
  %now = extractvalue {{ {integer}, i1 }} %pair, 0
  %won = extractvalue {{ {integer}, i1 }} %pair, 1
  br i1 %won, label %swapped, label %try
swapped:
  %old = or {integer} %seen, 0"""


def _float_update(lower: Lower, inner: Builder, operation: str, kind: str, flush: bool, old: Value,
                  value: Value) -> Value:
    """The new contents of memory, with the arithmetic of the tables."""
    if operation == "add":
        mnemonic = f"add.rn{'.ftz' if flush else ''}.{kind}"
    else:
        mnemonic = f"{operation}.{kind}"
    entry = lower.operations.get(mnemonic)
    if entry is None:
        lower.fail(f"{mnemonic} is not in the tables")
    typed = [inner.bitcast(v, TYPES[kind]) for v in (old, value)]
    result: Value = entry.emit(inner, *typed)
    if not entry.canonical and kind == "f32":
        pattern = inner.bitcast(result, "i32")
        magnitude = inner.and_(pattern, inner.like(0x7FFFFFFF, pattern))
        missing = inner.icmp("ugt", magnitude, inner.like(0x7F800000, pattern))
        result = inner.select(missing, inner.like(CANONICAL_NAN, pattern), pattern)
    assert not lanes(result.type)
    return inner.bitcast(result, old.type)
