"""LLVM IR text to machine code: a relocatable object, then a shared object that any process can load.

The shared object is written by ``linker.py`` and not by ``ld``: that takes half a millisecond instead of a process of
3 to 6, and a user's machine needs no binutils. Since a kernel has one object, one export and no other libraries
than libc and libm, what is left of linking is small, and everything beyond it is refused.

llvmlite lets one thread at a time into LLVM, so threads may call these functions but do not make them faster;
processes do.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import llvmlite.binding as llvm

from softgpu.engine.errors import CompileError
from softgpu.engine.linker import shared_object
from softgpu.engine.target import TRIPLE, Target, host_target

QUICK, FULL = 1, 2
"""Levels of optimisation: a short list of passes, and LLVM's own pipeline without its vectorizers. The kernels of the
reference corpus run as fast with the short list, which takes a third to a tenth of the time."""


@cache
def _llvm_target() -> llvm.Target:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    llvm.initialize_native_asmparser()  # of instructions that have no other name in IR
    return llvm.Target.from_triple(TRIPLE)


def _machine(target: Target) -> llvm.TargetMachine:
    """A machine for one compilation: machines have state, and making one costs a tenth of a millisecond."""
    return _llvm_target().create_target_machine(
        cpu=target.base, features=target.feature_text, opt=2, reloc="pic", codemodel="default"
    )


def _passes(level: int, builder: llvm.PassBuilder) -> llvm.ModulePassManager:
    if level >= FULL:
        return builder.getModulePassManager()
    passes = llvm.create_new_module_pass_manager()
    passes.add_always_inliner_pass()
    passes.add_sroa_pass()  # registers are variables in memory until here
    passes.add_instruction_combine_pass()
    passes.add_simplify_cfg_pass()
    passes.add_aggressive_dce_pass()
    return passes


def _optimized(ir_text: str, level: int, target: Target, verify: bool) -> tuple[llvm.ModuleRef, llvm.TargetMachine]:
    machine = _machine(target)
    try:
        module = llvm.parse_assembly(ir_text, llvm.create_context())
        if verify:
            module.verify()
    except RuntimeError as error:
        raise CompileError(f"the engine wrote IR that LLVM refuses: {error}") from None
    tuning = llvm.create_pipeline_tuning_options(speed_level=2)
    tuning.loop_vectorization = False  # the vectors are the warps
    tuning.slp_vectorization = False
    tuning.loop_interleaving = False
    builder = llvm.create_pass_builder(machine, tuning)
    _passes(level, builder).run(module, builder)
    return module, machine


def compile_object(ir_text: str, level: int = QUICK, target: Target | None = None, verify: bool = False) -> bytes:
    """The relocatable ELF object of a module in IR, position-independent.

    ``target`` is this machine's level unless another is given. ``verify`` has LLVM check the module first, which its
    parser does in large part anyway. Raises :class:`CompileError` with LLVM's words when it refuses the text.
    """
    module, machine = _optimized(ir_text, level, target or host_target(), verify)
    try:
        return bytes(machine.emit_object(module))
    except RuntimeError as error:
        raise CompileError(f"LLVM makes no code of the kernel: {error}") from None


def assembly(ir_text: str, level: int = QUICK, target: Target | None = None) -> str:
    """The same as assembly text, for people and for tests that look for instructions."""
    module, machine = _optimized(ir_text, level, target or host_target(), verify=True)
    return str(machine.emit_assembly(module))


def optimized_ir(ir_text: str, level: int = QUICK, target: Target | None = None) -> str:
    """The module as text after the passes."""
    return str(_optimized(ir_text, level, target or host_target(), verify=True)[0])


def compile_shared(ir_text: str, level: int = QUICK, target: Target | None = None, verify: bool = False) -> bytes:
    """The bytes of the shared object of a module in IR; errors as :func:`compile_object` and ``shared_object``."""
    return shared_object(compile_object(ir_text, level, target, verify))


def link(relocatable: bytes, path: Path) -> None:
    """Write the shared object of an object file to ``path``; errors as ``shared_object``, and ``OSError``."""
    path.write_bytes(shared_object(relocatable))
