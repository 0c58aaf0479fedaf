"""ld, st and what else touches memory or addresses: modifiers and operands; the accesses are made in ``loads``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxparse.model import TYPE_BYTES, Address, Operand, Register, Vector
from softgpu.engine.emit import each_lane, loads
from softgpu.engine.emit.access import READ, WRITE, Access, Place, place_of
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
