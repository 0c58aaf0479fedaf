"""Decoding one instruction: its modifiers, consumed in order until none is left, and readers and writers of operands.

An operand becomes a closure that takes the :class:`Issue`: a reader yields the active rows' bits in the unsigned array
of the type's width, a writer stores such bits. Whatever is not understood raises :class:`UnsupportedInstruction`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NoReturn

import numpy as np

from ptxparse.model import (
    Address,
    FloatImmediate,
    Immediate,
    Instruction,
    Negated,
    Operand,
    Pair,
    Register,
    Symbol,
    Vector,
)
from ptxparse.order import in_manual_order
from softgpu.reference.errors import UnsupportedInstruction
from softgpu.reference.program import Control, FunctionCode, Kind, Operation, Place, Program, Read, Run, Value, Write
from softgpu.reference.ptx_types import dtype_of, is_float, is_signed, signed, size_of
from softgpu.reference.special import special_register

if TYPE_CHECKING:
    from softgpu.reference.issue import Issue
    from softgpu.reference.module import LoadedModule

Decode = Callable[["Decoder"], None]
"""Decodes an opcode: fills in the decoder's operation."""

CARRY = "%carry"
"""Name of the register that stands for the condition code's carry flag (PTX manual, extended-precision arithmetic)."""


class Decoder:
    """One instruction on its way to an :class:`Operation`. ``name``: its mnemonic in the order of the manual."""

    def __init__(self, loaded: LoadedModule, program: Program, code: FunctionCode, instruction: Instruction) -> None:
        self.loaded = loaded
        self.program = program
        self.code = code
        self.instruction = instruction
        self.operands = instruction.operands
        self.modifiers = in_manual_order(instruction.opcode, instruction.modifiers)
        self.name = ".".join((instruction.opcode, *self.modifiers))
        self.operation = Operation(instruction.mnemonic, instruction.line, code)
        self.second: Operation | None = None

    def fail(self, reason: str) -> NoReturn:
        """Refuse the instruction."""
        raise UnsupportedInstruction(self.instruction.mnemonic, self.instruction.line, reason)

    # Modifiers.

    def take(self, *names: str) -> str:
        """The next modifier if it is one of ``names`` (then it is consumed), else the empty string."""
        if self.modifiers and self.modifiers[0] in names:
            return self.modifiers.pop(0)
        return ""

    def need(self, *names: str) -> str:
        """The next modifier, which has to be one of ``names``."""
        found = self.take(*names)
        if not found:
            there = f".{self.modifiers[0]}" if self.modifiers else "nothing"
            self.fail(f"expected one of .{' .'.join(names)} where {there} stands")
        return found

    def flag(self, name: str) -> bool:
        """Consume the next modifier if it is ``name``."""
        return bool(self.take(name))

    def take_anywhere(self, names: Iterable[str]) -> str:
        """A modifier among ``names`` wherever it stands (older PTX puts some in other places), else empty."""
        for position, modifier in enumerate(self.modifiers):
            if modifier in names:
                return self.modifiers.pop(position)
        return ""

    def done(self, *counts: int) -> None:
        """All modifiers must be consumed, and the number of operands be one of ``counts``."""
        if self.modifiers:
            self.fail(f"modifier .{self.modifiers[0]} is not known here")
        if len(self.operands) not in counts:
            self.fail(f"{len(self.operands)} operands, expected {' or '.join(map(str, counts))}")

    def inside(self, code: FunctionCode) -> Decoder:
        """A decoder for operands of another function, for the same instruction."""
        return Decoder(self.loaded, self.program, code, self.instruction)

    def program_function(self, name: str) -> FunctionCode | None:
        """The decoded function of a name, if it has a body."""
        function = self.loaded.module.function(name)
        return next((code for code in self.program.functions if code.function is function), None)

    # What the operation does.

    def plain(self, run: Run) -> None:
        """An operation that acts on registers and memory and goes on with the next instruction."""
        self.operation.kind = Kind.PLAIN
        self.operation.run = run

    def control(self, control: Control, counted: bool = True) -> None:
        """An operation that decides where its threads go on; uncounted ones count their executions themselves."""
        self.operation.kind = Kind.CONTROL
        self.operation.control = control
        self.operation.counted = counted

    # Operands.

    def register(self, name: str) -> tuple[int, str]:
        """Slot and declared type of a register."""
        kind = "pred" if name == CARRY else self.code.function.register_type(name)
        if kind is None:
            self.fail(f"{name} is not a declared register, nor a special one that is known")
        return self.code.slot(name, kind, dtype_of(kind)), kind

    def source(self, index: int, type_name: str, wide: bool = False) -> Read:
        """Reader of operand ``index`` as ``type_name``; ``wide`` lets a wider register stand for it (low bits)."""
        return self.read(self.operands[index], type_name, wide)

    def signed(self, index: int, type_name: str) -> Read:
        """Reader of operand ``index`` that yields a signed array for signed types, else an unsigned one."""
        return as_signed(self.source(index, type_name), type_name)

    def read(self, operand: Operand, type_name: str, wide: bool = False) -> Read:
        """Reader of any scalar operand."""
        if isinstance(operand, Register):
            special = None if self.code.function.register_type(operand.name) else special_register(operand.name)
            if special is not None:
                return self._fit(special[1], special[0], type_name, wide=True)
            slot, kind = self.register(operand.name)
            return self._fit(_register_reader(slot), kind, type_name, wide)
        if isinstance(operand, Immediate):
            return constant(self._integer(operand.value, type_name))
        if isinstance(operand, FloatImmediate):
            return constant(self._float(operand, type_name))
        if isinstance(operand, Symbol):
            return self._fit(self.address_of(operand), "u64", type_name, wide=True)
        self.fail(f"operand {operand!r} where a value is expected")

    def _fit(self, read: Read, kind: str, type_name: str, wide: bool) -> Read:
        have, want = size_of(kind), size_of(type_name)
        if (kind == "pred") != (type_name == "pred"):
            self.fail(f"a .{kind} register where a .{type_name} operand is expected")
        if have == want:
            return read
        if have < want or not wide:
            self.fail(f"a .{kind} register where a .{type_name} operand is expected")
        dtype = dtype_of(type_name)
        return lambda x: read(x).astype(dtype)

    def _integer(self, value: int, type_name: str) -> Value:
        if type_name == "pred":
            return np.array([value != 0])
        if is_float(type_name) and type_name not in ("f16x2", "bf16x2", "f16", "bf16"):
            return self._float(FloatImmediate(int(np.float64(value).view(np.uint64)), 64), type_name)
        size = size_of(type_name)
        if size == 16:
            return np.frombuffer((value & ((1 << 128) - 1)).to_bytes(16, "little"), dtype_of(type_name))
        return np.array([value & ((1 << 8 * size) - 1)], dtype_of(type_name))

    def _float(self, operand: FloatImmediate, type_name: str) -> Value:
        size = size_of(type_name)
        if operand.width == 8 * size:
            return np.array([operand.bits], dtype_of(type_name))
        if operand.width == 64 and size == 4 and type_name in ("f32", "b32"):
            with np.errstate(over="ignore"):
                return np.array([operand.bits], np.uint64).view(np.float64).astype(np.float32).view(np.uint32)
        if operand.width == 32 and type_name in ("f64", "b64"):
            return np.array([operand.bits], np.uint32).view(np.float32).astype(np.float64).view(np.uint64)
        self.fail(f"a {operand.width}-bit floating-point constant for .{type_name}")

    def predicate(self, operand: Operand) -> Read:
        """Reader of a predicate, ``!p`` included."""
        if isinstance(operand, Negated):
            inner = self.predicate(operand.operand)
            return lambda x: ~inner(x)
        return self.read(operand, "pred")

    def is_predicate(self, operand: Operand) -> bool:
        """Whether an operand is a predicate register, perhaps negated."""
        if isinstance(operand, Negated):
            return True
        return isinstance(operand, Register) and self.code.function.register_type(operand.name) == "pred"

    def destination(self, index: int, type_name: str, wide: bool = False) -> Write:
        """Writer of operand ``index``; ``wide`` extends values to a wider register, by the sign of signed types."""
        return self.write(self.operands[index], type_name, wide)

    def write(self, operand: Operand, type_name: str, wide: bool = False) -> Write:
        """Writer of a register, or of ``_`` (nothing). Values written must share no memory with a register."""
        if not isinstance(operand, Register):
            self.fail(f"destination {operand!r} is not a register")
        if operand.name == "_":
            return _discard
        slot, kind = self.register(operand.name)
        have, want = size_of(kind), size_of(type_name)
        if (kind == "pred") != (type_name == "pred") or have < want or (have > want and not wide):
            self.fail(f"a .{kind} register where a .{type_name} result goes")
        if have == want:
            return lambda x, value: x.set(slot, value)
        wider = dtype_of(kind)
        if is_signed(type_name):
            narrow, wide_signed = signed(want), signed(have)
            return lambda x, value: x.set(slot, value.view(narrow).astype(wide_signed).view(wider))
        return lambda x, value: x.set(slot, value.astype(wider))

    def pair(self, index: int) -> tuple[Operand, Operand | None]:
        """``d|p`` as its two halves; a lone ``d`` has None for the second."""
        operand = self.operands[index]
        if isinstance(operand, Pair):
            return operand.first, operand.second
        return operand, None

    def items(self, index: int, count: int) -> tuple[Operand, ...]:
        """The ``count`` elements of a vector operand; a scalar counts as a vector of one."""
        operand = self.operands[index]
        found = operand.items if isinstance(operand, Vector) else (operand,)
        if len(found) != count:
            self.fail(f"{len(found)} registers where {count} are expected")
        return found

    def immediate(self, index: int) -> int:
        """An operand that must be an integer constant."""
        operand = self.operands[index]
        if not isinstance(operand, Immediate):
            self.fail(f"operand {operand!r} must be a constant")
        return operand.value

    def carry(self) -> int:
        """Slot of the carry flag."""
        return self.register(CARRY)[0]

    # Addresses.

    def place(self, name: str) -> Place | None:
        """Where a variable that belongs to the function (or to shared memory) lies."""
        return self.code.places.get(name)

    def address_of(self, symbol: Symbol) -> Read:
        """Reader of a symbol's address within its state space, as u64."""
        place = self.place(symbol.name)
        if place is not None:
            if place.space == "local":
                return frame_address(place.offset + symbol.offset)
            if place.space == "reg":
                self.fail(f"the address of register {symbol.name}")
            return constant(np.array([place.offset + symbol.offset & (1 << 64) - 1], np.uint64))
        address = self.loaded.address_of(symbol.name)
        if address is None:
            self.fail(f"{symbol.name} is not defined in this module")
        return constant(np.array([address + symbol.offset & (1 << 64) - 1], np.uint64))

    def space_of(self, name: str) -> str:
        """State space of a variable: ``param`` for a kernel's formal parameter, ``local`` for what lies in a frame."""
        place = self.place(name)
        if place is not None:
            return place.space
        space = self.loaded.space_of(name)
        if space is None:
            self.fail(f"{name} is not a variable of this module")
        return space

    def address(self, operand: Operand, space: str) -> tuple[Read, str]:
        """Reader of the u64 addresses of ``[...]``, and the space they belong to ("" for generic)."""
        if not isinstance(operand, Address) or operand.extra:
            self.fail(f"operand {operand!r} is not a plain address")
        base = operand.base
        if isinstance(base, Symbol):
            actual = self.space_of(base.name)
            return self.address_of(Symbol(base.name, base.offset + operand.offset)), actual
        if space == "param" and not self.code.function.is_entry:
            space = "local"
        if isinstance(base, Immediate):
            return constant(np.array([base.value + operand.offset & (1 << 64) - 1], np.uint64)), space
        if not isinstance(base, Register):
            self.fail(f"address base {base!r}")
        slot, kind = self.register(base.name)
        if size_of(kind) not in (4, 8) or kind == "pred":
            self.fail(f"a .{kind} register as an address")
        return _register_address(slot, size_of(kind) == 4, operand.offset), space


def _register_reader(slot: int) -> Read:
    def read(x: Issue) -> Value:
        value = x.registers[slot]
        return value if x.index is None or len(value) == 1 else value[x.index]

    return read


def _register_address(slot: int, narrow: bool, offset: int) -> Read:
    added = np.uint64(offset & (1 << 64) - 1)

    def read(x: Issue) -> Value:
        value = x.get(slot)
        wide: Value = value.astype(np.uint64) if narrow else value
        result: Value = np.add(wide, added)
        return result

    return read


def _discard(x: Issue, value: Value) -> None:
    """The writer of ``_``."""


def constant(value: Value) -> Read:
    """Reader of a value that never changes."""
    value.flags.writeable = False
    return lambda x: value


def frame_address(offset: int) -> Read:
    """Reader of the local address of something at ``offset`` in the active function's frame."""
    return lambda x: (x.team.base(x) + np.int64(offset)).view(np.uint64)


def as_signed(read: Read, type_name: str) -> Read:
    """The reader with its values as a signed array when the type is signed."""
    if not is_signed(type_name):
        return read
    dtype = signed(size_of(type_name))
    return lambda x: read(x).view(dtype)
