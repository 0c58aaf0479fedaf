"""LLVM IR as text: the builder that every part of the engine writes with.

A value is its name (or constant) and its type, both as text. Scalars stand for what is the same in all 32 lanes of a
warp, vectors ``<32 x T>`` for what is not; every method takes both, as long as all operands have the same number of
lanes. Text is the cheap way: making it costs a tenth of what LLVM then takes to compile it.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

WARP = 32

_VECTOR = re.compile(r"<(\d+) x (.+)>$")


class Value(NamedTuple):
    """An operand: its text in IR and its type, such as ``%v7`` and ``<32 x i32>``."""

    ref: str
    type: str


@cache
def lanes(type_: str) -> int:
    """Elements of a vector type; 0 for a scalar one."""
    found = _VECTOR.match(type_)
    return int(found[1]) if found else 0


@cache
def element(type_: str) -> str:
    """The type of a vector's elements; a scalar type itself."""
    found = _VECTOR.match(type_)
    return found[2] if found else type_


def shaped(element_type: str, count: int) -> str:
    """``<count x element_type>``, or the scalar for 0."""
    return f"<{count} x {element_type}>" if count else element_type


@cache
def bits(type_: str) -> int:
    """Width in bits of a scalar type, or of the elements of a vector."""
    name = element(type_)
    if name[0] == "i":
        return int(name[1:])
    return {"half": 16, "bfloat": 16, "float": 32, "double": 64, "ptr": 64}[name]


def literal(number: int | float, element_type: str) -> str:
    """The text of a constant: integers are taken modulo their width, floats are given as numbers of Python.
    ``float`` constants are rounded to single precision first."""
    if element_type == "i1":
        return "true" if number else "false"
    if element_type[0] == "i":
        width = int(element_type[1:])
        value = int(number) & ((1 << width) - 1)
        return str(value - (1 << width) if value >> (width - 1) else value)
    real = float(number)
    if element_type == "float":
        real = struct.unpack("<f", struct.pack("<f", real))[0]
    if element_type in ("float", "double"):
        return f"0x{struct.unpack('<Q', struct.pack('<d', real))[0]:016X}"
    if element_type == "half":
        return f"0xH{struct.unpack('<H', struct.pack('<e', real))[0]:04X}"
    raise ValueError(f"no literal of type {element_type}")


