"""Calls replaced by the bodies of the functions they name, so that a kernel is one list of instructions.

Parameters and results become moves through registers named after their ``.param`` variables (``param0$3+8``).
What cannot be inlined stays a ``call`` and is reported: indirect calls, functions without a body, recursion.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ptxparse.model import (
    Address,
    Function,
    Instruction,
    Module,
    Negated,
    Operand,
    Pair,
    Register,
    Symbol,
    Variable,
    Vector,
)
from ptxparse.parser import mnemonic
from ptxparse.transfer import width_of
from tessera.reasons import Reason

MOST_INSTRUCTIONS = 40_000
MOST_CALLS = 4_000
OF_MODULE = "@module"
"""Ending of the name of a module variable where the kernel has something else of that name."""
_MODULE_WIDE = ("global", "const")
BUILTINS: dict[str, Reason] = {
    "vprintf": Reason.DEVICE_PRINTF,
    "__assertfail": Reason.DEVICE_ASSERT,
    "malloc": Reason.DEVICE_MALLOC,
    "free": Reason.DEVICE_MALLOC,
}
"""Functions of the device run-time that touch no allocation of the program, and what they pin a kernel for."""


@dataclass(slots=True)
class Body:
    """A kernel after inlining; ``problems`` are (reason, line) that make it opaque, ``pins`` those that pin it.
    ``bindings`` are the identities of the moves that pass parameters; they are no work.
    ``copies`` are the functions whose registers carry the suffix ``@number``.
    ``lost`` names registers that stand for bytes of a call's parameters and are not read as they are written.
    """

    function: Function
    instructions: list[Instruction]
    labels: dict[str, int]
    targets: dict[str, tuple[str, ...]]
    variables: dict[str, Variable] = field(default_factory=dict)
    types: dict[str, str] = field(default_factory=dict)
    problems: list[tuple[Reason, int]] = field(default_factory=list)
    pins: list[tuple[Reason, int]] = field(default_factory=list)
    lost: set[str] = field(default_factory=set)
    bindings: set[int] = field(default_factory=set)
    copies: dict[str, Function] = field(default_factory=dict)

    def register_type(self, name: str) -> str | None:
        found = self.types.get(name)
        if found is None and "@" in name:
            name, _, number = name.rpartition("@")
            callee = self.copies.get(number)
            return None if callee is None else callee.register_type(name)
        return found or self.function.register_type(name)


def inline(module: Module, kernel: Function) -> Body:
    """The kernel with its direct calls inlined."""
    instructions = kernel.instructions or []
    body = Body(kernel, instructions, kernel.labels, kernel.branch_targets)
    body.variables = {v.name: v for v in module.variables}
    body.variables.update({v.name: v for v in kernel.variables + kernel.parameters})
    if any(i.op.opcode == "call" for i in instructions):
        _Inliner(module, body).run()
    return body


class _Inliner:
    def __init__(self, module: Module, body: Body) -> None:
        self.module = module
        self.body = body
        self.functions = {f.name: f for f in reversed(module.functions) if f.instructions is None}
        self.functions.update({f.name: f for f in module.functions if f.instructions is not None})
        # Variables of the module that the kernel hides by names of its own; the functions it calls still mean them.
        own = {v.name for v in body.function.parameters + body.function.variables}
        hidden = [v for v in module.variables if v.name in own]
        self.hidden = frozenset(v.name for v in hidden)
        body.variables.update({v.name + OF_MODULE: v for v in hidden})
        self.count = 0
        self.out: list[Instruction] = []
        self.returned: dict[str, list[Instruction]] = {}
        self.out_labels: dict[str, int] = {}
        self.out_targets: dict[str, tuple[str, ...]] = dict(body.targets)

    def run(self) -> None:
        """Expand calls; a frame is (function, next instruction, suffix of its names, label after its end)."""
        frames: list[tuple[Function, int, str, str]] = [(self.body.function, 0, "", "")]
        labels: dict[int, dict[int, list[str]]] = {}
        while frames:
            function, index, suffix, end = frames.pop()
            here = labels.setdefault(id(function), _labels_by_index(function))
            instructions = function.instructions or []
            entered = False
            while not entered:
                for label in here.get(index, ()):
                    self.out_labels[label + suffix] = len(self.out)
                if index >= len(instructions):
                    break
                instruction = instructions[index]
                index += 1
                callee = self._callee(instruction, [frame[0] for frame in frames] + [function])
                if callee is None:
                    self._copy(instruction, function, suffix, end)
                    continue
                frames.append((function, index, suffix, end))
                frames.append((callee, 0, *self._enter(instruction, callee, suffix)))
                entered = True
            if end and not entered:
                self.out_labels[end] = len(self.out)
                self.out += self.returned.pop(end, [])
        self._forget_overlaps()
        self.body.instructions = self.out
        self.body.labels = self.out_labels
        self.body.targets = self.out_targets

    def _enter(self, call: Instruction, callee: Function, suffix: str) -> tuple[str, str]:
        """Bind arguments and declare the callee's names; returns their suffix and the label after its body."""
        self.count += 1
        inner = f"@{self.count}"
        done = f"return{inner}"
        if call.predicate is not None:
            guard = Register(call.predicate.name + suffix)
            self.out.append(Instruction(mnemonic("bra"), (Symbol(done),), call.line, guard, not call.negated))
        self._declare(callee, inner)
        self.returned[done] = self._pass(call, callee, suffix, inner)
        return inner, done

    def _callee(self, instruction: Instruction, active: list[Function]) -> Function | None:
        """The function to inline here, or None; what stays a call is reported."""
        if instruction.op.opcode != "call" or len(instruction.operands) != 4:
            return None
        target = instruction.operands[1]
        line = instruction.line
        if not isinstance(target, Symbol):
            self.body.problems.append((Reason.INDIRECT_CALL, line))
            return None
        function = self.functions.get(self.module.aliases.get(target.name, target.name))
        if function is None or function.instructions is None:
            if target.name in BUILTINS:
                self.body.pins.append((BUILTINS[target.name], line))
            else:
                self.body.problems.append((Reason.UNDEFINED_CALLEE, line))
            return None
        if any(function is other for other in active):
            self.body.problems.append((Reason.RECURSIVE_CALL, line))
            return None
        if len(self.out) + len(function.instructions) > MOST_INSTRUCTIONS or self.count >= MOST_CALLS:
            self.body.problems.append((Reason.INLINE_LIMIT, line))
            return None
        return function

    def _declare(self, callee: Function, suffix: str) -> None:
        self.body.copies[suffix[1:]] = callee
        for variable in callee.parameters + callee.results:
            if variable.space == "reg":
                self.body.types[variable.name + suffix] = variable.type
        for variable in callee.variables:
            name = variable.name if variable.space in _MODULE_WIDE else variable.name + suffix
            self.body.variables[name] = variable
        for name, targets in callee.branch_targets.items():
            self.out_targets[name + suffix] = tuple(target + suffix for target in targets)

    def _copy(self, instruction: Instruction, function: Function, suffix: str, end: str) -> None:
        if not suffix:
            copied = instruction
        elif instruction.op.opcode == "ret":
            copied = Instruction(mnemonic("bra"), (Symbol(end),), instruction.line)
        else:
            operands = tuple([_renamed(o, suffix, function, self.hidden) for o in instruction.operands])
            copied = Instruction(instruction.op, operands, instruction.line)
        if suffix and instruction.predicate is not None:
            copied.predicate = Register(instruction.predicate.name + suffix)
            copied.negated = instruction.negated
        self.out.extend(_through_registers(copied, self.body) or [copied])

    def _pass(self, call: Instruction, callee: Function, suffix: str, inner: str) -> list[Instruction]:
        """Bind the callee's parameter and result variables to the caller's, by name: they share registers. Returns the
        moves to make on return, of results in registers."""
        returned: list[Instruction] = []
        results, _, arguments, _ = call.operands
        for given, declared in ((results, callee.results), (arguments, callee.parameters)):
            names = given.items if isinstance(given, Vector) else ()
            for operand, variable in zip(names, declared, strict=False):
                if isinstance(operand, Symbol):
                    self.body.types[f"alias {variable.name}{inner}"] = self._real(operand.name + suffix)
                elif isinstance(operand, Register) and given is arguments:
                    self.out.append(Instruction(mnemonic(f"mov.{variable.type}"), (
                        Register(variable.name + inner), Register(operand.name + suffix)), call.line))
                elif given is arguments:
                    self.out.append(Instruction(mnemonic(f"mov.{variable.type}"), (
                        Register(variable.name + inner), operand), call.line))
                elif isinstance(operand, Register):
                    returned.append(Instruction(mnemonic(f"mov.{variable.type}"), (
                        Register(operand.name + suffix), Register(variable.name + inner)), call.line))
        return returned

    def _forget_overlaps(self) -> None:
        """Bytes of a call's parameters written in one size and read in another: each write makes the registers that
        overlap it unknown."""
        slots: dict[str, set[tuple[int, int, str]]] = {}
        read: set[str] = set()
        for instruction in self.out:
            if instruction.op.opcode not in ("mov", "cvt"):
                read.update(o.name for o in instruction.operands if isinstance(o, Register))
                continue
            for position, operand in enumerate(instruction.operands):
                if isinstance(operand, Register) and (slot := _slot(operand.name)) is not None:
                    slots.setdefault(slot[0], set()).add((slot[1], slot[2], operand.name))
                if isinstance(operand, Register) and position:
                    read.add(operand.name)
        overlaps: dict[str, list[str]] = {}
        for places in slots.values():
            for offset, width, name in places:
                overlaps[name] = [n for o, w, n in places if n != name and o < offset + width and offset < o + w]
        self.body.lost = {name for name, others in overlaps.items() if others or name not in read}
        if not any(overlaps.values()) and not any(i.op.opcode == "call" for i in self.out):
            return
        out: list[Instruction] = []
        moved: dict[int, int] = {}
        for index, instruction in enumerate(self.out):
            moved[index] = len(out)
            out.append(instruction)
            target = instruction.operands[0] if instruction.operands else None
            if instruction.op.opcode == "call" and isinstance(target, Vector):
                # What a call that stays leaves in its results, nobody knows.
                for symbol in target.items:
                    variable = self._real(symbol.name) if isinstance(symbol, Symbol) else ""
                    for _, _, name in sorted(slots.get(variable, ())):
                        unknown = Register(f"%unknown{len(out)}")
                        out.append(Instruction(mnemonic("mov.b64"), (Register(name), unknown), instruction.line))
            if instruction.op.opcode in ("mov", "cvt") and isinstance(target, Register):
                for name in overlaps.get(target.name, ()):
                    unknown = Register(f"%unknown{len(out)}")
                    out.append(Instruction(mnemonic("mov.b64"), (Register(name), unknown), instruction.line))
        moved[len(self.out)] = len(out)
        self.out = out
        self.out_labels = {label: moved[index] for label, index in self.out_labels.items()}

    def _real(self, name: str) -> str:
        return self.body.types.get(f"alias {name}", name)


