"""Access programs: what a kernel may read and write, as plain data.

A program is made once per kernel and evaluated for every launch (``evaluate``). It is serialisable (``codec``),
versioned, and hashable by its content (``digest``), so that it can be kept on disk (``cache``).
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, NamedTuple

from ptxparse.values import Check, Sum
from tessera.reasons import Reason

VERSION = 1


class Base(NamedTuple):
    """What an address starts from: the 8-byte parameter word at byte ``word`` of the parameter block, or the module
    variable ``name`` (``word`` is then -1)."""

    word: int
    name: str = ""


class Limit(NamedTuple):
    """``value <= 0`` ("le") or ``value != 0`` ("ne"), provided that all ``checks`` hold."""

    value: Sum
    relation: str
    checks: tuple[Check, ...]


class LoopBound(NamedTuple):
    """``limits`` hold at iteration ``counter`` >= 1. ``guards`` are constraints known when the loop is entered.
    ``exact`` says that the loop is left only when its limits fail."""

    counter: int
    limits: tuple[Limit, ...]
    guards: tuple[Limit, ...]
    exact: bool


class Access(NamedTuple):
    """Memory instructions that differ by a constant only.

    Addresses are ``offset + [low, high)`` for each of ``spans``; the base is an addend of ``offset``. ``kind`` is R, W
    or A (atomic). Of several ``bases`` exactly one must turn out to be a pointer at launch, the others are numbers.
    ``guards`` hold when the access happens; ``uniform`` are conditions on launch values (a sum's lowest bit and its
    truth). ``certain`` says that it happens for every thread for which the guards hold, in every iteration of
    ``loops``. ``lines`` are lines of the PTX text, ``instructions`` how many instructions they hold.
    """

    kind: str
    bases: tuple[Base, ...]
    offset: Sum
    spans: tuple[tuple[int, int], ...]
    guards: tuple[Limit, ...]
    uniform: tuple[tuple[Sum, bool], ...]
    checks: tuple[Check, ...]
    certain: bool
    loops: tuple[int, ...]
    lines: tuple[int, ...]
    instructions: int


class Work(NamedTuple):
    """Instructions that run under the same ``guards``, inside the same ``loops`` (innermost first). ``amounts`` are
    (class, operations or bytes) per thread and execution; ``whole`` says that the guards alone decide, ``endless`` that
    they are on a cycle about which nothing is known."""

    guards: tuple[Limit, ...]
    loops: tuple[int, ...]
    whole: bool
    endless: bool
    amounts: tuple[tuple[str, float], ...]


class Parameter(NamedTuple):
    """One kernel parameter: offset and size in bytes in the parameter block."""

    name: str
    type: str
    offset: int
    size: int
    align: int
    pointee: str | None


@dataclass(frozen=True, eq=False)
class AccessProgram:
    """Everything the analysis says about one kernel.

    ``nodes`` are the atoms that sums refer to, arguments before users, with static bounds ``low`` and ``high``.
    ``global_sizes`` are the declared sizes in bytes of the module variables it names.
    ``escapes`` are (word, line): parameter words used as more than an address base. ``opaque`` is the reason why
    nothing bounded can be said (with ``opaque_line``), ``pinned`` why the kernel must run where it was launched.
    """

    kernel: str
    line: int
    parameters: tuple[Parameter, ...]
    parameter_bytes: int
    nodes: tuple[tuple[Any, ...], ...]
    low: tuple[int, ...]
    high: tuple[int, ...]
    uniform: tuple[bool, ...]
    loops: tuple[LoopBound, ...]
    accesses: tuple[Access, ...]
    global_sizes: dict[str, int]
    escapes: tuple[tuple[int, int], ...] = ()
    opaque: Reason | None = None
    opaque_line: int = 0
    problems: tuple[tuple[Reason, int], ...] = ()
    pinned: tuple[tuple[Reason, int], ...] = ()
    deterministic: bool = False
    device_invariant: bool = False
    work: tuple[Work, ...] = ()
    unresolved: int = 0
    version: int = field(default=VERSION)

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, AccessProgram) and self.digest == other.digest)

    def __hash__(self) -> int:
        return hash(self.digest)

    @property
    def counts(self) -> dict[str, float]:
        """Operations and bytes by class if every instruction of the kernel ran once, per thread."""
        total: dict[str, float] = {}
        for work in self.work:
            for name, amount in work.amounts:
                total[name] = total.get(name, 0) + amount
        return dict(sorted(total.items()))

    @cached_property
    def digest(self) -> str:
        """Hash of the content, hexadecimal; equal programs have equal digests."""
        content = [(field.name, getattr(self, field.name)) for field in fields(self)]
        return hashlib.sha256(json.dumps(content, separators=(",", ":")).encode()).hexdigest()
