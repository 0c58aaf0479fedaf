"""What instructions compute, as LLVM IR: tables by full mnemonic, one file per family of opcodes.

An :class:`Operation` is pure: from operands to results, no memory, no control flow. The whole instruction set that the
engine takes is the union of these tables and of those of ``softgpu.engine.emit``, where instructions live that
need more than their operands. An instruction that is in no table makes its kernel refused by name.
"""

from __future__ import annotations

from softgpu.engine.ops.operation import Operation, collect

__all__ = ["Operation", "collect"]
