"""Declarations: variables, parameters, registers and initialisers, read token by token."""

from __future__ import annotations

import math
import re

from ptxparse.constants import constant
from ptxparse.model import TYPE_BYTES, FloatImmediate, Note, RegisterDeclaration, Symbol, Variable
from ptxparse.source import Source, integer

_REGISTERS = re.compile(r"\s*\.(?:v([248])\s+\.)?(\w+)\s+([A-Za-z_$%][\w$]*)(?:\s*<\s*(\d{1,9})\s*>)?\s*;")
_POINTEE_SPACES = (".global", ".shared", ".local", ".const", ".param")
_OPAQUE_TYPES = ("texref", "samplerref", "surfref")
_LARGEST_VARIABLE = 1 << 48
_MOST_ELEMENTS = 1 << 24
_DEEPEST_BRACES = 64
_FLAT_LIST = re.compile(r"\s*\{([^{}();]*)\}")


def registers(source: Source, line: int) -> list[RegisterDeclaration]:
    """The registers of one ``.reg`` statement, read from just after ``.reg``."""
    found = _REGISTERS.match(source.text, source.position)
    if found is not None and found.group(2) in TYPE_BYTES:
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


def variables(source: Source, space: str, linkage: str, notes: list[Note]) -> list[Variable]:
    """The variables of one statement, read from just after their state space, including the ``;``."""
    align, attributes = _alignment(source)
    vector, kind = _type(source)
    declared = []
    while True:
        line = source.line_at(source.skip_blanks())
        name = source.take_name("a variable")
        if attributes:
            notes.append(Note("attribute", name, line))
        declared.append(Variable(name, space, kind, 0, align, line, (), vector, linkage))
        _array(source, notes, declared[-1])
        if not source.take_if(","):
            break
    source.expect(";", "after a variable")
    return declared


def parameter(source: Source, space: str, notes: list[Note]) -> Variable:
    """One parameter, read from just after its state space, up to (not including) ``,`` or ``)``."""
    align, _ = _alignment(source)
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
    name = source.take_name("a parameter")
    declared = Variable(name, space, kind, 0, align, line, (), vector, "", None, pointee, pointee_align)
    return _array(source, notes, declared, initialised=False)


def _alignment(source: Source) -> tuple[int, bool]:
    """``.align`` and ``.attribute``: the alignment, and whether there were attributes."""
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
            return align, attributes


def _array(source: Source, notes: list[Note], declared: Variable, *, initialised: bool = True) -> Variable:
    """Dimensions and initialiser, and from them the size."""
    dims: list[int | None] = []
    total = 1
    while source.take_if("["):
        if source.take_if("]"):
            dims.append(None)
            continue
        start = source.skip_blanks()
        size = constant(source)
        if not isinstance(size, int) or size < 0:
            source.fail("a non-negative array size", start)
        total *= max(size, 1)
        if total > _LARGEST_VARIABLE:
            source.fail("a variable of at most 2^48 elements", start)
        dims.append(size)
        source.expect("]")
    declared.dims = tuple(dims)
    start = source.skip_blanks()
    if not initialised or not source.take_if("="):
        pass
    elif declared.type in _OPAQUE_TYPES:
        notes.append(Note("sampler fields", declared.name, declared.line))
        source.expect("{")
        source.skip_balanced("{", "}")
    else:
        shape = dims if declared.vector == 1 else [*dims, declared.vector]
        declared.initial = tuple(_initial(source, notes, [d or 1 for d in shape[1:]]))
    element = TYPE_BYTES[declared.type] * declared.vector
    if dims and dims[0] is None and declared.initial is not None:
        inner = math.prod(d or 1 for d in dims[1:])
        count = -(-len(declared.initial) // (inner * declared.vector)) * inner
    else:
        count = 0 if None in dims else math.prod(d or 0 for d in dims)
    if declared.initial is not None and len(declared.initial) > count * declared.vector:
        source.fail(f"at most {count * declared.vector} initial values for {declared.name}", start)
    declared.size = element * count
    declared.align = declared.align or element
    return declared


def _initial(source: Source, notes: list[Note], shape: list[int]) -> list[int | FloatImmediate | Symbol]:
    """The values of an initialiser in memory order. ``shape`` holds the dimensions after the first one: an inner
    ``{ }`` fills its row, missing values are zero."""
    values: list[int | FloatImmediate | Symbol] = []
    flat = _FLAT_LIST.match(source.text, source.position)
    if flat is not None:
        numbers = [integer(part.strip()) for part in flat.group(1).split(",")]
        if None not in numbers:
            source.position = flat.end()
            return [number for number in numbers if number is not None]
    if not source.take_if("{"):
        return [_initial_value(source, notes)]
    rows = [0]
    while rows:
        if source.take_if("{"):
            rows.append(len(values))
            if len(rows) > _DEEPEST_BRACES:
                source.fail(f"an initialiser nested at most {_DEEPEST_BRACES} deep")
        elif source.take_if("}"):
            first = rows.pop()
            missing = first + math.prod(shape[len(rows) - 1:]) - len(values) if 0 < len(rows) <= len(shape) else 0
            if len(values) + missing > _MOST_ELEMENTS:
                source.fail(f"at most {_MOST_ELEMENTS} initial values")
            values.extend([0] * missing)
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
