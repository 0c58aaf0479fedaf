"""Whether an instruction gives the same result on every device, in every run."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from ptxparse.opcodes.lookup import CACHED, find
from ptxparse.opcodes.record import Effect, Kind

if TYPE_CHECKING:
    from ptxparse.model import Mnemonic

_APPROXIMATE = frozenset({"approx", "full"})
_ALWAYS_APPROXIMATE = frozenset({"sin", "cos", "lg2", "ex2", "tanh", "rsqrt"})
_ROUNDINGS = frozenset({"rn", "rz", "rm", "rp"})
_CONTRACTIBLE = frozenset({"add", "sub", "mul"})
_VARIANT_EFFECTS = frozenset(
    {
        Effect.TENSOR,
        Effect.WGMMA,
        Effect.TCGEN05,
        Effect.TEXTURE,
        Effect.SURFACE,
        Effect.MULTIMEM,
        Effect.FABRIC,
    }
)
# Which lane is elected, where the stack lies and which elements of equal size are kept is the implementation's choice.
_VARIANT_NAMES = frozenset({"elect", "alloca", "stacksave", "spcompress"})
_NONDETERMINISTIC_NAMES = frozenset(
    {
        "activemask",
        "mbarrier.arrive",
        "mbarrier.arrive_drop",
        "mbarrier.test_wait",
        "mbarrier.try_wait",
        "clusterlaunchcontrol.try_cancel",
        "clusterlaunchcontrol.query_cancel",
    }
)
_COMMUTATIVE = frozenset({"add", "min", "max", "and", "or", "xor"})
_INTEGERS = frozenset({"b32", "b64", "u32", "s32", "u64", "s64"})


def is_device_variant(mnemonic: Mnemonic) -> bool:
    """Whether devices may compute different results from equal operands.

    True for approximate functions (``.approx``, ``div.full``, division and roots without a rounding modifier),
    matrix arithmetic of any type, textures and surfaces, stochastic rounding, and unknown opcodes. Not covered here:
    special registers (:data:`SPECIAL_REGISTERS`), fused multiply-adds formed by the compiler
    (:func:`is_contractible`), and addresses kept as values.
    """
    return _is_device_variant(mnemonic.text)


@lru_cache(CACHED)
def _is_device_variant(text: str) -> bool:
    row, unknown = find(text)
    if row is None or unknown:
        return True
    modifiers = set(text.split(".")[1:])
    if row.effect in _VARIANT_EFFECTS or row.name in _VARIANT_NAMES or modifiers & _APPROXIMATE:
        return True
    if row.kind is Kind.SPECIAL:
        return row.name in _ALWAYS_APPROXIMATE or not modifiers & _ROUNDINGS
    return row.name == "cvt" and "rs" in modifiers


def is_contractible(mnemonic: Mnemonic) -> bool:
    """Whether the compiler may fuse this with a neighbour into a multiply-add, which rounds once instead of twice.

    Floating-point ``add``, ``sub`` and ``mul`` without a rounding modifier: "mul/add sequences with no rounding
    modifiers may be optimized to use fused-multiply-add instructions" (PTX manual, notes of 9.7.3.3 to 9.7.3.5,
    9.7.4.1 to 9.7.4.3, 9.7.5, 9.7.6).
    """
    return _is_contractible(mnemonic.text)


@lru_cache(CACHED)
def _is_contractible(text: str) -> bool:
    row, _ = find(text)
    if row is None or row.name not in _CONTRACTIBLE or row.kind is not Kind.FLOAT:
        return False
    return not _ROUNDINGS & set(text.split(".")[1:])


def is_nondeterministic(mnemonic: Mnemonic) -> bool:
    """Whether equal operands may give different results from run to run, by timing or by how threads converge.

    True for ``activemask``, for shuffles and votes without ``.sync``, for the states and tests of barrier objects and
    for cancelled launches. Atomics are judged by :func:`is_order_dependent`; clocks are special registers.
    """
    return _is_nondeterministic(mnemonic.text)


@lru_cache(CACHED)
def _is_nondeterministic(text: str) -> bool:
    row, _ = find(text)
    if row is None:
        return True
    return row.name in _NONDETERMINISTIC_NAMES or (row.name in ("shfl", "vote") and ".sync" not in text)


def is_order_dependent(mnemonic: Mnemonic) -> bool:
    """Whether what an ``atom`` or ``red`` leaves in memory depends on the order in which threads come.

    False only for ``add``, ``min``, ``max``, ``and``, ``or``, ``xor`` on integers; floating-point sums round
    differently in another order. The value that ``atom`` returns depends on the order whatever the operation is.
    """
    return _is_order_dependent(mnemonic.text)


@lru_cache(CACHED)
def _is_order_dependent(text: str) -> bool:
    row, unknown = find(text)
    if row is None or row.effect is not Effect.ATOMIC:
        return False
    modifiers = set(text.split(".")[1:])
    return bool(unknown) or not (modifiers & _COMMUTATIVE and modifiers & _INTEGERS)
