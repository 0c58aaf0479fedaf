"""Several PTX texts as one, as a linker of relocatable code joins them.

A declaration of what another text defines goes; what several texts have under one name without showing it to others
(no ``.visible``, ``.weak``, ``.common``) gets names of its own. Debugging sections and line numbers go too: they are
numbered within one text. Nothing is compiled or checked beyond that.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import NamedTuple

from softgpu.engine.errors import EngineError

_TOKEN = re.compile(
    r"""(?P<blank>\s+|//[^\n]*|/\*.*?\*/)|(?P<string>"(?:\\.|[^"\\])*")|(?P<name>[A-Za-z_$%][\w$]*)"""
    r"""|(?P<directive>\.[A-Za-z_][\w$]*)|(?P<number>\d[\w.]*)|(?P<sign>.)""",
    re.DOTALL | re.ASCII,
)
_LINKAGE = (".extern", ".visible", ".weak", ".common")
_SPACES = (".global", ".const", ".shared", ".local", ".param", ".tex")
_FUNCTIONS = (".func", ".entry")
_IN_HEADER = (".version", ".target", ".address_size")
_DEBUGGING = (".file", ".loc", ".section")


class MergeError(EngineError):
    """Texts that do not go together, or not by these rules."""


class Token(NamedTuple):
    """``kind``: blank, string, name, directive, number or sign."""

    kind: str
    text: str


@dataclass
class Statement:
    """One declaration or definition of a module. ``linkage`` is a directive, or empty; pragmas have no name."""

    tokens: list[Token]
    name: str = ""
    linkage: str = ""
    is_definition: bool = False
    is_function: bool = False
    is_kernel: bool = False
    is_shared: bool = False

    @property
    def is_own(self) -> bool:
        """Whether other texts cannot name it; dynamic shared memory is the same for all, whatever it is called."""
        return bool(self.name) and not self.is_kernel and (not self.linkage or self.is_shared)


@dataclass
class _Text:
    number: int
    version: tuple[int, int] = (0, 0)
    target: str = ""
    options: frozenset[str] = frozenset()
    address_size: str = "32"
    statements: list[Statement] = field(default_factory=list)


def merge(texts: Sequence[bytes]) -> bytes:
    """One text of all; of one text itself. Raises MergeError."""
    if len(texts) == 1:
        return texts[0]
    read = [_read(text.decode("utf-8", errors="replace"), number) for number, text in enumerate(texts, 1)]
    if len({text.address_size for text in read}) > 1:
        raise MergeError("texts with different sizes of addresses do not link")
    if len({text.options for text in read}) > 1:
        raise MergeError("texts with different options of .target do not link")
    version = "{}.{}".format(*max(text.version for text in read))
    target = ", ".join([max((text.target for text in read), key=_rank), *sorted(read[0].options)])
    _separate(read)
    parts = [f".version {version}\n.target {target}\n.address_size {read[0].address_size}\n"]
    parts += ["".join(token.text for token in statement.tokens) for statement in _kept(read)]
    return "\n".join(parts).encode()


def _rank(target: str) -> tuple[int, str]:
    digits = re.sub(r"\D", "", target)
    return int(digits or 0), target[-1:] if target[-1:] in "af" else ""


def _separate(texts: list[_Text]) -> None:
    """Rename what is a text's own and has a name that another text uses for something else."""
    everything = [statement for text in texts for statement in text.statements]
    shown = {statement.name for statement in everything if statement.name and not statement.is_own}
    taken = {token.text for statement in everything for token in statement.tokens if token.kind == "name"}
    used: set[str] = set()
    for text in texts:
        own = {statement.name for statement in text.statements if statement.is_own}
        names: dict[str, str] = {}
        for name in sorted(own & (shown | used)):
            names[name] = next(new for n in count(text.number) if (new := f"{name}${n}") not in taken)
            taken.add(names[name])
        used |= own
        if names:
            for statement in text.statements:
                statement.tokens = list(_renamed(statement, names))
                statement.name = names.get(statement.name, statement.name)


def _renamed(statement: Statement, names: dict[str, str]) -> Iterator[Token]:
    """The tokens with other names, but for opcodes: what begins a statement of a body, or follows its guard, and is no
    label."""
    solid = [token for token in statement.tokens if token.kind != "blank"]
    braces: list[bool] = []  # whether each open one holds statements; others hold operands or initial values
    begins, guard = False, False
    position = 0
    for token in statement.tokens:
        if token.kind == "blank":
            yield token
            continue
        position += 1
        if token.kind == "name":
            is_label = position < len(solid) and solid[position].text == ":"
            yield token if begins and not is_label else Token("name", names.get(token.text, token.text))
            begins, guard = guard, False
            continue
        yield token
        if token.text == "{":
            braces.append(statement.is_function and (begins or not braces))
            begins = braces[-1]
        elif token.text == "}":
            begins = bool(braces) and braces.pop()
        elif token.text in ";:":
            begins = bool(braces) and braces[-1]
        elif token.text == "@":
            begins, guard = False, True
        elif token.text != "!":
            begins, guard = False, False


