"""Which registers may hold a NaN that is not yet PTX's canonical one.

f32 instructions give one canonical NaN, the CPU gives others. Making each result canonical would take two more
instructions after every step of a sum. Since sums treat all NaNs alike, it is done where bits are seen: in stores,
moves to integers, exchanges between lanes.
"""

from __future__ import annotations

from collections.abc import Mapping

from ptxparse.flow import Flow
from ptxparse.model import FloatImmediate, Immediate, Register
from softgpu.engine.ops.operation import Operation
from softgpu.engine.webs import Web, Webs

_MOVES_BITS = ("abs", "neg", "copysign")


def exact(operation: Operation) -> bool:
    """Whether NaNs among the results are right: made so by the operation, or those of the operands."""
    return operation.canonical or operation.mnemonic.partition(".")[0] in _MOVES_BITS


def lazy_webs(flow: Flow, webs: Webs, operations: Mapping[str, Operation]) -> set[int]:
    """Webs all of whose definitions are sums and the like, whose NaNs may wait to be made canonical."""
    instructions = flow.instructions
    lazy = {w.number for w in webs.webs if w.type in ("f32", "b32")}
    copies: list[tuple[Web, Web]] = []
    for index, instruction in enumerate(instructions):
        operation = operations.get(instruction.mnemonic)
        for web in webs.defined[index].values():
            if web.number not in lazy:
                continue
            if operation is not None and not exact(operation) and "f32" in operation.results:
                continue
            if instruction.opcode == "mov" and len(instruction.operands) == 2:
                source = instruction.operands[1]
                if isinstance(source, FloatImmediate) and not _is_nan(source):
                    continue
                if isinstance(source, Immediate) and source.value == 0:
                    continue
                if isinstance(source, Register) and source.name in webs.used[index]:
                    copies.append((web, webs.used[index][source.name]))
                    continue
            lazy.discard(web.number)
    changed = True
    while changed:
        changed = False
        for web, source_web in copies:
            if web.number in lazy and source_web.number not in lazy:
                lazy.discard(web.number)
                changed = True
    return lazy


def _is_nan(value: FloatImmediate) -> bool:
    if value.width == 32:
        return value.bits & 0x7FFFFFFF > 0x7F800000
    return value.bits & ((1 << 63) - 1) > 0x7FF << 52
