"""Components of masked blocks as chains that are walked until no lane is left in them."""

from __future__ import annotations

from softgpu.engine.emit.frames import Frames
from softgpu.engine.emit.lower import Mask
from softgpu.engine.emit.walk import LIVE_AT, MISSED_MEETING, PARKED, UNDEFINED, WAITING, YIELD, Point
from softgpu.engine.emit.warp import members
from softgpu.engine.ir import Value, lanes
from softgpu.engine.regions import Component


class Chains(Frames):
    """The parts of the function in which lanes may have parted ways."""

    def _chain(self, component: Component, number: int) -> None:
        for place, block in enumerate(component.chain):
            self._masked_block(component, place, block, number)
        self._chain_end(component, number)

    def _next(self, component: Component, place: int, number: int) -> None:
        """From the end of a block to the next of the chain, or back to the head of a loop that has lanes."""
        lower, b = self.lower, self.lower.builder
        for header in component.loop_ends.get(place, ()):
            lanes_back = lower.load("i32", self._pending(header))
            back, on = lower.label("back"), lower.label("left")
            lower.branch(b.icmp("ne", lanes_back, Value("0", "i32")), back, on)
            lower.place(back)
            self._check_stop()
            lower.jump(f"chain{header}")
            lower.place(on)
        following = place + 1
        lower.jump(f"chain{component.chain[following]}" if following < len(component.chain) else f"chain_end{number}")

    def _masked_block(self, component: Component, place: int, block: int, number: int) -> None:
        lower, b = self.lower, self.lower.builder
        lower.place(f"chain{block}")
        pending = lower.load("i32", self._pending(block))
        lower.store(Value("0", "i32"), self._pending(block))
        skip, run = f"skip{block}", f"masked{block}"
        if block in self.meetings:
            pending = self._meet(block, pending)
        lower.branch(b.icmp("eq", pending, Value("0", "i32")), skip, run)
        lower.place(run)
        mask = Mask(pending)
        lower.mask = mask
        body = self.flow.blocks[block]
        last = self._instructions(block)
        targets: list[tuple[int, Value]]
        if last is None:
            targets = [(edge.target, mask.bits) for edge in body.successors] or [(self.flow.exit, mask.bits)]
        elif block in self.point_of:
            targets = self._wait_masked(self.point_of[block], mask)
        elif last.opcode == "bra" and last.predicate is None:
            targets = [(body.successors[0].target, mask.bits)]
        elif last.opcode == "exit" and last.predicate is None:
            targets = [(self.flow.exit, mask.bits)]
        else:
            targets = self._divide(block, last, mask)
        for target, part in targets:
            if target in self.analysis.masked:
                self._add_pending(target, part)
        self._leave_live(targets)
        lower.jump(skip)
        lower.place(skip)
        self._next(component, place, number)

    def _wait_masked(self, point: Point, mask: Mask) -> list[tuple[int, Value]]:
        lower, b = self.lower, self.lower.builder
        if point.kind != YIELD:
            self._arrive(point, mask)
            return []
        go, park, on = lower.label("spin"), lower.label("yield"), lower.label("turn")
        self._spin(point, go, park)
        lower.place(go)
        self._add_pending(point.target, mask.bits)
        lower.jump(on)
        lower.place(park)
        old = lower.load("i32", self._field(point, WAITING))
        lower.store(b.or_(old, mask.bits), self._field(point, WAITING))
        lower.jump(on)
        lower.place(on)
        return []

    def _meet(self, block: int, pending: Value) -> Value:
        """Lanes that can go on at a warp-synchronous instruction: those all of whose members are here."""
        lower, b = self.lower, self.lower.builder
        here = b.or_(pending, lower.load("i32", self._missing(block)))
        self._at(self.flow.blocks[block].start)
        lower.mask = Mask(here)
        needed = members(lower)
        live = lower.load("i32", Value("%live", "ptr"))
        if block in self.together and not lanes(needed.type):
            return self._meet_anywhere(block, here, needed, live)
        absent = b.and_(live, b.invert(here))
        if lanes(needed.type):
            misses = lower.bits_of(b.icmp("ne", b.and_(needed, b.splat(absent)), b.zero(needed.type)))
        else:
            misses = self._if_any(b.and_(needed, absent))
        lower.store(b.and_(here, misses), self._missing(block))
        return b.and_(here, b.invert(misses))

    def _if_any(self, mask: Value) -> Value:
        """All ones if a mask has lanes, else none."""
        b = self.lower.builder
        return b.emit(f"sext i1 {b.icmp('ne', mask, Value('0', 'i32')).ref} to i32", "i32")

    def _meet_anywhere(self, block: int, here: Value, needed: Value, live: Value) -> Value:
        """At ``bar.warp.sync`` lanes also meet those that wait at another one with the same mask, and free them."""
        lower, b = self.lower, self.lower.builder
        freed = lower.load("i32", self._freed(block))
        lower.store(Value("0", "i32"), self._freed(block))
        waiting: list[tuple[int, Value]] = []
        come = here
        for other in self.together[block]:
            same = b.icmp("eq", lower.load("i32", self._wanted(other)), needed)
            there = b.select(same, lower.load("i32", self._missing(other)), Value("0", "i32"))
            waiting.append((other, there))
            come = b.or_(come, there)
        misses = self._if_any(b.and_(needed, b.and_(live, b.invert(come))))
        misses = b.or_(misses, b.invert(self._if_any(here)))  # nobody here: nobody is freed by coming here
        for other, there in waiting:
            let = b.and_(there, b.invert(misses))
            lower.store(b.or_(lower.load("i32", self._freed(other)), let), self._freed(other))
            rest = b.and_(lower.load("i32", self._missing(other)), b.invert(let))
            lower.store(rest, self._missing(other))
        lower.store(b.and_(here, misses), self._missing(block))
        lower.store(needed, self._wanted(block))
        return b.or_(b.and_(here, b.invert(misses)), freed)

    def _chain_end(self, component: Component, number: int) -> None:
        """No lane is pending in the chain: go to the join, end, or wait."""
        lower, b = self.lower, self.lower.builder
        lower.place(f"chain_end{number}")
        if component.tangled:
            left = Value("0", "i32")
            for block in component.chain:
                left = b.or_(left, lower.load("i32", self._pending(block)))
            again, on = lower.label("again"), lower.label("settled")
            lower.branch(b.icmp("ne", left, Value("0", "i32")), again, on)
            lower.place(again)
            self._check_stop()
            lower.jump(f"chain{component.chain[0]}")
            lower.place(on)
        points = [self.point_of[block] for block in component.chain if block in self.point_of]
        meetings = [block for block in component.chain if block in self.meetings]
        if meetings:
            self._retry_meetings(component, meetings, points)
        if points:
            left = self._waiting(points)
            park, on = lower.label("park"), lower.label("none_waits")
            lower.branch(b.icmp("ne", left, Value("0", "i32")), park, on)
            lower.place(park)
            live = lower.load("i32", Value("%live", "ptr"))
            lower.store(live, lower.at(Value("%frame", "ptr"), LIVE_AT))
            for block in meetings:
                missing = lower.load("i32", self._missing(block))
                lower.store(missing, lower.at(Value("%frame", "ptr"), self.missing_at[block]))
            needed: set[int] = set()
            for point in points:
                needed |= self._needed_at(point)
            self._save(needed)
            b.line(f"  ret i32 {PARKED}")
            lower.place(on)
        if component.join == self.flow.exit:
            lower.jump(self.done_label)
        else:
            lower.jump(f"body{component.join}")

    def _waiting(self, points: list[Point]) -> Value:
        """Lanes that wait at any of some points."""
        lower, b = self.lower, self.lower.builder
        found = Value("0", "i32")
        for point in points:
            found = b.or_(found, lower.load("i32", self._field(point, WAITING)))
        return found

    def _retry_meetings(self, component: Component, meetings: list[int], points: list[Point]) -> None:
        """Lanes still missing others: those may have ended meanwhile. Else they will never come, unless they wait."""
        lower, b = self.lower, self.lower.builder
        self._let_freed_go(component, meetings)
        left = Value("0", "i32")
        for block in meetings:
            left = b.or_(left, lower.load("i32", self._missing(block)))
        stuck, on = lower.label("missing"), lower.label("all_met")
        lower.branch(b.icmp("ne", left, Value("0", "i32")), stuck, on, likely=False)
        lower.place(stuck)
        name = f"%tried{meetings[0]}"
        live = lower.load("i32", Value("%live", "ptr"))
        tried = lower.load("i32", Value(name, "ptr"))
        same = b.icmp("eq", tried, live)
        again, lost = lower.label("again"), lower.label("lost")
        lower.branch(same, lost, again)
        lower.place(again)
        lower.store(live, Value(name, "ptr"))
        for block in meetings:
            self._add_pending(block, lower.load("i32", self._missing(block)))
        first = min(component.chain.index(block) for block in meetings)
        lower.jump(f"chain{component.chain[first]}")
        lower.place(lost)
        lower.store(Value("0", "i32"), Value(name, "ptr"))
        if points:
            never = lower.label("never")
            lower.branch(b.icmp("ne", self._waiting(points), Value("0", "i32")), on, never)
            lower.place(never)
        self._at(self.flow.blocks[meetings[0]].start)
        lower.checked_helper(UNDEFINED, left, lower.site(), Value(str(MISSED_MEETING), "i32"))
        lower.jump("stopped")
        lower.place(on)

    def _let_freed_go(self, component: Component, meetings: list[int]) -> None:
        """Lanes that others met from elsewhere go on where they waited."""
        lower, b = self.lower, self.lower.builder
        waited = [block for block in meetings if block in self.together]
        if not waited:
            return
        freed = Value("0", "i32")
        for block in waited:
            freed = b.or_(freed, lower.load("i32", self._freed(block)))
        back, on = lower.label("freed"), lower.label("none_freed")
        lower.branch(b.icmp("ne", freed, Value("0", "i32")), back, on)
        lower.place(back)
        lower.jump(f"chain{component.chain[min(component.chain.index(block) for block in waited)]}")
        lower.place(on)
