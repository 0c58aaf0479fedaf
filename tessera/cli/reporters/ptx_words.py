"""An access program in words: rows of what is accessed, and sentences about the rest."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ptxparse.program import Access, AccessProgram, Base
from tessera.cli.reporters.formula import Formulas

MOST_FORMS = 3
"""Address formulas shown for one kind and base; the JSON output has all."""
MOST_LINES = 3
"""Line numbers shown in one place."""
LONGEST_FORMULA = 160
"""Characters of a formula before it is cut; the JSON output has it whole."""

KINDS = {"R": "reads", "W": "writes", "A": "atomic"}


class Row(NamedTuple):
    """Accesses of one kind through one base: in words the kind, the base, where (one string a line), the lines."""

    kind: str
    base: str
    where: tuple[str, ...]
    lines: str


def line_list(lines: Iterable[int]) -> str:
    """``line 7``, ``lines 7, 9``, ``lines 7, 9, 11 and 20 more``."""
    ordered = sorted(set(lines))
    shown = ", ".join(map(str, ordered[:MOST_LINES]))
    more = f" and {len(ordered) - MOST_LINES} more" if len(ordered) > MOST_LINES else ""
    return f"{'line' if len(ordered) == 1 else 'lines'} {shown}{more}"


def cut(text: str) -> str:
    return text if len(text) <= LONGEST_FORMULA else f"{text[:LONGEST_FORMULA]} …"


def rows(program: AccessProgram) -> list[Row]:
    """All accesses, grouped by kind and base: reads first, then writes, then atomics."""
    formulas = Formulas(program)
    groups: dict[tuple[str, tuple[Base, ...]], list[Access]] = {}
    for access in sorted(program.accesses, key=lambda access: list(KINDS).index(access.kind)):
        groups.setdefault((access.kind, access.bases), []).append(access)
    return [
        Row(
            KINDS[kind], formulas.bases(bases), tuple(where(formulas, accesses)),
            line_list(line for access in accesses for line in access.lines),
        )
        for (kind, bases), accesses in groups.items()
    ]


def where(formulas: Formulas, accesses: list[Access]) -> list[str]:
    """One line for each different formula, up to a number of them, then how many more there are; a condition that all
    have in common stands on the last line."""
    guards = [condition(formulas, access) for access in accesses]
    alike = len(set(guards)) == 1
    places = [place(formulas, access) for access in accesses]
    texts = list(dict.fromkeys(p if alike else p + g for p, g in zip(places, guards, strict=True)))
    hidden = len(texts) - MOST_FORMS
    more = [f"and {hidden} more (--json has all)"] if hidden > 0 else []
    return texts[:MOST_FORMS] + more + ([guards[0].strip()] if alike and guards[0] else [])


def place(formulas: Formulas, access: Access) -> str:
    """``4 bytes at 4*tid.x``; for unrolled accesses how many pieces, and the bytes they lie within."""
    offset = formulas.offset(access)
    low, high = access.spans[0][0], max(end for _, end in access.spans)
    if len(access.spans) == 1:
        text = f"{high - low} bytes at {plus(offset, low)}"
    else:
        text = f"{len(access.spans)} pieces within bytes {low:,} to {high:,} from {offset}"
    return cut(text)


def condition(formulas: Formulas, access: Access) -> str:
    """`` if tid.x < n``, or nothing for an access that always happens."""
    found = formulas.conditions(access.guards)
    return cut(f" if {' and '.join(found)}") if found else ""


def plus(offset: str, constant: int) -> str:
    """A formula and a number of bytes."""
    if offset == "0" or not constant:
        return str(constant) if offset == "0" else offset
    return f"{offset} {'+' if constant > 0 else '-'} {abs(constant)}"


def loops(program: AccessProgram) -> list[str]:
    """What the loop counters in the formulas run over."""
    formulas = Formulas(program)
    used = {number for access in program.accesses for number in access.loops}
    found = []
    for number in sorted(used):
        limits = formulas.conditions(program.loops[number].limits)
        name = formulas.sum((((program.loops[number].counter,), 1),))
        until = cut(" and ".join(limits)) if limits else "a bound that is not known before it runs"
        found.append(f"loop: {name} = 0, 1, … " + (f"while {until}" if limits else f"up to {until}"))
    return found


def properties(program: AccessProgram) -> str:
    """Determinism and sameness across devices."""
    same = "deterministic" if program.deterministic else "not shown to be deterministic"
    across = "the same on every device" if program.device_invariant else "may round differently on another device"
    return f"{same}; {across}"


def pins(program: AccessProgram) -> list[str]:
    """Why the kernel has to run where it was launched, and which parameters would pin it if they are pointers."""
    formulas = Formulas(program)
    found = [f"pinned ({reason.value}, line {line}): {reason.meaning}" for reason, line in program.pinned]
    escapes = [f"{formulas.word(word)} (line {line})" for word, line in program.escapes]
    if escapes:
        found.append(f"used as more than an address, which pins the kernel if it is a pointer: {', '.join(escapes)}")
    return found


def counts(program: AccessProgram) -> list[str]:
    """What one thread does if every instruction of the kernel runs once."""
    listed = ", ".join(amount(name, f"{program.counts[name]:,g}") for name in in_order(program.counts))
    return [f"per thread, every instruction once: {listed}"] if listed else []


def in_order(names: Iterable[str]) -> list[str]:
    """Classes of work, bytes first."""
    return sorted(names, key=lambda name: (not name.startswith("bytes_"), name))


def amount(name: str, number: str) -> str:
    """``8 bytes read``, ``2 fp32 operations``."""
    if name.startswith("bytes_"):
        return f"{number} bytes {name.removeprefix('bytes_')}"
    return f"{number} {name}"
