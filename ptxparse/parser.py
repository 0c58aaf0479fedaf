"""Text of a PTX module to :class:`~ptxparse.model.Module`, in one pass over the text.

Instructions go through one regular expression each and operand texts through a cache: that is where the time goes.
Everything rarer is read token by token. Unknown directives are kept as notes; unknown opcodes are instructions like
any other. Names are made unique on the way (see ``scope``).
"""

from __future__ import annotations

import gc
import re
from collections.abc import Iterable
from typing import NoReturn

from ptxparse import declarations
from ptxparse.errors import PtxError
from ptxparse.model import (
    Function,
    Instruction,
    Mnemonic,
    Module,
    Note,
    Operand,
    Register,
    Symbol,
    Variable,
    Vector,
)
from ptxparse.scope import DEEPEST_SCOPE, Names, OperandError, split_operands
from ptxparse.source import Source, blank_comments

NEWEST_VERSION = (9, 5)
"""The newest PTX ISA version whose manual this reader was written against."""

_STATEMENT = re.compile(
    r"""\s*+(?:
      (?P<label>[A-Za-z_$%][\w$]*+)\s*+:(?!:)
    | (?:@\s*+(?P<negated>!?)\s*+(?P<predicate>[\w$%]++)\s++)?
      (?P<mnemonic>[a-z][a-z0-9_]*+(?:(?:\.|::|(?<=\d):)\w++)*+)(?![\w$])(?P<operands>[^;]*+);
    | (?P<brace>[{}])
    | (?P<directive>\.[A-Za-z_]\w*+)
    )""",
    re.VERBOSE,
)
_LINKAGES = (".extern", ".visible", ".weak", ".common")
_SPACES = (".global", ".const", ".shared", ".local", ".param", ".tex", ".surf", ".sampler")
_LINE_DIRECTIVES = (".loc", ".file", ".loc_intermediate")
_IN_FUNCTION = re.compile(r"""(?:"[^"\n]*"|[^\n;{}"])*+(?:;|(?=([{}]))|.?)""")
_UNKNOWN = re.compile(r"""(?:"[^"\n]*"|[^;{\n]|\n(?![^\S\n]*+\.))*+""")
_UNENDED = re.compile(r"\s*(?:@\s*!?\s*[\w$%]+\s+)?[a-z][\w.:]*")
_MOST_MNEMONICS = 20_000
_REST_OF_LINE = re.compile(r"[^\n]*+")
_VERSION = re.compile(r"\s*(\d{1,3})\.(\d{1,3})")


def parse(text: str, path: str = "") -> Module:
    """Read a module. Raises :class:`PtxError` with line, column and what was expected."""
    collecting = gc.isenabled()
    gc.disable()  # a module is many small objects without cycles: looking for them costs a third of the time
    try:
        return _ModuleParser(Source(blank_comments(text.rstrip("\0"), path), path)).module_text()
    finally:
        if collecting:
            gc.enable()


def mnemonic(text: str, known: dict[str, Mnemonic] = {}) -> Mnemonic:  # noqa: B006 - the cache is the point
    """The mnemonic split at its dots; the same object for the same text."""
    found = known.get(text)
    if found is None:
        if len(known) > _MOST_MNEMONICS:
            known.clear()
        opcode, *modifiers = text.split(".")
        found = known[text] = Mnemonic(text, opcode, tuple(modifiers))
    return found


