"""What all parts of a kernel's function share: its wait points, masks, branches, and the instructions of a block."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ptxparse.model import Instruction, Operand, Symbol
from softgpu.engine.emit.lower import Lower, Mask
from softgpu.engine.ir import Value
from softgpu.engine.regions import contiguous_order
from softgpu.engine.waiting import is_barrier, is_meeting
from softgpu.engine.work import counted_as

DONE, PARKED, STOPPED = 0, 1, 2
LIVE_AT, RESUME_AT, POINTS_AT, POINT_BYTES = 0, 4, 16, 24
WAITING, GO, BARRIER, EXPECTED, PREDICATE, RESULT = 0, 4, 8, 12, 16, 20
YIELD, SYNC, RED_AND, RED_OR, RED_POPC = 0, 1, 2, 3, 4
SPINS = 16
"""Rounds of a waiting loop before its lanes give their turn away."""

UNDEFINED = 4
BRANCH_INDEX, MISSED_MEETING = 1, 6


@dataclass
class Point:
    """A wait point: the block that ends with it and the block where its lanes go on."""

    number: int
    block: int
    target: int
    kind: int
    line: int


class Walk:
    """The state of one function being written."""

    def __init__(self, lower: Lower, emit_instruction: Callable[[Lower], None]) -> None:
        self.lower = lower
        self.flow = lower.flow
        self.analysis = lower.analysis
        self.emit_instruction = emit_instruction
        self.order = contiguous_order(self.flow)
        self.position = {block: i for i, block in enumerate(self.order)}
        self.points: list[Point] = []
        self.point_of: dict[int, Point] = {}
        self.meetings = {b for b in self.order if self._begins_with_meeting(b)}
        for block in self.order:
            self._note_point(block)
        self.waits = lower.has_frame = bool(self.points)
        self.saved: dict[int, int] = {}
        self.frame_bytes = 0
        self.entry_mask = Mask(Value("-1", "i32"), True)
        self.done_label = "warp_done"
        self.together = self._barriers_together()
        self.stubs: list[tuple[str, int, int, Mask]] = []

    def _begins_with_meeting(self, block: int) -> bool:
        body = self.flow.blocks[block]
        return body.start < body.end and is_meeting(self.flow.instructions[body.start]) and (
            block in self.analysis.masked)

    def _barriers_together(self) -> dict[int, list[int]]:
        """For each ``bar.warp.sync`` under a mask, the others of its component: lanes may meet across them."""
        found: dict[int, list[int]] = {}
        for component in self.analysis.components:
            barriers = [block for block in component.chain if block in self.meetings
                        and self.flow.instructions[self.flow.blocks[block].start].opcode in ("bar", "barrier")]
            if len(barriers) > 1:
                found.update({block: [other for other in barriers if other != block] for block in barriers})
        return found

    def _note_point(self, block: int) -> None:
        body = self.flow.blocks[block]
        if body.start == body.end:
            return
        last = self.flow.instructions[body.end - 1]
        if last.opcode == "$yield":
            kind = YIELD
        elif is_barrier(last):
            kind = SYNC
            if "red" in last.modifiers:
                kind = {"and": RED_AND, "or": RED_OR, "popc": RED_POPC}[
                    next(m for m in last.modifiers if m in ("and", "or", "popc"))]
        else:
            return
        target = body.successors[0].target
        point = Point(len(self.points), block, target, kind, last.line)
        self.points.append(point)
        self.point_of[block] = point

    def _field(self, point: Point, field: int) -> Value:
        return self.lower.at(Value("%frame", "ptr"), POINTS_AT + POINT_BYTES * point.number + field)

    def _pending(self, block: int) -> Value:
        return Value(f"%pending{block}", "ptr")

    def _missing(self, block: int) -> Value:
        return Value(f"%missing{block}", "ptr")

    def _freed(self, block: int) -> Value:
        return Value(f"%freed{block}", "ptr")

    def _wanted(self, block: int) -> Value:
        return Value(f"%wanted{block}", "ptr")

    def _add_pending(self, block: int, mask: Value) -> None:
        b = self.lower.builder
        old = self.lower.load("i32", self._pending(block))
        self.lower.store(b.or_(old, mask), self._pending(block))

    def _enter(self, target: int, mask: Mask) -> None:
        """All live lanes go to a block."""
        if target in self.analysis.masked:
            self._add_pending(target, mask.bits)
            self.lower.jump(f"chain{target}")
        else:
            self.lower.jump(f"body{target}")

    def _at(self, index: int) -> None:
        """What follows reads and writes for an instruction, from anywhere."""
        self.lower.present.begin()
        self._set(index)

    def _set(self, index: int) -> None:
        self.lower.index = index
        self.lower.instruction = self.flow.instructions[index]

    def _check_stop(self) -> None:
        lower, b = self.lower, self.lower.builder
        stop = b.emit(f"load volatile i32, ptr {lower.env('stop').ref}", "i32")
        lower.stop_if(stop)

    def _instructions(self, block: int) -> Instruction | None:
        """Emit a block's instructions but a closing jump, wait or exit, which is returned."""
        body = self.flow.blocks[block]
        self.lower.families.clear()
        self.lower.bands.clear()
        self.lower.present.begin()
        self._count_block(block)
        for index in range(body.start, body.end):
            instruction = self.flow.instructions[index]
            self._set(index)
            closing = index == body.end - 1 and (
                instruction.opcode in ("bra", "brx", "exit", "$yield") or is_barrier(instruction))
            if closing:
                if (self.lower.options.counts and instruction.predicate is not None
                        and instruction.mnemonic[0] != "$"):
                    count_lanes(self.lower, {counted_as(instruction): 1}, self.lower.guarded())
                return instruction
            self.emit_instruction(self.lower)
            self.lower.present.next()
        return None

    def _count_block(self, block: int) -> None:
        """Count the executions of a block's unguarded instructions (``Options.counts``)."""
        lower = self.lower
        if not lower.options.counts:
            return
        body = self.flow.blocks[block]
        names = [counted_as(i) for i in self.flow.instructions[body.start:body.end]
                 if i.predicate is None and i.mnemonic[0] != "$"]  # the others are counted where they stand
        work: dict[str, int] = {}
        for name in names:
            work[name] = work.get(name, 0) + 1
        if work:
            count_lanes(lower, work, lower.mask)

    def _leave_live(self, targets: list[tuple[int, Value]]) -> None:
        """Lanes that end are live no more."""
        lower, b = self.lower, self.lower.builder
        for target, part in targets:
            if target == self.flow.exit:
                live = lower.load("i32", Value("%live", "ptr"))
                lower.store(b.and_(live, b.invert(part)), Value("%live", "ptr"))

    def _ways(self, block: int, last: Instruction) -> tuple[int, int]:
        """Where lanes go whose guard holds, and the others; the flow's exit for those that end."""
        body = self.flow.blocks[block]
        targets = [edge.target for edge in body.successors]
        following = block + 1 if block + 1 < len(self.flow.blocks) else self.flow.exit
        if last.opcode == "exit":
            return self.flow.exit, following
        label = last.operands[0]
        assert isinstance(label, Symbol)
        start = self.lower.flat.labels[label.name]
        taken = next((t for t in targets if self.flow.blocks[t].start == start), targets[0])
        return taken, following

    def _listed(self, last: Instruction) -> list[int]:
        """Target blocks of ``brx.idx``, by index."""
        lower = self.lower
        listed = last.operands[1]
        names = lower.flat.targets.get(listed.name) if isinstance(listed, Symbol) else None
        if names is None:
            lower.fail("the second operand is not a .branchtargets list")
        starts = {self.flow.blocks[e.target].start: e.target for e in self.flow.blocks[
            self.analysis.block_of[lower.index]].successors}
        return [starts[lower.flat.labels[name]] for name in names]

    def _divide(self, block: int, last: Instruction, mask: Mask) -> list[tuple[int, Value]]:
        """Targets of a divergent branch, each with the lanes that go there."""
        lower, b = self.lower, self.lower.builder
        if last.opcode == "brx":
            index = lower.read(last.operands[0], "u32", vector=True)
            targets = self._listed(last)
            inside = lower.bits_of(b.icmp("ult", index, b.like(len(targets), index)))
            outside = b.and_(mask.bits, b.invert(inside))
            wrong, on = lower.label("no_target"), lower.label("targets")
            lower.branch(b.icmp("ne", outside, Value("0", "i32")), wrong, on, likely=False)
            lower.place(wrong)
            lower.checked_helper(UNDEFINED, outside, lower.site(), Value(str(BRANCH_INDEX), "i32"))
            lower.jump("stopped")
            lower.place(on)
            found = []
            for number, target in enumerate(targets):
                same = lower.bits_of(b.icmp("eq", index, b.like(number, index)))
                found.append((target, b.and_(mask.bits, same)))
            return found
        taken, other = self._ways(block, last)
        holds = lower.bits_of(lower.guard())
        return [(taken, b.and_(mask.bits, holds)), (other, b.and_(mask.bits, b.invert(holds)))]

    def _arrive(self, point: Point, mask: Mask) -> None:
        """Note lanes at a barrier in the frame."""
        lower, b = self.lower, self.lower.builder
        instruction = lower.instruction
        old = lower.load("i32", self._field(point, WAITING))
        lower.store(b.or_(old, mask.bits), self._field(point, WAITING))
        operands = list(instruction.operands)
        if point.kind in (RED_AND, RED_OR, RED_POPC):
            predicate = lower.read(operands.pop(), "pred")
            operands.pop(0)
            true = b.and_(lower.bits_of(predicate), mask.bits)
            before = lower.load("i32", self._field(point, PREDICATE))
            before = b.and_(before, old)
            lower.store(b.or_(before, true), self._field(point, PREDICATE))
        if len(operands) not in (1, 2):
            lower.fail(f"{len(instruction.operands)} operands")
        number = one_value(self.lower, operands[0], mask)
        expected = one_value(self.lower, operands[1], mask) if len(operands) == 2 else Value("0", "i32")
        lower.store(number, self._field(point, BARRIER))
        lower.store(expected, self._field(point, EXPECTED))

    def _spin(self, point: Point, go: str, park: str) -> None:
        lower, b = self.lower, self.lower.builder
        at = Value(f"%spins{point.number}", "ptr")
        spins = b.add(lower.load("i32", at), Value("1", "i32"))
        again = b.icmp("ult", spins, Value(str(SPINS), "i32"))
        lower.store(b.select(again, spins, Value("0", "i32")), at)
        lower.branch(again, go, park)


