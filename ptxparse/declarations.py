"""Declarations: variables, parameters, registers and initialisers, read token by token."""

from __future__ import annotations

import math
import re

from ptxparse.constants import constant
from ptxparse.model import TYPE_BYTES, FloatImmediate, Note, RegisterDeclaration, Symbol, Variable
from ptxparse.source import Source

_REGISTERS = re.compile(r"\s*\.(?:v([248])\s+\.)?(\w+)\s+([\w$%]+)(?:\s*<\s*(\d{1,9})\s*>)?\s*;")
_POINTEE_SPACES = (".global", ".shared", ".local", ".const", ".param")
_MOST_ELEMENTS = 1 << 24
_DEEPEST_BRACES = 64


def registers(source: Source, line: int) -> list[RegisterDeclaration]:
    """The registers of one ``.reg`` statement, read from just after ``.reg``."""
    found = _REGISTERS.match(source.text, source.position)
    if found is not None:
        source.position = found.end()
        vector, kind, name, count = found.groups()
        return [RegisterDeclaration(name, kind, int(count) if count else None, line, int(vector or 1))]
    vector_length, kind = _type(source)
    declared = []
    while True:
        name = source.take_name("a register")
        number = None
        if source.take_if("<"):
            number = source.take_integer("the number of registers")
            source.expect(">")
        declared.append(RegisterDeclaration(name, kind, number, line, vector_length))
        if not source.take_if(","):
            break
    source.expect(";", "after .reg")
    return declared


def _type(source: Source) -> tuple[int, str]:
    vector = 1
    start = source.skip_blanks()
    token = source.take()
    if token in (".v2", ".v4", ".v8"):
        vector = int(token[2:])
        start = source.skip_blanks()
        token = source.take()
    if token[1:] not in TYPE_BYTES or token[0] != ".":
        source.fail("a type such as .b32 or .f32", start)
    return vector, token[1:]


def variable(source: Source, space: str, linkage: str, notes: list[Note], *, initialised: bool = True) -> Variable:
    """One variable or parameter, read from just after its state space, up to (not including) ``,`` ``;`` or ``)``."""
    align = 0
    attributes = False
    while True:
        if source.take_if(".align"):
            align = source.take_integer("an alignment")
        elif source.take_if(".attribute"):
            source.expect("(")
            source.skip_balanced("(", ")")
            attributes = True
        else:
            break
    vector, kind = _type(source)
    pointee: str | None = None
    pointee_align = 0
    if source.take_if(".ptr"):
        pointee = ""
        while (token := source.peek()) in _POINTEE_SPACES or token == ".align":
            source.take()
            if token == ".align":
                pointee_align = source.take_integer("an alignment")
            else:
                pointee = token[1:]
    line = source.line_at(source.skip_blanks())
    name = source.take_name("a variable")
    if attributes:
        notes.append(Note("attribute", name, line))
    return _array(source, space, linkage, notes, initialised, Variable(
        name, space, kind, 0, align, line, (), vector, linkage, None, pointee, pointee_align
    ))


def _array(
    source: Source, space: str, linkage: str, notes: list[Note], initialised: bool, declared: Variable
) -> Variable:
    dims: list[int | None] = []
    while source.take_if("["):
        if source.take_if("]"):
            dims.append(None)
            continue
        start = source.skip_blanks()
        size = constant(source)
        if not isinstance(size, int) or size < 0:
            source.fail("a non-negative array size", start)
        dims.append(size)
        source.expect("]")
    declared.dims = tuple(dims)
    if initialised and source.take_if("="):
        declared.initial = tuple(_initial(source, notes))
    element = TYPE_BYTES[declared.type] * declared.vector
    if dims and dims[0] is None and declared.initial is not None:
        inner = math.prod(d or 1 for d in dims[1:])
        count = -(-len(declared.initial) // max(inner, 1)) * inner
    else:
        count = 0 if None in dims else math.prod(d or 0 for d in dims)
    declared.size = element * count
    declared.align = declared.align or element
    return declared


def _initial(source: Source, notes: list[Note]) -> list[int | FloatImmediate | Symbol]:
    values: list[int | FloatImmediate | Symbol] = []
    if not source.take_if("{"):
        return [_initial_value(source, notes)]
    depth = 1
    while depth:
        if source.take_if("{"):
            depth += 1
            if depth > _DEEPEST_BRACES:
                source.fail(f"an initialiser nested at most {_DEEPEST_BRACES} deep")
        elif source.take_if("}"):
            depth -= 1
            source.take_if(",")
        else:
            values.append(_initial_value(source, notes))
            if len(values) > _MOST_ELEMENTS:
                source.fail(f"at most {_MOST_ELEMENTS} initial values")
            if not source.take_if(",") and source.peek() != "}":
                source.fail("',' or '}' in an initialiser")
    return values


def _initial_value(source: Source, notes: list[Note]) -> int | FloatImmediate | Symbol:
    start = source.skip_blanks()
    token = source.peek()
    if not token or not (token[0].isalpha() or token[0] in "_$%"):
        value = constant(source)
        if isinstance(value, int) and source.peek() == "(":
            # A masked address, 0xFF00(symbol): one byte of it. Nothing of ours can place such a value yet.
            notes.append(Note("masked initialiser", str(value), source.line_at(start)))
            source.take()
            symbol = _initial_value(source, notes)
            source.expect(")")
            return symbol
        return value
    source.take()
    if token == "generic":
        source.expect("(")
        token = source.take_name("a variable")
        source.expect(")")
    offset = 0
    if (mark := source.peek()) in ("+", "-"):
        source.take()
        offset = source.take_integer("an offset") * (1 if mark == "+" else -1)
    return Symbol(token, offset)
