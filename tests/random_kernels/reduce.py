"""Makes a failing module smaller: statements are left out and operands replaced as long as the same check fails."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from tessera.errors import TesseraError
from tests.random_kernels.examine import examine
from tests.random_kernels.launches import Case

_FIXED = (".version", ".target", ".address_size", ".visible", ".reg", "{", "}", ".func")
_FUNCTION = re.compile(r"\.func[^{]*\{.*?\n\}\n", re.DOTALL)
_REGISTERS = re.compile(r"\t\.reg [^;]*;\n")
_PARAMETER = re.compile(r"(, )?\.param [^,()]*(?=[,)])")
_OPERAND = re.compile(r"(?<=[ ,])(%r\d+|-?\d+)(?=[,;])")
_NUMBER = re.compile(r"(?<=[ ,+])(-?\d+)(?=[,;\]])")


def reduce(text: str, launches: Sequence[Case], check: str) -> tuple[str, Case]:
    """(smaller text, one launch) for which ``check`` still fails. Raises ValueError if it does not fail at all."""
    failing = next((case for case in launches if fails(text, case, check)), None)
    if failing is None:
        raise ValueError(f"check {check} does not fail")
    case = failing
    lines = text.splitlines()
    before = -1
    while len(lines) != before:
        before = len(lines)
        lines = _drop(lines, lambda candidate: fails("\n".join(candidate), case, check))
        lines = _simplify(lines, lambda candidate: fails("\n".join(candidate), case, check))
    return _without_declarations("\n".join(lines) + "\n", lambda candidate: fails(candidate, case, check)), case


def _without_declarations(text: str, failing: Callable[[str], bool]) -> str:
    """Functions, parameters and registers left out that nothing needs any more."""
    for pattern in (_FUNCTION, _REGISTERS, _PARAMETER):
        for match in list(pattern.finditer(text))[::-1]:
            candidate = text[:match.start()] + text[match.end():]
            candidate = candidate.replace("(, ", "(").replace("(,", "(")
            if failing(candidate):
                text = candidate
    return text


def fails(text: str, case: Case, check: str) -> bool:
    try:
        return any(c == check for c, _ in examine(text, [case], checks=check + "a").violations)
    except (TesseraError, ArithmeticError, LookupError, ValueError, AssertionError):
        return False


def _drop(lines: list[str], failing: Callable[[list[str]], bool]) -> list[str]:
    size = max(len(lines) // 2, 1)
    while size:
        at = len(lines)
        while at > 0:
            start = max(at - size, 0)
            chunk = [line for line in lines[start:at] if line.strip().startswith(_FIXED)]
            candidate = lines[:start] + chunk + lines[at:]
            if len(candidate) < len(lines) and failing(candidate):
                lines = candidate
            at = start
        size //= 2
    return lines


def _simplify(lines: list[str], failing: Callable[[list[str]], bool]) -> list[str]:
    for number, line in enumerate(lines):
        if line.strip().startswith(_FIXED):
            continue
        for pattern, replacements in ((_OPERAND, ("0", "1")), (_NUMBER, ("0", "1"))):
            for match in list(pattern.finditer(line))[::-1]:
                for replacement in replacements:
                    changed = lines[number][:match.start()] + replacement + lines[number][match.end():]
                    if match.group() not in ("0", "1") and changed != lines[number]:
                        candidate = [*lines[:number], changed, *lines[number + 1:]]
                        if failing(candidate):
                            lines = candidate
                            break
    return lines