class Builder:
    """Writes the instructions of one function, a line each, and collects the declarations they need.

    ``declarations`` maps the name of an intrinsic to its ``declare`` line; ``helpers`` maps the name of an internal
    function of the module to its whole text, so that several users share one copy. ``wide_registers``: the code is for
    machines with AVX-512, 32 vector registers and rounding modes in instructions.
    """

    def __init__(self, wide_registers: bool = False) -> None:
        self.wide_registers = wide_registers
        self.lines: list[str] = []
        self.declarations: dict[str, str] = {}
        self.helpers: dict[str, str] = {}
        self._names = 0

    # Text.

    def fresh(self, stem: str = "v") -> str:
        """A new local name, with its ``%``."""
        self._names += 1
        return f"%{stem}{self._names}"

    def line(self, text: str) -> None:
        """An instruction without a result, or a label."""
        self.lines.append(text)

    def emit(self, text: str, type_: str) -> Value:
        """An instruction with a result of type ``type_``."""
        name = self.fresh()
        self.lines.append(f"  {name} = {text}")
        return Value(name, type_)

    # Constants.

    def constant(self, number: int | float, element_type: str, count: int = 0) -> Value:
        """A scalar constant, or for ``count`` lanes the vector that has it in all of them."""
        text = literal(number, element_type)
        if count:
            return Value(f"splat ({element_type} {text})", f"<{count} x {element_type}>")
        return Value(text, element_type)

    def like(self, number: int | float, value: Value, element_type: str = "") -> Value:
        """A constant with as many lanes as ``value``, and its element type unless another is named."""
        return self.constant(number, element_type or element(value.type), lanes(value.type))

    def float_bits(self, pattern: int, element_type: str, count: int = 0) -> Value:
        """A ``float`` or ``double`` constant by its bit pattern, NaNs included."""
        integer = "i32" if element_type == "float" else "i64"
        return self.bitcast(self.constant(pattern, integer, count), element_type)

    def vector(self, numbers: Sequence[int | float], element_type: str) -> Value:
        """A constant vector, lane by lane."""
        text = ", ".join([f"{element_type} {literal(number, element_type)}" for number in numbers])
        return Value(f"<{text}>", f"<{len(numbers)} x {element_type}>")

    def poison(self, type_: str) -> Value:
        return Value("poison", type_)

    def zero(self, type_: str) -> Value:
        """All bits zero, of any type."""
        return Value("zeroinitializer" if lanes(type_) else ("null" if type_ == "ptr" else literal(0, type_)), type_)

    # Arithmetic. Operands have one type; the result has it too, comparisons aside.

    def binary(self, operation: str, a: Value, b: Value) -> Value:
        """``operation`` with its flags: ``add``, ``fmul``, ``lshr``, ``or disjoint``, ..."""
        return self.emit(f"{operation} {a.type} {a.ref}, {b.ref}", a.type)

    def add(self, a: Value, b: Value) -> Value:
        return self.binary("add", a, b)

    def sub(self, a: Value, b: Value) -> Value:
        return self.binary("sub", a, b)

    def mul(self, a: Value, b: Value) -> Value:
        return self.binary("mul", a, b)

    def and_(self, a: Value, b: Value) -> Value:
        return self.binary("and", a, b)

    def or_(self, a: Value, b: Value) -> Value:
        return self.binary("or", a, b)

    def xor(self, a: Value, b: Value) -> Value:
        return self.binary("xor", a, b)

    def shl(self, a: Value, b: Value) -> Value:
        """Poison for shifts of the width or more, as ``lshr`` and ``ashr``: callers clamp."""
        return self.binary("shl", a, b)

    def lshr(self, a: Value, b: Value) -> Value:
        return self.binary("lshr", a, b)

    def ashr(self, a: Value, b: Value) -> Value:
        return self.binary("ashr", a, b)

    def invert(self, a: Value) -> Value:
        """All bits flipped."""
        return self.xor(a, self.like(-1 if element(a.type) != "i1" else 1, a))

    def negate(self, a: Value) -> Value:
        """Two's complement of an integer."""
        return self.sub(self.zero(a.type), a)

    def icmp(self, predicate: str, a: Value, b: Value) -> Value:
        """``eq ne ult ule ugt uge slt sle sgt sge``; the result has ``i1`` elements."""
        return self.emit(f"icmp {predicate} {a.type} {a.ref}, {b.ref}", shaped("i1", lanes(a.type)))

    def fcmp(self, predicate: str, a: Value, b: Value) -> Value:
        """``oeq one olt ole ogt oge ord ueq une ult ule ugt uge uno``."""
        return self.emit(f"fcmp {predicate} {a.type} {a.ref}, {b.ref}", shaped("i1", lanes(a.type)))

    def select(self, condition: Value, a: Value, b: Value) -> Value:
        """``a`` where the condition holds; a scalar condition chooses whole vectors."""
        return self.emit(f"select {condition.type} {condition.ref}, {a.type} {a.ref}, {b.type} {b.ref}", a.type)

    # Conversions. The number of lanes stays.

    def cast(self, operation: str, a: Value, element_type: str) -> Value:
        """``trunc zext sext fptrunc fpext fptoui fptosi uitofp sitofp ptrtoint inttoptr bitcast``."""
        to = shaped(element_type, lanes(a.type))
        if to == a.type:
            return a
        return self.emit(f"{operation} {a.type} {a.ref} to {to}", to)

    def trunc(self, a: Value, element_type: str) -> Value:
        return self.cast("trunc", a, element_type)

    def zext(self, a: Value, element_type: str) -> Value:
        return self.cast("zext", a, element_type)

    def sext(self, a: Value, element_type: str) -> Value:
        return self.cast("sext", a, element_type)

    def bitcast(self, a: Value, element_type: str) -> Value:
        """The same bits, with elements of another type of the same width."""
        return self.cast("bitcast", a, element_type)

    def resize(self, a: Value, element_type: str, signed: bool = False) -> Value:
        """An integer in another width: truncated, or extended by its sign or with zeros."""
        have, want = bits(a.type), bits(element_type)
        if want < have:
            return self.trunc(a, element_type)
        return self.sext(a, element_type) if signed else self.zext(a, element_type)

    # Vectors.

    def splat(self, a: Value, count: int = WARP) -> Value:
        """A scalar in every lane; a vector stays as it is."""
        if lanes(a.type):
            return a
        to = f"<{count} x {a.type}>"
        if a.ref[0] != "%":
            return Value(f"splat ({a.type} {a.ref})", to) if a.ref not in ("poison",) else Value("poison", to)
        first = self.emit(f"insertelement {to} poison, {a.type} {a.ref}, i64 0", to)
        return self.emit(f"shufflevector {to} {first.ref}, {to} poison, <{count} x i32> zeroinitializer", to)

    def extract(self, a: Value, index: int | Value) -> Value:
        """One lane."""
        at = f"i64 {index}" if isinstance(index, int) else f"{index.type} {index.ref}"
        return self.emit(f"extractelement {a.type} {a.ref}, {at}", element(a.type))

    def insert(self, a: Value, item: Value, index: int | Value) -> Value:
        """The vector with one lane replaced."""
        at = f"i64 {index}" if isinstance(index, int) else f"{index.type} {index.ref}"
        return self.emit(f"insertelement {a.type} {a.ref}, {item.type} {item.ref}, {at}", a.type)

    def shuffle(self, a: Value, b: Value | None, indices: Sequence[int]) -> Value:
        """Lanes of ``a`` followed by those of ``b`` (of the same type) by number; -1 leaves a lane open."""
        other = b or Value("poison", a.type)
        chosen = ", ".join(["i32 poison" if i < 0 else f"i32 {i}" for i in indices])
        to = shaped(element(a.type), len(indices))
        return self.emit(f"shufflevector {a.type} {a.ref}, {other.type} {other.ref}, <{len(indices)} x i32> <{chosen}>",
                         to)

    def reinterpret(self, a: Value, type_: str) -> Value:
        """The same bits as another type of the same whole size: ``<32 x i1>`` as ``i32``, ``<32 x i32>`` as
        ``<64 x i16>``."""
        return a if a.type == type_ else self.emit(f"bitcast {a.type} {a.ref} to {type_}", type_)

    def mask_bits(self, predicate: Value) -> Value:
        """``<32 x i1>`` as the i32 that has bit l for lane l."""
        return self.reinterpret(predicate, "i32")

    def mask_lanes(self, mask: Value) -> Value:
        """The i32 of :meth:`mask_bits` as ``<32 x i1>``."""
        return self.reinterpret(mask, "<32 x i1>")

    # Calls.

    def intrinsic(self, name: str, result_element: str, *operands: Value, over: Value | None = None,
                  extra: Sequence[Value] = ()) -> Value:
        """An LLVM intrinsic overloaded on its first operand: ``intrinsic("llvm.fma", "float", a, b, c)``.

        The result has the lanes of the operands; ``extra`` are further operands that stay scalar (``i1 false``).
        ``over``: the value whose type is the overload when that is not the first operand's.
        """
        kind = (over or operands[0]).type
        count = lanes(kind)
        suffix = {"float": "f32", "double": "f64", "half": "f16", "bfloat": "bf16"}.get(element(kind), element(kind))
        full = f"{name}.{f'v{count}' if count else ''}{suffix}"
        result = shaped(result_element, lanes(operands[0].type))
        return self.call(full, result, *operands, *extra)

    def call(self, name: str, result: str, *operands: Value) -> Value:
        """A call of a function that is declared here once, by its name and the operands' types."""
        if name not in self.helpers:
            types = ", ".join([value.type for value in operands])
            self.declarations.setdefault(name, f"declare {result} @{name}({types})")
        given = ", ".join([f"{value.type} {value.ref}" for value in operands])
        if result == "void":
            self.line(f"  call void @{name}({given})")
            return Value("", "void")
        return self.emit(f"call {result} @{name}({given})", result)

    def fma(self, a: Value, b: Value, c: Value) -> Value:
        """a * b + c with one rounding."""
        return self.intrinsic("llvm.fma", element(a.type), a, b, c)


def split(b: Builder, parts: Sequence[Value]) -> list[Value]:
    """Vectors as parts that are registers of the machine: LLVM shuffles these faster, and better, than long ones."""
    size = (512 if b.wide_registers else 256) // bits(parts[0].type)
    found = []
    for part in parts:
        count = lanes(part.type)
        found += [part] if count <= size else [
            b.shuffle(part, None, list(range(first, first + size))) for first in range(0, count, size)]
    return found


def joined(b: Builder, parts: list[Value]) -> Value:
    """Vectors of one length, one behind another."""
    while len(parts) > 1:
        count = 2 * lanes(parts[0].type)
        parts = [b.shuffle(parts[i], parts[i + 1], list(range(count))) for i in range(0, len(parts), 2)]
    return parts[0]