def _slot(name: str) -> tuple[str, int, int] | None:
    """(variable, offset, bytes) of a register that stands for bytes of a call's parameters."""
    variable, plus, place = name.rpartition("+")
    offset, dot, width = place.partition(".")
    if not plus or not dot or not offset.lstrip("-").isdigit() or not width.isdigit():
        return None
    return variable, int(offset), int(width)


def _labels_by_index(function: Function) -> dict[int, list[str]]:
    found: dict[int, list[str]] = {}
    for label, index in function.labels.items():
        found.setdefault(index, []).append(label)
    return found


def _renamed(operand: Operand, suffix: str, function: Function, hidden: frozenset[str]) -> Operand:
    if isinstance(operand, Register):
        if operand.name == "_" or (operand.name[0] == "%" and function.register_type(operand.name) is None):
            return operand
        return Register(operand.name + suffix)
    if isinstance(operand, Symbol):
        local = operand.name in function.labels or operand.name in function.branch_targets or any(
            v.name == operand.name and v.space not in _MODULE_WIDE
            for v in function.variables + function.parameters + function.results
        )
        if not local and operand.name in hidden:
            return Symbol(operand.name + OF_MODULE, operand.offset)
        return Symbol(operand.name + suffix, operand.offset) if local else operand
    if isinstance(operand, Address):
        return Address(
            _renamed(operand.base, suffix, function, hidden),
            operand.offset,
            tuple([_renamed(o, suffix, function, hidden) for o in operand.extra]),
        )
    if isinstance(operand, Vector):
        return Vector(tuple([_renamed(o, suffix, function, hidden) for o in operand.items]))
    if isinstance(operand, Pair):
        return Pair(*(_renamed(o, suffix, function, hidden) for o in (operand.first, operand.second)))
    if isinstance(operand, Negated):
        return Negated(_renamed(operand.operand, suffix, function, hidden))
    return operand


