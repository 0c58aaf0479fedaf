"""Tiny kernels for tests of the analysis: built from a body, run in the interpreter, compared with their evaluation.

A body may use ``%p %rs %r %rd %f %fd`` with numbers below 100, and for each parameter ``name`` a register ``%name``
into which it has been loaded. :func:`check` runs a kernel and returns sentences about what was claimed and is not so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ptxparse.api import AccessProgram, Allocations, Amount, Evaluation, analyze, count, evaluate, parse
from ptxparse.model import TYPE_BYTES, Mnemonic, Module, parameter_layout
from ptxparse.opcodes import lookup, operation_count
from ptxparse.opcodes.record import Kind
from softgpu.reference import LaunchResult, LoadedModule, Memory, Schedule, launch
from tessera.reasons import Reason
from tests.soundness import ALLOWED, inside, union

Shape = tuple[int, int, int]
HEADER = ".version 8.7\n.target sm_90a\n.address_size 64\n"
REGISTERS = (
    ".reg .pred %p<100>;\n.reg .b16 %rs<100>;\n.reg .b32 %r<100>;\n.reg .b64 %rd<100>;\n.reg .f32 %f<100>;\n"
    ".reg .f64 %fd<100>;\n"
)


LOGGED = {"R": (b"R",), "MAYW": (b"W",), "MUSTW": (b"W",), "A": (b"A",)}
"""Kinds of logged access that a range of each kind is about."""


@dataclass(frozen=True)
class At:
    """A pointer ``offset`` bytes into the buffer of another argument."""

    name: str
    offset: int = 0


Value = int | bytes | np.ndarray[tuple[int, ...], np.dtype[Any]] | At


def text_of(body: str, parameters: str = "a:u64", before: str = "", name: str = "k", load: bool = True,
            split: bool = True) -> str:
    """A module with one kernel. ``parameters`` are ``name:type`` or ``name:type[bytes]`` words; ``before`` is what
    stands in front of the kernel; without ``load`` the parameters are not put into registers, without ``split`` the
    statements of one line of the body stay on one line."""
    declared, loads = [], []
    if split:
        body = body.replace(";", ";\n")
    for word in parameters.split():
        parameter, _, kind = word.partition(":")
        if "[" in kind:
            kind, _, size = kind.rstrip("]").partition("[")
            declared.append(f".param .align {TYPE_BYTES[kind]} .b8 {parameter}[{size}]")
            continue
        declared.append(f".param .{kind} {parameter}")
        if load:
            bits = 8 * max(TYPE_BYTES[kind], 2)
            loads.append(f".reg .b{bits} %{parameter};\nld.param.{kind} %{parameter}, [{parameter}];\n")
    header = f".visible .entry {name}({', '.join(declared)})\n{{\n{REGISTERS}"
    return f"{HEADER}{before}\n{header}{''.join(loads)}{body}\n}}\n"


@dataclass
class Small:
    """One kernel, parsed and analysed."""

    text: str
    module: Module = field(init=False)
    program: AccessProgram = field(init=False)

    def __post_init__(self) -> None:
        self.module = parse(self.text)
        (self.program,) = analyze(self.module)


def small(
    body: str, parameters: str = "a:u64", before: str = "", load: bool = True, split: bool = True
) -> Small:
    """The kernel of :func:`text_of`, analysed."""
    return Small(text_of(body, parameters, before, load=load, split=split))


@dataclass
class Checked:
    """What one launch showed. ``violations`` are sentences; empty when all that was claimed is so."""

    program: AccessProgram
    evaluation: Evaluation
    result: LaunchResult | None
    counts: dict[str, Amount]
    actual: dict[str, float]
    memory: dict[str, bytes]
    violations: list[str] = field(default_factory=list)

    def ranges(self, allocation: str, *kinds: str) -> list[tuple[int, int]]:
        """(lo, hi) of the evaluated ranges of an allocation, of the given kinds or of all."""
        return [(r.lo, r.hi) for r in self.evaluation.ranges
                if r.allocation == allocation and (not kinds or r.kind in kinds)]

    @property
    def pinned(self) -> set[Reason]:
        return set(self.evaluation.pinned)


@dataclass
class Placed:
    """A kernel's arguments in memory."""

    memory: Memory
    loaded: LoadedModule
    allocations: Allocations
    parameters: bytes
    places: dict[str, tuple[int, int]]


