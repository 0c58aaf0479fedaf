"""One walk over a kernel in dominator order: the value of every followed register, every access with its address.

Where definitions meet, a loop header gets a *phi* atom, to be defined by ``loops`` once the whole loop was seen; any
other block gets the alternatives with the conditions of the ways they come from. Conditions of branches that dominate
a block hold in it; they are kept with the block.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ptxparse.flow import Edge, Flow
from ptxparse.inline import Body
from ptxparse.model import (
    TYPE_BYTES,
    Address,
    FloatImmediate,
    Immediate,
    Instruction,
    Negated,
    Operand,
    ParameterSlot,
    Register,
    Symbol,
    Vector,
)
from ptxparse.opcodes import SPECIAL_REGISTERS, Effect, Source, accessed_bytes
from ptxparse.relevance import FLOATS, Relevance, space_of
from ptxparse.transfer import Alternative, alternatives, evaluate, select, width_of
from ptxparse.usage import Usage, registers_in
from ptxparse.values import INFINITY, ONE, Graph, Sum, add, constant, constant_of, reduce

MOST_ALTERNATIVES = 8
MOST_PARAMETER_WORDS = 64
MOST_CONDITIONS = 32
MOST_ADDENDS = 256
Condition = tuple[Sum, bool]


@dataclass(slots=True)
class Phi:
    """A value joined at a loop header: ``entry`` from outside, ``back`` from each latch."""

    atom: int
    name: str
    block: int
    width: int
    entry: list[tuple[Edge, Sum]] = field(default_factory=list)
    back: list[Sum] = field(default_factory=list)


@dataclass(slots=True)
class RawAccess:
    """A memory instruction as met: where, and its symbolic address. ``environment`` holds the values of its registers,
    for instructions whose other operands matter (copies, matrices)."""

    index: int
    instruction: Instruction
    block: int
    address: Sum
    space: str
    guard: Condition | None
    environment: dict[str, Sum]


class Walk:
    """Runs at once; afterwards ``accesses``, ``phis``, ``conditions`` and ``guards`` hold what was found."""

    def __init__(self, body: Body, flow: Flow, usage: Usage, slots: list[ParameterSlot]) -> None:
        self.body = body
        self.flow = flow
        self.graph = Graph()
        self.usage = usage
        self.relevance = Relevance(flow, usage)
        self.slots = {slot.name: slot for slot in slots}
        self.parameter_bytes = max((slot.offset + slot.size for slot in slots), default=0)
        self.environment: dict[str, Sum] = {}
        self.undo: list[tuple[str, Sum | None]] = []
        self.conditions: dict[int, list[Condition]] = {}
        self.guards: dict[int, Sum] = {}
        self.phis: list[Phi] = []
        self.incoming: dict[tuple[int, str], list[tuple[Edge, Sum]]] = {}
        self.accesses: list[RawAccess] = []
        self.pointer_uses: list[tuple[int, int, Sum]] = []
        self.partial_reads: list[tuple[int, int, int]] = []
        self.guarded: dict[int, Condition] = {}
        self.loop_of_atom: dict[int, int] = {}
        self._block = 0
        self._run()

    def _run(self) -> None:
        flow = self.flow
        if not flow.order:
            return
        stack = [(flow.order[0], -1)]
        while stack:
            block, mark = stack.pop()
            if mark >= 0:
                while len(self.undo) > mark:
                    name, old = self.undo.pop()
                    if old is None:
                        del self.environment[name]
                    else:
                        self.environment[name] = old
                continue
            stack.append((block, len(self.undo)))
            self._visit(block)
            stack.extend((child, -1) for child in reversed(flow.children[block]))

    def _visit(self, block: int) -> None:
        flow = self.flow
        self._block = block
        atoms_before = len(self.graph.nodes)
        self._enter(block)
        for index in range(flow.blocks[block].start, flow.blocks[block].end):
            self._instruction(index)
        last = flow.blocks[block].end - 1
        if last >= flow.blocks[block].start and flow.instructions[last].predicate is not None:
            self.guards[block] = self._read(flow.instructions[last].predicate)
        for edge in flow.blocks[block].successors:
            for name in self.relevance.joined.get(edge.target, ()):
                value = self.environment.get(name)
                if value is None:
                    value = self._unknown(name)
                self.incoming.setdefault((edge.target, name), []).append((edge, value))
        loop = flow.loop_of[block]
        for atom in range(atoms_before, len(self.graph.nodes)):
            self.loop_of_atom[atom] = loop

    def _enter(self, block: int) -> None:
        flow = self.flow
        entries = [e for e in flow.blocks[block].predecessors
                   if e.source in flow.position and not flow.dominates(block, e.source)]
        found: list[Condition] = []
        # The condition of a loop's only exit says nothing: whatever comes after the loop came that way.
        if len(entries) == 1 and entries[0].source in self.guards and not self._is_only_exit(entries[0]):
            found.append((self.guards[entries[0].source], entries[0].taken))
        self.conditions[block] = found
        is_header = flow.loop_of[block] != -1 and flow.loops[flow.loop_of[block]].header == block
        for name in self.relevance.joined.get(block, ()):
            incoming = self.incoming.setdefault((block, name), [])
            if block in flow.irreducible:
                self._write(name, self._unknown(name))
            elif is_header:
                atom = self.graph.atom(("phi", block, name), -INFINITY, INFINITY, False)
                phi = Phi(atom, name, block, self._width(name), incoming)
                self.phis.append(phi)
                self._write(name, (((atom,), 1),))
            elif incoming:
                self._write(name, self.join(block, incoming) or self._unknown(name))

    def _is_only_exit(self, edge: Edge) -> bool:
        if edge.guard is None:
            return True
        loops = self.flow.loops
        return any(
            edge.target not in loops[number].blocks and len(loops[number].exits) == 1
            for number in self.flow.loops_around(edge.source)
        )

    def join(self, block: int, incoming: list[tuple[Edge, Sum]]) -> Sum | None:
        """The value that comes over one of several edges; None when there are too many."""
        if all(value == incoming[0][1] for _, value in incoming):
            return incoming[0][1]
        by_value: dict[Sum, list[Edge]] = {}
        for edge, value in incoming:
            by_value.setdefault(value, []).append(edge)
        if len(by_value) > MOST_ALTERNATIVES:
            return None
        options: list[Alternative] = []
        for value, edges in by_value.items():
            guards = tuple(self.path_conditions(edges[0], self.flow.dominator[block])) if len(edges) == 1 else ()
            options.append((value, guards))
        return alternatives(self.graph, tuple(options))

    def path_conditions(self, edge: Edge, top: int) -> list[Condition]:
        """Conditions known on an edge beyond those that hold in ``top``, a dominator of its source."""
        found: list[Condition] = []
        if edge.guard is not None and edge.source in self.guards:
            found.append((self.guards[edge.source], edge.taken))
        walk = edge.source
        while walk not in (top, -1) and len(found) < MOST_CONDITIONS:
            found += self.conditions[walk]
            walk = self.flow.dominator[walk]
        return found

    def conditions_at(self, block: int) -> tuple[list[Condition], bool]:
        """Conditions that hold whenever ``block`` runs, nearest first, and whether those are all."""
        found: list[Condition] = []
        while block != -1:
            if len(found) >= MOST_CONDITIONS:
                return found, False
            found += self.conditions[block]
            block = self.flow.dominator[block]
        return found, True

    def _width(self, name: str) -> int:
        return width_of(self.body.register_type(name) or "b64") or 64

    def _unknown(self, name: str, why: str = "value") -> Sum:
        return self._fresh(self._width(name), why)

    def _fresh(self, width: int, why: str) -> Sum:
        high = (1 << width) - 1
        return self.graph.leaf(("unknown", len(self.graph.nodes), 0, high, why), 0, high)

    def _write(self, name: str, value: Sum) -> None:
        self.undo.append((name, self.environment.get(name)))
        self.environment[name] = value

    def _read(self, register: Operand | None) -> Sum:
        """Value of an operand; a fresh unknown where nothing is known."""
        if isinstance(register, Register):
            value = self.environment.get(register.name)
            if value is not None:
                return value
            special = self._special(register.name)
            if special is None:
                special = self._unknown(register.name)
                self._write(register.name, special)
            return special
        if isinstance(register, Immediate):
            number = register.value
            return constant(number - (1 << 64) if number >= 1 << 63 else number)
        if isinstance(register, Negated):
            return add(ONE, self._read(register.operand), -1)
        if isinstance(register, Symbol):
            return self._symbol(register)
        if isinstance(register, FloatImmediate) and register.width == 32:
            return constant(register.bits)
        if isinstance(register, Vector) and register.items:
            return self._pack(register)
        return self._fresh(64, "operand")

    def _symbol(self, symbol: Symbol) -> Sum:
        # Variables lie below 2^63 wherever a driver puts them; nothing else is assumed of their addresses.
        return add(self.graph.leaf(("symbol", symbol.name), 0, (1 << 63) - 1), constant(symbol.offset))

    def _pack(self, vector: Vector, bits: int = 0) -> Sum:
        total: Sum = ()
        shift = 0
        for item in vector.items:
            width = bits // len(vector.items) or (self._width(item.name) if isinstance(item, Register) else 32)
            total = add(total, self.graph.wrap(self._read(item), width, False), 1 << shift)
            shift += width
        return total

    def _special(self, name: str) -> Sum | None:
        graph = self.graph
        register = SPECIAL_REGISTERS.get(name)
        if register is None:
            return None
        stem, _, axis = name[1:].partition(".")
        if stem in ("tid", "ctaid", "ntid", "nctaid") and axis in ("x", "y", "z"):
            return graph.leaf((stem, axis), register.lower, register.upper)
        if stem in ("tid", "ctaid") and axis == "w":
            return constant(0)
        if name == "%laneid":
            return graph.low_bits(self._linear_thread(), 5)
        if name == "%dynamic_smem_size":
            return graph.leaf(("shared_size",), 0, (1 << 31) - 1)
        why = "environment" if register.kind is Source.ENVIRONMENT else "special"
        return graph.leaf(("unknown", len(graph.nodes), register.lower, register.upper, why),
                          register.lower, register.upper)

    def _linear_thread(self) -> Sum:
        x, y, z = (self._read(Register(f"%tid.{axis}")) for axis in "xyz")
        width, height = (self._read(Register(f"%ntid.{axis}")) for axis in "xy")
        graph = self.graph
        return add(x, graph.multiply(width, add(y, graph.multiply(height, z))))

    def _instruction(self, index: int) -> None:
        instruction = self.flow.instructions[index]
        if instruction.predicate is not None:
            self.guarded[index] = (self._read(instruction.predicate), not instruction.negated)
        address = None
        row = self.usage.rows[index]
        if row is not None and row.effect is not Effect.PURE:
            for operand in instruction.operands:
                if type(operand) is Address:
                    address = self._address(operand)
            if address is not None:
                self._access(index, instruction, address)
                if row.effect is Effect.LOAD:
                    self._note_partial_read(instruction, address)
        if not self.relevance.pointers.isdisjoint(self.usage.reads[index]):
            self._look_for_escapes(index)
        followed = self.relevance.followed
        written = [name for name in self.usage.writes[index] if name in followed]
        if not written:
            return
        values = self._results(instruction, address)
        guard = None if instruction.predicate is None else self._read(instruction.predicate)
        if guard is not None and instruction.negated:
            guard = add(ONE, guard, -1)
        for name in written:
            value = values.get(name)
            if value is None:
                value = self._unknown(name)
            if guard is not None:
                old = self.environment.get(name)
                value = select(self.graph, guard, value, self._unknown(name) if old is None else old)
            self._write(name, value)

    def _address(self, address: Address) -> Sum:
        return add(self._read(address.base), constant(address.offset))

    def _access(self, index: int, instruction: Instruction, address: Sum) -> None:
        space = space_of(instruction)
        if space in ("shared", "local") and instruction.op.opcode != "cp":
            return
        guard = None
        if instruction.predicate is not None:
            guard = (self._read(instruction.predicate), not instruction.negated)
        environment: dict[str, Sum] = {}
        if instruction.op.opcode not in ("ld", "st", "atom", "red"):
            names = {name for operand in instruction.operands for name in registers_in(operand)}
            environment = {name: self._read(Register(name)) for name in names if name in self.relevance.followed}
        self.accesses.append(RawAccess(index, instruction, self._block, address, space, guard, environment))

    def _look_for_escapes(self, index: int) -> None:
        """Pointers in places other than addresses and copies are kept for a look at what they hold (``escapes``)."""
        instruction = self.flow.instructions[index]
        row = self.usage.rows[index]
        first_source = 0 if row is None else row.destinations
        for position, operand in enumerate(instruction.operands):
            if position < first_source or isinstance(operand, Address) or self._carries(instruction, position):
                continue
            for name in registers_in(operand):
                value = self.environment.get(name) if name in self.relevance.pointers else None
                if value is not None:
                    self.pointer_uses.append((index, self._block, value))

    def _carries(self, instruction: Instruction, position: int) -> bool:
        """Whether a pointer in this operand is merely copied or moved along, so that its result is a pointer again."""
        op = instruction.op
        target = instruction.operands[0]
        if not isinstance(target, Register) or target.name in self.body.lost:
            return False
        if op.opcode == "cvt":
            return len(op.modifiers) == 2 and all(m in ("u64", "s64", "b64") for m in op.modifiers)
        if op.opcode == "mad" and "wide" in op.modifiers:
            return position == 3
        whole = op.modifiers[-1:] in (("u64",), ("s64",), ("b64",))
        return whole and position in _COPYING_OPERANDS.get(op.opcode, ())

    def _results(self, instruction: Instruction, address: Sum | None) -> dict[str, Sum]:
        op = instruction.op
        operands = instruction.operands
        if op.opcode in ("ld", "ldu"):
            return self._load(instruction, address)
        if len(operands) < 2 or not op.modifiers:
            return {}
        if op.opcode == "mov" and isinstance(operands[0], Vector):
            return self._unpack(operands[0], self._read(operands[1]), width_of(op.modifiers[-1]))
        if op.opcode == "mov" and isinstance(operands[0], Register) and isinstance(operands[1], Vector):
            return {operands[0].name: self._pack(operands[1], width_of(op.modifiers[-1]))}
        if op.opcode == "setp":
            return self._set_predicates(instruction)
        floating = op.modifiers[-1:] and op.modifiers[-1] in FLOATS and op.opcode != "mov"
        if not isinstance(operands[0], Register) or floating:
            return {}
        sources = [self._read(o) for o in operands[1:]]
        if op.modifiers[-1] == "pred":
            # Any number but zero is true (PTX manual, predicate constants).
            sources = [constant(int(o.value != 0)) if isinstance(o, Immediate) else value
                       for o, value in zip(operands[1:], sources, strict=True)]
        value = evaluate(self.graph, op.modifiers, op.opcode, sources)
        if value is None:
            return {}
        return {operands[0].name: self._fit(instruction, operands[0].name, value)}

    def _fit(self, instruction: Instruction, name: str, value: Sum) -> Sum:
        """A result as the register holds it: of limited size, and the extended number in a register wider than the type
        (PTX manual, 9.4.1)."""
        if len(value) > MOST_ADDENDS:
            return self._unknown(name)
        modifiers = [m for m in instruction.op.modifiers if width_of(m)]
        kind = modifiers[0] if instruction.op.opcode == "cvt" and modifiers else modifiers[-1] if modifiers else ""
        width = width_of(kind) * (2 if "wide" in instruction.op.modifiers else 1)
        if kind and width and width < self._width(name):
            return self.graph.wrap(value, width, kind[0] == "s")
        return value if kind == "pred" else reduce(value, self._width(name))

    def _unpack(self, vector: Vector, value: Sum, bits: int) -> dict[str, Sum]:
        found: dict[str, Sum] = {}
        shift = 0
        width = bits // len(vector.items) if vector.items else 0
        if not width:
            return found
        for item in vector.items:
            if isinstance(item, Register):
                part = self.graph.shift_right(value, shift)
                found[item.name] = self.graph.wrap(part, width, False) if shift == 0 else part
            shift += width
        return found

    def _set_predicates(self, instruction: Instruction) -> dict[str, Sum]:
        arguments = [self._read(o) for o in instruction.operands[1:]]
        value = evaluate(self.graph, instruction.op.modifiers, "setp", arguments)
        if value is None:
            return {}
        names = list(registers_in(instruction.operands[0]))
        found = {names[0]: value}
        if len(names) > 1:
            # The second predicate is the combination with the negated comparison; only the plain form is followed.
            plain = len(instruction.operands) == 3
            found[names[1]] = add(ONE, value, -1) if plain else self.graph.unknown(0, 1)
        return found

    def _load(self, instruction: Instruction, address: Sum | None) -> dict[str, Sum]:
        kind = instruction.op.modifiers[-1] if instruction.op.modifiers else ""
        size = TYPE_BYTES.get(kind, 0)
        target = instruction.operands[0]
        items = target.items if isinstance(target, Vector) else (target,)
        found: dict[str, Sum] = {}
        if address is None or not size or size > 8:
            return found
        signed = kind[0] == "s"
        for position, item in enumerate(items):
            if not isinstance(item, Register) or item.name == "_":
                continue
            here = add(address, constant(position * size))
            value = self._parameter(here, size, signed)
            if value is None:
                low, high = (-(1 << size * 8 - 1), (1 << size * 8 - 1) - 1) if signed else (0, (1 << size * 8) - 1)
                if kind in FLOATS or space_of(instruction) in ("shared", "local") or _is_volatile(instruction):
                    value = self.graph.leaf(("unknown", len(self.graph.nodes), low, high, "memory"), low, high)
                else:
                    value = self.graph.load(len(self.graph.nodes), here, size, signed, low, high)
            found[item.name] = value
        return found

    def _parameter(self, address: Sum, size: int, signed: bool) -> Sum | None:
        """The value of a kernel parameter, when the address is one; several words when the index varies."""
        slot, offset = self._slot(address)
        if slot is None:
            return None
        number = constant_of(offset)
        if number is not None:
            return self._word(slot.offset + number, size, signed) if self._holds(slot, number, size) else None
        low, high = self.graph.bounds(offset)
        low, high = max(low, 0), min(high, slot.size - size)
        step = 0
        for _, coefficient in offset:
            step |= coefficient
        step = max(step & -step, 1)
        first = low + (-low) % min(step, size)
        words = range(first, high + 1, step if step >= size else size)
        if not words or len(words) > MOST_PARAMETER_WORDS:
            return None
        return alternatives(self.graph, tuple((self._word(slot.offset + w, size, signed), ()) for w in words))

    def _note_partial_read(self, instruction: Instruction, address: Sum) -> None:
        """Reads of parameters other than whole words of 8 bytes: if one holds a pointer, its parts go unfollowed."""
        slot, offset = self._slot(address)
        modifiers = instruction.op.modifiers
        if slot is None or (modifiers and modifiers[-1] in ("u64", "s64", "b64")):
            return
        number = constant_of(offset)
        size = accessed_bytes(instruction.op)
        if number is not None and size and self._holds(slot, number, size):
            place = slot.offset + number, size
        else:
            place = slot.offset, slot.size
        self.partial_reads.append((*place, instruction.line))

    def _holds(self, slot: ParameterSlot, number: int, size: int) -> bool:
        """Whether the parameters, all of them, hold the bytes read at an offset from one of them."""
        return 0 <= slot.offset + number <= self.parameter_bytes - size

    def _slot(self, address: Sum) -> tuple[ParameterSlot | None, Sum]:
        for product, coefficient in address:
            if coefficient == 1 and len(product) == 1:
                node = self.graph.nodes[product[0]]
                if node[0] == "symbol" and node[1] in self.slots:
                    return self.slots[str(node[1])], add(address, ((product, 1),), -1)
        return None, address

    def _word(self, offset: int, size: int, signed: bool) -> Sum:
        # A word of 8 bytes is one atom whichever way it is read, so that a pointer is recognised as itself; as a signed
        # number, so that negative strides are small.
        signed = signed or size == 8
        low, high = (-(1 << size * 8 - 1), (1 << size * 8 - 1) - 1) if signed else (0, (1 << size * 8) - 1)
        return self.graph.leaf(("param", offset, size, signed), low, high)


_COPYING_OPERANDS = {"mov": (1,), "cvta": (1,), "add": (1, 2), "sub": (1,), "mad": (3,), "selp": (1, 2)}


def _is_volatile(instruction: Instruction) -> bool:
    """Whether somebody else may change what a load reads while the kernel runs."""
    return any(m in ("volatile", "relaxed", "acquire", "mmio", "cv") for m in instruction.op.modifiers)


def tests_for_null(instruction: Instruction) -> bool:
    """``setp.eq`` or ``.ne`` with 0: no allocation lies there, so a pointer's replica gives the same answer."""
    op = instruction.op
    zeros = [operand for operand in instruction.operands[1:] if operand == Immediate(0)]
    return op.opcode == "setp" and op.modifiers[0] in ("eq", "ne") and len(op.modifiers) == 2 and bool(zeros)
