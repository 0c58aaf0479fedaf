"""Kernels that show the results of test vectors, for the interpreter, the engine or a real device."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ptxparse.model import TYPE_BYTES
from tests.vectors.vector import NAN, Vector

Array = npt.NDArray[Any]
Bytes = npt.NDArray[np.uint8]

WARP = 32

HEADER = """.version 8.8
.target sm_100a
.address_size 64
.visible .global .align 16 .b8 cells[512];
"""
"""``cells`` is memory for atomics: bytes 16 t to 16 t + 15 belong to thread t."""

REGISTERS = """
    .reg .pred %p<8>; .reg .b32 %r<24>; .reg .b64 %rd<16>; .reg .b128 %q<4>;
    .shared .align 16 .b8 board[512];
    mov.u32 %r0, %tid.x; ld.param.u64 %rd12, [out]; ld.param.u64 %rd13, [in];
"""
"""What bodies may use beside their operands. %r0 is the thread's number; %rd10 and above, %r20 and above are not
theirs."""

_INFINITY = {"f16": 0x7C00, "bf16": 0x7F80, "f32": 0x7F800000, "f64": 0x7FF0000000000000}


def container(kind: str) -> np.dtype[Any]:
    """How a type lies in memory: the unsigned integer of its width, predicates as 32 bits."""
    return np.dtype(np.uint32) if kind == "pred" else np.dtype(f"u{TYPE_BYTES[kind]}")


def is_nan(bits: int, kind: str) -> bool:
    """Whether a bit pattern of a floating-point type is a NaN."""
    return bits & ((1 << 8 * TYPE_BYTES[kind] - 1) - 1) > _INFINITY[kind]


@dataclass(frozen=True)
class Part:
    """Vectors with one body: one for each of the first threads, or a single one for the whole warp.

    ``inputs`` and ``outputs`` are the offsets of a 32-element array for each source and result. ``same``: all threads
    read and write the first element, so that a compiler sees that they do the same.
    """

    vectors: tuple[Vector, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    same: bool = False

    def column(self, values: Sequence[int | tuple[int, ...]]) -> tuple[int, ...]:
        """The values of 32 threads; those behind the last vector do the same as it."""
        if self.vectors[0].of_warp:
            (only,) = values
            return only if isinstance(only, tuple) else (only,) * WARP
        numbers = tuple(value for value in values if isinstance(value, int))
        return numbers + numbers[-1:] * (WARP - len(numbers))

    def text(self) -> str:
        """The part as a block of PTX with registers of its own."""
        first = self.vectors[0]
        lines = ["    {"]
        for letter, kinds in (("i", first.sources), ("o", first.results)):
            for i, kind in enumerate(kinds):
                register = "pred" if kind == "pred" else f"b{max(8 * TYPE_BYTES[kind], 16)}"
                lines.append(f"    .reg .{register} %{letter}{i};")
        for i, (kind, offset) in enumerate(zip(first.sources, self.inputs, strict=True)):
            size = container(kind).itemsize
            lines.append(self._address("%rd13", size))
            if kind == "pred":
                lines.append(f"    ld.global.b32 %r20, [%rd10+{offset}]; setp.ne.b32 %i{i}, %r20, 0;")
            else:
                lines.append(f"    ld.global.b{8 * size} %i{i}, [%rd10+{offset}];")
        lines += [f"    {line.strip()}" for line in first.body.strip().splitlines()]
        for i, (kind, offset) in enumerate(zip(first.results, self.outputs, strict=True)):
            size = container(kind).itemsize
            lines.append(self._address("%rd12", size))
            if kind == "pred":
                lines.append(f"    selp.b32 %r20, 1, 0, %o{i}; st.global.b32 [%rd10+{offset}], %r20;")
            else:
                lines.append(f"    st.global.b{8 * size} [%rd10+{offset}], %o{i};")
        return "\n".join([*lines, "    }"])

    def _address(self, base: str, size: int) -> str:
        return f"    mov.b64 %rd10, {base};" if self.same else f"    mad.wide.u32 %rd10, %r0, {size}, {base};"


@dataclass(frozen=True)
class Kernel:
    """A kernel ``vectors(out, in)``: launch one block of 32 threads with the addresses of ``output_bytes`` bytes and
    of a copy of ``inputs``, both aligned to 16, and give what is then in the first to :meth:`check`."""

    text: str
    parts: tuple[Part, ...]
    inputs: Bytes
    output_bytes: int
    name: str = "vectors"
    threads: int = WARP

    def check(self, outputs: Bytes) -> list[str]:
        """A line for each result that is not the expected one."""
        return [line for part in self.parts for line in _wrong(part, outputs)]


def _wrong(part: Part, outputs: Bytes) -> Iterable[str]:
    first = part.vectors[0]
    for number, (kind, offset) in enumerate(zip(first.results, part.outputs, strict=True)):
        found = outputs[offset:offset + WARP * container(kind).itemsize].view(container(kind))
        expected = part.column([vector.expected[number] for vector in part.vectors])
        threads = WARP if first.of_warp else len(part.vectors)  # one where all threads do the same
        for thread, want, have in zip(range(threads), expected, found.tolist(), strict=False):
            if have != want and not (want == NAN and is_nan(have, kind)):
                vector = part.vectors[0 if first.of_warp else thread]
                shown = "a NaN" if want == NAN else f"{want:#x}"
                yield (f"{vector.name}: result {number} of thread {thread} is {have:#x}, expected {shown} "
                       f"({vector.why}; {vector.section})")


def _kernel(groups: Iterable[Sequence[Vector]], same: bool = False) -> Kernel:
    parts: list[Part] = []
    inputs: list[Array] = []
    in_at = out_at = 0
    for group in groups:
        first = group[0]
        in_offsets, out_offsets = [], []
        for kind in first.sources:
            in_offsets.append(in_at)
            in_at += WARP * container(kind).itemsize
        for kind in first.results:
            out_offsets.append(out_at)
            out_at += WARP * container(kind).itemsize
        part = Part(tuple(group), tuple(in_offsets), tuple(out_offsets), same)
        inputs += [np.array(part.column([vector.operands[i] for vector in group]), container(kind)).view(np.uint8)
                   for i, kind in enumerate(first.sources)]
        parts.append(part)
    blocks = "\n".join([part.text() for part in parts])
    text = f"{HEADER}.visible .entry vectors(.param .u64 out, .param .u64 in)\n{{{REGISTERS}{blocks}\n    ret;\n}}\n"
    return Kernel(text, tuple(parts), np.concatenate([*inputs, np.zeros(16, np.uint8)]), out_at)


def kernel_of(vector: Vector) -> Kernel:
    """The kernel of one vector."""
    return _kernel([[vector]])


def uniform_kernels(vectors: Iterable[Vector], bodies: int = 1) -> list[Kernel]:
    """Kernels in which all threads do the same, for vectors of one thread; each is a part of its own."""
    parts = [[vector] for vector in vectors if not vector.of_warp]
    return [_kernel(parts[start:start + bodies], True) for start in range(0, len(parts), bodies)]


def kernels(vectors: Iterable[Vector], bodies: int = 1) -> list[Kernel]:
    """Kernels for many vectors: those with the same body in one part, ``bodies`` parts in one kernel."""
    groups: dict[tuple[object, ...], list[Vector]] = {}
    for number, vector in enumerate(vectors):
        groups.setdefault((vector.body, vector.sources, vector.results, number if vector.of_warp else -1), []).append(
            vector)
    parts = [group[start:start + WARP] for group in groups.values() for start in range(0, len(group), WARP)]
    return [_kernel(parts[start:start + bodies]) for start in range(0, len(parts), bodies)]
