"""Places a launch case in the interpreter's memory: addresses, parameter bytes, module variables."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from ptxparse.model import Function, Module, parameter_layout
from ptxparse.parser import parse
from softgpu.reference import LoadedModule, Memory
from tests.launches.case import Argument, Array, Buffer, LaunchCase, Packed, Pointer, Value
from tests.launches.registry import KernelLaunches
from tests.material import require_material

FIXTURES = Path(__file__).resolve().parent.parent / "fixtures"


def text_of(kernel: KernelLaunches) -> str:
    """The PTX text that holds the kernel. Skips the test when it is reference material that is not there."""
    if kernel.text is not None:
        return kernel.text
    folder = FIXTURES if kernel.origin == "fixtures" else require_material()
    return (folder / kernel.file).read_text()


@cache
def module_of(kernel: KernelLaunches) -> Module:
    """The parsed module, shared by the kernels of one file."""
    return parsed(text_of(kernel), kernel.file)


@cache
def parsed(text: str, path: str) -> Module:
    return parse(text, path)


def entry_of(kernel: KernelLaunches) -> Function:
    """The kernel's function: of that name, or the only entry of a file whose names are mangled."""
    module = module_of(kernel)
    found = module.function(kernel.kernel)
    if found is not None and found.is_entry:
        return found
    (only,) = module.entries
    return only


@dataclass(eq=False)
class Placed:
    """A case in memory, ready to launch. ``addresses`` and ``sizes`` are by the buffers' names, in bytes; ``before``
    is what each buffer held when it was placed."""

    case: LaunchCase
    memory: Memory
    loaded: LoadedModule
    entry: Function
    parameters: bytes
    addresses: dict[str, int]
    sizes: dict[str, int]
    before: dict[str, bytes]

    def bytes_of(self, name: str) -> bytes:
        """What a buffer or a module variable holds now."""
        if name in self.addresses:
            return self.memory.read(self.addresses[name], self.sizes[name])
        address, size = self.loaded.globals[name]
        return self.memory.read(address, size)

    def array(self, name: str) -> Array:
        """A buffer's contents now, with the type and shape that it had in the case."""
        argument = self.case.arguments[name]
        buffer = argument.buffer if isinstance(argument, Pointer) else argument
        assert isinstance(buffer, Buffer) and isinstance(buffer.data, np.ndarray)
        return np.frombuffer(self.bytes_of(buffer.name), buffer.data.dtype).reshape(buffer.data.shape)


def place(kernel: KernelLaunches, case: LaunchCase) -> Placed:
    """Fresh memory with the module's variables and the case's buffers, each of exactly its size (at least one byte)."""
    memory = Memory()
    loaded = LoadedModule(module_of(kernel), memory)
    buffers = case.buffers()
    before = {}
    places = {id(b): memory.allocate(max(b.size, 1)) for b in buffers}
    for buffer in buffers:
        before[buffer.name] = encode(buffer.data, places)[: buffer.size]
        memory.write(places[id(buffer)], before[buffer.name])
    for name, value in case.globals.items():
        address, size = loaded.globals[name]
        data = encode(value, places)
        if len(data) != size:
            raise ValueError(f"{kernel.name}: variable {name} has {size} bytes, the case gives {len(data)}")
        memory.write(address, data)
    entry = entry_of(kernel)
    return Placed(
        case, memory, loaded, entry, parameter_block(entry, case, places), {b.name: places[id(b)] for b in buffers},
        {b.name: b.size for b in buffers}, before)


def parameter_block(entry: Function, case: LaunchCase, places: dict[int, int]) -> bytes:
    """The launch's parameter bytes: every argument at its parameter's offset."""
    slots, size = parameter_layout(entry)
    if len(slots) != len(case.arguments):
        raise ValueError(f"{entry.name} has {len(slots)} parameters, the case gives {len(case.arguments)}")
    block = bytearray(size)
    for slot, (name, argument) in zip(slots, case.arguments.items(), strict=False):
        data = encode(argument, places)
        if len(data) != slot.size:
            raise ValueError(f"{entry.name}: {name} gives {len(data)} bytes for {slot.name} of {slot.size}")
        block[slot.offset: slot.offset + slot.size] = data
    return bytes(block)


def encode(value: Argument | Packed | Array, places: dict[int, int]) -> bytes:
    """The bytes of an argument or of a buffer's contents, with addresses in place of pointers."""
    if isinstance(value, Buffer | Pointer):
        return struct.pack("<Q", address_of(value, places))
    if isinstance(value, Packed):
        numbers = [address_of(v, places) if isinstance(v, Buffer | Pointer) else v for v in value.values]
        return struct.pack("@" + value.format, *map(_number, numbers)).ljust(value.size, b"\0")
    return value.tobytes()


def _number(value: Value) -> Value:
    return value.item() if isinstance(value, np.generic) else value


def address_of(value: Buffer | Pointer, places: dict[int, int]) -> int:
    if isinstance(value, Buffer):
        return places[id(value)]
    return value.offset + (0 if value.buffer is None else places[id(value.buffer)])