def _kept(texts: list[_Text]) -> list[Statement]:
    """What the joined text has: one definition of each name, and declarations of what nobody defines."""
    definitions: dict[str, Statement] = {}
    for text in texts:
        for statement in text.statements:
            if statement.is_definition and statement.name:
                before = definitions.get(statement.name)
                definitions[statement.name] = statement if before is None else _stronger(before, statement)
    kept: list[Statement] = []
    declared: set[str] = set()
    for text in texts:
        defined = {s.name for s in text.statements if definitions.get(s.name) is s}
        for statement in text.statements:
            if not statement.name or definitions.get(statement.name) is statement:
                kept.append(statement)
            elif not statement.is_definition and (
                statement.name in defined or (statement.name not in definitions and statement.name not in declared)
            ):
                kept.append(statement)
                declared |= {statement.name} - defined
    return kept


def _stronger(first: Statement, second: Statement) -> Statement:
    if second.linkage == ".weak":
        return first
    if first.linkage == ".weak":
        return second
    if first.linkage == second.linkage == ".common" and _solid(first) == _solid(second):
        return first
    raise MergeError(f"multiple definition of '{first.name}'")


def _solid(statement: Statement) -> list[str]:
    return [token.text for token in statement.tokens if token.kind != "blank"]


def _read(source: str, number: int) -> _Text:
    text = _Text(number)
    tokens = [Token(match.lastgroup or "", match.group()) for match in _TOKEN.finditer(source)]
    position = 0
    while position < len(tokens):
        token = tokens[position]
        if token.kind == "blank" or token.text == ";":
            position += 1
        elif token.text in _IN_HEADER or token.text == ".file":
            position = _header(tokens, position, text)
        elif token.kind == "directive":
            end = _statement_end(tokens, position, number)
            if token.text != ".section":
                text.statements.append(_classified(_without_lines(tokens[position:end]), number))
            position = end
        else:
            raise MergeError(f"input {number}: expected a directive, found {token.text[:40]}")
    if not text.target:
        raise MergeError(f"input {number} has no .target")
    linkages = {statement.name: statement.linkage for statement in text.statements if statement.linkage}
    for statement in text.statements:
        statement.linkage = statement.linkage or linkages.get(statement.name, "")
    return text


def _header(tokens: list[Token], position: int, text: _Text) -> int:
    """Go past a directive of the header, which ends where no comma is between its words."""
    keyword = tokens[position].text
    words: list[str] = []
    comma = True
    for end in range(position + 1, len(tokens) + 1):
        if end == len(tokens):
            break
        token = tokens[end]
        if token.kind == "blank":
            continue
        if token.text == ",":
            comma = True
        elif comma or (keyword == ".file" and len(words) == 1):
            words.append(token.text)
            comma = False
        else:
            break
    if keyword == ".version" and re.fullmatch(r"\d+\.\d+", words[0] if words else ""):
        major, minor = words[0].split(".")
        text.version = (int(major), int(minor))
    elif keyword == ".target" and words:
        text.target = words[0]
        text.options = frozenset(words[1:]) - {"debug"}
    elif keyword == ".address_size" and words:
        text.address_size = words[0]
    elif keyword != ".file":
        raise MergeError(f"input {text.number}: {keyword} lacks what belongs to it")
    return end


def _statement_end(tokens: list[Token], start: int, number: int) -> int:
    """Behind the semicolon, or behind the body of a function or section."""
    depth = 0
    has_body = False
    for position in range(start, len(tokens)):
        token = tokens[position]
        if token.kind == "directive" and depth == 0 and token.text in (*_FUNCTIONS, ".section"):
            has_body = True
        if token.kind != "sign":
            continue
        if token.text in "({[":
            depth += 1
        elif token.text in ")}]":
            depth -= 1
            if depth == 0 and token.text == "}" and has_body:
                return position + 1
        elif token.text == ";" and depth == 0:
            return position + 1
    raise MergeError(f"input {number}: the text ends within a statement")


def _without_lines(tokens: list[Token]) -> list[Token]:
    """Without ``.loc`` and what follows it on its line."""
    kept: list[Token] = []
    skipping = False
    for token in tokens:
        if skipping and token.kind == "blank" and "\n" in token.text:
            skipping = False
        if token.text == ".loc":
            skipping = True
        if not skipping:
            kept.append(token)
    return kept


def _classified(tokens: list[Token], number: int) -> Statement:
    statement = Statement(tokens)
    words = {token.text for token in _head(tokens) if token.kind == "directive"}
    statement.is_function = bool(words & set(_FUNCTIONS))
    statement.is_kernel = ".entry" in words
    statement.is_shared = ".shared" in words and not statement.is_function
    statement.linkage = next((word for word in _LINKAGE if word in words), "")
    if ".pragma" in words:
        return statement
    if not statement.is_function and not words & {*_SPACES, ".alias"}:
        raise MergeError(f"input {number}: cannot link {tokens[0].text}")
    names = [token.text for token in _head(tokens) if token.kind == "name"]
    if not names:
        raise MergeError(f"input {number}: a declaration without a name")
    if not statement.is_function and ".alias" not in words and len(names) > 1:
        raise MergeError(f"input {number}: cannot link a declaration of several names, {', '.join(names[:3])}")
    statement.name = names[0]
    has_body = any(token.text == "{" for token in tokens)
    statement.is_definition = has_body if statement.is_function else statement.linkage != ".extern"
    return statement


def _head(tokens: list[Token]) -> Iterator[Token]:
    """What stands before the initialiser or body, without what is in brackets."""
    depth = 0
    for token in tokens:
        if token.kind == "sign" and token.text in "([":
            depth += 1
        elif token.kind == "sign" and token.text in ")]":
            depth -= 1
        elif depth == 0 and token.text in ("{", "="):
            return
        elif depth == 0:
            yield token
