"""PTX arithmetic on bit patterns: pure functions on numpy arrays of any (broadcasting) shape.

Containers: ``f16``, ``bf16`` and packed ``e4m3x2``/``e5m2x2`` are uint16; ``f32``, ``tf32``, ``f16x2``, ``bf16x2`` are
uint32; ``f64`` and ``f32x2`` are uint64; ``e4m3``/``e5m2`` are uint8; integers ``u8..u64``/``s8..s64`` are the unsigned
array of their width (two's complement), as are ``b8..b64``; predicates are bool. Nothing is modified in place; results
have the container of their type and may share memory with an operand.

Two ways in:

1. By full mnemonic (what a decoder whitelists)::

       operation = OPERATIONS["fma.rn.ftz.f32"]      # KeyError: not a supported mnemonic
       operation.sources                              # ("f32", "f32", "f32"): type of each source operand
       operation.result                               # "f32"; "pred" for setp; see below for setp on x2 types
       d = operation(a, b, c)                         # bit patterns in, bit patterns out

   ``THREE_INPUTS`` holds ``min`` and ``max`` with three operands, some of which share their names with those of two.
   ``FAMILIES`` maps a family name ("add", "fma", "cvt", "setp", ...) to the tuple of its supported full mnemonics.
   ``setp``: mnemonics without the boolean part (``setp.lt.ftz.f32``); for ``f16x2``/``bf16x2`` the result is "pred2"
   and the call returns a pair (low half, high half). ``.and/.or/.xor`` with a third operand and the complement that
   ``q`` of ``p|q`` gets for scalar types are the caller's.

2. By function:

   add, sub, mul(a, b, type, rounding="rn", ftz=False, sat=False, relu=False)
   fma(a, b, c, type, rounding, ftz, sat, relu); div(a, b, type, rounding, ftz); rcp, sqrt(a, type, rounding, ftz)
   fmin, fmax(a, b, type, ftz=False, nan=False, xorsign_abs=False)
   fabs, fneg(a, type, ftz=False); copysign(a, b, type) = sign of a, magnitude of b; testp(a, kind, type) -> bool
   compare(op, a, b, type, ftz=False) -> bool      op: eq ne lt le gt ge equ neu ltu leu gtu geu num nan
   set_result(bool array, type) -> all ones / 1.0 of an integer / float destination type
   convert(a, to, source, rounding="", ftz=False, sat=False, relu=False, satfinite=False)
   convert_pair(a, b, to, source="f32", ...)       cvt.rn.f16x2.f32 d, a, b: a goes to the upper half
   ex2, lg2, sin, cos, tanh, rcp_approx, rsqrt_approx, sqrt_approx(a, type="f32", ftz=False)
   div_approx, div_full(a, b, ftz=False); rcp_approx_ftz_f64, rsqrt_approx_ftz_f64(a)

Bit helpers: to_float64(bits, type) exact value; from_float64(values, type, rounding="rn") one rounding;
split2(x) -> (low, high) uint16; join2(low, high) -> uint32; flush(bits, type) subnormals to zero of the same sign.
"""

from softgpu.reference.numerics.approximate import (
    cos,
    div_approx,
    div_full,
    ex2,
    lg2,
    rcp_approx,
    rcp_approx_ftz_f64,
    rsqrt_approx,
    rsqrt_approx_ftz_f64,
    sin,
    sqrt_approx,
    tanh,
)
from softgpu.reference.numerics.arithmetic import (
    add,
    add_mixed,
    div,
    fma,
    fma_mixed,
    mul,
    rcp,
    relu,
    saturate,
    sqrt,
    sub,
    sub_mixed,
)
from softgpu.reference.numerics.comparison import COMPARISONS, compare, compare2, set2_result, set_, set_result
from softgpu.reference.numerics.conversion import convert, convert_packed, convert_pair
from softgpu.reference.numerics.formats import (
    FORMATS,
    INTEGERS,
    PACKED,
    Format,
    bits_of,
    container,
    flush,
    join2,
    split2,
    to_float64,
)
from softgpu.reference.numerics.magnitude import copysign, fabs, fmax, fmin, fneg, testp
from softgpu.reference.numerics.operations import FAMILIES, OPERATIONS, THREE_INPUTS, Operation
from softgpu.reference.numerics.rounding import from_float64

__all__ = [
    "COMPARISONS",
    "FAMILIES",
    "FORMATS",
    "INTEGERS",
    "OPERATIONS",
    "PACKED",
    "THREE_INPUTS",
    "Format",
    "Operation",
    "add",
    "add_mixed",
    "bits_of",
    "compare",
    "compare2",
    "container",
    "convert",
    "convert_packed",
    "convert_pair",
    "copysign",
    "cos",
    "div",
    "div_approx",
    "div_full",
    "ex2",
    "fabs",
    "flush",
    "fma",
    "fma_mixed",
    "fmax",
    "fmin",
    "fneg",
    "from_float64",
    "join2",
    "lg2",
    "mul",
    "rcp",
    "rcp_approx",
    "rcp_approx_ftz_f64",
    "relu",
    "rsqrt_approx",
    "rsqrt_approx_ftz_f64",
    "saturate",
    "set2_result",
    "set_",
    "set_result",
    "sin",
    "split2",
    "sqrt",
    "sqrt_approx",
    "sub",
    "sub_mixed",
    "tanh",
    "testp",
    "to_float64",
]
