"""cp.async: the copy is made when it is issued, so that there is nothing to wait for.

Copies of neighbours are a load and a store of the whole warp. All others, and those of which some lanes copy only the
first bytes, are made by a function of the module, lane after lane.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxparse.model import Operand, Register
from softgpu.engine.emit import loads, rows
from softgpu.engine.emit.access import COPY, GLOBAL, READ, SHARED, WRITE, Access
from softgpu.engine.emit.memory import PREFETCHES, address
from softgpu.engine.emit.modifiers import Modifiers
from softgpu.engine.ir import WARP, Builder, Value

if TYPE_CHECKING:
    from softgpu.engine.emit.lower import Lower

_LENGTHS = f"<{WARP} x i32>"
_ROOMS = [Value(f"%{name}", "ptr") for name in ("addresses", "targets", "lengths")]
_ENV, _MASK, _SITE, _CACHE, _SHARED = (
    Value("%env", "ptr"), Value("%mask", "i32"), Value("%site", "i32"), Value("%cache", "ptr"), Value("%shared", "ptr"))
_PARAMETERS = ", ".join([f"{v.type} {v.ref}" for v in (_ENV, *_ROOMS, _MASK, _SITE, _CACHE, _SHARED)])


def cp(lower: Lower) -> None:
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
    _copy(lower, operands, size, operands[3] if count == 4 else None)


def _copy(lower: Lower, operands: tuple[Operand, ...], size: int, given: Operand | None) -> None:
    b = lower.builder
    target, source = address(lower, operands[0], "shared"), address(lower, operands[1], "global")
    mask = lower.guarded()
    first = lower.site()
    element = min(size, 8)
    read = Access(lower, source, 8 * element, size // element, READ, mask)
    lower.site(1, size, source.space, READ)
    lower.site(1, 1, source.space, READ)
    write = Access(lower, target, 8 * element, size // element, WRITE, mask)
    if given is None and not read.rowwise:
        loads.store(write, loads.load(read))
        return
    name = f"softgpu_copy_{size}"
    if name not in b.helpers:
        inner = Builder(b.wide_registers)
        _function(inner, size, lower.options.logs)
        b.helpers[name] = rows.whole_text(b, inner, f"define internal i32 @{name}({_PARAMETERS})")
    rooms = [lower.room("addresses", 8 * WARP), lower.room("second", 8 * WARP), lower.room("lengths", 4 * WARP)]
    lower.store(read.addresses(), rooms[0], 64)
    lower.store(write.addresses(), rooms[1], 64)
    lower.store(_lengths(lower, size, given), rooms[2], 64)
    lower.stop_if(b.call(name, "i32", _ENV, *rooms, mask.bits, first, read.cache(), write.cache()))


def _lengths(lower: Lower, size: int, given: Operand | None) -> Value:
    """How many bytes each lane reads, as ``<32 x i32>``."""
    b = lower.builder
    if given is None:
        return b.constant(size, "i32", WARP)
    if _is_predicate(lower, given):  # the lanes that read nothing
        ignored = b.splat(lower.read(given, "pred"))
        return b.select(ignored, b.constant(0, "i32", WARP), b.constant(size, "i32", WARP))
    return lower.read(given, "u32", vector=True)


def _is_predicate(lower: Lower, operand: Operand) -> bool:
    inner = getattr(operand, "operand", operand)
    if not isinstance(inner, Register):
        return False
    web = lower.used_web(inner.name)
    return web is not None and web.type == "pred"


def _function(inner: Builder, size: int, logs: bool) -> None:
    sources, targets, lengths = _ROOMS
    dump = rows.begin(inner, size)
    loaded = inner.emit(f"load {_LENGTHS}, ptr {lengths.ref}, align 64", _LENGTHS)
    count = inner.emit(f"freeze {_LENGTHS} {loaded.ref}", _LENGTHS)
    whole = inner.and_(_MASK, inner.mask_bits(inner.icmp("eq", count, inner.like(size, count))))
    none = inner.mask_bits(inner.icmp("eq", count, inner.zero(count.type)))
    partly = inner.and_(_MASK, inner.invert(inner.or_(whole, none)))
    first, second = rows.frozen_addresses(inner, sources), rows.frozen_addresses(inner, targets)
    beyond = inner.or_(rows.outside(inner, first, size, whole, _CACHE),
                       rows.outside(inner, second, size, _MASK, _SHARED))
    rows.divide(inner, inner.or_(partly, beyond), logs)
    inner.line("fast:")
    rows.spare(inner, first, GLOBAL, whole, rows.zero_row(inner), sources)
    rows.spare(inner, second, SHARED, _MASK, dump.ref, targets)
    given, taken = rows.places(inner, sources, GLOBAL, size), rows.places(inner, targets, SHARED, size)
    for lane in range(WARP):
        taken.store(given.load(lane), lane)
    inner.line("  ret i32 0")
    inner.line("slow:")
    status = rows.helper(inner, COPY, (_ENV, *_ROOMS, _MASK, _SITE, _CACHE))
    inner.line(f"  ret i32 {status.ref}")