class _ModuleParser:
    def __init__(self, source: Source) -> None:
        self.source = source
        self.module = Module()
        self.percent_variables: set[str] = set()

    def module_text(self) -> Module:
        source = self.source
        source.skip_blanks()
        if source.peek() != ".version":
            source.fail(".version, with which every module begins")
        while (start := source.skip_blanks()) < len(source.text):
            token = source.take()
            if token == ".section":
                self._section(start)
            elif token in _LINE_DIRECTIVES:
                self._rest_of_line()
            elif token[:1] == "." and not token[1:2].isdigit() and len(token) > 1:
                self._directive(token, start)
            else:
                source.fail("a directive such as .version, .visible or .global", start)
        return self.module

    def _directive(self, token: str, start: int) -> None:
        source, module = self.source, self.module
        if token == ".version":
            found = _VERSION.match(source.text, source.position)
            if found is None:
                source.fail("a version such as 8.0")
            source.position = found.end()
            module.version = (int(found.group(1)), int(found.group(2)))
            if module.version > NEWEST_VERSION:
                newest = ".".join(map(str, NEWEST_VERSION))
                module.notes.append(Note("newer version", f"{found.group().strip()} > {newest}", source.line_at(start)))
        elif token == ".target":
            names = [source.take_name("a target")]
            while source.take_if(","):
                names.append(source.take_name("a target"))
            module.targets = tuple(names)
        elif token == ".address_size":
            module.address_size = source.take_integer("32 or 64")
        elif token == ".alias":
            alias = source.take_name("an alias")
            source.expect(",")
            module.aliases[alias] = source.take_name("a function")
            source.expect(";")
        else:
            self._declaration(token, start)

    def _declaration(self, token: str, start: int) -> None:
        source, module = self.source, self.module
        linkage = ""
        start_after = start
        while token in _LINKAGES:
            linkage = token[1:]
            start_after = source.skip_blanks()
            token = source.take()
        if token in (".entry", ".func"):
            parser = _FunctionParser(source, module, self.percent_variables)
            module.functions.append(parser.function(token == ".entry", linkage, start))
        elif token in _SPACES:
            declared = declarations.variables(source, token[1:], linkage, module.notes)
            module.variables += declared
            self.percent_variables.update(v.name for v in declared if v.name[0] == "%")
        elif linkage:
            source.fail(".entry, .func or a state space such as .global after a linkage directive", start_after)
        else:
            self._unknown(token, start)

    def _unknown(self, token: str, start: int) -> None:
        """Keep an unknown directive as a note and go past it: up to its ``;``, over its ``{ }``, or to the line's end
        when the next line starts a directive of its own."""
        source = self.source
        found = _UNKNOWN.match(source.text, source.position)
        assert found is not None
        source.position = found.end()
        text = " ".join(source.text[start:found.end()].split())
        self.module.notes.append(Note("unknown directive", text[:200], source.line_at(start)))
        if source.take_if("{"):
            source.skip_balanced("{", "}")
        else:
            source.take_if(";")

    def _section(self, start: int) -> None:
        source = self.source
        brace = source.text.find("{", source.position)
        if brace < 0:
            source.fail("a section's contents in { }")
        source.position = brace + 1
        source.skip_balanced("{", "}")

    def _rest_of_line(self) -> None:
        found = _REST_OF_LINE.match(self.source.text, self.source.position)
        assert found is not None
        self.source.position = found.end()


class _FunctionParser:
    def __init__(self, source: Source, module: Module, percent_variables: Iterable[str] = ()) -> None:
        self.source = source
        self.module = module
        self.percent_variables = percent_variables

    def function(self, is_entry: bool, linkage: str, start: int) -> Function:
        """A function from just after ``.entry`` or ``.func``, to the end of its body or its ``;``."""
        source = self.source
        line = source.line_at(start)
        while source.take_if(".attribute"):
            source.expect("(")
            source.skip_balanced("(", ")")
        results = self._parameters() if source.take_if("(") else []
        function = Function(source.take_name("a function"), is_entry, line, linkage, results=results)
        names = Names(function, source, self.percent_variables)
        if source.take_if("("):
            function.parameters = self._parameters()
        for variable in results + function.parameters:
            if variable.space == "reg":
                function.register_types[variable.name] = variable.type
                names.registers.add(variable.name)
            elif variable.name[0] == "%":
                names.percent_variables.add(variable.name)
        self._performance_directives(function)
        if not source.take_if(";"):
            source.expect("{", "opening a function body, or ';'")
            function.instructions = []
            _BodyParser(source, self.module, function, names).body()
        return function

    def _parameters(self) -> list[Variable]:
        source = self.source
        declared: list[Variable] = []
        while not source.take_if(")"):
            if declared:
                source.expect(",", "or ')' after a parameter")
            start = source.skip_blanks()
            space = source.take()
            if space not in (".param", ".reg"):
                source.fail(".param or .reg", start)
            declared.append(declarations.parameter(source, space[1:], self.module.notes))
        return declared

    def _performance_directives(self, function: Function) -> None:
        source = self.source
        while (token := source.peek())[:1] == ".":
            line = source.line_at(source.skip_blanks())
            source.take()
            if token == ".pragma":
                _pragma(source)
                continue
            numbers = []
            while source.peek()[:1].isdigit():
                numbers.append(source.take_integer("a number"))
                if not source.take_if(","):
                    break
            function.directives[token[1:]] = tuple(numbers)
            if token[1:] not in _FUNCTION_DIRECTIVES:
                self.module.notes.append(Note("unknown directive", token, line))
                while (token := source.peek()) and token not in ("{", ";") and token[0] != ".":
                    source.take()


