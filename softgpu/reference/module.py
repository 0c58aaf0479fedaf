"""A module loaded into memory: its variables placed and initialised, its functions given addresses."""

from __future__ import annotations

import struct

from ptxparse.model import TYPE_BYTES, FloatImmediate, Function, Module, Symbol, Variable
from softgpu.reference.errors import InterpreterError
from softgpu.reference.linker import link
from softgpu.reference.memory import Memory
from softgpu.reference.program import Program
from softgpu.reference.spaces import CODE_WINDOW

FUNCTION_SPACING = 256
_OPAQUE_TYPES = ("texref", "samplerref", "surfref")


class LoadedModule:
    """``globals`` maps the names of global and constant variables to (address, size in bytes).

    Raises InterpreterError for an initialiser that cannot be placed. Kernels are decoded at their first launch.
    """

    def __init__(self, module: Module, memory: Memory) -> None:
        self.module = module
        self.memory = memory
        self.globals: dict[str, tuple[int, int]] = {}
        self._spaces: dict[str, str] = {}
        self._functions: dict[str, int] = {}
        self._programs: dict[str, Program] = {}
        for function in module.functions:
            if function.name not in self._functions:
                self._functions[function.name] = CODE_WINDOW + FUNCTION_SPACING * (len(self._functions) + 1)
        placed = [v for v in module.variables if v.space in ("global", "const") and v.linkage != "extern"]
        for function in module.functions:
            placed += [v for v in function.variables if v.space in ("global", "const")]
        for variable in placed:
            self._place(variable)
        for variable in placed:
            if variable.initial is not None:
                memory.write(self.globals[variable.name][0], self._initial(variable))

    def _place(self, variable: Variable) -> None:
        if variable.type in _OPAQUE_TYPES or variable.name in self.globals:
            return
        address = self.memory.allocate(variable.size, max(variable.align, 1), name=variable.name,
                                       constant=variable.space == "const")
        self.globals[variable.name] = (address, variable.size)
        self._spaces[variable.name] = variable.space

    def _initial(self, variable: Variable) -> bytes:
        if variable.type in _OPAQUE_TYPES:
            return b""
        size = TYPE_BYTES[variable.type]
        data = bytearray()
        run = 0
        previous: object = None
        for value in variable.initial or ():
            run = run + 1 if value == previous else 0
            previous = value
            if isinstance(value, FloatImmediate):
                data += _float_bytes(value, size, variable)
            elif isinstance(value, Symbol):
                address = self.address_of(value.name)
                if address is None:
                    raise InterpreterError(f"line {variable.line}: {variable.name} is initialised with the address of "
                                           f"{value.name}, which this module does not define")
                raw = (address + value.offset).to_bytes(8, "little")
                # Masked addresses, 0xFF(x), 0xFF00(x), ...: eight byte elements in a row name the same symbol.
                data += raw[run % 8:run % 8 + 1] if size == 1 else raw[:size]
            else:
                data += (value & ((1 << 8 * size) - 1)).to_bytes(size, "little")
        if len(data) > variable.size:
            raise InterpreterError(f"line {variable.line}: {variable.name} has more initial values than elements")
        return bytes(data)

    def address_of(self, name: str) -> int | None:
        """Address of a global or constant variable or of a function."""
        found = self.globals.get(name)
        if found is not None:
            return found[0]
        return self._functions.get(self.module.aliases.get(name, name))

    def space_of(self, name: str) -> str | None:
        """``global`` or ``const`` for a variable of the module."""
        return self._spaces.get(name)

    def program(self, kernel: Function) -> Program:
        """The decoded kernel with all it may call, decoded once."""
        found = self._programs.get(kernel.name)
        if found is None:
            found = self._programs[kernel.name] = link(self, kernel)
        return found


def _float_bytes(value: FloatImmediate, size: int, variable: Variable) -> bytes:
    if value.width == 8 * size:
        return value.bits.to_bytes(size, "little")
    if value.width == 64 and size == 4:
        double = struct.unpack("<d", value.bits.to_bytes(8, "little"))[0]
        return struct.pack("<f", double)
    if value.width == 32 and size == 8:
        single = struct.unpack("<f", value.bits.to_bytes(4, "little"))[0]
        return struct.pack("<d", single)
    raise InterpreterError(f"line {variable.line}: a {value.width}-bit constant in .{variable.type} {variable.name}")


def unsupported(function: Function, module: Module) -> list[tuple[str, int]]:
    """(full mnemonic, line) of every instruction of a kernel, and of what it may call, that would not be executed."""
    program = LoadedModule(module, Memory()).program(function)
    return [(error.mnemonic, error.line) for error in program.unsupported]
