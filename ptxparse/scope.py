"""Names inside one function: nested scopes, and operands cached by their text.

What an inner ``{ }`` declares is renamed ``name$N`` (N counts the function's scopes), so that names are unique in a
function. The same operand text means the same operand until a declaration changes that, hence the cache.
"""

from __future__ import annotations

import re

from ptxparse.constants import constant
from ptxparse.errors import PtxError
from ptxparse.model import (
    Address,
    Function,
    Immediate,
    Instruction,
    Negated,
    Operand,
    Pair,
    Register,
    RegisterDeclaration,
    Symbol,
    Variable,
    Vector,
)
from ptxparse.source import Source

DEEPEST_SCOPE = 500
_DEEPEST_OPERAND = 16
_PERCENT_NAME = re.compile(r"%[\w$]+(?:\.[xyzwrgba])?")
_NAME = re.compile(r"[A-Za-z_$][\w$]*(?:\.[xyzwrgba])?")
_NAME_AND_OFFSET = re.compile(r"([%A-Za-z_$][\w$]*(?:\.[xyzwrgba])?)\s*(?:\+\s*([-\w]+)|\[\s*(\w+)\s*\]|(-\s*\w+))?")
_PARTS = re.compile(r"(?:[^,{}()\[\]]|\{[^{}]*\}|\((?:[^()]|\([^()]*\))*\)|\[[^\[\]]*\])+")


class OperandError(ValueError):
    """An operand that cannot be read; carries what was expected and the text it was expected in."""

    def __init__(self, expected: str, text: str) -> None:
        super().__init__(expected)
        self.expected = expected
        self.text = text


class Scope:
    """One ``{ }``. ``names`` maps declared names to their unique ones, ``ranges`` register stems likewise."""

    def __init__(self, number: int, first_instruction: int, cache: dict[str, Operand]) -> None:
        self.number = number
        self.first_instruction = first_instruction
        self.names: dict[str, str] = {}
        self.ranges: dict[str, tuple[str, int]] = {}
        self.labels: dict[str, str] = {}
        self.cache = cache
        self.owns_cache = number == 0


