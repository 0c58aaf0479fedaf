"""The function of a kernel: warps and blocks, jumps and masks, waiting and going on.

Blocks of the kernel that all live lanes run together become plain code with plain branches. A component of masked
blocks becomes a chain: each block has a pending mask; the chain is walked in order, a block without pending lanes is
skipped, and at the end of a loop the walk goes back to its head while lanes are pending there.

Where lanes wait (barriers, yields), they are noted in the warp's frame. In a chain the walk goes on with the other
lanes; when none is left the registers that waiting lanes need are saved in the frame and the function returns. Called
again, it restores them and walks on from the first point that has lanes to go on.
"""

from __future__ import annotations

from ptxparse.model import Instruction
from softgpu.engine.emit.chains import Chains
from softgpu.engine.emit.lower import ENV, Mask
from softgpu.engine.emit.specials import set_specials
from softgpu.engine.emit.walk import (
    BRANCH_INDEX,
    DONE,
    PARKED,
    STOPPED,
    UNDEFINED,
    WAITING,
    YIELD,
    Point,
)
from softgpu.engine.ir import WARP, Value, lanes
from softgpu.engine.ops.operation import TYPES
from softgpu.engine.special import CLOCKS, canonical, special_type
from softgpu.engine.waiting import read


class FunctionEmitter(Chains):
    """Writes the whole function into ``lower.builder``."""

    def emit(self) -> None:
        """Body of the function; the caller writes its head, the entry lines and the closing brace."""
        lower, b = self.lower, self.lower.builder
        self._lay_out_frame()
        names = self._special_names()
        if self.waits:
            warp = lower.env("warp")
            ctaid = {axis: lower.env(f"ctaid.{axis}") for axis in "xyz"}
            self._start_warp(warp, names, ctaid)
            self._dispatch()
        else:
            self._blocks_and_warps(names)
        for block in self.order:
            if block not in self.analysis.masked:
                self._plain_block(block)
        for number, component in enumerate(self.analysis.components):
            self._chain(component, number)
        lower.place("stopped")
        b.line(f"  ret i32 {STOPPED}")

    def _special_names(self) -> set[str]:
        names = set()
        for index, instruction in enumerate(self.flow.instructions):
            for operand in read(instruction):
                name = canonical(operand)
                if operand not in self.lower.webs.used[index] and name not in CLOCKS and special_type(name):
                    names.add(name)
        return names

    def _start_warp(self, warp: Value, names: set[str], ctaid: dict[str, Value]) -> None:
        """Everything that is the same while a warp runs."""
        lower, b = self.lower, self.lower.builder
        threads = lower.options.threads
        if threads == 0 or threads % WARP:
            count = lower.env("threads") if threads == 0 else Value(str(threads), "i32")
            left = b.sub(count, b.mul(warp, Value("32", "i32")))
            some = b.icmp("ult", left, Value("32", "i32"))
            amount = b.select(some, left, Value("0", "i32"))
            partial = b.sub(b.shl(Value("1", "i32"), amount), Value("1", "i32"))
            self.entry_mask = Mask(b.select(some, partial, Value("-1", "i32")))
        set_specials(lower, names, warp, ctaid)
        if lower.layout.local_bytes:
            stride = b.zext(lower.env("local_stride"), "i64")
            base = b.emit(f"ptrtoint ptr {lower.env('local').ref} to i64", "i64")
            lane = b.vector(list(range(WARP)), "i64")
            value = b.add(b.splat(base), b.mul(b.splat(stride), lane))
            zero = b.zero(value.type)
            b.line(f"  %local_bases = or {value.type} {value.ref}, {zero.ref}")
        for web in lower.webs.webs:
            if web.initial and web.type in TYPES:  # one warp must not see what the one before it left behind
                lower.store_slot(web, b.zero(lower.web_type(web)))
        lower.entry.append("  %live = alloca i32")
        lower.store(self.entry_mask.bits, Value("%live", "ptr"))
        for block in sorted(self.analysis.masked):
            lower.entry.append(f"  %pending{block} = alloca i32")
            lower.store(Value("0", "i32"), self._pending(block))
            if block in self.meetings:
                lower.entry.append(f"  %missing{block} = alloca i32")
                lower.store(Value("0", "i32"), self._missing(block))
        for block in self.together:
            lower.entry += [f"  %freed{block} = alloca i32", f"  %wanted{block} = alloca i32"]
            lower.store(Value("0", "i32"), self._freed(block))
            lower.store(Value("0", "i32"), self._wanted(block))
        for component in self.analysis.components:
            meetings = [block for block in component.chain if block in self.meetings]
            if meetings:
                lower.entry.append(f"  %tried{meetings[0]} = alloca i32")
                lower.store(Value("0", "i32"), Value(f"%tried{meetings[0]}", "ptr"))
        for point in self.points:
            if point.kind == YIELD:
                lower.entry.append(f"  %spins{point.number} = alloca i32")
                lower.store(Value("0", "i32"), Value(f"%spins{point.number}", "ptr"))

    def _blocks_and_warps(self, names: set[str]) -> None:
        """``for block in first..last: for warp in 0..warps`` around the kernel; there is at least one block."""
        lower, b = self.lower, self.lower.builder
        lower.entry += ["  %block_at = alloca i64", "  %warp_at = alloca i32"]
        block_at, warp_at, env = Value("%block_at", "ptr"), Value("%warp_at", "ptr"), Value("%env", "ptr")
        coordinates = {axis: lower.at(env, ENV[f"ctaid.{axis}"][0]) for axis in "xyz"}
        lower.store(Value("%first", "i64"), block_at)
        lower.jump("next_block")
        lower.place("next_block")
        if lower.layout.uses_shared:
            size = b.zext(lower.env("shared_bytes"), "i64")
            b.declarations["llvm.memset.p0.i64"] = "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)"
            b.line(f"  call void @llvm.memset.p0.i64(ptr align 64 {lower.env('shared').ref}, i8 0, i64 {size.ref}, "
                   "i1 false)")
        ctaid = {axis: lower.load("i32", coordinates[axis]) for axis in "xyz"}
        lower.store(Value("0", "i32"), warp_at)
        lower.jump("next_warp")
        lower.place("next_warp")
        warp = lower.load("i32", warp_at)
        lower.store(warp, lower.at(env, ENV["warp"][0]))
        self._start_warp(warp, names, ctaid)
        self._enter(self.order[0], self.entry_mask)
        lower.place("warp_done")
        threads = lower.options.threads
        warps = Value(str(-(-threads // WARP)), "i32") if threads else lower.env("warps")
        following = b.add(warp, Value("1", "i32"))
        lower.store(following, warp_at)
        lower.branch(b.icmp("ult", following, warps), "next_warp", "block_done")
        lower.place("block_done")
        carry = Value("1", "i32")
        for axis in "xyz":
            moved = b.add(ctaid[axis], carry)
            over = b.icmp("eq", moved, lower.env(f"grid.{axis}"))
            lower.store(b.select(over, Value("0", "i32"), moved), coordinates[axis])
            carry = b.zext(over, "i32")
        number = b.add(lower.load("i64", block_at), Value("1", "i64"))
        lower.store(number, block_at)
        lower.branch(b.icmp("ult", number, Value("%last", "i64")), "next_block", "finished")
        lower.place("finished")
        b.line(f"  ret i32 {DONE}")

    def _plain_block(self, block: int) -> None:
        lower = self.lower
        lower.place(f"body{block}")
        lower.mask = self.entry_mask
        self.stubs = []
        body = self.flow.blocks[block]
        last = self._instructions(block)
        mask = self.entry_mask
        if last is None:
            self._all_go(block, [edge.target for edge in body.successors], mask)
        elif block in self.point_of:
            self._suspend_all(self.point_of[block])
        elif block in self.analysis.divergent:
            targets = self._divide(block, last, mask)
            for target, part in targets:
                if target in self.analysis.masked:
                    self._add_pending(target, part)
            masked = [t for t, _ in targets if t in self.analysis.masked]
            if any(t == self.flow.exit for t, _ in targets):
                self._leave_live(targets)
            component = self.analysis.component_of[masked[0]]
            first = min(masked, key=component.chain.index)
            lower.jump(f"chain{first}")
        else:
            self._uniform_branch(block, last, mask)
        self._place_stubs()

    def _stub(self, source: int, target: int, mask: Mask) -> str:
        """A label from which all live lanes go to a block; back edges look at the stop flag."""
        label = self.lower.label("edge")
        self.stubs.append((label, source, target, mask))
        return label

    def _place_stubs(self) -> None:
        lower = self.lower
        stubs, self.stubs = self.stubs, []
        for label, source, target, mask in stubs:
            lower.place(label)
            if target == self.flow.exit:
                lower.jump(self.done_label)
                continue
            if self.position[target] <= self.position[source]:
                self._check_stop()
            self._enter(target, mask)

    def _all_go(self, block: int, targets: list[int], mask: Mask) -> None:
        lower = self.lower
        if not targets:
            lower.jump(self.done_label)
        elif self.position[targets[0]] <= self.position[block]:
            self._check_stop()
            self._enter(targets[0], mask)
        else:
            self._enter(targets[0], mask)

    def _uniform_branch(self, block: int, last: Instruction, mask: Mask) -> None:
        """All lanes go the same way."""
        lower, b = self.lower, self.lower.builder
        body = self.flow.blocks[block]
        if last.opcode == "brx":
            index = lower.read(last.operands[0], "u32")
            targets = self._listed(last)
            labels = {t: self._stub(block, t, mask) for t in dict.fromkeys(targets)}
            cases = " ".join([f"i32 {i}, label %{labels[t]}" for i, t in enumerate(targets)])
            wrong = lower.label("no_target")
            b.line(f"  switch i32 {index.ref}, label %{wrong} [ {cases} ]")
            lower.place(wrong)
            lower.checked_helper(UNDEFINED, mask.bits, lower.site(), Value(str(BRANCH_INDEX), "i32"))
            lower.jump("stopped")
            return
        if last.predicate is None:
            self._all_go(block, [edge.target for edge in body.successors] if last.opcode == "bra" else [], mask)
            return
        taken, other = self._ways(block, last)
        if taken == other:
            self._all_go(block, [taken], mask)
            return
        guard = lower.guard()
        if lanes(guard.type):
            guard = b.extract(guard, 0)
        lower.branch(guard, self._stub(block, taken, mask), self._stub(block, other, mask))

    def _suspend_all(self, point: Point) -> None:
        """All live lanes stand at a barrier, or at a yield after enough rounds."""
        lower, b = self.lower, self.lower.builder
        if point.kind == YIELD:
            self._check_stop()
            go, park = lower.label("spin"), lower.label("yield")
            self._spin(point, go, park)
            lower.place(go)
            self._enter(point.target, self.entry_mask)
            lower.place(park)
            lower.store(self.entry_mask.bits, self._field(point, WAITING))
        else:
            self._arrive(point, self.entry_mask)
        self._save(self._needed_at(point))
        b.line(f"  ret i32 {PARKED}")
