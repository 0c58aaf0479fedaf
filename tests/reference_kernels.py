"""Tiny kernels for tests of the reference interpreter, from a few lines of PTX each."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ptxparse.model import TYPE_BYTES
from ptxparse.parser import parse
from softgpu.reference import LaunchResult, LoadedModule, Memory, Schedule, launch

Array = npt.NDArray[Any]

HEADER = ".version 8.6\n.target sm_90\n.address_size 64\n"

REGISTERS = """
    .reg .pred %p<16>; .reg .b16 %h<32>; .reg .b32 %r<64>; .reg .b64 %rd<64>; .reg .f32 %f<32>; .reg .f64 %fd<16>;
"""
"""Registers that every body may use (%rd40 and above, %r60 and above are the frame's own)."""

_REGISTER_TYPE = {1: "b16", 2: "b16", 4: "b32", 8: "b64"}


def container(type_name: str) -> np.dtype[Any]:
    """The unsigned dtype that holds a PTX type in memory; predicates are stored as u32."""
    return np.dtype(np.uint32) if type_name == "pred" else np.dtype(f"u{TYPE_BYTES[type_name]}")


def _move(type_name: str) -> str:
    size = container(type_name).itemsize
    return f"b{8 * size}"


def elementwise(body: str, inputs: Sequence[str], outputs: Sequence[str], declarations: str = "") -> str:
    """A kernel ``k(out..., in...)`` in which thread i has element i of every input in %a, %b, %c, ... and stores %x,
    %y, %z. Predicates are 32-bit 0 or 1 in memory."""
    names = [*(f"out{i}" for i in range(len(outputs))), *(f"in{i}" for i in range(len(inputs)))]
    parameters = ", ".join(f".param .u64 {name}" for name in names)
    lines = [f"{HEADER}{declarations}\n.visible .entry k({parameters})\n{{{REGISTERS}"]
    for name, kind in [*zip("abcdef", inputs, strict=False), *zip("xyz", outputs, strict=False)]:
        register = "pred" if kind == "pred" else _REGISTER_TYPE[TYPE_BYTES[kind]]
        lines.append(f"    .reg .{register} %{name};")
    lines.append("    mov.u32 %r60, %ctaid.x; mov.u32 %r61, %ntid.x; mov.u32 %r62, %tid.x;")
    lines.append("    mad.lo.u32 %r60, %r60, %r61, %r62; cvt.u64.u32 %rd40, %r60;")
    for i, (name, kind) in enumerate(zip("abcdef", inputs, strict=False)):
        lines.append(f"    ld.param.u64 %rd41, [in{i}]; mad.lo.s64 %rd41, %rd40, {container(kind).itemsize}, %rd41;")
        if kind == "pred":
            lines.append(f"    ld.global.b32 %r63, [%rd41]; setp.ne.b32 %{name}, %r63, 0;")
        else:
            lines.append(f"    ld.global.{_move(kind)} %{name}, [%rd41];")
    lines.append(body)
    for i, (name, kind) in enumerate(zip("xyz", outputs, strict=False)):
        lines.append(f"    ld.param.u64 %rd41, [out{i}]; mad.lo.s64 %rd41, %rd40, {container(kind).itemsize}, %rd41;")
        if kind == "pred":
            lines.append(f"    selp.b32 %r63, 1, 0, %{name}; st.global.b32 [%rd41], %r63;")
        else:
            lines.append(f"    st.global.{_move(kind)} [%rd41], %{name};")
    lines.append("    ret;\n}")
    return "\n".join(lines)


class Run:
    """A module in a fresh memory, its buffers, and launches of its kernels."""

    def __init__(self, text: str) -> None:
        self.memory = Memory()
        self.loaded = LoadedModule(parse(text), self.memory)

    def buffer(self, data: Array | int) -> int:
        """Address of a new buffer with the bytes of an array, or of so many zero bytes."""
        if isinstance(data, int):
            return self.memory.allocate(data)
        address = self.memory.allocate(data.nbytes)
        self.memory.write(address, data)
        return address

    def read(self, address: int, count: int, dtype: Any = np.uint32) -> Array:
        """``count`` elements at an address."""
        kind = np.dtype(dtype)
        return np.frombuffer(self.memory.read(address, count * kind.itemsize), kind).copy()

    def launch(self, kernel: str, grid: Any, block: Any, *arguments: int, **options: Any) -> LaunchResult:
        """Launch with 64-bit arguments (all parameters of the kernel must be 64 bits wide)."""
        shape = [v if isinstance(v, tuple) else (v,) for v in (grid, block)]
        params = struct.pack(f"<{len(arguments)}Q", *(a & (1 << 64) - 1 for a in arguments))
        return launch(self.loaded, kernel, shape[0], shape[1], params, **options)


def checked(loaded: LoadedModule, kernel: str) -> None:
    """Make every later operation of a kernel check its registers: right dtype, no memory shared between them."""
    function = loaded.module.function(kernel)
    assert function is not None
    for operation in loaded.program(function).code:
        operation.run = _checking(operation.run, operation.mnemonic)


def _checking(run: Any, mnemonic: str) -> Any:
    def checked_run(x: Any) -> None:
        run(x)
        for frame in x.team.frames.values():
            where: dict[int, int] = {}
            for slot, value in enumerate(frame.registers):
                assert value.dtype == frame.code.dtypes[slot], (mnemonic, slot, value.dtype)
                assert value.ndim == 1 and len(value) in (1, x.team.rows), (mnemonic, slot, value.shape)
                if value.flags.writeable:
                    start = value.__array_interface__["data"][0]
                    assert start not in where, f"{mnemonic}: registers {slot} and {where[start]} share memory"
                    where[start] = slot

    return checked_run


def evaluate(body: str, inputs: Sequence[tuple[str, Any]], outputs: Sequence[str], *, block: int = 0,
             declarations: str = "", schedule: Schedule | None = None) -> list[Array]:
    """Run an :func:`elementwise` kernel over arrays (bit patterns or values, converted to the container of their
    type); the outputs as bit patterns. ``block``: threads of a block, default all in one block of up to 64."""
    arrays = []
    for kind, values in inputs:
        dtype = container(kind)
        if not isinstance(values, np.ndarray):
            values = np.array([int(v) for v in values], object)
        array = values
        if array.dtype == np.bool_:
            array = array.astype(np.uint32)
        if array.dtype.kind == "f" and array.dtype.itemsize == dtype.itemsize:
            array = array.view(dtype)
        elif array.dtype.kind != "u" or array.dtype.itemsize != dtype.itemsize:
            mask = (1 << 8 * dtype.itemsize) - 1
            array = np.array([int(v) & mask for v in array.reshape(-1).tolist()], dtype)
        arrays.append(np.ascontiguousarray(array))
    count = max(len(array) for array in arrays) if arrays else (block or 32)
    arrays = [array if len(array) == count else np.resize(array, count) for array in arrays]
    if not block:
        block = count if count <= 64 else next(n for n in range(64, 0, -1) if count % n == 0)
    run = Run(elementwise(body, [kind for kind, _ in inputs], outputs, declarations))
    checked(run.loaded, "k")
    out = [run.buffer(count * container(kind).itemsize) for kind in outputs]
    run.launch("k", count // block, block, *out, *(run.buffer(array) for array in arrays), schedule=schedule)
    return [run.read(address, count, container(kind)) for address, kind in zip(out, outputs, strict=True)]


def one(body: str, inputs: Sequence[tuple[str, Any]], output: str, **options: Any) -> Array:
    """:func:`evaluate` with one output."""
    return evaluate(body, inputs, [output], **options)[0]


def signed(array: Array) -> list[int]:
    """Bit patterns as signed Python integers."""
    return [int(v) for v in array.view(np.dtype(f"i{array.dtype.itemsize}")).tolist()]