def _through_registers(instruction: Instruction, body: Body) -> list[Instruction]:
    """``st.param [x+8], v`` and ``ld.param v, [x+8]`` of a call's variables as moves through a register ``x+8``;
    empty for other instructions."""
    op = instruction.op
    if op.opcode not in ("ld", "st") or not op.modifiers or op.modifiers[0].partition("::")[0] != "param":
        return []
    address, value = instruction.operands if op.opcode == "st" else instruction.operands[::-1]
    if not isinstance(address, Address) or not isinstance(address.base, Symbol):
        return []
    if any(p.name == address.base.name for p in body.function.parameters):
        return []
    kind = op.modifiers[-1]
    if not kind[1:].isdigit():
        return []
    name = body.types.get(f"alias {address.base.name}", address.base.name)
    width = int(kind[1:]) // 8
    moves = []
    for number, item in enumerate(value.items if isinstance(value, Vector) else (value,)):
        register = Register(f"{name}+{address.base.offset + address.offset + number * width}.{width}")
        body.types.setdefault(register.name, f"b{width * 8}")
        operands = (register, item) if op.opcode == "st" else (item, register)
        text = _move(kind, width * 8, item, op.opcode == "st", body)
        moves.append(Instruction(mnemonic(text), operands, instruction.line, instruction.predicate,
                                 instruction.negated))
    body.bindings.update(map(id, moves))
    return moves


def _move(kind: str, width: int, item: Operand, is_store: bool, body: Body) -> str:
    """The move that a ``ld.param`` or ``st.param`` of one value amounts to. A register wider than the type holds the
    extended number after a load, and gives its low bits to a store."""
    declared = body.register_type(item.name) if isinstance(item, Register) else None
    held = width_of(declared) if declared is not None else 32 if width < 16 else width
    if held == width or kind[0] == "f":
        return f"mov.b{width}"
    if is_store:
        return f"cvt.u{width}.u{held}"
    sign = "s" if kind[0] == "s" else "u"
    return f"cvt.{sign}{held}.{sign}{width}"
