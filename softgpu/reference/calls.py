"""Function calls: a call is two operations, the jump into the callee and, behind it, the copying of results.

Parameters in ``.param`` space live in the frames of caller and callee, in local memory; ``.reg`` parameters in
registers. Threads at one call that call different functions (through an address) part ways and meet again behind it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from ptxparse.model import TYPE_BYTES, Operand, Register, Symbol, Variable, Vector
from softgpu.reference.access import load, store
from softgpu.reference.builtins import BUILTINS
from softgpu.reference.decode import Decode, Decoder
from softgpu.reference.errors import InterpreterError, UnsupportedInstruction
from softgpu.reference.issue import Issue
from softgpu.reference.memory import Addresses
from softgpu.reference.program import FunctionCode, Kind, Operation, Value
from softgpu.reference.ptx_types import dtype_of, size_of

if TYPE_CHECKING:
    from softgpu.reference.strand import Strand

Copy = Callable[[Issue, Issue], None]
"""Copies one parameter or result from the first activation to the second."""


def _call(d: Decoder) -> None:
    d.flag("uni")
    d.done(4)
    results, target, arguments, _ = d.operands
    if not isinstance(results, Vector) or not isinstance(arguments, Vector):
        d.fail("a call without operand lists")
    if isinstance(target, Symbol):
        builtin = BUILTINS.get(target.name)
        callee = d.program_function(target.name)
        if callee is None:
            if builtin is None:
                d.fail(f"function {target.name} has no body and is not one the interpreter provides")
            builtin(d, results, arguments)
            return
        _direct(d, callee, results, arguments)
        return
    _indirect(d, results, arguments)


def _direct(d: Decoder, callee: FunctionCode, results: Vector, arguments: Vector) -> None:
    binding = _Binding(d, callee, results.items, arguments.items)
    d.control(binding.enter)
    d.second = Operation(d.instruction.mnemonic, d.instruction.line, d.code)
    d.second.kind = Kind.CONTROL
    d.second.counted = False
    d.second.control = lambda strand, x, key: binding.leave(x, key)


def _indirect(d: Decoder, results: Vector, arguments: Vector) -> None:
    target = d.source(1, "u64")
    for operand in results.items + arguments.items:
        if isinstance(operand, Register) and operand.name != "_":
            d.register(operand.name)
    bindings: dict[int, _Binding] = {}
    program = d.program

    def binding_of(callee: FunctionCode) -> _Binding:
        found = bindings.get(callee.number)
        if found is None:
            found = bindings[callee.number] = _Binding(d, callee, results.items, arguments.items)
        return found

    def call(strand: Strand, x: Issue, key: int) -> int | None:
        addresses = x.full(target(x))
        for address in np.unique(addresses):
            callee = program.by_address.get(int(address))
            chosen = addresses == address
            if callee is None:
                raise InterpreterError(f"line {x.line}, {x.thread(int(np.flatnonzero(chosen)[0]))}: call of "
                                       f"{int(address):#x}, which is no function of this module")
            part = x if chosen.all() else x.only(np.flatnonzero(chosen))
            binding_of(callee).enter(strand, part, key)
        return None

    def leave(strand: Strand, x: Issue, key: int) -> int | None:
        called = x.team.called[x.depth + 1][x.rows()]
        for number in np.unique(called):
            chosen = called == number
            part = x if chosen.all() else x.only(np.flatnonzero(chosen))
            binding_of(program.functions[number]).leave(part, key)
        return key + 1

    d.control(call)
    d.second = Operation(d.instruction.mnemonic, d.instruction.line, d.code)
    d.second.kind = Kind.CONTROL
    d.second.counted = False
    d.second.control = leave


class _Binding:
    """A call's actual parameters and results bound to a callee's formal ones."""

    def __init__(self, d: Decoder, callee: FunctionCode, results: tuple[Operand, ...],
                 arguments: tuple[Operand, ...]) -> None:
        formal_arguments, formal_results = callee.function.parameters, callee.function.results
        if len(arguments) != len(formal_arguments) or len(results) != len(formal_results):
            d.fail(f"{callee.function.name} takes {len(formal_arguments)} parameters and returns {len(formal_results)}")
        self.callee = callee
        inner = d.inside(callee)
        self.arguments = [_copy(d, actual, inner, _formal(formal))
                          for actual, formal in zip(arguments, formal_arguments, strict=True)]
        self.results = [_copy(inner, _formal(formal), d, actual)
                        for actual, formal in zip(results, formal_results, strict=True)]

    def enter(self, strand: Strand, x: Issue, key: int) -> int | None:
        """Copy the parameters and go to the callee's first instruction."""
        inside = x.team.enter(x, self.callee, key + 1)
        for copy in self.arguments:
            copy(x, inside)
        strand.push(self.callee.first - (inside.depth << 32), x.index)
        return None

    def leave(self, x: Issue, key: int) -> int | None:
        """Copy the results back."""
        inside = Issue(x.team, x.team.frame(x.depth + 1, self.callee), x.depth + 1, x.index, x.line)
        for copy in self.results:
            copy(inside, x)
        return key + 1


