"""What a run leaves behind."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

Ranges = tuple[tuple[int, int], ...]
"""Bytes at addresses [lo, hi), sorted and disjoint."""


class Arrived(NamedTuple):
    """Bytes that a copy brought to host memory. ``node``: of a graph, by its position, else -1."""

    sequence: int
    node: int
    data: bytes


class Logged(NamedTuple):
    """Bytes really touched by work at home, in the order in which it was done. ``run``: launches of one stream with
    nothing between them that would close a segment have the same number. Only launches have ``kernel`` and ``read``."""

    sequence: int
    node: int
    home: int
    run: int
    kernel: str
    read: Ranges
    written: Ranges


@dataclass
class Outcome:
    """``arrived`` by sequence. ``unlike``: sequences of copies that brought other bytes than those recorded.
    ``memory``: bytes of all allocations that live at the end by address; ``variables``: of all variables of modules, by
    the module's record, context and name, and ``places`` where any ever were. ``faults`` end a run. ``gathered`` and
    ``applied``: bytes by number of the job; ``launches`` by GPU. ``mismatches``: (job, GPU) whose assumed bytes were
    others. ``voided``: jobs whose launches had been run at home, as records behind them were lost. ``replicas``: the
    most bytes at a time by GPU. ``log``: of work at home, in the order in which it was done, if it was asked for."""

    arrived: list[Arrived] = field(default_factory=list)
    unlike: list[int] = field(default_factory=list)
    memory: dict[int, bytes] = field(default_factory=dict)
    variables: dict[tuple[int, int, str], bytes] = field(default_factory=dict)
    places: Ranges = ()
    faults: list[str] = field(default_factory=list)
    gathered: Counter[int] = field(default_factory=Counter)
    applied: Counter[int] = field(default_factory=Counter)
    launches: Counter[int] = field(default_factory=Counter)
    mismatches: list[tuple[int, int]] = field(default_factory=list)
    voided: list[int] = field(default_factory=list)
    replicas: Counter[int] = field(default_factory=Counter)
    log: list[Logged] = field(default_factory=list)

    def differences(self, other: Outcome) -> list[str]:
        """Sentences on what the program, or who looks at its memory, sees otherwise than in another run, or a fault."""
        found = [*self.faults, *other.faults]
        if [(a.sequence, a.node) for a in self.arrived] != [(a.sequence, a.node) for a in other.arrived]:
            found.append("other copies came to the host")
        else:
            found += [f"record {a.sequence}, node {a.node}: {_first(a.data, b.data)}"
                      for a, b in zip(self.arrived, other.arrived, strict=True) if a.data != b.data]
        mine, yours = self._last(), other._last()
        found += [f"at the end, only one run has {name}" for name in mine.keys() ^ yours.keys()]
        found += [f"at the end, {name}: {_first(data, yours[name])}" for name, data in mine.items()
                  if yours.get(name, data) != data]
        return found

    def _last(self) -> dict[str, bytes]:
        return {**{f"{address:#x}": data for address, data in self.memory.items()},
                **{f"{variable}": data for variable, data in self.variables.items()}}


def _first(mine: bytes, yours: bytes) -> str:
    if len(mine) != len(yours):
        return f"{len(mine)} bytes, and {len(yours)}"
    at = next(k for k, (a, b) in enumerate(zip(mine, yours, strict=True)) if a != b)
    count = sum(a != b for a, b in zip(mine, yours, strict=True))
    there = f"{mine[at:at + 8].hex()}, and {yours[at:at + 8].hex()}"
    return f"{count} of {len(mine)} bytes differ, from byte {at} on: {there}"
