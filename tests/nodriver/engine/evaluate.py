"""Runs operations of the engine's tables on arrays: each is wrapped in a small native function and called.

    evaluate(operation, a, b)                       # one operation, compiled on the spot (and kept)
    functions = compiled([operation, ...])          # many in one module: much faster than one by one
    functions[0](a, b)
    compiled([Form(operation, {2: 5})])             # source 2 is the constant 5; the others are given to the call

Operands are arrays of bit patterns (or of numbers of the operand's width: ``float32`` for f32), predicates and carries
are bool; all are broadcast to one length. Results come back as a tuple of unsigned arrays, bool for predicates and
carries. Each call runs the vector form and, for operations whose lanes do not exchange data, the scalar form, and
asserts that both give the same bits. NaNs of operations that are not ``canonical`` are made canonical first, as the
engine does.

``cpu`` is an LLVM name: ``host`` compiles for this machine with all it has, ``x86-64-v3`` for what the engine needs at
least (AVX2, FMA, F16C, BMI2), ``x86-64-v4`` adds AVX-512 (see :func:`runs_here`).
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import numpy.typing as npt

from softgpu.engine.ir import WARP, Builder, Value, bits, shaped
from softgpu.engine.ops.operation import TYPES, Operation

Array = npt.NDArray[Any]
Results = tuple[Array, ...]

NAN = {"f32": 0x7FFFFFFF, "f64": 0x7FFFFFFFFFFFFFFF, "f16": 0x7FFF, "bf16": 0x7FFF}
"""PTX's canonical NaN by type."""

_INFINITY = {"f32": 0x7F800000, "f64": 0x7FF0000000000000, "f16": 0x7C00, "bf16": 0x7F80}


@dataclass(frozen=True)
class Form:
    """An operation with constants for some of its sources, by index. All ``imm`` sources need one."""

    operation: Operation
    constants: Mapping[int, int | float] = field(default_factory=dict)


@cache
def _initialized() -> None:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    llvm.initialize_native_asmparser()


def runs_here(cpu: str) -> bool:
    """Whether this machine can run code for one of ``host``, ``x86-64-v3``, ``x86-64-v4``."""
    needs = {"x86-64-v4": ("avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl")}.get(cpu, ())
    features = llvm.get_host_cpu_features()
    return all(features.get(name, False) for name in needs)


def target_machine(cpu: str = "host") -> llvm.TargetMachine:
    """A new target machine: an engine owns the one it was made with."""
    _initialized()
    target = llvm.Target.from_default_triple()
    if cpu == "host":
        return target.create_target_machine(llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten(), opt=2)
    return target.create_target_machine(cpu, "", opt=2)


def stored(type_name: str) -> np.dtype[Any]:
    """The dtype of a PTX type's elements in memory: unsigned of its width, bool for predicates."""
    element = TYPES[type_name]
    return np.dtype(np.bool_) if element == "i1" else np.dtype(f"u{bits(element) // 8}")


def _load(builder: Builder, type_name: str, buffer: str, count: int) -> Value:
    element = TYPES[type_name]
    in_memory = "i8" if element == "i1" else element
    at = builder.emit(f"getelementptr {in_memory}, ptr {buffer}, i64 %i", "ptr")
    value = builder.emit(f"load {shaped(in_memory, count)}, ptr {at.ref}, align 1", shaped(in_memory, count))
    return builder.trunc(value, "i1") if element == "i1" else value


def _store(builder: Builder, type_name: str, buffer: str, value: Value) -> None:
    if TYPES[type_name] == "i1":
        value = builder.zext(value, "i8")
    element = "i8" if TYPES[type_name] == "i1" else TYPES[type_name]
    at = builder.emit(f"getelementptr {element}, ptr {buffer}, i64 %i", "ptr")
    builder.line(f"  store {value.type} {value.ref}, ptr {at.ref}, align 1")


def wide_registers(cpu: str) -> bool:
    """Whether code for a CPU may use AVX-512, as the engine decides it."""
    return cpu != "x86-64-v3" and runs_here("x86-64-v4")