def place(kernel: Small, arguments: Mapping[str, Value]) -> Placed:
    """Buffers for arrays (pointers to them are passed); ``bytes`` and integers are passed by value."""
    memory = Memory()
    loaded = LoadedModule(kernel.module, memory)
    places: dict[str, tuple[int, int]] = {}
    for name, value in arguments.items():
        if isinstance(value, np.ndarray):
            places[name] = (memory.allocate(value.nbytes), value.nbytes)
            memory.write(places[name][0], value.tobytes())
    slots, size = parameter_layout(kernel.module.entries[0])
    block = bytearray(size)
    for slot in slots:
        value = arguments[slot.name]
        if isinstance(value, At):
            value = places[value.name][0] + value.offset
        elif isinstance(value, np.ndarray):
            value = places[slot.name][0]
        data = value if isinstance(value, bytes) else (value & ((1 << 8 * slot.size) - 1)).to_bytes(slot.size, "little")
        block[slot.offset:slot.offset + len(data)] = data
    allocations = Allocations([(name, address, length) for name, (address, length) in places.items()])
    return Placed(memory, loaded, allocations, bytes(block), places)


def pointers_of(placed: Placed, *names: str) -> bytes:
    """The addresses of buffers as bytes, for structs and tables."""
    return b"".join(placed.places[name][0].to_bytes(8, "little") for name in names)


def check(
    kernel: Small, grid: Shape, block: Shape, arguments: Mapping[str, Value], *, known: Sequence[str] = (),
    shared: int = 0, placed: Placed | None = None, run: bool = True, counting: bool = True, steps: int = 2_000_000,
) -> Checked:
    """Evaluates and runs one launch and compares: every access inside ranges of its kind, every must-write byte
    written, amounts within their bounds. ``known`` names buffers whose contents the evaluation is given; ``placed``
    are arguments placed before; without ``run`` nothing is compared; ``steps`` bounds what the interpreter
    issues."""
    at = placed or place(kernel, arguments)
    contents = [(name, 0, at.memory.read(*at.places[name])) for name in known]
    evaluation = evaluate(kernel.program, grid, block, at.parameters, at.allocations, at.loaded.globals,
                          contents or None, shared)
    counted = count(kernel.program, grid, block, at.parameters, shared)
    found = Checked(kernel.program, evaluation, None, counted, {}, {})
    if not run:
        return found
    name = kernel.module.entries[0].name
    result = found.result = launch(at.loaded, name, grid, block, at.parameters, shared=shared,
                                   schedule=Schedule(), log=True, step_limit=steps)
    found.memory = {name: at.memory.read(*where) for name, where in at.places.items()}
    entries = result.log.entries
    found.actual = amounts(result)
    if counting:
        found.violations += _outside_counts(counted, found.actual)
    if evaluation.opaque is not None:
        return found
    left = len(entries)
    for identity, (address, size) in {**at.places, **at.loaded.globals}.items():
        mine = entries[(entries["address"] >= address) & (entries["address"] < address + size)]
        left -= len(mine)
        offsets = mine["address"].astype(np.int64) - address
        ends = offsets + mine["width"]
        ranges = [r for r in evaluation.ranges if r.allocation == identity]
        for kind, allowed in ALLOWED.items():
            chosen = mine["kind"] == kind
            cover = union((r.lo, r.hi) for r in ranges if r.kind in allowed)
            outside = chosen & ~inside(cover, offsets, ends) if len(mine) else chosen
            if outside.any():
                first = int(np.flatnonzero(outside)[0])
                found.violations.append(
                    f"{int(outside.sum())} accesses {kind.decode()} of {identity} outside {cover.tolist()}, first "
                    f"[{offsets[first]}, {ends[first]}) at line {mine['line'][first]}")
        for r in ranges:
            logged = np.isin(mine["kind"], LOGGED[r.kind])
            if r.exact and r.lo < r.hi and not {r.lo, r.hi} <= {*offsets[logged].tolist(), *ends[logged].tolist()}:
                touched = (int(offsets[logged].min()), int(ends[logged].max())) if logged.any() else None
                found.violations.append(f"exact {r.kind} [{r.lo}, {r.hi}) of {identity}, touched {touched}")
        writes = mine["kind"] == b"W"
        written = union(zip(offsets[writes].tolist(), ends[writes].tolist(), strict=True))
        for r in ranges:
            if r.kind == "MUSTW" and r.lo < r.hi and not inside(written, np.array([r.lo]), np.array([r.hi]))[0]:
                found.violations.append(f"must-write [{r.lo}, {r.hi}) of {identity}, written: {written.tolist()[:4]}")
    if left:
        found.violations.append(f"{left} accesses in no allocation")
    return found


