"""ld, st and what else touches memory or addresses: modifiers and operands; the accesses are made in ``loads``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxparse.model import TYPE_BYTES, Address, Operand, Register, Vector
from softgpu.engine.emit import each_lane, loads
from softgpu.engine.emit.access import LOG, READ, WRITE, Access, Place, deinterleaved, place_of
from softgpu.engine.emit.lower import Mask
from softgpu.engine.emit.modifiers import Modifiers
from softgpu.engine.ir import WARP, Value
from softgpu.engine.layout import WINDOWS
from softgpu.engine.ops.operation import TYPES

if TYPE_CHECKING:
    from softgpu.engine.emit.lower import Lower

SCOPES = ("cta", "cluster", "gpu", "sys")
SPACE_NAMES = {
    "global": "global", "shared": "shared", "shared::cta": "shared", "local": "local", "const": "const",
    "param": "param", "param::entry": "param", "param::func": "param",
}
EVICTIONS = tuple(f"{level}::evict_{kind}" for level in ("L1", "L2")
                  for kind in ("normal", "unchanged", "first", "last")) + (
    "L1::no_allocate", "L1::no_evict", "L2::no_evict")
PREFETCHES = ("L2::64B", "L2::128B", "L2::256B")
VECTORS = {"": 1, "v2": 2, "v4": 4, "v8": 8}
DATA = ("b8", "b16", "b32", "b64", "b128", "u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64", "f32", "f64")
UNDEFINED, SPACES_HELPER = 4, 11


def semantics(m: Modifiers, ordered: str) -> None:
    """Memory orders. Lanes and warps of a block run one after another, and x86 keeps the rest in order."""
    if m.take("volatile"):
        return
    m.take("mmio")
    if m.take("relaxed", ordered):
        m.need(*SCOPES)
    else:
        m.take("weak")


def cache(m: Modifiers, operators: tuple[str, ...]) -> bool:
    """Cache hints; True if a cache policy operand follows."""
    if not m.take(*operators):
        m.take(*EVICTIONS)
        m.take(*EVICTIONS)
    hinted = bool(m.take("L2::cache_hint"))
    m.take(*PREFETCHES)
    return hinted


def space(m: Modifiers) -> str:
    found = m.take(*SPACE_NAMES)
    return SPACE_NAMES[found] if found else ""


def address(lower: Lower, operand: Operand, named: str) -> Place:
    if not isinstance(operand, Address):
        lower.fail(f"operand {operand!r} is not an address")
    return place_of(lower, operand, named)


def items(lower: Lower, operand: Operand, count: int) -> tuple[Operand, ...]:
    """The elements of a vector operand; a lone register counts as one."""
    found = operand.items if isinstance(operand, Vector) else (operand,)
    if len(found) != count:
        lower.fail(f"{len(found)} registers where {count} are expected")
    return found


def ld(lower: Lower) -> None:
    m = Modifiers(lower)
    if lower.instruction.opcode == "ldu":
        where, hinted = space(m), False
    else:
        semantics(m, "acquire")
        where = space(m)
        hinted = cache(m, ("ca", "cg", "cs", "lu", "cv"))
        if m.take("nc"):
            hinted = cache(m, ("ca", "cg", "cs")) or hinted
    count = VECTORS[m.take("v2", "v4", "v8")]
    kind = m.need(*DATA)
    m.take("unified")
    m.done(3 if hinted else 2)
    operands = lower.instruction.operands
    targets = items(lower, operands[0], count)
    place, mask = address(lower, operands[1], where), lower.guarded()
    values = loads.load(Access(lower, place, *_elements(lower, kind, count, where), READ, mask))
    if kind == "b128":
        values = [_joined(lower, *values[k:k + 2]) for k in range(0, 2 * count, 2)]
    for target, value in zip(targets, values, strict=True):
        if target == Register("_"):
            continue
        if kind in ("f32", "f64"):
            value = lower.builder.bitcast(value, TYPES[kind])
        lower.write(target, kind, value, wide=True)


def st(lower: Lower) -> None:
    m = Modifiers(lower)
    semantics(m, "release")
    where = space(m)
    hinted = cache(m, ("wb", "cg", "cs", "wt"))
    count = VECTORS[m.take("v2", "v4", "v8")]
    kind = m.need(*DATA)
    m.done(3 if hinted else 2)
    if where == "const":
        lower.fail("constant memory cannot be written")
    operands = lower.instruction.operands
    place = address(lower, operands[0], where)
    b = lower.builder
    word = f"i{8 * TYPE_BYTES[kind]}"
    values = [b.bitcast(stored(lower, item, kind), word) for item in items(lower, operands[1], count)]
    if kind == "b128":
        values = [b.trunc(part, "i64") for v in values for part in (v, b.lshr(v, b.like(64, v)))]
    loads.store(Access(lower, place, *_elements(lower, kind, count, where), WRITE, lower.guarded()), values)


def _elements(lower: Lower, kind: str, count: int, where: str) -> tuple[int, int]:
    """Bits and number of the words that a lane's access is made of."""
    size = TYPE_BYTES[kind] * count
    if size > 32 or (size > 16 and where not in ("global", "")):
        lower.fail(f"an access of {size} bytes")
    return (64, 2 * count) if kind == "b128" else (8 * TYPE_BYTES[kind], count)