def _function(form: Form, name: str, count: int, module: Builder) -> list[str]:
    """``void name(ptr in0, ..., ptr out0, ..., i64 length)``: a loop over steps of ``count`` lanes (0: one, scalar)."""
    operation = form.operation
    given = [i for i in range(len(operation.sources)) if i not in form.constants]
    builder = Builder(module.wide_registers)
    sources: list[Any] = []
    for index, kind in enumerate(operation.sources):
        if kind == "imm":
            sources.append(form.constants[index])
        elif index in form.constants:
            sources.append(builder.constant(form.constants[index], TYPES[kind], count))
        else:
            sources.append(_load(builder, kind, f"%in{index}", count))
    result = operation.emit(builder, *sources)
    results = result if isinstance(result, tuple) and not isinstance(result, Value) else (result,)
    assert len(results) == len(operation.results), f"{operation.mnemonic}: {len(results)} results"
    for index, (kind, value) in enumerate(zip(operation.results, results, strict=True)):
        expected = shaped(TYPES[kind], count)
        assert value.type == expected, f"{operation.mnemonic}: result {index} is {value.type}, not {expected}"
        _store(builder, kind, f"%out{index}", value)
    module.declarations.update(builder.declarations)
    module.helpers.update(builder.helpers)
    buffers = [f"ptr %in{i}" for i in given] + [f"ptr %out{i}" for i in range(len(operation.results))]
    return [
        f"define void @{name}({', '.join(buffers)}, i64 %length) {{", "entry:", "  br label %loop", "loop:",
        "  %i = phi i64 [0, %entry], [%next, %last]", *builder.lines, "  br label %last", "last:",
        f"  %next = add i64 %i, {count or 1}", "  %more = icmp ult i64 %next, %length",
        "  br i1 %more, label %loop, label %done", "done:", "  ret void", "}",
    ]


def module_text(forms: Sequence[Form], cpu: str = "host") -> str:
    """The module that :func:`compiled` compiles: functions ``v0``, ``s0``, ``v1``, ...: vector and scalar forms."""
    module = Builder(wide_registers(cpu))
    functions: list[str] = []
    for number, form in enumerate(forms):
        functions += _function(form, f"v{number}", WARP, module)
        if not form.operation.warp:
            functions += _function(form, f"s{number}", 0, module)
    for name in module.helpers:
        module.declarations.pop(name, None)
    return "\n".join([*module.declarations.values(), *module.helpers.values(), *functions])


def _parsed(text: str, optimize: bool, cpu: str) -> tuple[llvm.ModuleRef, llvm.TargetMachine]:
    machine = target_machine(cpu)
    module = llvm.parse_assembly(text)
    module.triple = machine.triple
    module.data_layout = str(machine.target_data)
    module.verify()
    if optimize:
        options = llvm.create_pipeline_tuning_options(speed_level=2)
        options.loop_vectorization = options.slp_vectorization = options.loop_unrolling = False
        passes = llvm.create_pass_builder(machine, options)
        passes.getModulePassManager().run(module, passes)
    return module, machine


def assembly(operation: Operation | Form, cpu: str = "host", scalar: bool = False) -> str:
    """Machine code of one operation as text, to look at."""
    form = operation if isinstance(operation, Form) else Form(operation)
    module, machine = _parsed(module_text([form], cpu), True, cpu)
    text = str(machine.emit_assembly(module))
    start, end = ("s0:", "Lfunc_end1") if scalar else ("v0:", "Lfunc_end0")
    return text[text.index(start):text.index(end)]


