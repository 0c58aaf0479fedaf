"""Which registers the analysis has to follow, and where they need a value joined from several definitions."""

from __future__ import annotations

from ptxparse.flow import Flow
from ptxparse.model import Address, Instruction, Symbol
from ptxparse.opcodes import Effect
from ptxparse.usage import Usage, registers_in

FLOATS = frozenset(["f16", "f16x2", "bf16", "bf16x2", "f32", "f32x2", "f64", "tf32"])
# What the transfer functions understand, and loads.
_FOLLOWED = frozenset({
    "mov", "add", "sub", "mul", "mad", "shl", "shr", "and", "or", "xor", "not", "neg", "abs",
    "min", "max", "div", "rem", "cvt", "cvta", "selp", "setp", "bfe", "bfi", "mul24", "mad24",
    "popc", "clz", "ld",
})
_PRIVATE_SPACES = ("shared", "local", "param")
_ADDRESSED = frozenset({Effect.LOAD, Effect.STORE, Effect.ATOMIC, Effect.COPY, Effect.MATRIX_LOAD,
                        Effect.MATRIX_STORE, Effect.DISCARD, Effect.BULK})
_CARRIES_POINTERS = frozenset({"mov", "add", "sub", "mad", "cvta", "selp", "cvt"})


def space_of(instruction: Instruction) -> str:
    """The state space that a memory instruction names: global, shared, ..., or "" for generic addressing."""
    for modifier in instruction.op.modifiers:
        stem = modifier.partition("::")[0]
        if stem in ("global", "shared", "local", "param", "const"):
            return stem
    return ""


class Relevance:
    """``followed`` names registers whose values are tracked; ``joined`` maps a block to the names that need a value
    joined at its start; ``reads`` are the uses of pointers that are more than addresses, to be looked at."""

    def __init__(self, flow: Flow, usage: Usage) -> None:
        self.flow = flow
        self.usage = usage
        self.definitions: dict[str, list[int]] = {}
        for block in flow.order:
            for index in range(flow.blocks[block].start, flow.blocks[block].end):
                for name in usage.writes[index]:
                    self.definitions.setdefault(name, []).append(index)
        self.pointers: set[str] = set()
        self.followed = self._close(self._roots())
        self.joined = self._place_joins()

    def _roots(self) -> set[str]:
        roots: set[str] = set()
        instructions = self.flow.instructions
        for block in self.flow.order:
            for index in range(self.flow.blocks[block].start, self.flow.blocks[block].end):
                instruction = instructions[index]
                if instruction.predicate is not None and instruction.op.opcode in ("bra", "ret", "exit"):
                    roots.add(instruction.predicate.name)
                row = self.usage.rows[index]
                if row is not None and row.effect is Effect.PURE and instruction.op.opcode == "mov":
                    self._note_symbol(index)
                if row is None or row.effect not in _ADDRESSED:
                    continue
                space = space_of(instruction)
                if space in _PRIVATE_SPACES and row.effect is not Effect.BULK and row.effect is not Effect.COPY:
                    if space == "param" and instruction.op.opcode == "ld":
                        self._note_pointer(index)
                    continue
                if not space and instruction.op.opcode == "ld":
                    # Through a generic address, a parameter may be read as well.
                    self._note_pointer(index)
                for operand in instruction.operands:
                    if isinstance(operand, Address):
                        roots.update(registers_in(operand))
                if row.effect is not Effect.LOAD and row.effect is not Effect.STORE:
                    roots.update(self.usage.reads[index])
                if instruction.predicate is not None:
                    roots.add(instruction.predicate.name)
        self._follow_pointers()
        return roots | self.pointers

    def _note_pointer(self, index: int) -> None:
        if self.flow.instructions[index].op.modifiers[-1] in ("u64", "b64", "s64"):
            self.pointers.update(self.usage.writes[index])

    def _note_symbol(self, index: int) -> None:
        """The address of a variable or function is a pointer too."""
        if any(isinstance(operand, Symbol) for operand in self.flow.instructions[index].operands):
            self.pointers.update(self.usage.writes[index])

    def _follow_pointers(self) -> None:
        """Everything a pointer parameter may be copied to, by name."""
        users: dict[str, list[int]] = {}
        for index, instruction in enumerate(self.flow.instructions):
            modifiers = instruction.op.modifiers
            if modifiers and modifiers[-1] not in FLOATS and instruction.op.opcode in _CARRIES_POINTERS:
                for name in self.usage.reads[index]:
                    users.setdefault(name, []).append(index)
        work = list(self.pointers)
        while work:
            for index in users.get(work.pop(), ()):
                for name in self.usage.writes[index]:
                    if name not in self.pointers:
                        self.pointers.add(name)
                        work.append(name)

    def _close(self, roots: set[str]) -> set[str]:
        followed = set(roots)
        work = list(roots)
        while work:
            for index in self.definitions.get(work.pop(), ()):
                instruction = self.flow.instructions[index]
                if instruction.op.opcode not in _FOLLOWED:
                    names: tuple[str, ...] = () if instruction.predicate is None else (instruction.predicate.name,)
                else:
                    names = self.usage.reads[index]
                for name in names:
                    if name not in followed:
                        followed.add(name)
                        work.append(name)
        return followed

    def _place_joins(self) -> dict[int, list[str]]:
        """Blocks where definitions meet (iterated dominance frontiers), for names live across blocks."""
        flow = self.flow
        block_of = {}
        for block in flow.order:
            for index in range(flow.blocks[block].start, flow.blocks[block].end):
                block_of[index] = block
        exposed = self._exposed()
        several = {
            name: {block_of[i] for i in indices}
            for name, indices in self.definitions.items()
            if name in self.followed and name in exposed
        }
        if not several:
            return {}
        frontier = self._frontiers()
        joined: dict[int, list[str]] = {}
        for name, blocks in several.items():
            work = list(blocks)
            placed: set[int] = set()
            while work:
                for target in frontier.get(work.pop(), ()):
                    if target not in placed:
                        placed.add(target)
                        joined.setdefault(target, []).append(name)
                        if target not in blocks:
                            work.append(target)
        return joined

    def _exposed(self) -> set[str]:
        """Names read in some block before that block writes them."""
        exposed: set[str] = set()
        flow = self.flow
        for block in flow.order:
            written: set[str] = set()
            for index in range(flow.blocks[block].start, flow.blocks[block].end):
                instruction = flow.instructions[index]
                for name in self.usage.reads[index]:
                    if name not in written:
                        exposed.add(name)
                for name in self.usage.writes[index]:
                    # A guarded write keeps the old value where the guard fails, so it reads the register too.
                    if instruction.predicate is not None and name not in written:
                        exposed.add(name)
                    written.add(name)
        return exposed

    def _frontiers(self) -> dict[int, set[int]]:
        flow = self.flow
        frontier: dict[int, set[int]] = {}
        for block in flow.order:
            sources_of = [e.source for e in flow.blocks[block].predecessors if e.source in flow.position]
            if len(sources_of) < 2 and block != flow.order[0]:
                continue
            for source in sources_of:
                walk = source
                while walk not in (flow.dominator[block], -1):
                    frontier.setdefault(walk, set()).add(block)
                    walk = flow.dominator[walk]
        return frontier
