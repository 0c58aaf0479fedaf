"""What a module consists of, as plain data: kernels with their parameters, variables with their initial bytes.

This is what a process that is not Python learns about a module, and what this package itself loads modules by.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

from ptxparse.model import (
    TYPE_BYTES,
    Address,
    FloatImmediate,
    Module,
    Operand,
    Symbol,
    Variable,
    parameter_layout,
)
from ptxparse.model import Vector as VectorOperand
from softgpu.engine.compiler import parsed
from softgpu.engine.errors import EngineError
from softgpu.engine.flatten import BUILTINS, FUNCTION_SPACING, function_numbers
from softgpu.engine.layout import CODE_WINDOW
from softgpu.engine.pressure import registers

SYSTEM = (*BUILTINS, "malloc", "free")
"""Functions that a driver has and no module; the engine compiles those of ``BUILTINS``."""

OPAQUE_TYPES = ("texref", "samplerref", "surfref")


def describe(ptx: bytes) -> dict[str, Any]:
    """:func:`describe_module` of a PTX text."""
    return describe_module(parsed(ptx))


def describe_module(module: Module) -> dict[str, Any]:
    """``kernels``: name, parameters (name, offset, size, align in bytes), the block's bytes, registers as
    :mod:`softgpu.engine.pressure` says, performance directives.
    ``variables``: name, space, size, align, ``initial`` (bytes as hexadecimal digits) and ``relocations``: at
    ``offset``, the address of ``symbol`` (a variable) or the number ``address`` (of a function) plus ``addend``, of
    which ``bytes`` bytes beginning at byte ``first`` are written. ``unresolved``: names of variables and functions that
    are used here and must be defined elsewhere. Raises EngineError for initialisers that fit nowhere and
    for kernels of one name.
    """
    kernels: list[dict[str, Any]] = []
    names: set[str] = set()
    for entry in module.entries:
        if entry.name in names:
            raise EngineError(f"line {entry.line}: kernel {entry.name} is defined twice")
        names.add(entry.name)
        slots, size = parameter_layout(entry)
        kernels.append({
            "name": entry.name, "line": entry.line, "parameter_bytes": size,
            "parameters": [{"name": s.name, "offset": s.offset, "size": s.size, "align": s.variable.align}
                           for s in slots],
            "registers": registers(module, entry),
            "directives": {name: list(numbers) for name, numbers in entry.directives.items()},
        })
    return {"kernels": kernels, "variables": describe_variables(module), "unresolved": _unresolved(module)}


def describe_variables(module: Module) -> list[dict[str, Any]]:
    """The ``variables`` of :func:`describe_module` alone."""
    placed = [v for v in module.variables if v.space in ("global", "const") and v.linkage != "extern"]
    for function in module.functions:
        placed += [v for v in function.variables if v.space in ("global", "const")]
    variables: dict[str, dict[str, Any]] = {}
    functions = function_numbers(module)
    for variable in placed:
        if variable.type not in OPAQUE_TYPES and variable.name not in variables:
            variables[variable.name] = _variable(variable, functions, module)
    return list(variables.values())


def _unresolved(module: Module) -> list[str]:
    """In the order of the text."""
    declared = {f.name for f in module.functions if f.instructions is None}
    declared |= {v.name for v in module.variables if v.linkage == "extern" and v.space in ("global", "const")}
    defined = {f.name for f in module.functions if f.instructions is not None}
    defined |= {v.name for v in module.variables if v.linkage != "extern"}
    missing = declared - defined - module.aliases.keys() - set(SYSTEM)
    if not missing:
        return []
    used = {s.name: None for v in module.variables for s in v.initial or () if isinstance(s, Symbol)}
    for function in module.functions:
        for instruction in function.instructions or ():
            used.update(dict.fromkeys(name for operand in instruction.operands for name in _symbols(operand)))
    return [name for name in used if name in missing]


def _symbols(operand: Operand) -> Iterator[str]:
    if isinstance(operand, Symbol):
        yield operand.name
    elif isinstance(operand, Address):
        yield from _symbols(operand.base)
    elif isinstance(operand, VectorOperand):
        for item in operand.items:
            yield from _symbols(item)


def _variable(variable: Variable, functions: dict[str, int], module: Module) -> dict[str, Any]:
    data = bytearray()
    relocations: list[dict[str, Any]] = []
    size = TYPE_BYTES[variable.type]
    run = 0
    previous: object = None
    for value in variable.initial or ():
        run = run + 1 if value == previous else 0
        previous = value
        if isinstance(value, FloatImmediate):
            data += _float_bytes(value, size, variable)
        elif isinstance(value, Symbol):
            # Masked addresses, 0xFF(x), 0xFF00(x), ...: eight byte elements in a row name the same symbol.
            relocation: dict[str, Any] = {
                "offset": len(data), "symbol": value.name, "addend": value.offset,
                "first": run % 8 if size == 1 else 0, "bytes": 1 if size == 1 else min(size, 8)}
            number = functions.get(module.aliases.get(value.name, value.name))
            if number is not None:
                relocation["address"] = CODE_WINDOW + FUNCTION_SPACING * (number + 1)
            relocations.append(relocation)
            data += bytes(size)
        else:
            data += (value & ((1 << 8 * size) - 1)).to_bytes(size, "little")
    if len(data) > variable.size:
        raise EngineError(f"line {variable.line}: {variable.name} has more initial values than elements")
    return {"name": variable.name, "space": variable.space, "size": variable.size, "align": max(variable.align, 1),
            "initial": bytes(data).hex(), "relocations": relocations}


def _float_bytes(value: FloatImmediate, size: int, variable: Variable) -> bytes:
    if value.width == 8 * size:
        return value.bits.to_bytes(size, "little")
    if value.width == 64 and size == 4:
        return struct.pack("<f", struct.unpack("<d", value.bits.to_bytes(8, "little"))[0])
    if value.width == 32 and size == 8:
        return struct.pack("<d", struct.unpack("<f", value.bits.to_bytes(4, "little"))[0])
    raise EngineError(f"line {variable.line}: a {value.width}-bit constant in .{variable.type} {variable.name}")