def one_value(lower: Lower, operand: Operand, mask: Mask) -> Value:
    """An operand as one i32 for all active lanes; the launch stops if they disagree."""
    b = lower.builder
    value = lower.read(operand, "u32", wide=False)
    shape = lower.operand_shape(operand, "u32")
    if shape.uniform:
        return value
    value = lower.read(operand, "u32", vector=True)
    lane = b.intrinsic("llvm.cttz", "i32", mask.bits, extra=(Value("true", "i1"),))
    first = b.extract(value, lane)
    same = lower.bits_of(b.icmp("eq", value, b.splat(first)))
    differ = b.and_(mask.bits, b.invert(same))
    wrong, on = lower.label("differ"), lower.label("agree")
    lower.branch(b.icmp("ne", differ, Value("0", "i32")), wrong, on, likely=False)
    lower.place(wrong)
    lower.checked_helper(UNDEFINED, differ, lower.site(), Value("5", "i32"))
    lower.jump("stopped")
    lower.place(on)
    return first


def count_lanes(lower: Lower, work: dict[str, int], mask: Mask) -> None:
    """Add the number of active lanes to a counter that stands for some work."""
    b = lower.builder
    number = len(lower.counters)
    lower.counters.append(work)
    at = lower.at(lower.env("counters"), 8 * number)
    if mask.full:
        count = Value("32", "i64")
    else:
        count = b.zext(b.intrinsic("llvm.ctpop", "i32", mask.bits), "i64")
    lower.store(b.add(lower.load("i64", at), count), at)