class Function:
    """A compiled form; call it with an array for each source that is no constant."""

    def __init__(self, form: Form, engine: llvm.ExecutionEngine, number: int) -> None:
        self.form = form
        self.operation = form.operation
        self.given = [kind for i, kind in enumerate(form.operation.sources) if i not in form.constants]
        self._engine = engine  # owns the code
        arguments = [ctypes.c_void_p] * (len(self.given) + len(form.operation.results)) + [ctypes.c_int64]
        prototype = ctypes.CFUNCTYPE(None, *arguments)
        self.vector: Callable[..., None] = prototype(engine.get_function_address(f"v{number}"))
        self.scalar: Callable[..., None] | None = None
        if not form.operation.warp:
            self.scalar = prototype(engine.get_function_address(f"s{number}"))

    def __call__(self, *arrays: Any) -> Results:
        assert len(arrays) == len(self.given), f"{self.operation.mnemonic} takes {self.given}"
        patterns = [_patterns(a, kind) for a, kind in zip(arrays, self.given, strict=True)]
        length = max((len(a) for a in patterns), default=WARP)
        padded = -(-length // WARP) * WARP
        buffers = [np.resize(a, padded) for a in patterns]
        results = self._run(self.vector, buffers, padded)
        if self.scalar is not None:
            for one, other in zip(results, self._run(self.scalar, buffers, padded), strict=True):
                differs = np.flatnonzero(one != other)
                assert not len(differs), self._difference(buffers, one, other, int(differs[0]))
        return tuple(result[:length] for result in results)

    def _run(self, function: Callable[..., None], buffers: list[Array], padded: int) -> Results:
        results = [np.zeros(padded, stored(kind)) for kind in self.operation.results]
        function(*(array.ctypes.data for array in [*buffers, *results]), padded)
        if not self.operation.canonical:
            results = [_canonical(array, kind) for array, kind in zip(results, self.operation.results, strict=True)]
        return tuple(results)

    def _difference(self, buffers: list[Array], vector: Array, scalar: Array, at: int) -> str:
        operands = ", ".join(hex(int(a[at])) for a in buffers)
        return (f"{self.operation.mnemonic} {dict(self.form.constants)}({operands}): vector form {int(vector[at]):#x}, "
                f"scalar form {int(scalar[at]):#x}")


def _patterns(values: Any, type_name: str) -> Array:
    """The operand as a contiguous array of bit patterns."""
    dtype = stored(type_name)
    array = np.atleast_1d(np.asarray(values))
    if array.dtype.kind == "f" and array.dtype.itemsize == dtype.itemsize:
        array = array.view(dtype)
    elif array.dtype == object or array.dtype.kind == "i":
        mask = (1 << 8 * dtype.itemsize) - 1
        array = np.array([int(v) & mask for v in array.tolist()], np.uint64).astype(dtype)
    assert array.dtype == np.bool_ or array.dtype.kind == "u", f"{array.dtype} for .{type_name}"
    return np.ascontiguousarray(array.astype(dtype))


def _canonical(array: Array, kind: str) -> Array:
    """The array with its NaNs replaced by the canonical one."""
    if kind in ("f16x2", "bf16x2"):
        return _canonical(array.view(np.uint16), kind[:-2]).view(np.uint32)
    if kind == "f32x2":
        return _canonical(array.view(np.uint32), "f32").view(np.uint64)
    if kind not in NAN:
        return array
    magnitude = array & array.dtype.type(NAN[kind])
    return np.where(magnitude > _INFINITY[kind], array.dtype.type(NAN[kind]), array)


def compiled(operations: Sequence[Operation | Form], cpu: str = "host", optimize: bool = False) -> list[Function]:
    """The functions of many operations, in that order, from one module. ``optimize`` runs LLVM's passes first."""
    forms = [item if isinstance(item, Form) else Form(item) for item in operations]
    module, machine = _parsed(module_text(forms, cpu), optimize, cpu)
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    return [Function(form, engine, number) for number, form in enumerate(forms)]


@lru_cache(maxsize=512)
def _single(operation: Operation, cpu: str) -> Function:
    return compiled([operation], cpu)[0]


def evaluate(operation: Operation, *arrays: Any, cpu: str = "host") -> Results:
    """Run one operation; see the module's text for operands and results."""
    return _single(operation, cpu)(*arrays)