def amounts(result: LaunchResult) -> dict[str, float]:
    """Operations by class and bytes that a launch really made."""
    total: dict[str, float] = {}
    for text, times in result.instructions.items():
        opcode, *modifiers = text.split(".")
        op = Mnemonic(text, opcode, tuple(modifiers))
        row = lookup(op)
        kind, operations = operation_count(op)
        if operations and row is not None and row.kind is not Kind.TENSOR:
            total[kind] = total.get(kind, 0) + operations * times
    entries = result.log.entries
    for letter, names in ((b"R", ("bytes_read",)), (b"W", ("bytes_written",)), (b"A", ("bytes_read", "bytes_written"))):
        size = int(entries["width"][entries["kind"] == letter].sum())
        for name in names:
            total[name] = total.get(name, 0) + size
    return total


def _outside_counts(counted: Mapping[str, Amount], actual: Mapping[str, float]) -> Iterable[str]:
    for name in {*counted, *actual} - {"tensor", "none"}:
        amount = counted.get(name, Amount(0, 0, 0, False))
        if not amount.low <= actual.get(name, 0) <= amount.high:
            yield f"count {name}: {actual.get(name, 0)} outside [{amount.low}, {amount.high}]"


def sound(kernel: Small, grid: Shape, block: Shape, arguments: Mapping[str, Value], **options: object) -> Checked:
    """:func:`check`, asserting that nothing was violated."""
    found = check(kernel, grid, block, arguments, **options)  # type: ignore[arg-type]
    assert not found.violations, "; ".join(found.violations)
    return found


STORE = "mul.wide.u32 %rd98, %r99, 4; add.s64 %rd99, %a, %rd98; st.global.u32 [%rd99], 1;"
"""Stores to word ``%r99`` of the buffer that parameter ``a`` points to."""


@dataclass(frozen=True)
class Case:
    """One launch of one small kernel. ``opaque`` says that the analysis may give the kernel up; without ``counting``
    amounts are not compared."""

    name: str
    body: str
    arguments: Mapping[str, Value]
    parameters: str = "a:u64"
    block: Shape = (1, 1, 1)
    grid: Shape = (1, 1, 1)
    before: str = ""
    opaque: bool = False
    counting: bool = True

    def __str__(self) -> str:
        return self.name

    def prove(self) -> Checked:
        """Runs it, asserting that nothing was violated and, unless ``opaque`` allows it, that something was said."""
        found = sound(small(self.body, self.parameters, self.before), self.grid, self.block, self.arguments,
                      counting=self.counting)
        assert self.opaque or found.evaluation.opaque is None, found.evaluation.opaque
        return found


def indexed(
    name: str, body: str, size: int, parameters: str = "a:u64", block: Shape = (1, 1, 1), grid: Shape = (1, 1, 1),
    before: str = "", **arguments: Value,
) -> Case:
    """A kernel that computes ``%r99`` and stores to that word of ``a``, which has ``size`` words."""
    return Case(name, f"{body}\n{STORE}\nret;", {"a": words(size), **arguments}, parameters, block, grid, before)


def words(count: int, fill: int = 0) -> np.ndarray[tuple[int, ...], np.dtype[np.uint32]]:
    """A buffer of 32-bit words."""
    return np.full(count, fill, np.uint32)


def one(threads: int = 1) -> tuple[Shape, Shape]:
    """One block of so many threads: (grid, block)."""
    return (1, 1, 1), (threads, 1, 1)