def _joined(lower: Lower, low: Value, high: Value) -> Value:
    """Two words of 64 bits as one of 128."""
    b = lower.builder
    wide = b.zext(high, "i128")
    return b.or_(b.zext(low, "i128"), b.shl(wide, b.like(64, wide)))


def stored(lower: Lower, operand: Operand, kind: str) -> Value:
    """A value to be stored: a scalar only if it is the same in all lanes."""
    return lower.read(operand, kind, vector=not lower.operand_shape(operand, kind).uniform, wide=True)


def cvta(lower: Lower) -> None:
    m = Modifiers(lower)
    to = bool(m.take("to"))
    where = SPACE_NAMES[m.need(*SPACE_NAMES)]
    m.need("u64")
    m.done(2)
    b = lower.builder
    target, source = lower.instruction.operands
    value = lower.read(source, "u64", vector=not lower.is_scalar(source, "u64"))
    window = WINDOWS.get(where, 0)
    if window:
        value = b.sub(value, b.like(window, value)) if to else b.add(value, b.like(window, value))
    lower.write(target, "u64", value)


def isspacep(lower: Lower) -> None:
    m = Modifiers(lower)
    where = SPACE_NAMES[m.need(*SPACE_NAMES)]
    m.done(2)
    b = lower.builder
    target, source = lower.instruction.operands
    value = lower.read(source, "u64", vector=not lower.is_scalar(source, "u64"))
    high = b.lshr(value, b.like(48, value))
    if where in WINDOWS:
        lower.write(target, "pred", b.icmp("eq", high, b.like(WINDOWS[where] >> 48, high)))
        return
    room = lower.room("addresses", 8 * WARP)
    found = lower.room("constants", 4)
    lower.store(lower.read(source, "u64", vector=True), room, 64)
    lower.store(Value("0", "i32"), found)
    lower.checked_helper(SPACES_HELPER, room, lower.guarded().bits, found)
    constant = b.mask_lanes(lower.load("i32", found))
    if where == "const":
        lower.write(target, "pred", constant)
        return
    flat = b.icmp("eq", b.splat(high), b.zero(f"<{WARP} x i64>"))
    lower.write(target, "pred", b.and_(flat, b.invert(constant)))


def prefetch(lower: Lower) -> None:
    m = Modifiers(lower)
    where = space(m)
    if m.take("tensormap"):
        lower.fail("tensor maps")
    m.need("L1", "L2", "L2::evict_last", "L2::evict_normal")
    m.done(1)
    address(lower, lower.instruction.operands[0], where)


def discard(lower: Lower) -> None:
    """The bytes become undefined, as zeros here; they count as written."""
    m = Modifiers(lower)
    where = space(m)
    m.need("L2")
    m.done(2)
    place = address(lower, lower.instruction.operands[0], where)
    b = lower.builder
    access = Access(lower, place, 64, 16, WRITE, lower.guarded())
    room = access.resolved()
    each_lane.define(b, "softgpu_clear_128", "ptr %addresses, i32 %mask", _CLEAR, declarations=(_MEMSET,))
    b.call("softgpu_clear_128", "void", room, access.mask.bits)


_MEMSET = ("llvm.memset.p0.i64", "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)")
_CLEAR = """\
  %at = getelementptr i64, ptr %addresses, i64 %lane
  %address = load i64, ptr %at
  %place = inttoptr i64 %address to ptr
  call void @llvm.memset.p0.i64(ptr %place, i8 0, i64 128, i1 false)
  br label %next
"""


