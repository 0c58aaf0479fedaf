"""Source text of a module: comments blanked out, positions turned into lines and columns."""

from __future__ import annotations

import re
from typing import NoReturn

from ptxparse.errors import PtxError

_LINE_COMMENT = re.compile(r"//[^\n]*")
_COMMENT_OR_STRING = re.compile(r'"[^"\n]*"|//[^\n]*|/\*')
_NUMBERED = re.compile(r"(?<!\$)(\$++)\d++(?![\w$])")
_BLANKS = re.compile(r"\s*+")
_NOT_NEWLINE = re.compile(r"[^\n]")
_TOKEN = re.compile(
    r"""\s*+(?:
      (?P<string>"[^"\n]*")
    | (?P<number>0[xX]\w+ | 0[fF][0-9a-fA-F]{8}\b | 0[dD][0-9a-fA-F]{16}\b | \.?[0-9][\w.]*(?:(?<=[eE])[+-]\d+)?)
    | (?P<word>\.?[A-Za-z_$%][\w$]*(?:::[\w$]+)*)
    | (?P<mark><<|>>|<=|>=|==|!=|&&|\|\||\S)
    )""",
    re.VERBOSE,
)


def blank_comments(text: str, path: str = "") -> str:
    """The text with both kinds of comments blanked out, so that every remaining character keeps its line and
    column. Comment marks inside strings are not comments."""
    if "/*" not in text and '"' not in text:
        return _LINE_COMMENT.sub("", text)
    parts = []
    done = 0
    while (found := _COMMENT_OR_STRING.search(text, done)) is not None:
        start, end = found.span()
        if text[start] == '"':
            parts.append(text[done:end])
            done = end
            continue
        parts.append(text[done:start])
        if text[start + 1] == "*":
            end = text.find("*/", start + 2) + 2
            if end < 2:
                Source(text, path).fail("the end of this comment, */", start)
            parts.append(_NOT_NEWLINE.sub(" ", text[start:end]))
        done = end
    parts.append(text[done:])
    return "".join(parts)


class Source:
    """Text with a reading position. ``line`` is kept for ``mark``, the last position asked for, and only moves on."""

    def __init__(self, text: str, path: str = "") -> None:
        self.text = text
        self.path = path
        self.position = 0
        self._mark = 0
        self._line = 1
        self._looked_at = -1
        self._token = ""
        self._renaming_mark = ""
        self._token_end = 0

    def line_at(self, position: int) -> int:
        """Line (from 1) of a position at or after the last one asked for; earlier ones are counted afresh."""
        if position < self._mark:
            return self.text.count("\n", 0, position) + 1
        self._line += self.text.count("\n", self._mark, position)
        self._mark = position
        return self._line

    def renaming_mark(self) -> str:
        """One more ``$`` than any name of the text has before a final number: names made with it are new."""
        if not self._renaming_mark:
            self._renaming_mark = "$" + "$" * max((len(m.group(1)) for m in _NUMBERED.finditer(self.text)), default=0)
        return self._renaming_mark

    def fail(self, expected: str, position: int | None = None) -> NoReturn:
        """Raise :class:`PtxError` for what was expected at ``position`` (default: the next token)."""
        if position is None:
            position = self.skip_blanks()
        position = min(position, len(self.text))
        line = self.text.count("\n", 0, position) + 1
        column = position - (self.text.rfind("\n", 0, position) + 1) + 1
        found = _TOKEN.match(self.text, position)
        raise PtxError(expected, line, column, found.group().strip()[:40] if found else "end of text", self.path)

    def skip_blanks(self) -> int:
        """Move past blanks; returns the position."""
        position = self.position
        if position == self._looked_at:
            position = self._token_end - len(self._token)
            self._looked_at = position
        else:
            found = _BLANKS.match(self.text, position)
            assert found is not None
            position = found.end()
        self.position = position
        return position

    def peek(self) -> str:
        """The next token, "" at the end. It is read once, however often it is looked at."""
        if self.position != self._looked_at:
            self._looked_at = self.position
            found = _TOKEN.match(self.text, self.position)
            if found is None:
                self._token, self._token_end = "", len(self.text)
            else:
                self._token, self._token_end = found.group(found.lastgroup or 0), found.end()
        return self._token

    def take(self) -> str:
        """The next token, moved past; "" at the end."""
        token = self.peek()
        self.position = self._token_end
        return token

    def take_if(self, token: str) -> bool:
        """Move past ``token`` if it comes next."""
        if self.peek() != token:
            return False
        self.position = self._token_end
        return True

    def expect(self, token: str, why: str = "") -> None:
        """Move past ``token`` or fail."""
        if not self.take_if(token):
            self.fail(f"{token!r}{why and ' ' + why}")

    def take_name(self, what: str) -> str:
        """A name (of a function, variable or label), moved past."""
        start = self.skip_blanks()
        token = self.take()
        if not token or not (token[0].isalpha() or token[0] in "_$%"):
            self.fail(f"the name of {what}", start)
        return token

    def take_integer(self, what: str) -> int:
        """A non-negative integer constant, moved past."""
        start = self.skip_blanks()
        value = integer(self.take())
        if value is None:
            self.fail(f"{what} (an integer)", start)
        return value

    def skip_balanced(self, opening: str, closing: str) -> None:
        """Move past a bracketed text whose opening bracket was just taken; strings in it are skipped over."""
        depth = 1
        marks = re.compile(rf'"[^"\n]*"|[{re.escape(opening + closing)}]')
        start = self.position
        while depth:
            found = marks.search(self.text, self.position)
            if found is None:
                self.fail(f"{closing!r} closing this", max(start - 1, 0))
            self.position = found.end()
            depth += (found.group() == opening) - (found.group() == closing)


_DECIMAL = re.compile(r"[1-9][0-9]*U?|0U?")
_HEXADECIMAL = re.compile(r"0[xX][0-9a-fA-F]+U?")
_OCTAL = re.compile(r"0[0-7]+U?")
_BINARY = re.compile(r"0[bB][01]+U?")
_LARGEST = (1 << 64) - 1
_LONGEST_INTEGER = 80


def integer(token: str) -> int | None:
    """Value of an integer constant (decimal, hexadecimal, octal, binary, with or without ``U``); None if it is none
    or does not fit into 64 bits."""
    if not token or not token[0].isdigit() or not token.isascii() or len(token) > _LONGEST_INTEGER:
        return None
    digits = token.removesuffix("U")
    if _DECIMAL.fullmatch(token):
        value = int(digits)
    elif _HEXADECIMAL.fullmatch(token):
        value = int(digits, 16)
    elif _OCTAL.fullmatch(token):
        value = int(digits, 8)
    elif _BINARY.fullmatch(token):
        value = int(digits[2:], 2)
    else:
        return None
    return value if value <= _LARGEST else None
