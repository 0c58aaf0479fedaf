"""The preload library on this driver: each way to a function leads to its door, and is the way that the driver has."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tessera.driver_api import by_name, functions
from tests.device.machine import Machine, Program, python, say
from tests.device.programs.forms import BY_PATH, LINKED
from tests.device.recorded import recorded, tessera

SYMBOLS = frozenset({function.symbol for function in functions()})
NEWEST = max(function.since for function in functions())
"""The version of CUDA up to which the list knows all forms."""
CRASHES = 8
"""So many functions may end a program that gives them nothing but zeros, with the driver alone."""


@dataclass
class Compared:
    """The answers to the same questions with the driver alone and with the preload library.

    ``doors`` by way; ``wrong``: another function, none, or no door though list and driver have the function;
    ``private``: a door where the driver alone gives an address that has no name; ``passed``: what the library hands
    through, as the list has not got it, or the driver has no name for it.
    """

    table: dict[str, int]
    doors: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    private: list[str] = field(default_factory=list)
    passed: set[str] = field(default_factory=set)

    def add(self, way: str, name: str, listed: bool, alone: Any, under: Any) -> None:
        if isinstance(under, str) and under in self.table and alone is not None:
            self.doors[way] += 1
            if alone != self.table[under]:
                self.note(f"{way}: {name}: {under}", alone)
        elif alone != under or (listed and alone in self.table.values()):
            self.wrong.append(f"{way}: {name}: {alone} alone, {under} with the library")
        elif alone is not None:
            self.passed.add(name)

    def note(self, what: str, alone: int) -> None:
        """A door that is not what the driver's table has at the address that it gives."""
        named = [symbol for symbol, offset in self.table.items() if offset == alone]
        (self.wrong if named else self.private).append(f"{what}, and alone {', '.join(named) or 'without a name'}")


def answers(alone: dict[str, Any], under: dict[str, Any]) -> Iterator[tuple[str, str, bool, Any, Any]]:
    """Way, name, whether the list says what has to be found there, and the place alone and with the library."""
    for way, places in alone["found"].items():
        other = under["found"][way]
        assert (places is None) == (other is None), f"{way} is there only without or with the preload library"
        for symbol, place in (places or {}).items():
            if way != LINKED or (symbol in SYMBOLS and place is not None):  # else the program does not start
                yield way, symbol, symbol in SYMBOLS, place, other[symbol]
    for way, asked in alone["answers"].items():
        known = int(way.split(", ")[1]) <= NEWEST
        for name, (*told, place) in asked.items():
            *told_too, other = under["answers"][way][name]
            assert told == told_too, f"{way}: {name}: {told} alone, {told_too} with the library"
            yield way, name, known and name in by_name(), place, other


def test_every_way_to_a_function_leads_to_its_door(machine: Machine, tmp_path: Path) -> None:
    alone = machine.run("forms", machine.driver)
    under = json.loads(recorded(machine, tmp_path / "forms.trace", python("forms", machine.driver)))
    assert (alone["doors"], under["doors"]) == (0, len(SYMBOLS))
    table = {symbol: place for symbol, place in alone["found"][BY_PATH].items() if place is not None}
    there = SYMBOLS & set(table)
    found = Compared(table)
    for answer in answers(alone, under):
        found.add(*answer)
    say("doors", {
        "driver": alone["version"], "listed": len(SYMBOLS), "in_the_driver": len(there),
        "not_in_the_driver": sorted(SYMBOLS - there), "not_in_the_list": alone["more"],
        "passed_through": sorted(found.passed), "without_a_name": found.private, "wrong": found.wrong,
    })  # fmt: skip
    say("doors by way", found.doors)
    assert not found.wrong
    ways = [way for way, places in alone["found"].items() if places is not None]
    assert {way: found.doors[way] for way in ways} == dict.fromkeys(ways, len(there))
    assert {LINKED, BY_PATH} < set(ways) and len(alone["answers"]) > 0


def calls(program: Program) -> tuple[dict[str, str], str | None]:
    """The results of ``nulls``, and the call that ended it."""
    text, errors = program.end()
    lines = text.splitlines()
    results = dict(zip(lines[::2], lines[1::2], strict=False))
    if program.process.returncode == 0:
        return results, None
    assert len(lines) % 2, errors  # it ended within a call
    return results, lines[-1]


def test_calls_with_nothing_give_the_same_results(machine: Machine, tmp_path: Path) -> None:
    left_out: list[str] = []
    while True:
        alone, ended = calls(machine.start("nulls", machine.driver, *left_out))
        if ended is None:
            break
        left_out.append(ended.split()[-1])
        assert len(left_out) <= CRASHES, left_out
    program = tessera(machine, "record", "-o", tmp_path / "nulls.trace", "--",
                      *python("nulls", machine.driver, *left_out))
    under, ended = calls(program)
    different = {call: [result, under.get(call)] for call, result in alone.items() if under.get(call) != result}
    say("calls with nothing", {"calls": len(alone), "results": Counter(alone.values()), "different": different,
                               "end_the_program": left_out})
    assert ended is None
    assert not different and len(alone) == len(under)
