"""What the reference interpreter says: many operations in one kernel, one thread for each element of the operands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from softgpu.engine.ops.operation import TYPES, Operation
from tests.nodriver.engine.evaluate import Form, Results, compiled, runs_here, stored
from tests.reference_kernels import HEADER, Run

Array = npt.NDArray[Any]
Operands = dict[str, Array]
"""Operand arrays by the key of :func:`key`."""

BLOCK = 64
_REGISTERS = {"i1": "pred", "i16": "b16", "i32": "b32", "i64": "b64", "float": "b32", "double": "b64"}
_EDGES = (
    0, 1, 2, 3, 7, 8, 14, 15, 16, 17, 24, 30, 31, 32, 33, 47, 48, 62, 63, 64, 65, 127, 128, 129, 254, 255, 256, 257,
    0x7FFF, 0x8000, 0xFFFF, 0x10000, 0x7FFFFFFF, 0x80000000, 0x80000001, 0xFFFFFFFF, 0x100000000, 1 << 63,
    (1 << 63) - 1, (1 << 64) - 2, -1, -2, -3, -8, -31, -32, -33, -64, -128, -255, -256, -32768, -(1 << 31),
)
# One, infinities, NaNs, the smallest normal and the largest subnormal number of f16, bf16, f32, f64, and packed.
_FLOATING = (
    0x3C00, 0x7C00, 0xFC00, 0x7E00, 0x7C01, 0x0400, 0x03FF, 0x8001, 0x3F80, 0x7F80, 0xFF80, 0x7FC0, 0x0080, 0x007F,
    0x3F800000, 0x7F800000, 0xFF800000, 0x7FC00000, 0xFF800001, 0x00800000, 0x007FFFFF, 0x80000001, 0x807FFFFF,
    0x7E003C00, 0x3C007E00, 0x80000000, 0x00008000, 0x04008001, 0x3F807FC0, 0xFFC0FFC0, 0x3FF << 52, 0x7FF << 52,
    0xFFF << 52, 0x7FF8 << 48, 1 << 52, (1 << 52) - 1, (0xFFF << 52) + 1,
)


def key(type_name: str, position: int) -> str:
    """Name of the operands of a width in a position, such as ``b32_1``; all predicates share one."""
    register = _REGISTERS[TYPES[type_name]]
    return register if register == "pred" else f"{register}_{position}"


def operands(count: int, seed: int) -> Operands:
    """Operands of all integer types: edge values, small and random numbers, every fourth pair equal or nearly so."""
    random = np.random.default_rng(seed)
    result: Operands = {"pred": random.integers(0, 2, count).astype(np.bool_)}
    for width in (16, 32, 64):
        edges = np.array([v & ((1 << width) - 1) for v in (*_EDGES, *_FLOATING)], np.uint64)
        for position in range(4):
            wide = random.integers(0, 1 << 64, count, np.uint64, endpoint=False) if width == 64 else \
                random.integers(0, 1 << width, count, np.uint64)
            shifted = wide >> random.integers(0, width, count).astype(np.uint64)
            choice = random.integers(0, 4, count)
            values = np.select([choice == 0, choice == 1], [wide, shifted], random.choice(edges, count))
            array = values.astype(stored(f"u{width}"))
            if position:
                first = result[f"b{width}_0"]
                near = first + random.integers(0, 2, count).astype(array.dtype)
                array = np.where(random.integers(0, 4, count) == 0, near, array)
            result[f"b{width}_{position}"] = array
    return result


def arguments(form: Form, given: Operands) -> list[Array]:
    """The operands that a compiled form takes."""
    return [given[key(kind, i)] for i, kind in enumerate(form.operation.sources) if i not in form.constants]


def interpreted(forms: Sequence[Form], given: Operands) -> list[Results]:
    """The results of each operation from the interpreter."""
    count = len(given["pred"])
    assert count % BLOCK == 0
    names = sorted(given)
    outputs = [kind for form in forms for kind in form.operation.results]
    run = Run(_kernel(forms, names, outputs))
    buffers = [run.buffer(given[name].astype(np.uint32) if name == "pred" else given[name]) for name in names]
    sizes = [_in_memory(kind).itemsize for kind in outputs]
    addresses = [run.buffer(count * size) for size in sizes]
    table = run.buffer(np.array(addresses, np.uint64))
    run.launch("k", count // BLOCK, BLOCK, table, *buffers)
    arrays = [run.read(address, count, _in_memory(kind)) for address, kind in zip(addresses, outputs, strict=True)]
    results = iter(array != 0 if TYPES[kind] == "i1" else array for array, kind in zip(arrays, outputs, strict=True))
    return [tuple(next(results) for _ in form.operation.results) for form in forms]


def _in_memory(kind: str) -> np.dtype[Any]:
    return np.dtype(np.uint32) if TYPES[kind] == "i1" else stored(kind)


def _kernel(forms: Sequence[Form], names: Sequence[str], outputs: Sequence[str]) -> str:
    parameters = ", ".join(f".param .u64 {name}" for name in ["table", *(f"in_{name}" for name in names)])
    lines = [f"{HEADER}.visible .entry k({parameters})\n{{",
             ".reg .b64 %i, %at, %table, %d_b64; .reg .b32 %u, %v, %w, %d_b32; .reg .b16 %d_b16; .reg .pred %p, %q;"]
    lines += [f".reg .{name.split('_')[0]} %{name};" for name in names]
    lines.append("ld.param.u64 %table, [table]; mov.u32 %u, %ctaid.x; mov.u32 %v, %ntid.x; mov.u32 %w, %tid.x;")
    lines.append("mad.lo.u32 %u, %u, %v, %w; cvt.u64.u32 %i, %u;")
    for name in names:
        register = name.split("_")[0]
        size = 4 if register == "pred" else int(register[1:]) // 8
        lines.append(f"ld.param.u64 %at, [in_{name}]; mad.lo.s64 %at, %i, {size}, %at;")
        if register == "pred":
            lines.append("ld.global.b32 %u, [%at]; setp.ne.b32 %pred, %u, 0;")
        else:
            lines.append(f"ld.global.{register} %{name}, [%at];")
    number = 0
    for form in forms:
        lines += _instruction(form)
        for kind, register in zip(form.operation.results, _destinations(form.operation), strict=True):
            lines.append(f"ld.global.u64 %at, [%table + {8 * number}];")
            lines.append(f"mad.lo.s64 %at, %i, {_in_memory(kind).itemsize}, %at;")
            if TYPES[kind] == "i1":
                lines.append(f"selp.b32 %u, 1, 0, {register};" if kind == "pred" else "addc.u32 %u, 0, 0;")
                lines.append("st.global.b32 [%at], %u;")
            else:
                lines.append(f"st.global.{_REGISTERS[TYPES[kind]]} [%at], {register};")
            number += 1
    return "\n".join([*lines, "ret;\n}"])


def _destinations(operation: Operation) -> list[str]:
    predicates = iter(("%p", "%q"))
    return [next(predicates) if TYPES[kind] == "i1" else f"%d_{_REGISTERS[TYPES[kind]]}" for kind in operation.results]


def _instruction(form: Form) -> list[str]:
    operation = form.operation
    written = [(i, kind) for i, kind in enumerate(operation.sources) if kind != "cc"]
    sources = [str(form.constants[i]) if i in form.constants else f"%{key(kind, i)}" for i, kind in written]
    destinations = _destinations(operation)[:sum(kind != "cc" for kind in operation.results)]
    # The carry flag comes from the predicate: 0 or 1 plus all ones.
    before = ["selp.b32 %u, 1, 0, %pred; add.cc.u32 %u, %u, 4294967295;"] if "cc" in operation.sources else []
    return [*before, f"{operation.mnemonic} {'|'.join(destinations)}, {', '.join(sources)};"]


def differences(forms: Sequence[Form], given: Operands, expected: Sequence[Results], cpu: str = "host",
                optimize: bool = False) -> list[str]:
    """A line for each form whose compiled code disagrees with the expected results, with the first operands where."""
    if not runs_here(cpu):
        return []
    found = []
    for form, function, results in zip(forms, compiled(forms, cpu, optimize), expected, strict=True):
        values = arguments(form, given)
        for index, (have, want) in enumerate(zip(function(*values), results, strict=True)):
            where = np.flatnonzero(have != want)
            if len(where):
                at = int(where[0])
                shown = ", ".join(hex(int(v[at])) for v in values)
                found.append(f"{form.operation.mnemonic} {dict(form.constants)}({shown}) result {index}: "
                             f"{int(have[at]):#x}, not {int(want[at]):#x}; {len(where)} such, for {cpu}")
    return found


def disagreements(forms: Sequence[Form], count: int, seed: int) -> list[str]:
    """:func:`differences` from the interpreter on ``count`` operands: plain code for this machine, optimised code for
    the smallest CPU."""
    given = operands(count, seed)
    expected = interpreted(forms, given)
    return (differences(forms, given, expected)
            + differences(forms, given, expected, "x86-64-v3", optimize=True))
