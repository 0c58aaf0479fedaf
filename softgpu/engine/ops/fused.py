"""a * b + c in f64 rounded towards zero or up, in integers of 256 bits: rare enough to be done lane by lane.

The product has 106 bits and lies at bit 64; c is shifted to it. What lies too far below is represented by a single bit
at the very end, which is all that directed rounding needs to know of it.
"""

from __future__ import annotations

from softgpu.engine.ir import Builder, Value, lanes

_WIDE = "i256"
_PRODUCT_AT = 64
_ADDEND_AT = 180
_INFINITY = 0x7FF << 52


def directed_fma(b: Builder, mode: str, x: Value, y: Value, z: Value) -> Value:
    """``rz`` or ``rp``; NaN and infinite results are those of the machine."""
    name = f"softgpu_fma_f64_{mode}"
    if name not in b.helpers:
        b.helpers[name] = _scalar(b, name, mode)
        b.helpers[f"{name}_lanes"] = _loop(name)
    return b.call(f"{name}_lanes" if lanes(x.type) else name, x.type, x, y, z)


def _loop(name: str) -> str:
    """All lanes. Inlined, so that no vector is passed between functions that may be compiled for different widths."""
    vector = "<32 x double>"
    buffers = [f"  %{v}s = alloca {vector}, align 64\n  store {vector} %{v}, ptr %{v}s, align 64" for v in "xyz"]
    step = []
    for v in "xyz":
        step.append(f"  %{v}p = getelementptr double, ptr %{v}s, i64 %i\n  %{v}l = load double, ptr %{v}p, align 8")
    return "\n".join([
        f"define internal {vector} @{name}_lanes({vector} %x, {vector} %y, {vector} %z) alwaysinline {{",
        "entry:", *buffers, "  br label %lane",
        "lane:", "  %i = phi i64 [0, %entry], [%next, %lane]", *step,
        f"  %r = call double @{name}(double %xl, double %yl, double %zl)", "  store double %r, ptr %xp, align 8",
        "  %next = add i64 %i, 1", "  %more = icmp ult i64 %next, 32", "  br i1 %more, label %lane, label %done",
        "done:", f"  %all = load {vector}, ptr %xs, align 64", f"  ret {vector} %all", "}",
    ])


def _scalar(outer: Builder, name: str, mode: str) -> str:
    """The helper for one lane. Its declarations become those of ``outer``."""
    b = Builder()
    x, y, z = (Value(f"%{v}", "double") for v in "xyz")
    nearest = b.fma(x, y, z)
    exact, ok = _sum(b, x, y, z, mode)
    b.line(f"  %result = select i1 {ok.ref}, double {exact.ref}, double {nearest.ref}")
    outer.declarations.update(b.declarations)
    head = f"define internal double @{name}(double %x, double %y, double %z) noinline {{"
    return "\n".join([head, *b.lines, "  ret double %result", "}"])


def _number(value: int, width: str = "i64") -> Value:
    return Value(str(value), width)


def _parts(b: Builder, x: Value) -> tuple[Value, Value, Value, Value]:
    """Biased exponent (at least 1), significand, sign bit (i1), whether it is finite."""
    have = b.bitcast(x, "i64")
    field = b.and_(b.lshr(have, _number(52)), _number(0x7FF))
    fraction = b.and_(have, _number((1 << 52) - 1))
    subnormal = b.icmp("eq", field, _number(0))
    significand = b.select(subnormal, fraction, b.or_(fraction, _number(1 << 52)))
    exponent = b.select(subnormal, _number(1), field)
    return exponent, significand, b.icmp("slt", have, _number(0)), b.icmp("ne", field, _number(0x7FF))


def _shifted_down(b: Builder, x: Value, by: Value) -> tuple[Value, Value]:
    """A wide integer shifted right by at most 255, and whether a bit was lost."""
    distance = b.intrinsic("llvm.umin", "i64", by, _number(255))
    amount = b.zext(distance, _WIDE)
    kept = b.lshr(x, amount)
    return kept, b.icmp("ne", b.shl(kept, amount), x)


def _signed(b: Builder, x: Value, negative: Value) -> Value:
    return b.select(negative, b.negate(x), x)


def _sum(b: Builder, x: Value, y: Value, z: Value, mode: str) -> tuple[Value, Value]:
    """The rounded result, and whether it holds: operands finite, product and sum not zero."""
    (ex, mx, sx, fx), (ey, my, sy, fy), (ez, mz, sz, fz) = (_parts(b, v) for v in (x, y, z))
    product = b.zext(b.mul(b.zext(mx, "i128"), b.zext(my, "i128")), _WIDE)
    lowest = b.sub(b.add(ex, ey), _number(2 * 1075))  # exponent of the product's last bit
    distance = b.sub(b.sub(ez, _number(1075)), lowest)
    distance = b.select(b.icmp("eq", mz, _number(0)), _number(0), distance)
    addend = b.zext(mz, _WIDE)

    far = b.icmp("sgt", distance, _number(_ADDEND_AT - _PRODUCT_AT))
    up = b.select(far, _number(_ADDEND_AT), b.add(distance, _number(_PRODUCT_AT)))
    base = b.sub(b.add(lowest, distance), up)
    product_bits = b.select(far, Value("1", _WIDE), b.shl(product, Value(str(_PRODUCT_AT), _WIDE)))
    down = b.icmp("slt", up, _number(0))
    raised = b.shl(addend, b.zext(b.select(down, _number(0), up), _WIDE))
    lowered, lost = _shifted_down(b, addend, b.select(down, b.negate(up), _number(0)))
    addend_bits = b.select(down, b.or_(lowered, b.zext(lost, _WIDE)), raised)

    total = b.add(_signed(b, product_bits, b.xor(sx, sy)), _signed(b, addend_bits, sz))
    negative = b.icmp("slt", total, b.zero(_WIDE))
    bits = _rounded(b, _signed(b, total, negative), base, negative, mode)
    sign = b.shl(b.zext(negative, "i64"), _number(63))
    something = b.and_(b.icmp("ne", product, b.zero(_WIDE)), b.icmp("ne", total, b.zero(_WIDE)))
    return b.bitcast(b.or_(bits, sign), "double"), b.and_(something, b.and_(fx, b.and_(fy, fz)))


def _rounded(b: Builder, magnitude: Value, base: Value, negative: Value, mode: str) -> Value:
    """The bits, without sign, of magnitude * 2**base (not zero)."""
    leading = b.trunc(b.intrinsic("llvm.ctlz", _WIDE, magnitude, extra=(Value("false", "i1"),)), "i64")
    shift = b.sub(_number(255 - 52), leading)
    shift = b.intrinsic("llvm.smax", "i64", shift, b.sub(_number(-1074), base))
    left = b.icmp("slt", shift, _number(0))
    kept, inexact = _shifted_down(b, magnitude, b.select(left, _number(0), shift))
    raised = b.shl(magnitude, b.zext(b.select(left, b.negate(shift), _number(0)), _WIDE))
    digits = b.trunc(b.select(left, raised, kept), "i64")
    above = b.add(b.add(base, shift), _number(1074))  # biased exponent - 1; the leading digit adds the one
    bits = b.add(b.shl(above, _number(52)), digits)
    overflow = b.icmp("sgt", above, _number(0x7FD))
    if mode == "rz":
        return b.select(overflow, _number(_INFINITY - 1), bits)
    grows = b.zext(b.and_(inexact, b.invert(negative)), "i64")
    largest = b.select(negative, _number(_INFINITY - 1), _number(_INFINITY))
    return b.select(overflow, largest, b.add(bits, grows))
