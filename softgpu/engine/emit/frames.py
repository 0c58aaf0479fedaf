"""The frame of a warp that can be suspended: what is kept there, when it is stored, and how the warp goes on.

Webs with one definition are stored when they are defined; others when the warp is suspended while they are live.
"""

from __future__ import annotations

from softgpu.engine.emit.lower import Mask
from softgpu.engine.emit.walk import (
    DONE,
    GO,
    LIVE_AT,
    POINT_BYTES,
    POINTS_AT,
    RED_AND,
    RED_OR,
    RED_POPC,
    RESULT,
    RESUME_AT,
    Point,
    Walk,
)
from softgpu.engine.ir import WARP, Value, bits, lanes
from softgpu.engine.regions import Component
from softgpu.engine.webs import Web


class Frames(Walk):
    """The parts of the function that deal with the frame."""

    def _lay_out_frame(self) -> None:
        """Offsets of saved webs and of the masks of meetings in masked components that can be suspended."""
        if not self.waits:
            return
        needed: set[int] = set()
        for point in self.points:
            needed |= self._needed_at(point)
        end = POINTS_AT + POINT_BYTES * len(self.points)
        self.missing_at: dict[int, int] = {}
        for block in sorted(self.meetings):
            self.missing_at[block] = end
            end += 4
        webs = [web for web in self.lower.webs.webs if web.number in needed]
        for vector in (True, False):
            for web in webs:
                if self.lower.scalar_web(web) == vector:
                    continue
                size = _stored_bytes(self.lower.web_type(web))
                align = 64 if vector else 8
                end = -(-end // align) * align
                if self._stays_in_frame(web):
                    self.lower.homes[web.number] = end
                    self.lower.crossed[web.number] = self._crossed(web)
                else:
                    self.saved[web.number] = end
                end += size
        self.frame_bytes = -(-end // 64) * 64

    def _needed_at(self, point: Point) -> set[int]:
        """Webs that lanes waiting at a point may still read."""
        live = self.lower.webs.live_in
        component = self.analysis.component_of.get(point.block)
        if component is None:
            return live[point.target]
        found: set[int] = set()
        for block in component.chain:
            if block in self.point_of:
                found |= live[self.point_of[block].target]
            if block in self.meetings:
                found |= live[block]
        return found

    def _save(self, needed: set[int], clean: set[int] | None = None) -> None:
        """Store webs in the frame, but those that are known to be there."""
        lower = self.lower
        for web in lower.webs.webs:
            if web.number in needed and web.number in self.saved and not (clean and web.number in clean):
                lower.save(lower.load_slot(web), self.saved[web.number])

    def _restore(self, needed: set[int]) -> None:
        lower = self.lower
        for web in lower.webs.webs:
            if web.number in needed and web.number in self.saved:
                lower.store_slot(web, lower.restored(lower.web_type(web), self.saved[web.number]))

    def _stays_in_frame(self, web: Web) -> bool:
        """Whether a web is stored when it is defined: it has one definition, which writes all of it."""
        if len(web.definitions) != 1 or web.initial:
            return False
        index = web.definitions[0]
        return self.flow.instructions[index].predicate is None and (index, web.number) not in self.analysis.blended

    def _crossed(self, web: Web) -> set[int]:
        """Blocks that the web's value may reach over a wait point."""
        start = self.analysis.block_of[web.definitions[0]]
        crossed: set[int] = set()
        seen: set[tuple[int, bool]] = set()
        work = [(start, False)]
        while work:
            block, behind = work.pop()
            component = self.analysis.component_of.get(block)
            if block in self.meetings and component is not None and any(b in self.point_of for b in component.chain):
                behind = True
            if (block, behind) in seen:
                continue
            seen.add((block, behind))
            if behind:
                crossed.add(block)
            after = behind or block in self.point_of
            for edge in self.flow.blocks[block].successors:
                if edge.target in web.live_in:
                    work.append((edge.target, after))
        return crossed

    def _dispatch(self) -> None:
        """At entry: the start of the kernel, or the point at which it goes on."""
        lower, b = self.lower, self.lower.builder
        frame = Value("%frame", "ptr")
        resume = lower.load("i32", lower.at(frame, RESUME_AT))
        cases = " ".join([f"i32 {p.number + 1}, label %resume{p.number}" for p in self.points])
        b.line(f"  switch i32 {resume.ref}, label %begin [ {cases} ]")
        lower.place("begin")
        self._enter(self.order[0], self.entry_mask)
        for point in self.points:
            lower.place(f"resume{point.number}")
            component = self.analysis.component_of.get(point.block)
            self._restore(self._needed_at(point))
            if component is None:
                lower.store(Value("0", "i32"), self._field(point, GO))
                lower.mask = self.entry_mask
                self._result(point)
                self._enter(point.target, self.entry_mask)
                continue
            lower.store(lower.load("i32", lower.at(frame, LIVE_AT)), Value("%live", "ptr"))
            first: int | None = None
            for block in component.chain:
                if block in self.meetings:
                    missing = lower.load("i32", lower.at(frame, self.missing_at[block]))
                    lower.store(missing, self._missing(block))
                    self._add_pending(block, missing)
                other = self.point_of.get(block)
                if other is None:
                    continue
                go = lower.load("i32", self._field(other, GO))
                lower.store(Value("0", "i32"), self._field(other, GO))
                lower.mask = Mask(go)
                self._result(other)
                self._add_pending(other.target, go)
            starts = [self.place_of(component, p.target) for p in self.points if p.block in component.chain]
            starts += [self.place_of(component, m) for m in component.chain if m in self.meetings]
            first = min(starts)
            lower.jump(f"chain{component.chain[first]}")
        lower.place("warp_done")
        self._end_warp()

    def place_of(self, component: Component, block: int) -> int:
        """Position of a block in its chain."""
        return component.chain.index(block)

    def _end_warp(self) -> None:
        lower, b = self.lower, self.lower.builder
        lower.store(Value("0", "i32"), lower.at(Value("%frame", "ptr"), LIVE_AT))
        b.line(f"  ret i32 {DONE}")

    def _result(self, point: Point) -> None:
        """The result of ``bar.red``, for the lanes in ``lower.mask``."""
        if point.kind not in (RED_AND, RED_OR, RED_POPC):
            return
        lower, b = self.lower, self.lower.builder
        index = self.flow.blocks[point.block].end - 1
        self._at(index)
        value = lower.load("i32", self._field(point, RESULT))
        if point.kind == RED_POPC:
            lower.write(lower.instruction.operands[0], "u32", value)
        else:
            lower.write(lower.instruction.operands[0], "pred", b.icmp("ne", value, Value("0", "i32")))


def _stored_bytes(type_: str) -> int:
    if type_ == f"<{WARP} x i1>":
        return 4
    if type_ == "i1":
        return 1
    return max(lanes(type_), 1) * bits(type_) // 8
