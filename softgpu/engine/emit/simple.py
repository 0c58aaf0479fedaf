"""Instructions with little or nothing to do, traps, and the functions of the device run-time."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ptxparse.model import Immediate, Operand, Register, Symbol, Vector
from softgpu.engine.emit.memory import SCOPES
from softgpu.engine.emit.modifiers import Modifiers
from softgpu.engine.ir import WARP, Value

if TYPE_CHECKING:
    from softgpu.engine.emit.lower import Lower

TRAP, UNDEFINED, PRINT, ASSERT, ARRIVE, SLEEP = 3, 4, 5, 6, 9, 10
CALL_TARGET = 4


def trap(code: int) -> Callable[[Lower], None]:
    """trap and brkpt."""

    def emit(lower: Lower) -> None:
        Modifiers(lower).done(0)
        mask = lower.guarded()
        hit, on = lower.label("trap"), lower.label("no_trap")
        lower.branch(lower.builder.icmp("ne", mask.bits, Value("0", "i32")), hit, on, likely=False)
        lower.place(hit)
        lower.checked_helper(TRAP, mask.bits, lower.site(), Value(str(code), "i32"))
        lower.jump("stopped")
        lower.place(on)

    return emit


def membar(lower: Lower) -> None:
    """Orders writes between the workers of the pool."""
    m = Modifiers(lower)
    m.need("cta", "gl", "sys")
    m.done(0)
    lower.builder.line("  fence seq_cst")


def fence(lower: Lower) -> None:
    m = Modifiers(lower)
    m.take("sc", "acq_rel", "acquire", "release")
    m.need(*SCOPES)
    m.done(0)
    lower.builder.line("  fence seq_cst")


def griddepcontrol(lower: Lower) -> None:
    m = Modifiers(lower)
    m.need("launch_dependents", "wait")
    m.done(0)


def setmaxnreg(lower: Lower) -> None:
    """The number of registers changes no value."""
    m = Modifiers(lower)
    m.need("inc", "dec")
    m.need("sync")
    m.need("aligned")
    m.need("u32")
    m.done(1)


def pmevent(lower: Lower) -> None:
    m = Modifiers(lower)
    m.take("mask")
    m.done(1)
    if not isinstance(lower.instruction.operands[0], Immediate):
        lower.fail("an event that is no constant")


def nanosleep(lower: Lower) -> None:
    m = Modifiers(lower)
    m.need("u32")
    m.done(1)
    b = lower.builder
    operand = lower.instruction.operands[0]
    if lower.operand_shape(operand, "u32").uniform:
        longest = lower.read(operand, "u32")
    else:
        values = lower.read(operand, "u32", vector=True)
        chosen = b.select(lower.mask_lanes(), values, b.zero(values.type))
        longest = b.call(f"llvm.vector.reduce.umax.v{WARP}i32", "i32", chosen)
    lower.helper(SLEEP, "void", longest)


def arrive(lower: Lower) -> None:
    """bar.arrive: count and go on."""
    from softgpu.engine.emit.walk import one_value

    operands = lower.instruction.operands
    if len(operands) != 2:
        lower.fail(f"{len(operands)} operands")
    number = one_value(lower, operands[0], lower.mask)
    expected = one_value(lower, operands[1], lower.mask)
    frame = Value("null", "ptr")
    if lower.has_frame:
        frame = Value("%frame", "ptr")
        lower.store(lower.load("i32", Value("%live", "ptr")), frame)  # sg_frame.live: who is still to come
    lower.checked_helper(ARRIVE, frame, number, expected, lower.mask.bits, lower.site())


def bad_call(lower: Lower) -> None:
    """An indirect call of something that is no function of the module."""
    lower.checked_helper(UNDEFINED, lower.mask.bits, lower.site(), Value(str(CALL_TARGET), "i32"))
    lower.jump("stopped")
    lower.place(lower.label("after_call"))


# Functions of the device run-time.


def builtin(lower: Lower) -> None:
    name = lower.instruction.modifiers[0]
    results, arguments = lower.instruction.operands
    assert isinstance(results, Vector) and isinstance(arguments, Vector)
    if name == "vprintf":
        _print(lower, results.items, arguments.items)
    else:
        _assert(lower, arguments.items)


def _argument(lower: Lower, operand: Operand, kind: str) -> Value:
    """A parameter of a built-in function in all lanes."""
    if isinstance(operand, Symbol):
        lower.fail(f"parameter {operand.name} of a built-in function, whose address is taken")
    return lower.read(operand, kind, vector=True)


def _room_for(lower: Lower, name: str, value: Value) -> Value:
    room = lower.room(name, 8 * WARP)
    lower.store(value, room, 64)
    return room


def _print(lower: Lower, results: tuple[Operand, ...], arguments: tuple[Operand, ...]) -> None:
    if len(arguments) != 2:
        lower.fail(f"{len(arguments)} parameters of vprintf")
    lower.uses_prints = True
    formats = _room_for(lower, "first", _argument(lower, arguments[0], "b64"))
    values = _room_for(lower, "second", _argument(lower, arguments[1], "b64"))
    out = lower.room("values")
    lower.checked_helper(PRINT, formats, values, lower.mask.bits, lower.site(), out)
    for result in results:
        if isinstance(result, Register) and result.name in lower.webs.defined[lower.index]:
            lower.write(result, "b32", lower.load(f"<{WARP} x i32>", out, 64))


def _assert(lower: Lower, arguments: tuple[Operand, ...]) -> None:
    if len(arguments) not in (4, 5):
        lower.fail(f"{len(arguments)} parameters of __assertfail")
    message = _room_for(lower, "first", _argument(lower, arguments[0], "b64"))
    file = _room_for(lower, "second", _argument(lower, arguments[1], "b64"))
    line = _room_for(lower, "line", _argument(lower, arguments[2], "b32"))
    function = _room_for(lower, "function", _argument(lower, arguments[3], "b64"))
    lower.checked_helper(ASSERT, message, file, line, function, lower.mask.bits, lower.site())
    lower.jump("stopped")
    lower.place(lower.label("after_assert"))