def prefetchu(lower: Lower) -> None:
    m = Modifiers(lower)
    m.need("L1")
    m.done(1)
    address(lower, lower.instruction.operands[0], "")


def applypriority(lower: Lower) -> None:
    m = Modifiers(lower)
    m.take("global")
    m.need("L2::evict_normal")
    m.done(2)
    address(lower, lower.instruction.operands[0], "global")


def createpolicy(lower: Lower) -> None:
    """A cache policy is a hint: its register holds 0."""
    m = Modifiers(lower)
    kind = m.need("fractional", "range", "cvt")
    if kind == "range":
        m.take("global")
    if kind == "cvt":
        m.need("L2")
    else:
        m.need(*EVICTIONS)
        m.take(*EVICTIONS)
    m.need("b64")
    m.done(1, 2, 3, 4)
    lower.write(lower.instruction.operands[0], "b64", Value("0", "i64"))


def cp(lower: Lower) -> None:
    """cp.async: the copy is made when it is issued, so that there is nothing to wait for."""
    m = Modifiers(lower)
    m.need("async")
    if m.take("commit_group", "wait_all"):
        m.done(0)
        return
    if m.take("wait_group"):
        m.done(1)
        return
    level = m.need("ca", "cg")
    m.need("shared", "shared::cta")
    m.need("global")
    hinted = bool(m.take("L2::cache_hint"))
    m.take(*PREFETCHES)
    m.done()
    operands = lower.instruction.operands
    count = len(operands) - int(hinted)
    size = getattr(operands[2], "value", None) if len(operands) > 2 else None
    if count not in (3, 4) or size not in ((16,) if level == "cg" else (4, 8, 16)):
        lower.fail(f"{len(operands)} operands, or a copy of another size")
    assert isinstance(size, int)
    target = address(lower, operands[0], "shared")
    source = address(lower, operands[1], "global")
    element = min(size, 8)
    mask = lower.guarded()
    if count == 3:
        read = Access(lower, source, 8 * element, size // element, READ, mask)
        values = loads.load(read)
        write = Access(lower, target, 8 * element, size // element, WRITE, mask)
        loads.store(write, values)
        return
    _partial_copy(lower, source, target, size, operands[3], mask)


def _partial_copy(lower: Lower, source: Place, target: Place, size: int, given: Operand, mask: Mask) -> None:
    """Copies of which some lanes read only the first bytes, the rest being zero."""
    b = lower.builder
    if _is_predicate(lower, given):
        ignored = b.splat(lower.read(given, "pred"))
        lengths = b.select(ignored, b.constant(0, "i32", WARP), b.constant(size, "i32", WARP))
    else:
        lengths = lower.read(given, "u32", vector=True)
    too_long = lower.bits_of(b.icmp("ugt", lengths, b.like(size, lengths)))
    too_long = b.and_(too_long, mask.bits)
    wrong, on = lower.label("too_long"), lower.label("copy")
    lower.branch(b.icmp("ne", too_long, Value("0", "i32")), wrong, on, likely=False)
    lower.place(wrong)
    lower.checked_helper(UNDEFINED, too_long, lower.site(), Value("3", "i32"))
    lower.jump("stopped")
    lower.place(on)
    element = min(size, 8)
    zero = b.zero(f"<{WARP} x i{8 * element}>")
    whole_lanes = lower.both(mask, lower.bits_of(b.icmp("eq", lengths, b.like(size, lengths))))
    values = loads.load(Access(lower, source, 8 * element, size // element, READ, whole_lanes))
    chosen = lower.mask_lanes(whole_lanes)
    whole = [b.select(chosen, b.splat(v), zero) for v in values]
    partly = b.and_(lower.bits_of(b.icmp("ne", lengths, b.zero(lengths.type))), b.invert(whole_lanes.bits))
    partly = b.and_(partly, mask.bits)
    some, start, on = lower.label("some_bytes"), lower.label("whole"), lower.label("write")
    lower.jump(start)
    lower.place(start)
    lower.branch(b.icmp("ne", partly, Value("0", "i32")), some, on, likely=False)
    lower.place(some)
    pieces = _first_bytes(lower, source, size, lengths, Mask(partly))
    end = lower.label("bytes_end")
    lower.jump(end)
    lower.place(end)
    lower.jump(on)
    lower.place(on)
    extras = [b.emit(f"phi {zero.type} [ {piece.ref}, %{end} ], [ zeroinitializer, %{start} ]", zero.type)
              for piece in pieces]
    result = [b.or_(one, extra) for one, extra in zip(whole, extras, strict=True)]
    loads.store(Access(lower, target, 8 * element, size // element, WRITE, mask), result)


def _first_bytes(lower: Lower, source: Place, size: int, lengths: Value, mask: Mask) -> list[Value]:
    """The first ``lengths`` bytes at each active lane's place, followed by zeros, as elements of 64 bits or less."""
    b = lower.builder
    addresses, counts, out = lower.room("first", 8 * WARP), lower.room("second", 8 * WARP), lower.room("values")
    lower.store(Access(lower, source, 8, 1, READ, mask).addresses(), addresses, 64)
    lower.store(b.zext(lengths, "i64"), counts, 64)
    name = f"softgpu_first_bytes_{size}"
    each_lane.define(
        b, name, "ptr %env, ptr %addresses, ptr %counts, i32 %mask, ptr %values, i32 %start, i32 %end",
        _BYTES.replace("SIZE", str(size)), before=_BOTH_ENDS.replace("BYTES", str(WARP * size)), result="%status",
        declarations=(_MEMSET,))
    # The first byte has the alignment of the whole; the last one only has to be there.
    start = lower.site(1, size, source.space, READ)
    end = lower.site(1, 1, source.space, READ)
    if lower.options.logs:
        _log_bytes(lower, addresses, size, lengths, mask, end)
    lower.stop_if(b.call(name, "i32", Value("%env", "ptr"), addresses, counts, mask.bits, out, start, end))
    words = size // min(size, 8)
    return deinterleaved(lower, lower.load(f"<{WARP * words} x i{8 * min(size, 8)}>", out, 64), words)


def _log_bytes(lower: Lower, addresses: Value, size: int, lengths: Value, mask: Mask, site: Value) -> None:
    """Log the bytes that each active lane reads, one after another."""
    b = lower.builder
    first = lower.load(f"<{WARP} x i64>", addresses, 64)
    room = lower.room("addresses", 8 * WARP)
    for k in range(size):
        lower.store(b.add(first, b.like(k, first)), room, 64)
        more = lower.bits_of(b.icmp("ugt", lengths, b.like(k, lengths)))
        lower.helper(LOG, "void", room, b.and_(mask.bits, more), site)


_BOTH_ENDS = """\
  %ends = alloca [32 x i64], align 64
  call void @llvm.memset.p0.i64(ptr %values, i8 0, i64 BYTES, i1 false)
  %starting = load <32 x i64>, ptr %addresses
  %counted = load <32 x i64>, ptr %counts
  %behind = add <32 x i64> %starting, %counted
  %last = sub <32 x i64> %behind, splat (i64 1)
  store <32 x i64> %last, ptr %ends
  %helpers_at = getelementptr i8, ptr %env, i64 48
  %helpers = load ptr, ptr %helpers_at
  %resolve = load ptr, ptr %helpers
  %first = call i32 %resolve(ptr %env, ptr %addresses, i32 %mask, i32 %start, ptr null)
  %second = call i32 %resolve(ptr %env, ptr %ends, i32 %mask, i32 %end, ptr null)
  %status = or i32 %first, %second
"""
_BYTES = """\
  %at = getelementptr i64, ptr %addresses, i64 %lane
  %address = load i64, ptr %at
  %place = inttoptr i64 %address to ptr
  %count_at = getelementptr i64, ptr %counts, i64 %lane
  %count = load i64, ptr %count_at
  %own = getelementptr [SIZE x i8], ptr %values, i64 %lane
  br label %byte
byte:
  %i = phi i64 [ 0, %one ], [ %following, %byte ]
  %from = getelementptr i8, ptr %place, i64 %i
  %to = getelementptr i8, ptr %own, i64 %i
  %value = load i8, ptr %from
  store i8 %value, ptr %to
  %following = add i64 %i, 1
  %more = icmp ult i64 %following, %count
  br i1 %more, label %byte, label %next
"""


def _is_predicate(lower: Lower, operand: Operand) -> bool:
    inner = getattr(operand, "operand", operand)
    if not isinstance(inner, Register):
        return False
    web = lower.used_web(inner.name)
    return web is not None and web.type == "pred"
