"""The parsed module: plain data, one object per thing that PTX declares.

Register, variable and label names are unique within a function: what an inner ``{ }`` scope declares is renamed
``name$N``, so that later passes need no scopes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple


class Register(NamedTuple):
    """A register operand, special registers included (``%tid.x``)."""

    name: str


class Immediate(NamedTuple):
    """An integer constant, as written (``-1`` stays -1, ``0xffffffff`` stays 4294967295)."""

    value: int


class FloatImmediate(NamedTuple):
    """A floating-point constant by its bits; ``width`` is 32 (``0f...``) or 64 (``0d...`` and decimal forms)."""

    bits: int
    width: int


class Symbol(NamedTuple):
    """A variable, function, parameter or label; ``offset`` in bytes (``name+8``, ``name[8]``)."""

    name: str
    offset: int = 0


class Vector(NamedTuple):
    """``{a, b}``, and the parenthesised lists of a call."""

    items: tuple[Operand, ...]


class Pair(NamedTuple):
    """``d|p``: a destination and the predicate written with it."""

    first: Operand
    second: Operand


class Negated(NamedTuple):
    """``!p`` in an operand position."""

    operand: Operand


class Address(NamedTuple):
    """``[base + offset]``; ``extra`` holds further bracketed operands (tensor coordinates, ``[map, {x, y}]``)."""

    base: Operand
    offset: int = 0
    extra: tuple[Operand, ...] = ()


Operand = Register | Immediate | FloatImmediate | Symbol | Vector | Pair | Negated | Address


class Mnemonic(NamedTuple):
    """A full mnemonic, split at its dots: ``ld.global.v4.f32`` → opcode ``ld``, modifiers ``global v4 f32``."""

    text: str
    opcode: str
    modifiers: tuple[str, ...]


@dataclass(slots=True)
class Instruction:
    """One instruction; ``predicate`` is the guard register of ``@p``, ``negated`` says it was ``@!p``.

    A call always has four operands: ``Vector`` of results, target, ``Vector`` of arguments, and the prototype or
    target-list symbol (``Symbol("")`` when there is none).
    """

    op: Mnemonic
    operands: tuple[Operand, ...]
    line: int
    predicate: Register | None = None
    negated: bool = False

    @property
    def opcode(self) -> str:
        return self.op.opcode

    @property
    def modifiers(self) -> tuple[str, ...]:
        return self.op.modifiers

    @property
    def mnemonic(self) -> str:
        return self.op.text


@dataclass(slots=True)
class Variable:
    """A declared variable. ``space`` is global, const, shared, local or param; ``size`` in bytes, 0 for ``[]``.

    ``type`` is the element type without its dot (``b8``, ``f32``, ``texref``); ``dims`` the array dimensions as
    written (None for an open one). ``initial`` holds the initialiser flattened: ints, FloatImmediates, Symbols.
    ``pointee`` is the space a ``.ptr`` attribute names ("" = generic, None = no ``.ptr``).
    """

    name: str
    space: str
    type: str
    size: int
    align: int
    line: int
    dims: tuple[int | None, ...] = ()
    vector: int = 1
    linkage: str = ""
    initial: tuple[int | FloatImmediate | Symbol, ...] | None = None
    pointee: str | None = None
    pointee_align: int = 0


@dataclass(slots=True)
class RegisterDeclaration:
    """``.reg .b32 %r<10>``: ``count`` registers ``%r0``..``%r9``; ``count`` None declares ``name`` itself."""

    name: str
    type: str
    count: int | None
    line: int
    vector: int = 1


@dataclass(slots=True)
class Function:
    """A kernel (``.entry``) or device function (``.func``); ``instructions`` is None for a mere declaration.

    ``labels`` map a name to an index into ``instructions`` (which may be one past the last). ``branch_targets``
    holds ``.branchtargets`` and ``.calltargets`` lists by label; ``prototypes`` names of ``.callprototype``s.
    ``directives`` are the performance directives with their numbers (``reqntid``, ``maxntid``, ...).
    """

    name: str
    is_entry: bool
    line: int
    linkage: str = ""
    parameters: list[Variable] = field(default_factory=list)
    results: list[Variable] = field(default_factory=list)
    directives: dict[str, tuple[int, ...]] = field(default_factory=dict)
    instructions: list[Instruction] | None = None
    registers: list[RegisterDeclaration] = field(default_factory=list)
    register_types: dict[str, str] = field(default_factory=dict)
    register_ranges: dict[str, tuple[str, int]] = field(default_factory=dict)
    variables: list[Variable] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)
    branch_targets: dict[str, tuple[str, ...]] = field(default_factory=dict)
    prototypes: dict[str, tuple[tuple[Variable, ...], tuple[Variable, ...]]] = field(default_factory=dict)
    end_line: int = 0

    def register_type(self, name: str) -> str | None:
        """Declared type of a register without its dot (``b32``, ``pred``); None for special or undeclared ones."""
        found = self.register_types.get(name)
        if found is not None:
            return found
        stem = name.rstrip("0123456789")
        declared = self.register_ranges.get(stem)
        if declared is not None and 0 < len(name) - len(stem) <= 9 and int(name[len(stem):]) < declared[1]:
            return declared[0]
        return None


class Note(NamedTuple):
    """Something the parser met, kept and went past: an unknown directive, a newer version."""

    kind: str
    text: str
    line: int


@dataclass(slots=True)
class Module:
    """A whole PTX module. ``version`` is (major, minor); ``targets`` the ``.target`` list; ``functions`` and
    ``variables`` are in file order, the last definition of a name (after its declarations) found by ``function``."""

    version: tuple[int, int] = (0, 0)
    targets: tuple[str, ...] = ()
    address_size: int = 64
    functions: list[Function] = field(default_factory=list)
    variables: list[Variable] = field(default_factory=list)
    aliases: dict[str, str] = field(default_factory=dict)
    notes: list[Note] = field(default_factory=list)

    @property
    def entries(self) -> list[Function]:
        return [f for f in self.functions if f.is_entry and f.instructions is not None]

    def function(self, name: str) -> Function | None:
        """The function of that name, a definition before a declaration; ``.alias`` is followed."""
        name = self.aliases.get(name, name)
        found: Function | None = None
        for function in self.functions:
            if function.name == name and (found is None or function.instructions is not None):
                found = function
        return found

    def variable(self, name: str) -> Variable | None:
        return next((v for v in self.variables if v.name == name), None)


TYPE_BYTES: dict[str, int] = {
    "pred": 1, "b8": 1, "u8": 1, "s8": 1, "e4m3": 1, "e5m2": 1,
    "b16": 2, "u16": 2, "s16": 2, "f16": 2, "bf16": 2, "e4m3x2": 2, "e5m2x2": 2,
    "b32": 4, "u32": 4, "s32": 4, "f32": 4, "tf32": 4, "f16x2": 4, "bf16x2": 4, "u16x2": 4, "s16x2": 4,
    "b64": 8, "u64": 8, "s64": 8, "f64": 8, "f32x2": 8, "texref": 8, "samplerref": 8, "surfref": 8,
    "b128": 16, "b1024": 128,
}
"""Size in bytes of the fundamental and packed types of the PTX manual (section 5.2)."""


class ParameterSlot(NamedTuple):
    """Where one parameter lies in the launch's parameter block, offsets and sizes in bytes."""

    name: str
    offset: int
    size: int
    variable: Variable


def parameter_layout(function: Function) -> tuple[list[ParameterSlot], int]:
    """Offsets of the parameters of a kernel, each aligned as declared, and the size of the whole block in bytes."""
    slots = []
    end = 0
    for variable in function.parameters:
        align = max(variable.align, 1)
        offset = -(-end // align) * align
        slots.append(ParameterSlot(variable.name, offset, variable.size, variable))
        end = offset + variable.size
    return slots, end
