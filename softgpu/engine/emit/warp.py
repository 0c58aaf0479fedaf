"""Exchange within a warp: shfl, vote, match, redux, elect, activemask, bar.warp.sync.

When these run, all lanes of their member mask that have not ended are active: in masked blocks the walk sees to that
(``FunctionEmitter._meet``), elsewhere all live lanes run together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxparse.model import Operand, Pair, Register
from softgpu.engine.emit.lower import Mask
from softgpu.engine.emit.modifiers import Modifiers
from softgpu.engine.ir import WARP, Value, lanes
from softgpu.engine.ops.magnitude import extreme_number
from softgpu.engine.ops.operation import TYPES

if TYPE_CHECKING:
    from softgpu.engine.emit.lower import Lower

UNDEFINED, NOT_A_MEMBER = 4, 0
_LANES = range(WARP)
_ALL = Value("-1", "i32")
_WHOLE_WARP = ("mma", "wmma", "ldmatrix", "stmatrix", "movmatrix")


def members(lower: Lower) -> Value:
    """The member mask of the present instruction: a scalar, or one per lane."""
    if lower.instruction.opcode in _WHOLE_WARP:
        return _ALL
    operand = lower.instruction.operands[-1]
    shape = lower.operand_shape(operand, "b32")
    return lower.read(operand, "b32", vector=not shape.uniform)


def _membership(lower: Lower) -> Value:
    """The member mask; the launch stops if a lane is not its own member."""
    b = lower.builder
    mask = members(lower)
    if mask.ref == "-1":
        return mask
    if lanes(mask.type):
        own = b.and_(mask, b.vector([1 << lane for lane in _LANES], "i32"))
        outside = lower.bits_of(b.icmp("eq", own, b.zero(own.type)))
    else:
        outside = b.invert(mask)
    outside = b.and_(outside, lower.mask.bits)
    wrong, on = lower.label("outsider"), lower.label("members")
    lower.branch(b.icmp("ne", outside, Value("0", "i32")), wrong, on, likely=False)
    lower.place(wrong)
    lower.checked_helper(UNDEFINED, outside, lower.site(), Value(str(NOT_A_MEMBER), "i32"))
    lower.jump("stopped")
    lower.place(on)
    return mask


def _among(lower: Lower, bits: Value, mask: Value) -> Value:
    """Bits of the lanes that take part together: those in the mask (of each lane) that are active."""
    b = lower.builder
    active = bits if lower.mask.full else b.and_(bits, lower.mask.bits)
    if mask.ref == "-1":
        return active
    return b.and_(b.splat(active), mask) if lanes(mask.type) else b.and_(active, mask)


def vote(lower: Lower) -> None:
    m = Modifiers(lower)
    m.need("sync")
    mode = m.need("all", "any", "uni", "ballot")
    m.need("b32" if mode == "ballot" else "pred")
    m.done(3)
    b = lower.builder
    mask = _membership(lower)
    target, source, _ = lower.instruction.operands
    true = _among(lower, lower.bits_of(lower.read(source, "pred")), mask)
    if mode == "ballot":
        lower.write(target, "b32", true)
        return
    zero = b.zero(true.type)
    if mode == "any":
        lower.write(target, "pred", b.icmp("ne", true, zero))
        return
    everybody = _among(lower, _ALL, mask)
    every = b.icmp("eq", true, everybody)
    lower.write(target, "pred", every if mode == "all" else b.or_(every, b.icmp("eq", true, zero)))


def activemask(lower: Lower) -> None:
    m = Modifiers(lower)
    m.need("b32")
    m.done(1)
    lower.write(lower.instruction.operands[0], "b32", lower.mask.bits)


def elect(lower: Lower) -> None:
    """elect.sync d|p, membermask: the lowest lane of the mask that is active leads."""
    m = Modifiers(lower)
    m.need("sync")
    m.done(2)
    b = lower.builder
    mask = _membership(lower)
    first = lower.instruction.operands[0]
    number, leads = (first.first, first.second) if isinstance(first, Pair) else (first, Register("_"))
    together = _among(lower, _ALL, mask)
    leader = b.intrinsic("llvm.cttz", "i32", together, extra=(Value("false", "i1"),))
    lower.write(number, "b32", leader)
    lower.write(leads, "pred", b.icmp("eq", b.splat(leader), b.vector(list(_LANES), "i32")))


def barrier(lower: Lower) -> None:
    """bar.warp.sync: the members are here."""
    m = Modifiers(lower)
    m.need("warp")
    m.need("sync")
    m.done(1)
    _membership(lower)


# shfl.


def shfl(lower: Lower) -> None:
    m = Modifiers(lower)
    m.need("sync")
    mode = m.need("up", "down", "bfly", "idx")
    m.need("b32")
    m.done(5)
    operands = lower.instruction.operands
    first = operands[0]
    target, inside_target = (first.first, first.second) if isinstance(first, Pair) else (first, Register("_"))
    _membership(lower)
    own = lower.read(operands[1], "b32", vector=True)
    by, control = [lower.operand_shape(operand, "b32").constant for operand in operands[2:4]]
    if by is not None and control is not None:
        sources, inside = _fixed_sources(mode, by, control)
        found = lower.builder.shuffle(own, None, sources)
        holds = lower.builder.vector([int(i) for i in inside], "i1")
        present = _fixed_presence(lower, mode, by & 31, sources)
    else:
        source, holds = _sources(lower, mode, operands[2], operands[3])
        found = permuted(lower, own, source)
        present = _presence(lower, source)
    if present is not None:
        found = lower.builder.select(present, found, own)
    lower.write(target, "b32", found)
    lower.write(inside_target, "pred", holds)


def _fixed_sources(mode: str, by: int, control: int) -> tuple[list[int], list[bool]]:
    """Source lane of every lane and whether it is inside its segment (PTX manual, shfl.sync)."""
    clamp, keep, shift = control & 31, control >> 8 & 31, by & 31
    sources, inside = [], []
    for lane in _LANES:
        highest = (lane & keep) | (clamp & ~keep & 31)
        lowest = lane & keep
        if mode == "up":
            source, holds = lane - shift, lane - shift >= highest
        elif mode == "down":
            source, holds = lane + shift, lane + shift <= highest
        elif mode == "bfly":
            source, holds = lane ^ shift, lane ^ shift <= highest
        else:
            source = lowest | (shift & ~keep & 31)
            holds = source <= highest
        sources.append(source if holds else lane)
        inside.append(holds)
    return sources, inside


def _sources(lower: Lower, mode: str, by: Operand, control: Operand) -> tuple[Value, Value]:
    b = lower.builder
    shift = lower.read(by, "b32", vector=True)
    shift = b.and_(shift, b.like(31, shift))
    word = lower.read(control, "b32", vector=True)
    clamp = b.and_(word, b.like(31, word))
    keep = b.and_(b.lshr(word, b.like(8, word)), b.like(31, word))
    lane = b.vector(list(_LANES), "i32")
    free = b.and_(b.invert(keep), b.like(31, keep))
    lowest = b.and_(lane, keep)
    highest = b.or_(lowest, b.and_(clamp, free))
    if mode == "up":
        source = b.sub(lane, shift)
        holds = b.icmp("sge", source, highest)
    elif mode == "down":
        source = b.add(lane, shift)
        holds = b.icmp("sle", source, highest)
    elif mode == "bfly":
        source = b.xor(lane, shift)
        holds = b.icmp("sle", source, highest)
    else:
        source = b.or_(lowest, b.and_(shift, free))
        holds = b.icmp("sle", source, highest)
    return b.select(holds, source, lane), holds


def permuted(lower: Lower, values: Value, source: Value) -> Value:
    """values[source[l]] in lane l, for lane numbers 0 to 31 known at run time."""
    b = lower.builder
    room = lower.room("values")
    lower.store(values, room, 64)
    kind = values.type
    element = kind.split(" x ")[1].rstrip(">")
    type_ = f"<{WARP} x ptr>"
    pointers = b.emit(f"getelementptr {element}, ptr {room.ref}, {source.type} {source.ref}", type_)
    name = f"llvm.masked.gather.v{WARP}{element}.v{WARP}p0"
    b.declarations.setdefault(name, f"declare {kind} @{name}({type_}, <{WARP} x i1>, {kind})")
    every = b.constant(1, "i1", WARP)
    return b.emit(f"call {kind} @{name}({type_} align 4 {pointers.ref}, {every.type} {every.ref}, {kind} "
                  "zeroinitializer)", kind)


def _fixed_presence(lower: Lower, mode: str, by: int, sources: list[int]) -> Value | None:
    """Which lanes' sources are active; None when all are. The usual exchanges are shifts of the mask's bits."""
    if lower.mask.full:
        return None
    b = lower.builder
    bits = lower.mask.bits

    def shifted(operation: str, value: Value, amount: int) -> Value:
        return b.binary(operation, value, b.constant(amount, "i32"))

    if mode == "bfly" and sources == [lane ^ by for lane in _LANES]:
        for step in (16, 8, 4, 2, 1):
            if by & step:
                low = b.constant(sum(1 << lane for lane in _LANES if not lane & step), "i32")
                bits = b.or_(b.and_(shifted("lshr", bits, step), low), shifted("shl", b.and_(bits, low), step))
        return b.mask_lanes(bits)
    if mode == "down" and sources == [lane + by if lane + by < WARP else lane for lane in _LANES]:
        stay = b.constant(-1 << (WARP - by), "i32")
        return b.mask_lanes(b.or_(shifted("lshr", bits, by), b.and_(bits, stay)))
    if mode == "up" and sources == [lane - by if lane >= by else lane for lane in _LANES]:
        stay = b.constant((1 << by) - 1, "i32")
        return b.mask_lanes(b.or_(shifted("shl", bits, by), b.and_(bits, stay)))
    if mode == "idx" and len(set(sources)) == 1:
        one = b.and_(shifted("lshr", bits, sources[0]), b.constant(1, "i32"))
        return b.splat(b.icmp("ne", one, b.constant(0, "i32")))
    return b.shuffle(lower.mask_lanes(), None, sources)


def _presence(lower: Lower, source: Value) -> Value | None:
    if lower.mask.full:
        return None
    b = lower.builder
    bit = b.and_(b.lshr(b.splat(lower.mask.bits), source), b.like(1, source))
    return b.icmp("ne", bit, b.zero(bit.type))


# match, redux.


def match(lower: Lower) -> None:
    m = Modifiers(lower)
    mode = m.need("any", "all")
    m.need("sync")
    kind = m.need("b32", "b64")
    m.done(3)
    b = lower.builder
    mask = _membership(lower)
    first, source, _ = lower.instruction.operands
    target, agree = (first.first, first.second) if isinstance(first, Pair) else (first, Register("_"))
    if isinstance(first, Pair) and mode == "any":
        lower.fail("match.any has no predicate result")
    values = lower.read(source, kind, vector=True)
    same = b.zero(f"<{WARP} x i32>")
    for lane in _LANES:
        equal = b.icmp("eq", values, b.splat(b.extract(values, lane)))
        same = b.or_(same, b.select(equal, b.constant(1 << lane, "i32", WARP), b.zero(same.type)))
    active = b.splat(lower.mask.bits)
    together = b.and_(active, b.splat(mask))
    found = b.and_(same, together)
    if mode == "any":
        lower.write(target, "b32", found)
        return
    agreed = b.icmp("eq", found, together)
    result = b.select(agreed, together, b.zero(together.type))
    if lanes(mask.type):
        lower.write(target, "b32", result)
        lower.write(agree, "pred", agreed)
        return
    lead = b.and_(b.intrinsic("llvm.cttz", "i32", lower.mask.bits, extra=(Value("false", "i1"),)), Value("31", "i32"))
    lower.write(target, "b32", b.extract(result, lead))
    lower.write(agree, "pred", b.extract(agreed, lead))


_NEUTRAL = {"add": 0, "and": -1, "or": 0, "xor": 0}


def redux(lower: Lower) -> None:
    m = Modifiers(lower)
    m.need("sync")
    operation = m.need("add", "min", "max", "and", "or", "xor")
    if operation in ("min", "max") and m.left[-1:] == ["f32"]:
        _redux_float(lower, m, operation)
        return
    kind = m.need(*(("b32",) if operation in ("and", "or", "xor") else ("u32", "s32")))
    m.done(3)
    b = lower.builder
    mask = _membership(lower)
    target, source, _ = lower.instruction.operands
    values = lower.read(source, kind, vector=True)
    name = operation if operation not in ("min", "max") else f"{kind[0]}{operation}"
    neutral = _NEUTRAL.get(operation)
    if neutral is None:
        neutral = {"umin": -1, "umax": 0, "smin": 0x7FFFFFFF, "smax": -0x80000000}[name]

    def reduced(chosen: Value) -> Value:
        taken = b.select(chosen, values, b.like(neutral, values))
        full = f"llvm.vector.reduce.{name}.v{WARP}i32"
        return b.call(full, TYPES[kind], taken)

    if not lanes(mask.type):
        together = _among(lower, _ALL, mask)
        lower.write(target, kind, reduced(b.mask_lanes(together)))
        return
    # Groups with masks of their own, one after another, from the lowest lane that is left.
    result = b.zero(values.type)
    for lane in _LANES:
        own = b.and_(b.extract(mask, lane), lower.mask.bits)
        here = b.vector([int(own_lane == lane) for own_lane in _LANES], "i1")
        result = b.select(here, b.splat(reduced(b.mask_lanes(own))), result)
    lower.write(target, kind, result)


def _redux_float(lower: Lower, m: Modifiers, operation: str) -> None:
    """Minimum or maximum of f32, +0 above -0; NaNs are passed over, or with ``.NaN`` win."""
    magnitudes, nan = bool(m.take("abs")), bool(m.take("NaN"))
    m.need("f32")
    m.done(3)
    b = lower.builder
    mask = _membership(lower)
    target, source, _ = lower.instruction.operands
    values = lower.read(source, "f32", vector=True, observe=False)
    if magnitudes:
        values = b.intrinsic("llvm.fabs", "float", values)
    # What a lane outside contributes: a NaN is passed over, and under .NaN the number that loses to every other.
    lost = 0x7FC00000 if not nan else 0x7F800000 if operation == "min" else 0xFF800000
    together = b.splat(_among(lower, _ALL, mask))
    bits = b.and_(together, b.vector([1 << lane for lane in _LANES], "i32"))
    # Steps of a butterfly reduce groups only if all lanes have one mask; else each lane looks at every other.
    result = b.float_bits(lost, "float", WARP)
    for lane in _LANES:
        one = b.splat(b.extract(values, lane))
        inside = b.icmp("ne", b.and_(together, b.constant(1 << lane, "i32", WARP)), b.zero(bits.type))
        taken = b.bitcast(b.select(inside, b.bitcast(one, "i32"), b.constant(lost, "i32", WARP)), "float")
        result = extreme_number(b, result, taken, operation, False, nan, False)
    lower.write(target, "f32", lower.canonical(result))


def whole_warp(lower: Lower) -> Mask:
    """For instructions that need every lane: the launch stops if one is missing."""
    b = lower.builder
    if lower.mask.full:
        return lower.mask
    wrong, on = lower.label("partial"), lower.label("whole")
    lower.branch(b.icmp("ne", lower.mask.bits, _ALL), wrong, on, likely=False)
    lower.place(wrong)
    lower.checked_helper(UNDEFINED, lower.mask.bits, lower.site(), Value("2", "i32"))
    lower.jump("stopped")
    lower.place(on)
    return Mask(_ALL, True)
