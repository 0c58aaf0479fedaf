"""Instructions of the tables: results computed from operands lane by lane, without memory or other lanes' registers."""

from __future__ import annotations

from ptxparse.model import Immediate, Operand, Pair, Register, Vector
from softgpu.engine.emit.lazy import exact
from softgpu.engine.emit.lower import Lower
from softgpu.engine.ir import Value
from softgpu.engine.ops.operation import Operation


def emit(lower: Lower, operation: Operation) -> None:
    """Emit the present instruction by its table entry: in one lane when all its registers are scalar, else in all."""
    targets, given = _operands(lower, operation)
    defined = lower.webs.defined[lower.index]
    carry = defined.get("%cc")
    webs = [defined.get(t.name) for t in targets if isinstance(t, Register) and t.name != "_"]
    written = [web for web in (*webs, carry) if web is not None]
    scalar = not operation.warp and bool(written) and all(lower.scalar_web(web) for web in written) and all(
        lower.operand_shape(operand, kind).scalar for operand, kind in given if operand is not None and kind != "imm"
    )  # fmt: skip
    produced = operation.emit(lower.builder, *[_value(lower, operation, o, kind, scalar) for o, kind in given])
    outputs = produced if isinstance(produced, tuple) and not isinstance(produced, Value) else (produced,)
    place = 0
    for kind, value in zip(operation.results, outputs, strict=True):
        if kind == "cc":
            if carry is not None:
                lower.write_web(carry, "cc", value)
        elif place < len(targets):
            _write(lower, targets[place], kind, value, operation)
            place += 1


def _operands(lower: Lower, operation: Operation) -> tuple[list[Operand], list[tuple[Operand | None, str]]]:
    """Destinations, and each source with its kind; the carry flag is no operand."""
    operands = lower.instruction.operands
    first = operands[0]
    targets = [first]
    if isinstance(first, Pair):
        targets = [first.first, first.second]
    elif isinstance(first, Vector) and operation.warp:
        targets = list(first.items)
    given: list[Operand] = []
    for operand in operands[1:]:
        given += operand.items if isinstance(operand, Vector) and operation.warp else [operand]
    results = len(operation.results) - operation.results.count("cc")
    enough = len(targets) == results if operation.warp and results > 1 else len(targets) <= results
    if not enough or len(given) != len(operation.sources) - operation.sources.count("cc"):
        lower.fail(f"{len(operands)} operands")
    rest = iter(given)
    return targets, [(None if kind == "cc" else next(rest), kind) for kind in operation.sources]


def _value(lower: Lower, operation: Operation, operand: Operand | None, kind: str, scalar: bool) -> Value | int:
    """What an emitter of the tables gets for a source."""
    if operand is None:
        web = lower.used_web("%cc")
        if web is None:
            lower.fail("no carry to add")
        value = lower.value_of(web)
        return value if scalar else lower.builder.splat(value)
    if kind == "imm":
        if not isinstance(operand, Immediate):
            lower.fail(f"operand {operand!r} must be a constant")
        return operand.value
    wide = lower.instruction.opcode == "cvt"
    return lower.read(operand, kind, vector=not scalar, wide=wide, observe=_observes(lower, operation))


def _write(lower: Lower, target: Operand, kind: str, value: Value, operation: Operation) -> None:
    if not isinstance(target, Register):
        lower.fail(f"destination {target!r} is not a register")
    if target.name == "_":
        return
    web = lower.webs.defined[lower.index].get(target.name)
    if web is None:
        lower.fail(f"{target.name} is not a declared register")
    if kind == "f32" and web.number not in lower.lazy and not exact(operation):
        value = lower.canonical(value)
    lower.write_web(web, kind, value, wide=lower.instruction.opcode == "cvt")


def _observes(lower: Lower, operation: Operation) -> bool:
    """Whether an instruction's result depends on which NaN an operand is."""
    opcode = lower.instruction.opcode
    if opcode == "cvt" and operation.results[0] == "f64":
        return True  # the NaN's bits are carried over
    if not exact(operation):
        return False
    numbers = operation.sources[0] in ("f32", "f64")
    return not (numbers and opcode in ("setp", "set", "cvt", "ex2", "lg2", "sin", "cos"))
