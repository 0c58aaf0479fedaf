"""Which emitter takes an instruction: the tables of pure operations by full mnemonic, or one of ``emit`` by opcode."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache

from softgpu.engine.emit import atomic, copies, matrix, memory, moves, pure, simple, warp
from softgpu.engine.emit.lower import Lower
from softgpu.engine.emit.walk import count_lanes
from softgpu.engine.ops import (
    approximate,
    bits,
    compare,
    convert_float,
    convert_from_integer,
    convert_integer,
    convert_packed,
    convert_small,
    convert_to_integer,
    floating,
    half,
    integer,
    magnitude,
    three,
    video,
    wide,
)
from softgpu.engine.ops import matrix as products
from softgpu.engine.ops.operation import Operation, collect
from softgpu.engine.work import counted_as

Emitter = Callable[[Lower], None]


@cache
def operations(rounding: int) -> dict[str, Operation]:
    """All pure operations by full mnemonic, for one family of cards."""
    return collect(
        integer.operations(), wide.operations(), bits.operations(), compare.operations(), floating.operations(),
        half.operations(), magnitude.operations(), convert_float.operations(), convert_from_integer.operations(),
        convert_integer.operations(), convert_packed.operations(), convert_small.operations(),
        convert_to_integer.operations(),
        video.operations(), approximate.operations(rounding), products.operations(rounding),
    )


@cache
def three_inputs() -> dict[str, Operation]:
    """``min`` and ``max`` with three source operands."""
    return collect(three.operations())


def _bar(lower: Lower) -> None:
    """Barriers that wait end their block and are not emitted here; what is left arrives only, or is of the warp."""
    modifiers = lower.instruction.modifiers
    if "warp" in modifiers:
        warp.barrier(lower)
        return
    if [m for m in modifiers if m not in ("cta", "aligned")] != ["arrive"]:
        lower.fail("not a form of barrier that the engine knows")
    simple.arrive(lower)


OPCODES: dict[str, Emitter] = {
    "ld": memory.ld, "ldu": memory.ld, "st": memory.st, "cvta": memory.cvta, "isspacep": memory.isspacep,
    "prefetch": memory.prefetch, "prefetchu": memory.prefetchu, "applypriority": memory.applypriority,
    "discard": memory.discard, "createpolicy": memory.createpolicy, "cp": copies.cp,
    "atom": atomic.atom, "red": atomic.red,
    "shfl": warp.shfl, "vote": warp.vote, "match": warp.match, "redux": warp.redux, "activemask": warp.activemask,
    "elect": warp.elect,
    "mov": moves.mov, "$move": moves.move,
    "ldmatrix": matrix.ldmatrix, "stmatrix": matrix.stmatrix, "movmatrix": matrix.movmatrix, "wmma": matrix.wmma,
    "bar": _bar, "barrier": _bar, "trap": simple.trap(0), "brkpt": simple.trap(1), "membar": simple.membar,
    "fence": simple.fence, "griddepcontrol": simple.griddepcontrol, "setmaxnreg": simple.setmaxnreg,
    "pmevent": simple.pmevent, "nanosleep": simple.nanosleep, "$bad_call": simple.bad_call,
    "$builtin": simple.builtin,
}


def emit_instruction(lower: Lower) -> None:
    """Emit the present instruction, or refuse its kernel."""
    instruction = lower.instruction
    if lower.options.counts and instruction.predicate is not None and instruction.mnemonic[0] != "$":
        count_lanes(lower, {counted_as(instruction): 1}, lower.guarded())
    operation = lower.operations.get(instruction.mnemonic)
    if instruction.opcode in ("min", "max") and len(instruction.operands) == 4:
        operation = three_inputs().get(instruction.mnemonic)
    if operation is not None:
        if operation.warp:
            warp.whole_warp(lower)
        pure.emit(lower, operation)
        return
    emitter = OPCODES.get(instruction.opcode)
    if emitter is None:
        lower.fail("not in the table of supported mnemonics" if _has_opcode(instruction.opcode, lower.options.rounding)
                   else "unknown opcode")
    emitter(lower)


@cache
def _opcodes(rounding: int) -> frozenset[str]:
    return frozenset(name.partition(".")[0] for name in operations(rounding))


def _has_opcode(opcode: str, rounding: int) -> bool:
    return opcode in _opcodes(rounding)


def supported() -> Iterator[str]:
    """Every full mnemonic of the tables."""
    yield from operations(0)
