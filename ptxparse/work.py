"""Work in a kernel, by where it happens: instructions that run under the same conditions, added up."""

from __future__ import annotations

from functools import cache

from ptxparse.accesses import AccessBuilder
from ptxparse.conditions import Condition, limits_of
from ptxparse.model import Immediate, Instruction
from ptxparse.opcodes import (
    Effect,
    Opcode,
    accessed_bytes,
    fragment,
    matrix_shape,
    multiplicand,
    operation_count,
)
from ptxparse.parser import mnemonic
from ptxparse.program import Limit, Work
from ptxparse.relevance import space_of
from ptxparse.usage import Usage, registers_in
from ptxparse.walk import Walk

_NOT_GLOBAL = ("shared", "local", "param", "const")
_READS = (Effect.LOAD, Effect.COPY, Effect.ATOMIC, Effect.MATRIX_LOAD)
_WRITES = (Effect.STORE, Effect.ATOMIC, Effect.MATRIX_STORE)
_Key = tuple[tuple[Limit, ...], tuple[int, ...], bool, bool]


class WorkBuilder:
    """Adds up the work of one kernel; ``work`` holds an entry for each set of conditions that instructions run under.

    Amounts are per thread and execution: operations by class (``opcodes.operation_count``), and ``bytes_read`` and
    ``bytes_written`` of global memory, every access counted as often as it is made.
    """

    def __init__(self, walk: Walk, builder: AccessBuilder, usage: Usage) -> None:
        self.walk = walk
        self.builder = builder
        self.found: dict[_Key, dict[str, float]] = {}
        flow = walk.flow
        for block in flow.order:
            always: dict[str, float] = {}
            for index in range(flow.blocks[block].start, flow.blocks[block].end):
                amounts = self._amounts(index, flow.instructions[index], usage.rows[index])
                if not amounts:
                    continue
                more = [walk.guarded[index]] if index in walk.guarded else []
                if index in builder.copies:
                    # A copy with a source size reads as much as that says, which may be less.
                    conditions, whole = builder.copies[index]
                    self._enter(block, more, amounts, conditions, whole)
                elif more or index in builder.mixed:
                    self._enter(block, more, amounts, [], index not in builder.mixed)
                else:
                    _add(always, amounts)
            if always:
                self._enter(block, [], always)

    @property
    def work(self) -> tuple[Work, ...]:
        return tuple(
            Work(guards, loops, whole, endless, tuple(sorted(amounts.items())))
            for (guards, loops, whole, endless), amounts in self.found.items()
        )

    def _enter(
        self, block: int, more: list[Condition], amounts: dict[str, float], resolved: list[Condition] | None = None,
        whole: bool = True,
    ) -> None:
        builder = self.builder
        guards_of = [(builder.loops.resolve(value, block), truth) for value, truth in more] + (resolved or [])
        conjunction = builder.conjunction((*builder.block_conditions(block), *guards_of))
        if conjunction.false:
            return
        guards = limits_of(conjunction)
        whole = whole and conjunction.whole and builder.is_certain(block)
        key = (guards, tuple(self.walk.flow.loops_around(block)), whole, block in self.walk.flow.tangled)
        _add(self.found.setdefault(key, {}), amounts)

    def _amounts(self, index: int, instruction: Instruction, row: Opcode | None) -> dict[str, float]:
        if row is None or id(instruction) in self.walk.body.bindings:
            return {}
        if row.effect not in _READS and row.effect not in _WRITES:
            return _operations(instruction.op.text)
        amounts = dict(_operations(instruction.op.text))
        if row.effect is not Effect.COPY and space_of(instruction) in _NOT_GLOBAL:
            return amounts
        if index in self.builder.private:
            return amounts
        size = float(accessed_bytes(instruction.op))
        if fragment(instruction.op) is not None:
            # A fragment's registers hold some elements twice; each is loaded as often as it is held.
            position = 0 if row.effect is Effect.MATRIX_LOAD else 1
            size = 4.0 * sum(len(registers_in(held)) for held in instruction.operands[position:position + 1])
        elif not size and len(instruction.operands) > 2 and isinstance(instruction.operands[2], Immediate):
            size = float(instruction.operands[2].value)
        if row.effect in _READS:
            amounts["bytes_read"] = size
        if row.effect in _WRITES:
            amounts["bytes_written"] = size
        return amounts


@cache
def _operations(text: str) -> dict[str, float]:
    op = mnemonic(text)
    kind, operations = operation_count(op)
    shape = matrix_shape(op)
    if kind == "tensor" and shape is not None:
        # Rates of tensor cores depend on the shape and the type of what they multiply.
        kind = f"tensor.m{shape.m}n{shape.n}k{shape.k}.{multiplicand(op)}"
    return {kind: operations} if operations else {}


def _add(total: dict[str, float], more: dict[str, float]) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount
