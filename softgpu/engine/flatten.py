"""A kernel and the functions it calls as one list of instructions with unique names.

Direct calls are replaced by the body of the function; an indirect call by a chain of comparisons with the addresses of
the functions it may mean. Parameters become moves between registers where they can, and local memory otherwise. Guards
of instructions that do more than compute (barriers, calls, exchanges between lanes) become branches around them.

Two pseudo instructions come in: ``$yield`` at the head of loops that may wait for other threads, and ``$bad_call``
where an indirect call meets none of its functions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from ptxparse.model import (
    TYPE_BYTES,
    Address,
    Function,
    Immediate,
    Instruction,
    Mnemonic,
    Module,
    Negated,
    Operand,
    Pair,
    Register,
    Symbol,
    Variable,
    Vector,
)
from ptxparse.order import in_manual_order
from softgpu.engine import recursion
from softgpu.engine.errors import UnsupportedKernel

_ON_STACK = "@@"
"""Beginning of the suffix of names in the one copy of a recursive function."""
BUILTINS = ("vprintf", "__assertfail")
FUNCTION_SPACING = 256
MOST_INSTRUCTIONS = 60_000

_ALONE = frozenset({
    "bar", "barrier", "shfl", "vote", "match", "redux", "elect", "trap", "brkpt", "mma", "wmma", "ldmatrix", "stmatrix",
    "movmatrix", "call", "nanosleep", "activemask", "$bad_call",
})
"""Opcodes that are never executed under a guard: a branch leads around them."""


@dataclass
class Flat:
    """``types`` are the registers' PTX types; ``variables`` what lives in local memory; ``aliases`` unused."""

    kernel: Function
    instructions: list[Instruction] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)
    targets: dict[str, tuple[str, ...]] = field(default_factory=dict)
    types: dict[str, str] = field(default_factory=dict)
    locals: dict[str, Variable] = field(default_factory=dict)
    shared: dict[str, Variable] = field(default_factory=dict)
    globals: dict[str, Variable] = field(default_factory=dict)
    functions: dict[str, int] = field(default_factory=dict)


def mnemonic(text: str) -> Mnemonic:
    """A full mnemonic split at its dots."""
    opcode, *modifiers = text.split(".")
    return Mnemonic(text, opcode, tuple(modifiers))


def _instead(text: str, opcode: str) -> Mnemonic:
    """``opcode`` standing in for an instruction of the source, as which it is counted; "$": for none."""
    return Mnemonic(text, opcode, ())


def function_numbers(module: Module) -> dict[str, int]:
    """Number of every function name in order of first mention; its address is the window's start plus
    ``FUNCTION_SPACING * (number + 1)``."""
    numbers: dict[str, int] = {}
    for function in module.functions:
        numbers.setdefault(function.name, len(numbers))
    return numbers


def flatten(module: Module, kernel: Function) -> Flat:
    """Raises UnsupportedKernel for unknown functions and more than ``MOST_INSTRUCTIONS`` instructions."""
    return _Flattener(module, kernel).run()


class _Flattener:
    def __init__(self, module: Module, kernel: Function) -> None:
        self.module = module
        self.flat = Flat(kernel)
        self.flat.functions = function_numbers(module)
        for variable in module.variables:
            if variable.space == "shared":
                self.flat.shared[variable.name] = variable
            elif variable.space in ("global", "const"):
                self.flat.globals[variable.name] = variable
        self.copies = 0
        self.kernel = kernel
        self.recursive = recursion.recursive_functions(module)
        self.frames: dict[str, recursion.Frame] = {}

    def run(self) -> Flat:
        self._declare(self.kernel, "")
        self._body(self.kernel, "", "", ())
        if self.frames:
            self._stack_bodies()
        return self.flat

    # Emission.

    def _add(self, text: str, operands: tuple[Operand, ...], line: int) -> None:
        self.flat.instructions.append(Instruction(mnemonic(text), operands, line))

    def _jump(self, label: str, line: int, guard: Register | None = None, negated: bool = False,
              counts_as: str = "$") -> None:
        self.flat.instructions.append(Instruction(_instead(counts_as, "bra"), (Symbol(label),), line, guard, negated))

    def _label(self, name: str) -> None:
        self.flat.labels[name] = len(self.flat.instructions)

    def _fresh(self, stem: str) -> str:
        self.copies += 1
        return f"${stem}{self.copies}"

    # Names.

    def _declare(self, function: Function, suffix: str) -> None:
        """Variables and branch lists of one copy of a function."""
        flat = self.flat
        for variable in function.variables:
            if variable.space == "shared":
                # One copy for the whole block, however often the function is inlined.
                flat.shared[self._shared_name(function, variable.name)] = variable
            elif variable.space in ("global", "const"):
                flat.globals[variable.name] = variable
            elif variable.space in ("local", "param") and not suffix.startswith(_ON_STACK):
                flat.locals[variable.name + suffix] = variable
        if not function.is_entry:
            for variable in function.parameters + function.results:
                if variable.space == "reg":
                    flat.types[variable.name + suffix] = variable.type
                elif not suffix.startswith(_ON_STACK):
                    flat.locals[variable.name + suffix] = variable
        for name, targets in function.branch_targets.items():
            flat.targets[name + suffix] = tuple(target + suffix for target in targets)

    def _shared_name(self, function: Function, name: str) -> str:
        return f"{function.name}:{name}"

    def _body(self, function: Function, suffix: str, end: str, active: tuple[Function, ...]) -> None:
        names = (_StackNames if suffix.startswith(_ON_STACK) else _Names)(self, function, suffix)
        labels: dict[int, list[str]] = {}
        for label, index in function.labels.items():
            labels.setdefault(index, []).append(label)
        instructions = function.instructions or []
        for index, instruction in enumerate(instructions):
            for label in labels.get(index, ()):
                self._label(label + suffix)
            self._instruction(names, instruction, end, (*active, function))
        for label in labels.get(len(instructions), ()):
            self._label(label + suffix)
        line = instructions[-1].line if instructions else function.line
        if not suffix:
            self.flat.instructions.append(Instruction(_instead("$", "exit"), (), line))
        else:
            self._label(end)

    def _instruction(self, names: _Names, instruction: Instruction, end: str, active: tuple[Function, ...]) -> None:
        if len(self.flat.instructions) > MOST_INSTRUCTIONS:
            raise UnsupportedKernel(instruction.mnemonic, instruction.line,
                                    f"more than {MOST_INSTRUCTIONS} instructions after inlining")
        if instruction.opcode in ("ret", "exit") and instruction.operands:
            raise UnsupportedKernel(instruction.mnemonic, instruction.line, f"{len(instruction.operands)} operands")
        guard = None
        if instruction.predicate is not None:
            guard = Register(names.register(instruction.predicate.name))
        negated = instruction.negated
        operands = tuple([names.operand(o) for o in instruction.operands])
        line = instruction.line
        skip = ""
        if guard is not None and (instruction.opcode in _ALONE):
            skip = self._fresh("skip")
            self._jump(skip, line, guard, not negated)
            guard = None
        if instruction.opcode == "call":
            self._call(names, instruction, operands, active)
        elif instruction.opcode == "ret" and names.suffix:
            self._jump(end, line, guard, negated, instruction.mnemonic)
        elif instruction.opcode in ("ret", "exit"):
            as_exit = _instead(instruction.mnemonic, "exit")
            self.flat.instructions.append(Instruction(as_exit, (), line, guard, negated))
        else:
            op = names.operation(_in_order(instruction.op), operands)
            self.flat.instructions.append(Instruction(op, operands, line, guard, negated))
        if skip:
            self._label(skip)

    # Calls.

    def _call(self, names: _Names, instruction: Instruction, operands: tuple[Operand, ...],
              active: tuple[Function, ...]) -> None:
        results, _, arguments, listed = operands
        assert isinstance(results, Vector) and isinstance(arguments, Vector)
        target = instruction.operands[1]
        if isinstance(target, Symbol):
            callee = self.module.function(target.name)
            if callee is None or callee.instructions is None:
                if target.name not in BUILTINS:
                    raise UnsupportedKernel(instruction.mnemonic, instruction.line,
                                            f"function {target.name} has no body and is not one the engine provides")
                self._add(f"$builtin.{target.name}", (results, arguments), instruction.line)
                return
            self._enter(callee, results.items, arguments.items, instruction, active)
            return
        self._indirect(operands[1], results, arguments, listed, names, instruction, active)

    def _indirect(self, target: Operand, results: Vector, arguments: Vector, listed: Operand, names: _Names,
                  instruction: Instruction, active: tuple[Function, ...]) -> None:
        """Compare the address with those of all functions that the prototype or the target list allows."""
        chosen = names.function.branch_targets.get(listed.name.removesuffix(names.suffix)) if isinstance(
            listed, Symbol) else None
        candidates = []
        for name, number in self.flat.functions.items():
            function = self.module.function(name)
            if function is None or function.is_entry or function.instructions is None:
                continue
            if (chosen is None or name in chosen) and _fits(function, results, arguments):
                candidates.append((function, number))
        done = self._fresh("called")
        for function, number in candidates:
            other = self._fresh("other")
            same = self._fresh("same")
            self.flat.types[same] = "pred"
            self._add("setp.ne.u64", (Register(same), target, Symbol(f"@{number}")), instruction.line)
            self._jump(other, instruction.line, Register(same))
            self._enter(function, results.items, arguments.items, instruction, active)
            self._jump(done, instruction.line)
            self._label(other)
        self._add("$bad_call", (), instruction.line)
        self._label(done)

    def _enter(self, callee: Function, results: tuple[Operand, ...], arguments: tuple[Operand, ...],
               instruction: Instruction, active: tuple[Function, ...]) -> None:
        if len(arguments) != len(callee.parameters) or len(results) != len(callee.results):
            raise UnsupportedKernel(instruction.mnemonic, instruction.line,
                                    f"{callee.name} takes {len(callee.parameters)} parameters and returns "
                                    f"{len(callee.results)}")
        if callee.name in self.recursive:
            self._stack_call(callee, results, arguments, instruction.line, active)
            return
        self.copies += 1
        suffix = f"@{self.copies}"
        self._declare(callee, suffix)
        line = instruction.line
        for given, variable in zip(arguments, callee.parameters, strict=True):
            self._pass(given, _formal(variable, suffix), variable, line)
        self._body(callee, suffix, f"$return{suffix}", active)
        for taken, variable in zip(results, callee.results, strict=True):
            self._pass(_formal(variable, suffix), taken, variable, line)

    def _pass(self, given: Operand, taken: Operand, variable: Variable, line: int) -> None:
        """Copy one parameter or result; symbols and addresses are variables in memory, others registers."""
        if isinstance(taken, Register) and taken.name == "_":
            return
        kind = variable.type if variable.type == "pred" else f"b{8 * TYPE_BYTES[variable.type]}"
        in_memory = [isinstance(o, Symbol | Address) for o in (given, taken)]
        if not any(in_memory):
            self._add(f"mov.{kind}", (taken, given), line)
        elif in_memory == [False, True]:
            self._store(taken, 0, kind, given, line)
        elif in_memory == [True, False]:
            self._load(taken, given, 0, kind, line)
        else:
            sizes = [v.size for v in (self._variable(given), self._variable(taken), variable) if v is not None]
            aligns = [v.align for v in (self._variable(given), self._variable(taken), variable) if v is not None]
            for offset, width in _chunks(min(sizes), max(min([*aligns, 8]), 1)):
                through = self._fresh("pass")
                self.flat.types[through] = f"b{8 * max(width, 2)}"
                self._load(Register(through), given, offset, f"b{8 * width}", line)
                self._store(taken, offset, f"b{8 * width}", Register(through), line)

    def _variable(self, operand: Operand) -> Variable | None:
        return self.flat.locals.get(operand.name) if isinstance(operand, Symbol) else None

    def _load(self, register: Operand, place: Operand, offset: int, kind: str, line: int) -> None:
        """From a variable of the frame of a copy, or from the stack."""
        self._add(f"ld.{_space(place)}.{kind}", (register, _behind(place, offset)), line)

    def _store(self, place: Operand, offset: int, kind: str, value: Operand, line: int) -> None:
        self._add(f"st.{_space(place)}.{kind}", (_behind(place, offset), value), line)

    # Recursive functions, see ``recursion``.

    def frame(self, function: Function) -> recursion.Frame:
        """The frame of a recursive function; its body is to be emitted."""
        found = self.frames.get(function.name)
        if found is None:
            suffix = f"{_ON_STACK}{len(self.frames)}"
            found = self.frames[function.name] = recursion.frame_of(function, suffix)
            types = {name: function.register_type(name) or "" for name in recursion.registers_of(function)}
            recursion.reserve(found, {name + suffix: types[name] for name in sorted(types)})
        return found

    def _stack_call(self, callee: Function, results: tuple[Operand, ...], arguments: tuple[Operand, ...], line: int,
                    active: tuple[Function, ...]) -> None:
        frame = self.frame(callee)
        around = next((f for f in reversed(active) if f.name in self.recursive), None)
        own = self.frame(around) if around is not None else None
        above = own.size if own is not None else 0
        returns_here = own is not None and own.function.name in self.recursive[callee.name] | {callee.name}
        pointer = Register(recursion.POINTER)

        def slot(name: str) -> Address:
            return Address(pointer, above + frame.variables[name])

        for given, variable in zip(arguments, callee.parameters, strict=True):
            self._pass(given, slot(variable.name), variable, line)
        if own is not None and returns_here:
            recursion.saves(self._add, own, line, self.flat.types)
        back = self._fresh("back")
        self._add("st.local.b32", (Address(pointer, above), Immediate(len(frame.returns))), line)
        frame.returns.append(back)
        if above:
            self._add("add.u64", (pointer, pointer, Immediate(above)), line)
        self._jump(frame.entry, line)
        self._label(back)
        if above:
            self._add("sub.u64", (pointer, pointer, Immediate(above)), line)
        if own is not None and returns_here:
            recursion.restores(self._add, own, line, self.flat.types)
        for taken, variable in zip(results, callee.results, strict=True):
            self._pass(slot(variable.name), taken, variable, line)

    def _stack_bodies(self) -> None:
        """The body of every recursive function that is called, and the stack."""
        pointer, number = Register(recursion.POINTER), Register(recursion.NUMBER)
        self.flat.types.update({recursion.POINTER: "b64", recursion.NUMBER: "b32"})
        while pending := [f for f in self.frames.values() if not f.emitted]:
            for frame in pending:
                frame.emitted = True
                function, line = frame.function, frame.function.line
                self._declare(function, frame.suffix)
                self._label(frame.entry)
                for variable in function.parameters:
                    if variable.space == "reg":
                        at = Address(pointer, frame.variables[variable.name])
                        self._pass(at, Register(variable.name + frame.suffix), variable, line)
                self._body(function, frame.suffix, f"$return{frame.suffix}", ())
                for variable in function.results:
                    if variable.space == "reg":
                        at = Address(pointer, frame.variables[variable.name])
                        self._pass(Register(variable.name + frame.suffix), at, variable, line)
                self._add("ld.local.b32", (number, Address(pointer)), line)
                self.flat.instructions.append(
                    Instruction(_instead("$", "brx"), (number, Symbol(frame.list_name)), line))
        for frame in self.frames.values():
            self.flat.targets[frame.list_name] = tuple(frame.returns)
        self.flat.locals[recursion.STACK] = Variable(
            recursion.STACK, "local", "b8", recursion.STACK_BYTES, 16, self.kernel.line, (recursion.STACK_BYTES,))
        start = Instruction(mnemonic("mov.b64"), (pointer, Symbol(recursion.STACK)), self.kernel.line)
        self.flat.instructions.insert(0, start)
        self.flat.labels = {name: index + 1 for name, index in self.flat.labels.items()}


@lru_cache(maxsize=4096)
def _in_order(op: Mnemonic) -> Mnemonic:
    """The mnemonic with its modifiers in the order of the manual's syntax lines."""
    modifiers = in_manual_order(op.opcode, op.modifiers)
    return op if tuple(modifiers) == op.modifiers else mnemonic(".".join((op.opcode, *modifiers)))


def _chunks(size: int, align: int) -> Iterator[tuple[int, int]]:
    offset = 0
    while offset < size:
        width = align
        while offset + width > size:
            width //= 2
        yield offset, width
        offset += width


def _space(place: Operand) -> str:
    return "local" if isinstance(place, Address) else "param"


def _behind(place: Operand, offset: int) -> Address:
    if isinstance(place, Address):
        return Address(place.base, place.offset + offset)
    return Address(place, offset)


def _formal(variable: Variable, suffix: str) -> Operand:
    return Register(variable.name + suffix) if variable.space == "reg" else Symbol(variable.name + suffix)


def _fits(function: Function, results: Vector, arguments: Vector) -> bool:
    return len(function.parameters) == len(arguments.items) and len(function.results) == len(results.items)


class _Names:
    """Operands of one copy of a function, renamed; registers get their types noted."""

    def __init__(self, owner: _Flattener, function: Function, suffix: str) -> None:
        self.flat = owner.flat
        self.function = function
        self.suffix = suffix
        self.inner: dict[str, str] = {}
        for variable in function.variables:
            if variable.space == "shared":
                self.inner[variable.name] = f"{function.name}:{variable.name}"
            elif variable.space in ("local", "param"):
                self.inner[variable.name] = variable.name + suffix
        if not function.is_entry:
            for variable in function.parameters + function.results:
                self.inner[variable.name] = variable.name + suffix
        for name in (*function.labels, *function.branch_targets, *function.prototypes):
            self.inner[name] = name + suffix
        self.known: dict[str, str] = {}

    def register(self, name: str) -> str:
        found = self.known.get(name)
        if found is None:
            type_ = self.function.register_type(name)
            if type_ is None and name in self.inner:
                found = self.inner[name]
            elif type_ is None:
                found = name
            else:
                found = name + self.suffix
                self.flat.types[found] = type_
            self.known[name] = found
        return found

    def operation(self, op: Mnemonic, operands: tuple[Operand, ...]) -> Mnemonic:
        """The mnemonic that an instruction has in this copy."""
        return op

    def operand(self, operand: Operand) -> Operand:
        if isinstance(operand, Register):
            return Register(self.register(operand.name))
        if isinstance(operand, Symbol):
            return Symbol(self.inner.get(operand.name, operand.name), operand.offset)
        if isinstance(operand, Address):
            return Address(self.operand(operand.base), operand.offset,
                           tuple([self.operand(o) for o in operand.extra]))
        if isinstance(operand, Vector):
            return Vector(tuple([self.operand(o) for o in operand.items]))
        if isinstance(operand, Pair):
            return Pair(self.operand(operand.first), self.operand(operand.second))
        if isinstance(operand, Negated):
            return Negated(self.operand(operand.operand))
        return operand


class _StackNames(_Names):
    """Operands of a recursive function: its variables lie in its frame on the stack."""

    def __init__(self, owner: _Flattener, function: Function, suffix: str) -> None:
        super().__init__(owner, function, suffix)
        self.owner = owner
        self.frame = owner.frame(function)

    def _place(self, symbol: Operand) -> Address | None:
        if not isinstance(symbol, Symbol) or symbol.name not in self.frame.variables:
            return None
        return Address(Register(recursion.POINTER), self.frame.variables[symbol.name] + symbol.offset)

    def operand(self, operand: Operand) -> Operand:
        place = self._place(operand)
        if place is not None:
            pointer = self.owner._fresh("address")
            self.flat.types[pointer] = "b64"
            operands = (Register(pointer), place.base, Immediate(place.offset))
            self.owner._add("add.u64", operands, self.frame.function.line)
            return Register(pointer)
        if isinstance(operand, Address):
            place = self._place(operand.base)
            if place is not None:
                return Address(place.base, place.offset + operand.offset)
        if isinstance(operand, Vector):  # of a call: variables stay places in memory
            return Vector(tuple([self._place(item) or self.operand(item) for item in operand.items]))
        return super().operand(operand)

    def operation(self, op: Mnemonic, operands: tuple[Operand, ...]) -> Mnemonic:
        """Accesses to parameters of the function are accesses to its frame."""
        if op.opcode in ("ld", "st") and any(
                isinstance(o, Address) and o.base == Register(recursion.POINTER) for o in operands):
            return mnemonic(".".join(
                [op.opcode, *["local" if m.startswith("param") else m for m in op.modifiers]]))
        return op