_FUNCTION_DIRECTIVES = frozenset(
    {
        "maxnreg", "maxntid", "reqntid", "minnctapersm", "maxnctapersm", "noreturn", "explicitcluster",
        "reqnctapercluster", "maxclusterrank", "blocksareclusters", "abi_preserve", "abi_preserve_control",
        "minperctamemory", "unroll",
    }
)


class _BodyParser:
    def __init__(self, source: Source, module: Module, function: Function, names: Names) -> None:
        self.source = source
        self.module = module
        self.function_ = function
        self.names = names
        self.instructions: list[Instruction] = function.instructions if function.instructions is not None else []

    def body(self) -> None:
        """Statements up to the brace that closes the function."""
        source, names, instructions = self.source, self.names, self.instructions
        text, position = source.text, source.position
        match, count, operands_of = _STATEMENT.match, text.count, names.operands
        mark, line = position, source.line_at(position)
        inner = False
        while True:
            found = match(text, position)
            if found is None:
                self._no_statement(position)
            label, negated, predicate, op, operands, brace, directive = found.groups()
            if op is not None:
                start = found.start("mnemonic")
                line += count("\n", mark, start)
                mark = start
                position = found.end()
                try:
                    if op[:4] == "call" and (op == "call" or op[4] == "."):
                        arguments = self._call(operands)
                    else:
                        arguments = operands_of(operands)
                    instruction = Instruction(mnemonic(op), arguments, line)
                    if predicate is not None:
                        self._guard(instruction, predicate, negated)
                except OperandError as error:
                    self._operand_error(error, found.start("operands"), operands)
                instructions.append(instruction)
                if inner:
                    names.used(instruction)
                continue
            position = found.end()
            if label is not None:
                if not names.declare_label(label, len(instructions)):
                    source.fail(f"a label that is not yet in this scope ({label} is)", found.start("label"))
                position = self._after_label(label, position)
            elif brace == "{":
                if len(names.scopes) > DEEPEST_SCOPE:
                    source.fail(f"scopes nested at most {DEEPEST_SCOPE} deep", found.start("brace"))
                names.open()
                inner = True
            elif brace == "}":
                if not inner:
                    break
                names.close()
                inner = len(names.scopes) > 1
            else:
                source.position = position
                self._directive(directive, found.start("directive"))
                position = source.position
        source.position = position
        self.function_.end_line = source.line_at(position)

    def _no_statement(self, position: int) -> NoReturn:
        source = self.source
        unended = _UNENDED.match(source.text, position)
        if unended is not None and source.text.find(";", unended.end()) < 0:
            source.fail("';' ending this instruction", unended.end())
        source.fail("an instruction, a label, a directive or '}'", _past_blanks(source.text, position))

    def _guard(self, instruction: Instruction, predicate: str, negated: str) -> None:
        register = self.names.resolve(predicate)
        if not isinstance(register, Register):
            raise OperandError("a declared predicate register after @", predicate)
        instruction.predicate = register
        instruction.negated = bool(negated)

    def _operand_error(self, error: OperandError, start: int, operands: str) -> None:
        offset = operands.find(error.text) if error.text else len(operands)
        source = self.source
        try:
            source.fail(error.expected, _past_blanks(source.text, start + max(offset, 0)))
        except PtxError as located:
            raise located from error

    def _call(self, text: str) -> tuple[Operand, ...]:
        parts = [part.strip() for part in split_operands(text.strip())]
        names = self.names
        results: Operand = Vector(())
        arguments: Operand = Vector(())
        prototype: Operand = Symbol("")
        if parts and parts[0][:1] == "(":
            results = names.arguments(parts.pop(0))
        if not parts:
            raise OperandError("the function to call", "")
        target = names.resolve(parts.pop(0))
        if parts and parts[0][:1] == "(":
            arguments = names.arguments(parts.pop(0))
        if parts:
            prototype = names.resolve(parts.pop(0))
        if parts:
            raise OperandError("';' after a call", parts[0])
        return (results, target, arguments, prototype)

    def _after_label(self, label: str, position: int) -> int:
        """Directives that belong to the label before them: branch and call targets, prototypes."""
        source = self.source
        if source.text.find(".", position) < 0:
            return position
        source.position = position
        directive = source.peek()
        if directive in (".branchtargets", ".calltargets"):
            source.take()
            targets = [source.take_name("a target")]
            while source.take_if(","):
                targets.append(source.take_name("a target"))
            source.expect(";")
            unique = self._unique_label(label)
            self.function_.branch_targets[unique] = tuple(targets)
            if len(self.names.scopes) > 1:
                self.names.scopes[-1].lists.append(unique)
        elif directive == ".callprototype":
            source.take()
            parser = _FunctionParser(source, self.module)
            results = parser._parameters() if source.take_if("(") else []
            source.take_name("a prototype (or _)")
            parameters = parser._parameters() if source.take_if("(") else []
            parser._performance_directives(Function("", False, 0))
            source.expect(";")
            self.function_.prototypes[self._unique_label(label)] = (tuple(results), tuple(parameters))
        else:
            return position
        return source.position

    def _unique_label(self, label: str) -> str:
        return self.names.scopes[-1].labels.get(label, label)

    def _directive(self, directive: str, start: int) -> None:
        source = self.source
        if directive == ".reg":
            for declaration in declarations.registers(source, source.line_at(start)):
                self.names.declare_registers(declaration)
        elif directive in _LINE_DIRECTIVES:
            found = _REST_OF_LINE.match(source.text, source.position)
            assert found is not None
            source.position = found.end()
        elif directive in _SPACES or directive in _LINKAGES:
            while directive in _LINKAGES:
                directive = source.take()
            if directive not in _SPACES:
                source.fail("a state space such as .shared", start)
            for variable in declarations.variables(source, directive[1:], "", self.module.notes):
                self.names.declare_variable(variable)
        elif directive == ".pragma":
            _pragma(source)
        elif directive == ".section":
            source.position = source.text.find("{", source.position) + 1 or source.fail("a section's contents in { }")
            source.skip_balanced("{", "}")
        else:
            found = _IN_FUNCTION.match(source.text, source.position)
            assert found is not None
            text = " ".join(source.text[start:found.end()].split())
            self.module.notes.append(Note("unknown directive", text[:200], source.line_at(start)))
            source.position = found.end()
            if found.group(1) == "{":
                source.take()
                source.skip_balanced("{", "}")


def _pragma(source: Source) -> None:
    """The strings after ``.pragma``: hints to the assembler, without meaning here."""
    while True:
        if source.peek()[:1] != '"':
            source.fail("a string after .pragma")
        source.take()
        if not source.take_if(","):
            break
    source.expect(";", "after .pragma")


def _past_blanks(text: str, position: int) -> int:
    while position < len(text) and text[position].isspace():
        position += 1
    return position
