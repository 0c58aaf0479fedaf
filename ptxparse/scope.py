"""Names inside one function: nested scopes, and operands cached by their text.

What an inner ``{ }`` declares is renamed ``name$N`` (N counts the function's scopes), so that names are unique in a
function. The same operand text means the same operand until a declaration changes that, hence the cache.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

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
# A component is that of a vector (.x, .r) or of a video instruction's operand (.b0, .h10).
_PERCENT_NAME = re.compile(r"%[\w$]+(?:\.(?:[xyzwrgba]|[bh]\d{1,4}))?")
_NAME_AND_OFFSET = re.compile(
    r"([%A-Za-z_$][\w$]*(?:\.(?:[xyzwrgba]|[bh]\d{1,4}))?)\s*(?:\[([^\[\]]*)\]|\+([^\[\]]*)|(-[^\[\]]*))?"
)
_PARTS = re.compile(r"(?:[^,{}()\[\]]++|\{[^{}]*\}|\((?:[^()]|\([^()]*\))*\)|\[[^\[\]]*\])++")
_LONGEST_NUMBER = 9


class OperandError(ValueError):
    """An operand that cannot be read; carries what was expected and the text it was expected in."""

    def __init__(self, expected: str, text: str) -> None:
        super().__init__(expected)
        self.expected = expected
        self.text = text


class Scope:
    """One ``{ }``. ``names`` maps declared names to their unique ones, ``ranges`` register stems likewise; ``uses``
    holds the instructions that name a symbol which may yet turn out to be a label of this scope or an outer one."""

    def __init__(self, number: int, cache: dict[str, Operand]) -> None:
        self.number = number
        self.names: dict[str, str] = {}
        self.ranges: dict[str, tuple[str, int]] = {}
        self.labels: dict[str, str] = {}
        self.uses: dict[str, list[Instruction]] = {}
        self.lists: list[str] = []
        self.cache = cache
        self.owns_cache = number == 0


class Names:
    """The open scopes of the function being parsed; turns operand text into operands."""

    def __init__(self, function: Function, source: Source, percent_variables: Iterable[str] = ()) -> None:
        self.function = function
        self.scopes = [Scope(0, {})]
        self.count = 0
        self.registers: set[str] = set()
        self.percent_variables = set(percent_variables)
        self._source = source
        self._mark = ""

    def open(self) -> None:
        """Enter an inner scope."""
        self._mark = self._source.renaming_mark()
        self.count += 1
        self.scopes.append(Scope(self.count, self.scopes[-1].cache))

    def used(self, instruction: Instruction) -> None:
        """Note the symbols of an instruction in an inner scope: they may be labels that come later."""
        for operand in instruction.operands:
            if type(operand) is Symbol:
                self.scopes[-1].uses.setdefault(operand.name, []).append(instruction)

    def close(self) -> None:
        """Leave the innermost scope: its labels become unique, in the instructions that refer to them too."""
        scope = self.scopes.pop()
        outer = self.scopes[-1]
        for name, unique in scope.labels.items():
            for instruction in scope.uses.pop(name, ()):
                instruction.operands = tuple(
                    [Symbol(unique, o.offset) if type(o) is Symbol and o.name == name else o
                     for o in instruction.operands]
                )
        targets = self.function.branch_targets
        for list_ in scope.lists:
            targets[list_] = tuple([scope.labels.get(target, target) for target in targets[list_]])
        if outer.number:
            outer.lists += scope.lists
            if len(outer.uses) < len(scope.uses):
                outer.uses, scope.uses = scope.uses, outer.uses
            for name, instructions in scope.uses.items():
                outer.uses.setdefault(name, []).extend(instructions)

    def _declare(self, name: str) -> str:
        scope = self.scopes[-1]
        if scope.number == 0:
            return name
        if not scope.owns_cache:
            scope.cache = {}
            scope.owns_cache = True
        scope.cache.clear()
        scope.names[name] = unique = f"{name}{self._mark}{scope.number}"
        return unique

    def declare_variable(self, variable: Variable) -> None:
        """Add a variable of the function's body."""
        variable.name = self._declare(variable.name)
        if variable.name[0] == "%":
            self.percent_variables.add(variable.name)
            self.scopes[-1].cache.clear()
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
            scope.labels[name] = unique = f"{name}{self._mark}{scope.number}"
        elif name in self.function.labels:
            return False
        self.function.labels[unique] = index
        return True

    def resolve(self, name: str) -> Operand:
        """The register or symbol that a name means in the innermost scope."""
        name, dot, component = name.partition(".")
        stem = name.rstrip("0123456789")
        number = name[len(stem):]
        if len(number) > 1 and number[0] == "0":
            number = number.lstrip("0") or "0"  # the assembler takes %r01 for %r1
        for scope in reversed(self.scopes[1:]):
            if name in scope.names:
                name = scope.names[name]
                break
            if number and stem in scope.ranges:
                unique, count = scope.ranges[stem]
                if len(number) <= _LONGEST_NUMBER and int(number) < count:
                    return Register(unique + number + dot + component)
        if name in self.registers:
            return Register(name + dot + component)
        if number and (stem[:1] == "%" or stem in self.registers) and self._in_range(stem, number):
            return Register(stem + number + dot + component)
        if name == "_" or (name[0] == "%" and name not in self.percent_variables):
            return Register(name + dot + component)
        if name == "WARP_SZ":
            return Immediate(32)
        return Symbol(name)

    def _in_range(self, stem: str, number: str) -> bool:
        declared = self.function.register_ranges.get(stem)
        return declared is not None and len(number) <= _LONGEST_NUMBER and int(number) < declared[1]

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
        if first == "{":
            if text[-1] != "}":
                raise OperandError("'}' closing a vector", text)
            return Vector(self._list(text, depth))
        if first == "!":
            return Negated(self._cached(text[1:], depth + 1))
        if first == "-" and (found := _NAME_AND_OFFSET.fullmatch(text[1:].lstrip())) and found.lastindex == 1:
            return Negated(self.resolve(found.group(1)))  # only video instructions negate registers so
        if first.isdigit() or first in "-+~.(":
            return self._constant(text)
        if "|" in text:
            one, _, two = text.partition("|")
            return Pair(self._cached(one, depth + 1), self._cached(two, depth + 1))
        found = _NAME_AND_OFFSET.fullmatch(text)
        if found is None:
            raise OperandError("an operand" if "\n" not in text else "';' ending the instruction, or an operand", text)
        operand = self.resolve(found.group(1))
        offset = self._offset(found)
        if not offset:
            return operand
        if not isinstance(operand, Symbol):
            raise OperandError("a variable before an offset", text)
        return Symbol(operand.name, offset)

    def arguments(self, text: str) -> Vector:
        """The parenthesised list of a call."""
        if text[-1] != ")":
            raise OperandError("')' closing this list", text)
        return Vector(self._list(text, 0))

    def _list(self, text: str, depth: int) -> tuple[Operand, ...]:
        inside = text[1:-1].strip()
        return tuple([self._cached(part, depth + 1) for part in split_operands(inside)]) if inside else ()

    def _offset(self, found: re.Match[str]) -> int:
        if found.lastindex == 1:
            return 0
        written = found.group(found.lastindex or 0)
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
            raise OperandError("a comma or ';' after a constant", text)
        return Immediate(value) if isinstance(value, int) else value

    def _address(self, text: str, depth: int) -> Operand:
        if text[-1] != "]":
            text = text.removesuffix(".unified").rstrip()
            if text[-1] != "]":
                raise OperandError("']' closing an address", text)
        inside = text[1:-1].strip()
        if "," not in inside:
            return Address(*self._base(inside, text))
        parts = split_operands(inside)
        return Address(*self._base(parts[0].strip(), text), tuple([self._cached(p, depth + 1) for p in parts[1:]]))

    def _base(self, inside: str, text: str) -> tuple[Operand, int]:
        """What an address starts from and the offset in bytes added to it; `text` is the whole address, for errors."""
        found = _NAME_AND_OFFSET.fullmatch(inside)
        if found is None:
            if not inside:
                raise OperandError("an address", text)
            base_operand = self._constant(inside)
            if not isinstance(base_operand, Immediate):
                raise OperandError("an integer address", text)
            return base_operand, 0
        return self.resolve(found.group(1)), self._offset(found)


def split_operands(text: str) -> list[str]:
    """Split at the commas outside brackets."""
    parts = _PARTS.findall(text)
    if ",".join(parts) != text:  # something lay between the parts: an unbalanced bracket, an empty operand
        raise _unsplittable(text)
    return [str(part) for part in parts]


def _unsplittable(text: str) -> OperandError:
    """What is wrong where operands cannot be told apart."""
    position = 0
    for part in _PARTS.finditer(text):
        if part.start() != position:
            break
        position = part.end()
        if text[position:position + 1] == ",":
            position += 1
    mark = text[position:position + 1]
    if mark in ("(", "[", "{"):
        return OperandError(f"{')]}'['([{'.index(mark)]!r} closing this bracket", text[position:])
    if mark in (")", "]", "}"):
        return OperandError(f"no {mark!r} without its opening bracket", text[position:])
    return OperandError("an operand after each comma", text[position:])
