"""The engine: kernels compiled from PTX to native code, run on all cores of the CPU.

    from softgpu.engine import LoadedModule, Memory, launch

    memory = Memory()
    module = LoadedModule(ptx_text, memory)
    x = numpy.ones(1000, numpy.float32)
    launch(module, "scale", grid=8, block=128, arguments=[x, numpy.float32(2), 1000])   # works on x in place

What PTX leaves open is as in :mod:`softgpu.reference`, except for the order of threads. Needs the extra ``softgpu``;
what needs its packages is imported when it is first asked for, because the compile service starts without it.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from softgpu.engine.errors import (
        CompileError,
        DeadlineError,
        DeadlockError,
        EngineError,
        KernelTrap,
        LaunchError,
        MemoryFault,
        UndefinedBehaviour,
        UnsupportedKernel,
    )
    from softgpu.engine.launch import LaunchResult, Pool, launch
    from softgpu.engine.memory import Memory
    from softgpu.engine.module import LoadedModule
    from softgpu.engine.options import Options

__all__ = [
    "CompileError",
    "DeadlineError",
    "DeadlockError",
    "EngineError",
    "KernelTrap",
    "LaunchError",
    "LaunchResult",
    "LoadedModule",
    "Memory",
    "MemoryFault",
    "Options",
    "Pool",
    "UndefinedBehaviour",
    "UnsupportedKernel",
    "launch",
]

_HOMES = {"LaunchResult": "launch", "LoadedModule": "module", "Memory": "memory", "Options": "options",
          "Pool": "launch", "launch": "launch"}
_PACKAGES = ("cffi", "llvmlite")  # of the extra


class _Package(ModuleType):
    """This package, whose ``launch`` is the function also after the module of that name was imported."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (name == "launch" and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        found = getattr(import_module(f"{__name__}.{_HOMES.get(name, 'errors')}"), name)
    except ModuleNotFoundError as error:
        package = str(error.name).partition(".")[0]
        if package not in _PACKAGES:
            raise
        from softgpu.engine.library import LibraryMissing

        raise LibraryMissing(f"the software GPU needs the package {package} (the extra 'softgpu')") from error
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
