"""The one place that knows the CPU: for which instruction sets kernels are compiled, and which one a machine has.

There are a few fixed levels instead of the host's own list of features: an object then has the same bytes on every
machine of its level, each level can be tested on any machine of a higher one, and the C run-time finds the same level
with a handful of CPUID bits (``runtime/client_target.c``), which makes the level's name the CPU's part of a cache key.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import llvmlite.binding as llvm

from softgpu.engine.errors import EngineError

TRIPLE = "x86_64-unknown-linux-gnu"
DATA_LAYOUT = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"

_V3 = ("avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "popcnt", "sse4.2")
_V4 = ("avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl")
_BYTES = ("avx512bitalg", "avx512ifma", "avx512vbmi", "avx512vbmi2", "avx512vnni", "avx512vpopcntdq", "gfni")
_HALF = ("avx512bf16", "avx512fp16")


@dataclass(frozen=True)
class Target:
    """An instruction set that kernels are compiled for.

    ``name`` is short, stable and part of cache keys. ``features`` are LLVM's names of everything the level has that
    matters to kernels, ``base`` the LLVM CPU that has some of them, ``tune`` the CPU whose timing LLVM assumes.
    """

    name: str
    base: str
    tune: str
    features: tuple[str, ...]

    def has(self, feature: str) -> bool:
        """Whether kernels may use a feature, by LLVM's name: ``avx512f``, ``avx512fp16``, ..."""
        return feature in self.features

    @property
    def vector_bits(self) -> int:
        """Width of the widest vector registers."""
        return 512 if self.has("avx512f") else 256

    @property
    def feature_text(self) -> str:
        """The features as LLVM takes them."""
        return ",".join([f"+{feature}" for feature in self.features])

    @property
    def attributes(self) -> str:
        """Attributes of every function of a kernel's module, as they stand in ``attributes #0 = { ... }``.

        ``nounwind`` without ``uwtable`` leaves unwind tables out. With ``noimplicitfloat`` LLVM leaves integer
        operations on the bits of numbers as they are; else it loses sight of what their sign bits are, and compares
        without AVX-512 take twice the instructions. The preferred width is said because LLVM otherwise splits 512-bit
        vectors on the CPUs where those once lowered the clock.
        """
        pairs = {"target-cpu": self.base, "tune-cpu": self.tune, "prefer-vector-width": str(self.vector_bits),
                 "min-legal-vector-width": str(self.vector_bits), "target-features": self.feature_text,
                 "no-builtins": ""}
        flags = "nounwind noimplicitfloat"
        return " ".join([flags, *[f'"{key}"="{text}"' if text else f'"{key}"' for key, text in pairs.items()]])

    @property
    def header(self) -> str:
        """The first lines of a module in IR."""
        return f'target datalayout = "{DATA_LAYOUT}"\ntarget triple = "{TRIPLE}"\n'


TARGETS: tuple[Target, ...] = (
    Target("x86-64-v4-fp16", "x86-64-v4", "sapphirerapids", _V3 + _V4 + _BYTES + _HALF),
    Target("x86-64-v4-vbmi", "x86-64-v4", "icelake-server", _V3 + _V4 + _BYTES),
    Target("x86-64-v4", "x86-64-v4", "skylake-avx512", _V3 + _V4),
    Target("x86-64-v3", "x86-64-v3", "haswell", _V3),
)
"""All levels, the highest first."""


def target_named(name: str) -> Target:
    """The level of that name; :class:`EngineError` for any other name."""
    for target in TARGETS:
        if target.name == name:
            return target
    raise EngineError(f"no instruction set level is named {name!r}; there are {', '.join(t.name for t in TARGETS)}")


def best_target(features: dict[str, bool]) -> Target:
    """The highest level that a CPU with these features (by LLVM's names) has.

    Raises :class:`EngineError` that names what is missing for CPUs below x86-64-v3.
    """
    for target in TARGETS:
        if all(features.get(feature, False) for feature in target.features):
            return target
    missing = [feature for feature in _V3 if not features.get(feature, False)]
    raise EngineError(f"compiled kernels need a CPU of level x86-64-v3 or higher; this one lacks {', '.join(missing)}")


@cache
def host_target() -> Target:
    """The highest level of this machine; :class:`EngineError` when it has none."""
    if llvm.get_default_triple().split("-", 1)[0] != "x86_64":
        raise EngineError(f"compiled kernels run on x86-64 only, this machine is {llvm.get_default_triple()}")
    return best_target(dict(llvm.get_host_cpu_features()))
