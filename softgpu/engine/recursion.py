"""Functions that may call themselves: one copy each, called over a stack in local memory.

Such a function cannot be replaced by its body. Its body stands once behind the kernel's, and every thread has a stack:
a call stores the registers that the caller needs afterwards, the parameters and the number of the place to return to,
and jumps; a return jumps to that place. All of it is written in PTX, so the rest of the engine knows nothing of
recursion: it sees jumps that threads of a warp may take at different times.

A frame holds, in this order: the number of the return, parameters and results, the function's variables, and room for
the registers that the function saves while it calls others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from ptxparse.model import TYPE_BYTES, Address, Function, Immediate, Module, Operand, Register, Symbol, Variable, Vector

STACK_BYTES = 32768
"""Local memory for frames; a deeper recursion is a fault of local memory."""

POINTER = "$sp"
STACK = "$stack"
NUMBER = "$return"

Add = Callable[[str, tuple[Operand, ...], int], None]
"""Appends an instruction: full mnemonic, operands, line."""


def recursive_functions(module: Module) -> dict[str, set[str]]:
    """Functions that may be active twice at a time, each with all functions that it may call, however indirectly."""
    bodies = {f.name: f for f in module.functions if f.instructions is not None}
    functions = [name for name, f in bodies.items() if not f.is_entry]
    calls: dict[str, set[str]] = {}
    for name, function in bodies.items():
        calls[name] = set()
        for instruction in function.instructions or ():
            if instruction.opcode != "call":
                continue
            target = instruction.operands[1]
            if isinstance(target, Symbol):
                called = module.function(target.name)
                calls[name].update([called.name] if called is not None and called.name in bodies else [])
            else:
                calls[name].update(functions)
    reached = {name: _reached(name, calls) for name in functions}
    return {name: found for name, found in reached.items() if name in found}


def _reached(start: str, calls: dict[str, set[str]]) -> set[str]:
    found: set[str] = set()
    work = list(calls[start])
    while work:
        name = work.pop()
        if name not in found:
            found.add(name)
            work.extend(calls[name])
    return found


@dataclass
class Frame:
    """Where things lie in the frame of a function. ``registers``: (name, type) and their slots, by unique name."""

    function: Function
    suffix: str
    variables: dict[str, int] = field(default_factory=dict)
    registers: dict[str, tuple[str, int]] = field(default_factory=dict)
    size: int = 8
    returns: list[str] = field(default_factory=list)
    entry: str = ""
    emitted: bool = False

    @property
    def list_name(self) -> str:
        """Name of the list of places to return to."""
        return f"$returns{self.suffix}"


def frame_of(function: Function, suffix: str) -> Frame:
    """Lay out a function's frame."""
    frame = Frame(function, suffix, entry=f"$enter{suffix}")
    for variable in function.parameters + function.results + function.variables:
        if variable.space in ("local", "param", "reg"):
            align = max(variable.align, TYPE_BYTES.get(variable.type, 8), 1)
            frame.size = -(-frame.size // align) * align
            frame.variables[variable.name] = frame.size
            frame.size += max(variable.size, TYPE_BYTES.get(variable.type, 8))
    frame.size = -(-frame.size // 16) * 16
    return frame


def reserve(frame: Frame, registers: dict[str, str]) -> None:
    """Give each register (unique name to type) a slot."""
    for name, type_ in registers.items():
        frame.registers[name] = (type_, frame.size)
        frame.size += 8
    frame.size = -(-frame.size // 16) * 16


def saves(add: Add, frame: Frame, line: int, types: dict[str, str]) -> None:
    """Store the function's registers in its frame."""
    for name, (type_, offset) in frame.registers.items():
        at = Address(Register(POINTER), offset)
        if type_ == "pred":
            word = f"{name}$word"
            types[word] = "b32"
            add("selp.b32", (Register(word), Immediate(1), Immediate(0), Register(name)), line)
            add("st.local.b32", (at, Register(word)), line)
        else:
            add(f"st.local.b{8 * TYPE_BYTES[type_]}", (at, Register(name)), line)


def restores(add: Add, frame: Frame, line: int, types: dict[str, str]) -> None:
    """Load them again."""
    for name, (type_, offset) in frame.registers.items():
        at = Address(Register(POINTER), offset)
        if type_ == "pred":
            word = f"{name}$word"
            types[word] = "b32"
            add("ld.local.b32", (Register(word), at), line)
            add("setp.ne.b32", (Register(name), Register(word), Immediate(0)), line)
        else:
            add(f"ld.local.b{8 * TYPE_BYTES[type_]}", (Register(name), at), line)


def passed(given: Operand, variable: Variable) -> Iterator[tuple[str, int]]:
    """(type, offset) of the pieces in which a parameter or result is copied."""
    if isinstance(given, Symbol):
        step = max(min(variable.align, 8), 1)
        for offset in range(0, variable.size, step):
            yield f"b{8 * step}", offset
    else:
        yield f"b{8 * TYPE_BYTES[variable.type]}", 0


def registers_of(function: Function) -> set[str]:
    """Names of the registers that a function's body mentions."""
    found: set[str] = set()

    def visit(operand: Operand) -> None:
        if isinstance(operand, Register):
            found.add(operand.name)
        elif isinstance(operand, Vector):
            for item in operand.items:
                visit(item)
        elif isinstance(operand, Address):
            visit(operand.base)
        else:
            for part in ("first", "second", "operand"):
                inner = getattr(operand, part, None)
                if inner is not None:
                    visit(inner)

    for instruction in function.instructions or ():
        for operand in instruction.operands:
            visit(operand)
        if instruction.predicate is not None:
            found.add(instruction.predicate.name)
    return {name for name in found if function.register_type(name) is not None}
