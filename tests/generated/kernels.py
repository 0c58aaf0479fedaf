"""Tiny kernels with the bytes that each really touches: PTX and a few lines of numpy side by side.

Thread i has element i of what a kernel works on. All arithmetic is of 32-bit integers (but for ``exponent``), and what
is written mixes in the position and a running number, ``salt``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ptxparse.api import AccessProgram, analyze, parse
from ptxparse.model import Module, parameter_layout

Addresses = npt.NDArray[np.int64]
NONE: Addresses = np.zeros(0, np.int64)


class Touch(NamedTuple):
    """Bytes by their addresses. ``reads``; ``writes``; ``own``: what the thread that writes it has read before;
    ``adds``: atomic additions, whose order does not show."""

    reads: Addresses = NONE
    writes: Addresses = NONE
    own: Addresses = NONE
    adds: Addresses = NONE


class Given(NamedTuple):
    """A launch as its kernel's bytes depend on it: parameters, contents of tables by parameter, addresses of the
    module's variables."""

    values: Mapping[str, int]
    tables: Mapping[str, npt.NDArray[np.int64]]
    variables: Mapping[str, int]


@dataclass(frozen=True)
class Kernel:
    """``parameters``: names and PTX types. ``one``: it is launched with one thread, for which nothing is a race."""

    name: str
    parameters: tuple[tuple[str, str], ...]
    body: str
    touch: Callable[[Given], Touch]
    guarded: bool = True
    one: bool = False

    @property
    def text(self) -> str:
        declared = ", ".join(
            f".param .align 8 .b8 {name}[24]" if kind == "struct" else f".param .{kind} {name}"
            for name, kind in self.parameters)
        lines = [f".visible .entry {self.name}({declared})\n{{", _REGISTERS]
        for name, kind in self.parameters:
            if kind == "u64":
                lines.append(f".reg .b64 %{name}; ld.param.u64 %{name}, [{name}]; cvta.to.global.u64 %{name}, %{name};")
            elif kind == "u32":
                lines.append(f".reg .b32 %{name}; ld.param.u32 %{name}, [{name}];")
        lines.append(_THREAD)
        if self.guarded:
            lines.append("setp.ge.u32 %p0, %i, %n; @%p0 bra DONE;")
        return "\n".join([*lines, self.body.strip(), "DONE: ret;\n}\n"])


_REGISTERS = ".reg .pred %p<8>; .reg .b16 %h<8>; .reg .b32 %r<32>; .reg .b64 %rd<32>; .reg .f32 %f<8>; .reg .b32 %i;"
_THREAD = "mov.u32 %r0, %ctaid.x; mov.u32 %r1, %ntid.x; mov.u32 %r2, %tid.x; mad.lo.s32 %i, %r0, %r1, %r2;"
_HEAD = """.version 7.0
.target sm_70
.address_size 64
.visible .global .align 4 .b32 state[64];
.visible .const .align 4 .b32 factors[8] = {3, 5, 7, 11, 13, 17, 19, 23};
"""
VARIABLES = {"state": (256, bytes(256)), "factors": (32, np.array([3, 5, 7, 11, 13, 17, 19, 23], "<i4").tobytes())}
"""Bytes and contents of the module's variables."""
KERNELS: dict[str, Kernel] = {}
"""All, as the package imports the modules that define them."""


def spans(starts: Any, width: int = 4) -> Addresses:
    """The addresses of ``width`` bytes at each start."""
    return (np.asarray(starts, np.int64)[:, None] + np.arange(width)).reshape(-1)


def words(base: int, n: int, stride: int = 1) -> Addresses:
    """The bytes of every ``stride``-th word, n of them."""
    return spans(base + 4 * stride * np.arange(n, dtype=np.int64))


def at(register: str, base: str, index: str, size: int = 4) -> str:
    """PTX for the address of an element."""
    return f"mul.wide.u32 {register}, {index}, {size}; add.s64 {register}, {base}, {register};"


def mix(register: str, factor: int = 3) -> str:
    """PTX that makes another word of one, of the position and of the running number."""
    return (f"mad.lo.s32 {register}, {register}, {factor}, %salt; mul.lo.s32 %r31, %i, 7; "
            f"add.s32 {register}, {register}, %r31;")


def define(name: str, parameters: str, body: str, touch: Callable[[Given], Touch], guarded: bool = True,
           one: bool = False) -> None:
    """Adds a kernel; ``parameters`` are names with u32 or u64 (out of it for names in capitals), or ``struct``."""
    pairs = [tuple(word.split(":")) for word in parameters.split()]
    KERNELS[name] = Kernel(name, tuple((a, b) for a, b in pairs), body, touch, guarded, one)


def pair(out: int, into: Addresses, source: int, read: Addresses) -> Touch:
    """Of kernels whose thread reads one element and writes one, which may be the same."""
    return Touch(own=into) if out == source else Touch(read, into)


@cache
def text() -> str:
    """The module's PTX."""
    return _HEAD + "\n".join(kernel.text for kernel in KERNELS.values())


@cache
def module() -> Module:
    return parse(text())


@cache
def programs() -> dict[str, AccessProgram]:
    """The kernels' access programs."""
    return {program.kernel: program for program in analyze(module())}


@cache
def layout(kernel: str) -> tuple[dict[str, tuple[int, int]], int]:
    """Offset and bytes of each parameter, and the bytes of all."""
    function = module().function(kernel)
    assert function is not None
    slots, size = parameter_layout(function)
    return {slot.name: (slot.offset, slot.size) for slot in slots}, size


def parameters(kernel: str, values: Mapping[str, int | bytes]) -> bytes:
    """The parameter block."""
    slots, size = layout(kernel)
    block = bytearray(size)
    for name, (offset, width) in slots.items():
        value = values[name]
        data = value if isinstance(value, bytes) else (value & (1 << 8 * width) - 1).to_bytes(width, "little")
        block[offset:offset + width] = data
    return bytes(block)
