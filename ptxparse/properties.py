"""What else a kernel's instructions say about it: problems, pins, determinism, sameness across devices."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from ptxparse.flow import Flow
from ptxparse.inline import Body
from ptxparse.model import Address, Instruction
from ptxparse.opcodes import (
    SPECIAL_REGISTERS,
    Effect,
    Source,
    is_contractible,
    is_device_variant,
    is_nondeterministic,
    is_order_dependent,
    unknown_modifiers,
)
from ptxparse.parser import mnemonic
from ptxparse.usage import Usage
from tessera.reasons import Reason

_OPAQUE_EFFECTS = {
    Effect.TEXTURE: Reason.TEXTURE,
    Effect.SURFACE: Reason.SURFACE,
    Effect.BULK: Reason.BULK_COPY,
    Effect.TENSORMAP: Reason.TENSOR_MAP,
    Effect.MULTIMEM: Reason.MULTIMEM,
    Effect.FABRIC: Reason.MULTIMEM,
    Effect.TCGEN05: Reason.UNKNOWN_OPCODE,
}
_ADDRESSED = (Effect.LOAD, Effect.STORE, Effect.ATOMIC, Effect.COPY, Effect.MATRIX_LOAD, Effect.MATRIX_STORE)
_VARYING_SOURCES = (Source.DEVICE, Source.TIME, Source.ENVIRONMENT)
_WHAT_ATOMICS_DO = frozenset({"add", "min", "max", "and", "or", "xor", "b32", "b64", "u32", "s32", "u64", "s64"})
_GRID_WORKSPACE = ("%envreg1", "%envreg2")


class _Traits(NamedTuple):
    unknown: bool
    device_variant: bool
    nondeterministic: bool


@cache
def _traits(text: str) -> _Traits:
    op = mnemonic(text)
    return _Traits(bool(unknown_modifiers(op)), is_device_variant(op), is_nondeterministic(op))


def _reaches_cluster(text: str) -> bool:
    """Whether an instruction needs the other blocks of a cluster. (A bulk copy names ``shared::cluster`` even when it
    stays in its own block, but is opaque anyway.)"""
    opcode, *modifiers = text.split(".")
    if opcode in ("mapa", "getctarank") or (opcode == "barrier" and "cluster" in modifiers):
        return True
    return "shared::cluster" in modifiers and opcode in ("ld", "st", "atom", "red")


class Properties:
    """Findings over all reachable instructions of a kernel. ``problems`` make it opaque, ``pins`` pin it."""

    def __init__(self, body: Body, flow: Flow, usage: Usage) -> None:
        self.flow = flow
        self.usage = usage
        self.problems: list[tuple[Reason, int]] = list(body.problems)
        self.pins: list[tuple[Reason, int]] = list(body.pins)
        self.deterministic = not body.problems
        self.atomics: set[tuple[str, ...]] = set()
        self.device_invariant = not body.problems
        if any("cluster" in directive for directive in body.function.directives):
            self.pins.append((Reason.CLUSTER, body.function.line))
        reached = [
            (block, index)
            for block in flow.order
            for index in range(flow.blocks[block].start, flow.blocks[block].end)
        ]
        self.read = {name for _, index in reached for name in usage.reads[index]}
        for block, index in reached:
            self._instruction(block, index)
        if len(self.atomics) > 1:
            self.deterministic = False
        if self.device_invariant and self._contracts([index for _, index in reached]):
            self.device_invariant = False

    def _instruction(self, block: int, index: int) -> None:
        instruction = self.flow.instructions[index]
        row = self.usage.rows[index]
        line = instruction.line
        if row is None:
            self.problems.append((Reason.UNKNOWN_OPCODE, line))
            self.deterministic = self.device_invariant = False
            return
        traits = _traits(instruction.op.text)
        if traits.unknown:
            self.problems.append((Reason.UNKNOWN_MODIFIER, line))
            self.deterministic = self.device_invariant = False
        if row.effect in _ADDRESSED and not any(isinstance(o, Address) for o in instruction.operands):
            self.problems.append((Reason.MALFORMED_INSTRUCTION, line))
        if row.effect in _OPAQUE_EFFECTS:
            tensor = row.effect is Effect.BULK and ".tensor" in instruction.op.text
            self.problems.append((Reason.TENSOR_MAP if tensor else _OPAQUE_EFFECTS[row.effect], line))
        if traits.device_variant:
            self.device_invariant = False
        if traits.nondeterministic:
            self.deterministic = False
        if row.effect is Effect.ATOMIC:
            returned = [name for name in self.usage.writes[index] if name in self.read]
            if returned or is_order_dependent(instruction.op):
                self.deterministic = False
            # Additions commute with each other, and maxima do, but not the one with the other, should they meet.
            self.atomics.add(tuple(m for m in instruction.op.modifiers if m in _WHAT_ATOMICS_DO))
        self._special_registers(instruction, index)
        if _reaches_cluster(instruction.op.text):
            self.pins.append((Reason.CLUSTER, line))
        if row.effect is Effect.MATRIX_LOAD:
            # Which thread holds which element is the device's choice (PTX manual, wmma.load).
            self.device_invariant = False
        if row.effect is not Effect.PURE:
            self._talk(block, instruction, row.effect)

    def _special_registers(self, instruction: Instruction, index: int) -> None:
        for name in self.usage.reads[index]:
            special = SPECIAL_REGISTERS.get(name)
            if special is not None and "cluster" in name:
                self.pins.append((Reason.CLUSTER, instruction.line))
            if special is None or special.kind not in _VARYING_SOURCES:
                continue
            self.deterministic = self.device_invariant = False
            if name in _GRID_WORKSPACE:
                self.pins.append((Reason.GRID_SYNC, instruction.line))

    def _talk(self, block: int, instruction: Instruction, effect: Effect) -> None:
        """Accesses by which a kernel may talk to somebody else while it runs."""
        modifiers = instruction.op.modifiers
        line = instruction.line
        in_loop = self.flow.loop_of[block] != -1 or block in self.flow.tangled
        memory = effect in (Effect.LOAD, Effect.STORE, Effect.ATOMIC)
        if memory and ("shared" in modifiers or "local" in modifiers or "shared::cta" in modifiers):
            return
        if "sys" in modifiers and (memory or effect is Effect.FENCE):
            self.pins.append((Reason.SYSTEM_SCOPE, line))
        if not memory:
            return
        if "volatile" in modifiers or "mmio" in modifiers or "cv" in modifiers:
            self.deterministic = False
            if in_loop or "mmio" in modifiers:
                self.pins.append((Reason.VOLATILE_ACCESS, line))
        if effect is Effect.LOAD and ("acquire" in modifiers or "relaxed" in modifiers):
            self.deterministic = False
        waits = "acquire" in modifiers or (effect is Effect.LOAD and "relaxed" in modifiers) or "acq_rel" in modifiers
        if waits and effect is not Effect.STORE and in_loop:
            self.pins.append((Reason.ACQUIRE_IN_LOOP, line))

    def _contracts(self, reached: list[int]) -> bool:
        """Whether an unrounded product feeds an unrounded sum: a compiler may or may not fuse the two."""
        instructions, usage = self.flow.instructions, self.usage
        by_opcode: dict[str, list[int]] = {}
        for index in reached:
            by_opcode.setdefault(instructions[index].op.opcode, []).append(index)
        products = {
            name for i in by_opcode.get("mul", ()) if is_contractible(instructions[i].op) for name in usage.writes[i]
        }
        grown = bool(products)
        # What only passes a product on: a compiler sees through it.
        passing = [i for opcode in ("mov", "neg", "abs", "selp") for i in by_opcode.get(opcode, ())]
        while grown:
            grown = False
            for i in passing:
                if not products.isdisjoint(usage.reads[i]) and not products.issuperset(usage.writes[i]):
                    products.update(usage.writes[i])
                    grown = True
        stored = any(
            instructions[i].op.modifiers[:1] == ("local",) and not products.isdisjoint(usage.reads[i])
            for i in by_opcode.get("st", ())
        )
        return stored or any(
            is_contractible(instructions[i].op) and not products.isdisjoint(usage.reads[i])
            for opcode in ("add", "sub") for i in by_opcode.get(opcode, ())
        )
