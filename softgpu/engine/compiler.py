"""From PTX text to the object code of one kernel."""

from __future__ import annotations

from functools import lru_cache

from ptxparse.model import Module
from ptxparse.parser import parse
from softgpu.engine.errors import EngineError
from softgpu.engine.kernel import translate
from softgpu.engine.layout import entry_of
from softgpu.engine.objects import compile_object
from softgpu.engine.options import Options
from softgpu.engine.target import Target, host_target


@lru_cache(maxsize=16)
def parsed(ptx: bytes) -> Module:
    """The module of a PTX text, kept for the next kernels of it. Raises PtxError."""
    return parse(ptx.decode("utf-8", errors="replace"))


def compile_kernel(module: Module, kernel: str, options: Options, target: Target | None = None) -> bytes:
    """The relocatable object of a kernel. Raises UnsupportedKernel, or EngineError for a kernel that is not there."""
    entry = entry_of(module, kernel)
    if entry is None:
        raise EngineError(f"the module has no kernel {kernel}")
    target = target or host_target()
    return compile_object(translate(module, entry, options, target).text, target=target, verify=True)


def compile_ptx(ptx: bytes, kernel: str, options: Options) -> bytes:
    """:func:`compile_kernel` from the text of a module."""
    return compile_kernel(parsed(ptx), kernel, options)
