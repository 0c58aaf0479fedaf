"""A module loaded into memory: its variables placed and initialised, its kernels compiled when they are needed."""

from __future__ import annotations

import hashlib
import tempfile
from collections import Counter
from dataclasses import replace
from typing import Any

from ptxparse.model import Module
from softgpu.engine import library
from softgpu.engine.cache import ObjectCache, object_key
from softgpu.engine.compiler import compile_kernel, parsed
from softgpu.engine.description import describe_variables
from softgpu.engine.errors import CompileError, EngineError
from softgpu.engine.linker import shared_object
from softgpu.engine.memory import Memory
from softgpu.engine.options import Options

MOST_BLOCKS = 8
"""Code for one block's extents is faster, but compiling takes longer than many launches."""


class Kernel:
    """An opened kernel: ``handle`` of the run-time, ``globals`` the names of the module variables it needs."""

    def __init__(self, path: str) -> None:
        self._runtime = library.load()
        ffi, lib = self._runtime
        out = ffi.new("sg_kernel_handle **")
        error = ffi.new("char[512]")
        if lib.sg_kernel_open(path.encode(), out, error, 512) != 0:
            raise CompileError(ffi.string(error).decode(errors="replace"))
        self._close = lib.sg_kernel_close  # looked up now: at the end of the process it may be too late
        self.handle = out[0]
        self.header = lib.sg_kernel_of(self.handle)
        self.globals = [ffi.string(self.header.globals[i]).decode() for i in range(self.header.global_count)]
        self.about = ffi.string(self.header.about).decode()

    def __del__(self) -> None:
        if hasattr(self, "handle"):
            self._close(self.handle)


class LoadedModule:
    """``globals`` maps the names of global and constant variables to (address, size in bytes).

    ``source`` is PTX text, or a parsed module (then nothing is taken from the cache or put there). Raises EngineError
    for an initialiser that cannot be placed, PtxError for text that cannot be parsed.
    """

    def __init__(self, source: str | bytes | Module, memory: Memory, cache: ObjectCache | None = None) -> None:
        self.text = source.encode() if isinstance(source, str) else source if isinstance(source, bytes) else None
        self.module = source if isinstance(source, Module) else parsed(self.text or b"")
        self.memory = memory
        self.cache = cache
        self.globals: dict[str, tuple[int, int]] = {}
        self._kernels: dict[tuple[str, str], Kernel] = {}
        self._blocks: Counter[str] = Counter()
        variables = describe_variables(self.module)
        for variable in variables:
            address = memory.allocate(variable["size"], variable["align"], constant=variable["space"] == "const")
            self.globals[variable["name"]] = (address, variable["size"])
        for variable in variables:
            self._initialise(variable)

    def _initialise(self, variable: dict[str, Any]) -> None:
        address, _ = self.globals[variable["name"]]
        data = bytearray(bytes.fromhex(variable["initial"]))
        for relocation in variable["relocations"]:
            target = relocation.get("address")
            if target is None:
                found = self.globals.get(relocation["symbol"])
                if found is None:
                    raise EngineError(f"{variable['name']} is initialised with the address of {relocation['symbol']}, "
                                      "which this module does not define")
                target = found[0]
            raw = (target + relocation["addend"]).to_bytes(8, "little")
            first, count, offset = relocation["first"], relocation["bytes"], relocation["offset"]
            data[offset:offset + count] = raw[first:first + count]
        self.memory.write(address, data)

    def kernel(self, name: str, options: Options) -> Kernel:
        """The kernel compiled for these options: from the cache, or compiled now. Raises UnsupportedKernel.

        A kernel that has been compiled for ``MOST_BLOCKS`` blocks of different extents is compiled for any block next.
        """
        found = self._kernels.get((name, options.text()))
        if found is None and options.block is not None and self._blocks[name] >= MOST_BLOCKS:
            options = replace(options, block=None)
            found = self._kernels.get((name, options.text()))
        if found is None:
            found = self._kernels[name, options.text()] = self._open(name, options)
            self._blocks[name] += options.block is not None
        return found

    def _open(self, name: str, options: Options) -> Kernel:
        if self.text is None:
            with tempfile.NamedTemporaryFile(suffix=".so") as file:
                file.write(shared_object(compile_kernel(self.module, name, options)))
                file.flush()
                return Kernel(file.name)
        cache = self.cache or ObjectCache()
        digest = hashlib.sha256(self.text).digest()
        name_of_object = object_key(digest, name, options)
        path = cache.get(name_of_object)
        if path is None:
            path = cache.put(name_of_object, shared_object(compile_kernel(self.module, name, options)))
        return Kernel(str(path))
