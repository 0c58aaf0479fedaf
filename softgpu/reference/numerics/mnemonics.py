"""The full mnemonics of the arithmetic instructions, generated from the syntax lines of the PTX manual.

Each function yields (mnemonic, source types, result type, callable) of one family. Left out by name: ``fma...oob``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from typing import Any

from softgpu.reference.numerics import approximate, arithmetic, comparison, magnitude
from softgpu.reference.numerics.formats import PACKED
from softgpu.reference.numerics.rounding import ROUNDINGS

Entry = tuple[str, tuple[str, ...], str, Callable[..., Any]]
Entries = Iterator[Entry]

_HALF = ("f16", "f16x2")
_BRAIN = ("bf16", "bf16x2")
_FLAG = (False, True)


def join(*parts: str) -> str:
    """Mnemonic from its parts; empty ones are left out."""
    return ".".join(part for part in parts if part)


def _flag(name: str, present: bool) -> str:
    return name if present else ""


def _with_rounding(name: str, arity: int, function: Callable[..., Any], required: bool) -> Entries:
    """The forms that add, sub, mul and fma share; ``required``: the rounding has no default."""
    default = () if required else ("",)
    for rounding, ftz, sat in product((*default, *ROUNDINGS), _FLAG, _FLAG):
        mode = rounding or "rn"
        mnemonic = join(name, rounding, _flag("ftz", ftz), _flag("sat", sat), "f32")
        yield mnemonic, ("f32",) * arity, "f32", partial(function, kind="f32", rounding=mode, ftz=ftz, sat=sat)
    for rounding in (*default, *ROUNDINGS):
        call = partial(function, kind="f64", rounding=rounding or "rn")
        yield join(name, rounding, "f64"), ("f64",) * arity, "f64", call
    for rounding, ftz in product((*default, *ROUNDINGS), _FLAG):
        call = partial(function, kind="f32x2", rounding=rounding or "rn", ftz=ftz)
        yield join(name, rounding, _flag("ftz", ftz), "f32x2"), ("f32x2",) * arity, "f32x2", call


def _half_rounding(name: str, arity: int, function: Callable[..., Any], required: bool) -> Entries:
    modes = ("rn",) if required else ("", "rn")
    for kind, rounding, ftz, sat in product(_HALF, modes, _FLAG, _FLAG):
        mnemonic = join(name, rounding, _flag("ftz", ftz), _flag("sat", sat), kind)
        yield mnemonic, (kind,) * arity, kind, partial(function, kind=kind, ftz=ftz, sat=sat)
    for kind, rounding in product(_BRAIN, modes):
        yield join(name, rounding, kind), (kind,) * arity, kind, partial(function, kind=kind)


def add() -> Entries:
    yield from _with_rounding("add", 2, arithmetic.add, False)
    yield from _half_rounding("add", 2, arithmetic.add, False)
    yield from _mixed("add", arithmetic.add_mixed)


def sub() -> Entries:
    yield from _with_rounding("sub", 2, arithmetic.sub, False)
    yield from _half_rounding("sub", 2, arithmetic.sub, False)
    yield from _mixed("sub", arithmetic.sub_mixed)


def _mixed(name: str, function: Callable[..., Any]) -> Entries:
    for rounding, sat, kind in product(("", *ROUNDINGS), _FLAG, ("f16", "bf16")):
        call = partial(function, a_kind=kind, rounding=rounding or "rn", sat=sat)
        yield join(name, rounding, _flag("sat", sat), "f32", kind), (kind, "f32"), "f32", call


def mul() -> Entries:
    yield from _with_rounding("mul", 2, arithmetic.mul, False)
    yield from _half_rounding("mul", 2, arithmetic.mul, False)


def fma() -> Entries:
    yield from _with_rounding("fma", 3, arithmetic.fma, True)
    yield from _half_rounding("fma", 3, arithmetic.fma, True)
    for kind, ftz in product(_HALF, _FLAG):
        call = partial(arithmetic.fma, kind=kind, ftz=ftz, relu=True)
        yield join("fma", "rn", _flag("ftz", ftz), "relu", kind), (kind,) * 3, kind, call
    for kind in _BRAIN:
        yield f"fma.rn.relu.{kind}", (kind,) * 3, kind, partial(arithmetic.fma, kind=kind, relu=True)
    for rounding, sat, kind in product(ROUNDINGS, _FLAG, ("f16", "bf16")):
        call = partial(arithmetic.fma_mixed, kind=kind, rounding=rounding, sat=sat)
        yield join("fma", rounding, _flag("sat", sat), "f32", kind), (kind, kind, "f32"), "f32", call


def mad() -> Entries:
    """Floating-point mad is fma on sm_20 and later."""
    for entry in _with_rounding("mad", 3, arithmetic.fma, True):
        if entry[2] != "f32x2":
            yield entry


def _ieee(name: str, arity: int, function: Callable[..., Any]) -> Entries:
    for rounding, ftz in product(ROUNDINGS, _FLAG):
        call = partial(function, kind="f32", rounding=rounding, ftz=ftz)
        yield join(name, rounding, _flag("ftz", ftz), "f32"), ("f32",) * arity, "f32", call
    for rounding in ROUNDINGS:
        yield f"{name}.{rounding}.f64", ("f64",) * arity, "f64", partial(function, kind="f64", rounding=rounding)


def _approximate(name: str, function: Callable[..., Any], kinds: tuple[str, ...] = ("f32",), arity: int = 1) -> Entries:
    """``name.kind`` and ``name.ftz.kind`` for f32; half precision as ex2 and tanh have them."""
    for kind in kinds:
        for ftz in _FLAG if kind == "f32" else (False,):
            more = {} if arity == 2 else {"kind": kind}
            yield join(name, _flag("ftz", ftz), kind), (kind,) * arity, kind, partial(function, ftz=ftz, **more)


def div() -> Entries:
    yield from _ieee("div", 2, arithmetic.div)
    yield from _approximate("div.approx", approximate.div_approx, arity=2)
    yield from _approximate("div.full", approximate.div_full, arity=2)


def rcp() -> Entries:
    yield from _ieee("rcp", 1, arithmetic.rcp)
    yield from _approximate("rcp.approx", approximate.rcp_approx)
    yield "rcp.approx.ftz.f64", ("f64",), "f64", approximate.rcp_approx_ftz_f64


def sqrt() -> Entries:
    yield from _ieee("sqrt", 1, arithmetic.sqrt)
    yield from _approximate("sqrt.approx", approximate.sqrt_approx)


def rsqrt() -> Entries:
    yield from _approximate("rsqrt.approx", approximate.rsqrt_approx, ("f32", "f64"))
    yield "rsqrt.approx.ftz.f64", ("f64",), "f64", approximate.rsqrt_approx_ftz_f64


def sin() -> Entries:
    yield from _approximate("sin.approx", approximate.sin)


def cos() -> Entries:
    yield from _approximate("cos.approx", approximate.cos)


def lg2() -> Entries:
    yield from _approximate("lg2.approx", approximate.lg2)


def ex2() -> Entries:
    yield from _approximate("ex2.approx", approximate.ex2, ("f32", *_HALF))
    for kind in _BRAIN:
        yield f"ex2.approx.ftz.{kind}", (kind,), kind, partial(approximate.ex2, kind=kind, ftz=True)


def tanh() -> Entries:
    for kind in ("f32", *_HALF, *_BRAIN):
        yield f"tanh.approx.{kind}", (kind,), kind, partial(approximate.tanh, kind=kind)


def _sign_only(name: str, function: Callable[..., Any]) -> Entries:
    for kind in ("f32", "f64", *_HALF, *_BRAIN):
        for ftz in _FLAG if kind in ("f32", *_HALF) else (False,):
            yield join(name, _flag("ftz", ftz), kind), (kind,), kind, partial(function, kind=kind, ftz=ftz)


def abs_() -> Entries:
    yield from _sign_only("abs", magnitude.fabs)


def neg() -> Entries:
    yield from _sign_only("neg", magnitude.fneg)


def _extreme(name: str, function: Callable[..., Any]) -> Entries:
    for kind, nan, xorsign in product(("f32", *_HALF, *_BRAIN), _FLAG, _FLAG):
        for ftz in _FLAG if kind not in _BRAIN else (False,):
            mnemonic = join(name, _flag("ftz", ftz), _flag("NaN", nan), _flag("xorsign.abs", xorsign), kind)
            call = partial(function, kind=kind, ftz=ftz, nan=nan, xorsign_abs=xorsign)
            yield mnemonic, (kind, kind), kind, call
    yield f"{name}.f64", ("f64", "f64"), "f64", partial(function, kind="f64")


_EXTREMES = (("min", magnitude.fmin), ("max", magnitude.fmax))


def min_() -> Entries:
    yield from _extreme("min", magnitude.fmin)


def max_() -> Entries:
    yield from _extreme("max", magnitude.fmax)


def three_inputs() -> Entries:
    """min and max of three f32 operands (sm_100): their names without ``.abs`` are those of two operands too."""
    for (name, function), ftz, nan, magnitudes in product(_EXTREMES, _FLAG, _FLAG, _FLAG):
        mnemonic = join(name, _flag("ftz", ftz), _flag("NaN", nan), _flag("abs", magnitudes), "f32")
        call = partial(magnitude.extreme_of_three, function, ftz=ftz, nan=nan, magnitudes=magnitudes)
        yield mnemonic, ("f32",) * 3, "f32", call


def copysign() -> Entries:
    for kind in ("f32", "f64"):
        yield f"copysign.{kind}", (kind, kind), kind, partial(magnitude.copysign, kind=kind)


def testp() -> Entries:
    for test, kind in product(magnitude.TESTP_KINDS, ("f32", "f64")):
        yield f"testp.{test}.{kind}", (kind,), "pred", partial(magnitude.testp, test=test, kind=kind)


def setp() -> Entries:
    """Without the boolean operator; packed types give a pair of predicates."""
    for op, kind in product(comparison.COMPARISONS, ("f32", "f64", *_HALF, *_BRAIN)):
        function, result = (comparison.compare2, "pred2") if kind in PACKED else (comparison.compare, "pred")
        for ftz in _FLAG if kind in ("f32", *_HALF) else (False,):
            call = partial(_swap_compare, function, op, kind, ftz)
            yield join("setp", op, _flag("ftz", ftz), kind), (kind, kind), result, call


def _swap_compare(function: Callable[..., Any], op: str, kind: str, ftz: bool, a: Any, b: Any) -> Any:
    return function(op, a, b, kind, ftz)


_SET_RESULTS = {
    "f32": ("u32", "s32", "f32", "f16", "bf16"),
    "f64": ("u32", "s32", "f32", "f16", "bf16"),
    "f16": ("u16", "s16", "u32", "s32", "f16", "bf16"),
    "bf16": ("u16", "s16", "u32", "s32", "bf16"),
    "f16x2": ("f16x2", "u32", "s32"),
    "bf16x2": ("bf16x2", "u32", "s32"),
}


def set_() -> Entries:
    """Floating-point sources, without the boolean operator."""
    for kind, results in _SET_RESULTS.items():
        for op, to in product(comparison.COMPARISONS, results):
            for ftz in _FLAG if kind in ("f32", *_HALF) and to != "bf16" else (False,):
                call = partial(_swap_set, op, to, kind, ftz)
                yield join("set", op, _flag("ftz", ftz), to, kind), (kind, kind), to, call


def _swap_set(op: str, to: str, kind: str, ftz: bool, a: Any, b: Any) -> Any:
    return comparison.set_(op, a, b, to, kind, ftz)