def _formal(variable: Variable) -> Operand:
    return Register(variable.name) if variable.space == "reg" else Symbol(variable.name)


def _copy(source: Decoder, given: Operand, destination: Decoder, taken: Operand) -> Copy:
    """How one parameter gets from an operand of one function to an operand of the other."""
    if isinstance(taken, Register) and taken.name == "_":
        return lambda x, y: None
    variable = _variable(destination, taken) or _variable(source, given)
    if variable is None:
        kind = _register_kind(destination, taken)
        write, read = destination.write(taken, kind, wide=True), source.read(given, kind, wide=True)
        return lambda x, y: write(y, read(x).copy())
    if isinstance(taken, Symbol) and isinstance(given, Symbol) and _variable(source, given) is not None:
        other = _variable(source, given)
        assert other is not None
        return _copy_bytes(source, given, destination, taken, min(variable.size, other.size))
    kind = f"b{8 * TYPE_BYTES[variable.type]}" if variable.type != "pred" else "pred"
    if isinstance(taken, Symbol):
        return _store_register(source, given, destination, taken, kind)
    return _load_register(source, given, destination, taken, kind)


def _variable(d: Decoder, operand: Operand) -> Variable | None:
    """The ``.param`` variable that an operand names, if it names one."""
    place = d.place(operand.name) if isinstance(operand, Symbol) else None
    return place.variable if place is not None and place.variable.space == "param" else None


def _register_kind(d: Decoder, operand: Operand) -> str:
    if not isinstance(operand, Register):
        raise UnsupportedInstruction(d.instruction.mnemonic, d.instruction.line, f"parameter {operand!r}")
    return d.register(operand.name)[1]


def _copy_bytes(source: Decoder, given: Symbol, destination: Decoder, taken: Symbol, size: int) -> Copy:
    read_address, write_address = source.address_of(given), destination.address_of(taken)
    space = source.space_of(given.name)
    step = 8 if size % 8 == 0 else 4 if size % 4 == 0 else 2 if size % 2 == 0 else 1

    def copy(x: Issue, y: Issue) -> None:
        read: Addresses = read_address(x)
        write: Addresses = write_address(y)
        chunk = step
        while chunk > 1 and ((int(read[0]) | int(write[0])) % chunk):
            chunk //= 2
        for offset in range(0, size, chunk):
            added = np.uint64(offset)
            value = load(x.team.locate(x, space, read + added, chunk), chunk, 0, x.count)
            store(y, y.team.locate(y, "local", write + added, chunk, writing=True), chunk, 0, value)

    return copy


def _store_register(source: Decoder, given: Operand, destination: Decoder, taken: Symbol, kind: str) -> Copy:
    read, address, size = source.read(given, kind, wide=True), destination.address_of(taken), size_of(kind)

    def copy(x: Issue, y: Issue) -> None:
        store(y, y.team.locate(y, "local", address(y), size, writing=True), size, 0, read(x))

    return copy


def _load_register(source: Decoder, given: Operand, destination: Decoder, taken: Operand, kind: str) -> Copy:
    if not isinstance(given, Symbol):
        source.fail(f"parameter {given!r}")
    address, space, size = source.address_of(given), source.space_of(given.name), size_of(kind)
    write = destination.write(taken, kind, wide=True)

    def copy(x: Issue, y: Issue) -> None:
        value: Value = load(x.team.locate(x, space, address(x), size), size, 0, x.count)
        write(y, value.astype(dtype_of(kind)))

    return copy


TABLE: dict[str, Decode] = {"call": _call}

