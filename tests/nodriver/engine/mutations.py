"""PTX texts with one instruction changed at random: most are wrong in a way that no compiler would make."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

_INSTRUCTION = re.compile(r"^\s*(@!?%?\w+\s+)?[a-z][\w.:]*(\s+.*)?;\s*$")
_REGISTER = re.compile(r"%[a-z]+\d+")
_MODIFIER = re.compile(r"\.[a-z0-9:]+")
_TYPE = re.compile(r"\.[busf](8|16|32|64)\b")
_CONSTANTS = ("0", "-1", "7", "0f3F800000", "0d3FF0000000000000", "4294967296")

Change = Callable[[str, list[str], random.Random], str]


def mutated(text: str, random_: random.Random) -> tuple[str, int] | None:
    """The text with a line changed, and the line's number; None if the change that was drawn does not fit the line."""
    lines = text.split("\n")
    places = [number for number, line in enumerate(lines) if _INSTRUCTION.match(line)]
    number = random_.choice(places)
    change = random_.choice(_CHANGES)
    line = change(lines[number], [lines[place] for place in places], random_)
    if line == lines[number]:
        return None
    lines[number] = line
    return "\n".join(lines), number + 1


def _put(line: str, found: list[re.Match[str]], random_: random.Random, by: str) -> str:
    """One of the matches replaced."""
    if not found:
        return line
    match = random_.choice(found)
    return line[:match.start()] + by + line[match.end():]


def _without_modifier(line: str, others: list[str], random_: random.Random) -> str:
    return _put(line, list(_MODIFIER.finditer(line)), random_, "")


def _other_register(line: str, others: list[str], random_: random.Random) -> str:
    found = _REGISTER.findall(random_.choice(others))
    return _put(line, list(_REGISTER.finditer(line)), random_, random_.choice(found)) if found else line


def _constant(line: str, others: list[str], random_: random.Random) -> str:
    return _put(line, list(_REGISTER.finditer(line)), random_, random_.choice(_CONSTANTS))


def _other_type(line: str, others: list[str], random_: random.Random) -> str:
    by = f".{random_.choice('busf')}{random_.choice(['8', '16', '32', '64'])}"
    return _put(line, list(_TYPE.finditer(line)), random_, by)


def _without_operand(line: str, others: list[str], random_: random.Random) -> str:
    return line[:line.rindex(",")] + ";" if "," in line else line


def _other_opcode(line: str, others: list[str], random_: random.Random) -> str:
    other, own = random_.choice(others).split(), line.split()
    if other[0].startswith("@") or own[0].startswith("@") or len(own) < 2:
        return line
    return f"\t{other[0].rstrip(';')} {' '.join(own[1:])}"


def _dropped_or_doubled(line: str, others: list[str], random_: random.Random) -> str:
    return random_.choice(["", f"{line} {line}"])


_CHANGES: tuple[Change, ...] = (
    _without_modifier, _other_register, _constant, _other_type, _without_operand, _other_opcode, _dropped_or_doubled,
)