class Names:
    """The open scopes of the function being parsed; turns operand text into operands."""

    def __init__(self, function: Function) -> None:
        self.function = function
        self.scopes = [Scope(0, 0, {})]
        self.count = 0
        self.registers: set[str] = set()

    def open(self, first_instruction: int) -> None:
        """Enter an inner scope."""
        self.count += 1
        self.scopes.append(Scope(self.count, first_instruction, self.scopes[-1].cache))

    def close(self, instructions: list[Instruction]) -> None:
        """Leave the innermost scope: its labels become unique, in the instructions that may refer to them too."""
        scope = self.scopes.pop()
        if not scope.labels:
            return
        for instruction in instructions[scope.first_instruction:]:
            if any(isinstance(o, Symbol) and o.name in scope.labels for o in instruction.operands):
                instruction.operands = tuple(
                    Symbol(scope.labels.get(o.name, o.name), o.offset) if isinstance(o, Symbol) else o
                    for o in instruction.operands
                )
        targets = self.function.branch_targets
        for name in scope.labels.values():
            if name in targets:
                targets[name] = tuple(scope.labels.get(target, target) for target in targets[name])

    def _declare(self, name: str) -> str:
        scope = self.scopes[-1]
        if scope.number == 0:
            return name
        if not scope.owns_cache:
            scope.cache = {}
            scope.owns_cache = True
        scope.cache.clear()
        scope.names[name] = unique = f"{name}${scope.number}"
        return unique

    def declare_variable(self, variable: Variable) -> None:
        """Add a variable of the function's body."""
        variable.name = self._declare(variable.name)
        self.function.variables.append(variable)

    def declare_registers(self, declaration: RegisterDeclaration) -> None:
        """Add registers; in the outermost scope they keep their names."""
        function = self.function
        stem = self._declare(declaration.name)
        if declaration.count is not None:
            if self.scopes[-1].number:
                stem += "$"
                self.scopes[-1].ranges[declaration.name] = (stem, declaration.count)
            function.register_ranges[stem] = (declaration.type, declaration.count)
            if not stem.startswith("%"):
                self.registers.add(stem)
        else:
            function.register_types[stem] = declaration.type
            self.registers.add(stem)
        declaration.name = stem
        function.registers.append(declaration)
        self.scopes[-1].cache.clear()

    def declare_label(self, name: str, index: int) -> bool:
        """Add a label at an instruction index; False if the scope has it already."""
        scope = self.scopes[-1]
        unique = name
        if scope.number:
            if name in scope.labels:
                return False
            scope.labels[name] = unique = f"{name}${scope.number}"
        elif name in self.function.labels:
            return False
        self.function.labels[unique] = index
        return True

    def resolve(self, name: str) -> Operand:
        """The register or symbol that a name means in the innermost scope."""
        stem = name.rstrip("0123456789")
        component = ""
        if len(name) > 2 and name[-2] == "." and name[0] != "%":
            name, component = name[:-2], name[-2:]
        for scope in reversed(self.scopes[1:]):
            if name in scope.names:
                name = scope.names[name]
                break
            if stem != name and stem in scope.ranges:
                unique, count = scope.ranges[stem]
                if int(name[len(stem):]) < count:
                    name = unique + name[len(stem):]
                    break
        if name[0] == "%" or name in self.registers or name == "_" or self._in_range(name):
            return Register(name + component)
        if name == "WARP_SZ":
            return Immediate(32)
        return Symbol(name)

    def _in_range(self, name: str) -> bool:
        stem = name.rstrip("0123456789")
        if stem == name or stem not in self.registers:
            return False
        declared = self.function.register_ranges.get(stem)
        return declared is not None and len(name) - len(stem) < 10 and int(name[len(stem):]) < declared[1]

    def operands(self, text: str) -> tuple[Operand, ...]:
        """The operands of an instruction from the text after its mnemonic."""
        text = text.strip()
        if not text:
            return ()
        cache = self.scopes[-1].cache
        if "{" not in text and "(" not in text:
            try:
                return tuple([cache[part.strip()] for part in text.split(",")])
            except KeyError:
                pass
        return tuple([self._cached(part) for part in split_operands(text)])

    def _cached(self, text: str, depth: int = 0) -> Operand:
        text = text.strip()
        cache = self.scopes[-1].cache
        found = cache.get(text)
        if found is None:
            if depth > _DEEPEST_OPERAND:
                raise OperandError("a less deeply nested operand", text)
            found = self._operand(text, depth)
            cache[text] = found
        return found

    def _operand(self, text: str, depth: int) -> Operand:
        if not text:
            raise OperandError("an operand between commas", text)
        first = text[0]
        if first == "%" and _PERCENT_NAME.fullmatch(text):
            return self.resolve(text)
        if first == "[":
            return self._address(text, depth)
        if first == "{" or first == "(":
            if text[-1] != ("}" if first == "{" else ")"):
                if first == "(":
                    return self._constant(text)
                raise OperandError("'}' closing a vector", text)
            if first == "(" and depth:
                return self._constant(text)
            inside = text[1:-1].strip()
            parts = split_operands(inside) if inside else []
            return Vector(tuple([self._cached(part, depth + 1) for part in parts]))
        if first == "!":
            return Negated(self._cached(text[1:], depth + 1))
        if "|" in text:
            one, _, two = text.partition("|")
            return Pair(self._cached(one, depth + 1), self._cached(two, depth + 1))
        if first.isdigit() or first in "-+~.":
            return self._constant(text)
        found = _NAME_AND_OFFSET.fullmatch(text)
        if found is None:
            raise OperandError("an operand", text)
        operand = self.resolve(found.group(1))
        offset = self._offset(found)
        if not offset:
            return operand
        if not isinstance(operand, Symbol):
            raise OperandError("a variable before an offset", text)
        return Symbol(operand.name, offset)

    def _offset(self, found: re.Match[str]) -> int:
        plus, index, minus = found.group(2), found.group(3), found.group(4)
        written = plus or index or minus
        if written is None:
            return 0
        value = self._constant(written)
        if not isinstance(value, Immediate):
            raise OperandError("an integer offset", written)
        return value.value

    def _constant(self, text: str) -> Operand:
        source = Source(text)
        try:
            value = constant(source)
        except PtxError as error:
            raise OperandError(error.expected, text) from None
        if source.peek():
            raise OperandError("an operand or a comma", text)
        return Immediate(value) if isinstance(value, int) else value

    def _address(self, text: str, depth: int) -> Operand:
        if text[-1] != "]":
            raise OperandError("']' closing an address", text)
        inside = text[1:-1].strip()
        if "," in inside:
            parts = split_operands(inside)
            base = self._address(f"[{parts[0]}]", depth + 1)
            assert isinstance(base, Address)
            return Address(base.base, base.offset, tuple([self._cached(p, depth + 1) for p in parts[1:]]))
        found = _NAME_AND_OFFSET.fullmatch(inside)
        if found is None:
            if not inside:
                raise OperandError("an address", text)
            base_operand = self._constant(inside)
            if not isinstance(base_operand, Immediate):
                raise OperandError("an integer address", text)
            return Address(base_operand)
        operand = self.resolve(found.group(1))
        return Address(operand, self._offset(found))


def split_operands(text: str) -> list[str]:
    """Split at the commas outside brackets."""
    parts = _PARTS.findall(text)
    # What the pattern cannot cover (an unbalanced bracket, an empty operand) is shorter than the text it came from.
    if sum(map(len, parts)) + max(len(parts) - 1, 0) != len(text):
        raise OperandError("balanced brackets and an operand after each comma", text)
    return [str(part) for part in parts]
