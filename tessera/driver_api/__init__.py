"""The CUDA driver API: every function that NVIDIA's headers declare, and what the software driver does with it.

``functions.tsv`` is the one list. It drives what the software driver exports, what ``cuGetProcAddress`` answers, the
coverage page and the tests. All columns but the last are facts of the headers, written by ``headers.py``;
``status`` is ours.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

FILE = Path(__file__).with_name("functions.tsv")
COLUMNS = ("symbol", "name", "since", "stream", "header", "status", "kind", "parameters")
DONE, REFUSED = "done", "refused"
STATUSES = (DONE, REFUSED)
"""Implemented; or answered with CUDA_ERROR_NOT_SUPPORTED, and a line in the log the first time."""
PASS, TRACK, NOTE = "pass", "track", "note"
KINDS = (PASS, TRACK, NOTE)
"""What the preloaded library does with a call: lets it pass, as it changes neither memory nor order; has a function of
its own for it; or notes its name before it passes, as it may change what a reader of the record has to know."""


@dataclass(frozen=True)
class Function:
    """One exported symbol.

    ``name``: what programs ask ``cuGetProcAddress`` for, without version. ``since``: the CUDA version (12030 for 12.3)
    whose typedef describes this form. ``stream``: ``ptsz`` or ``ptds`` for the twin in which stream 0 is the calling
    thread's own stream, else empty. ``status``: of the software driver. ``kind``: for the preloaded library.
    ``parameters``: as in the header.
    """

    symbol: str
    name: str
    since: int
    stream: str
    header: str
    status: str
    kind: str
    parameters: str


@cache
def functions() -> tuple[Function, ...]:
    """All of them, sorted by symbol."""
    head, *lines = FILE.read_text(encoding="utf-8").splitlines()
    assert tuple(head.split("\t")) == COLUMNS, f"{FILE.name}: other columns than {', '.join(COLUMNS)}"
    found = []
    for line in lines:
        symbol, name, since, *rest = line.split("\t")
        found.append(Function(symbol, name, int(since), *rest))
    return tuple(found)


@cache
def by_name() -> Mapping[str, Sequence[Function]]:
    """The forms of each name, the oldest first, twins behind those that they are twins of."""
    found: dict[str, list[Function]] = defaultdict(list)
    for function in sorted(functions(), key=lambda f: (f.since, f.symbol)):
        found[function.name].append(function)
    return found


def form_of(name: str, version: int, per_thread: bool) -> Function | None:
    """What ``cuGetProcAddress`` gives a program that was built for a CUDA version: the newest form not newer than it;
    its twin, where there is one, for programs with a default stream in each thread. None when there is no such form."""
    plain = [f for f in by_name().get(name, ()) if not f.stream and f.since <= version]
    if not plain:
        return None
    twin = next((f for f in by_name()[name] if f.stream and f.symbol.removesuffix(f"_{f.stream}") == plain[-1].symbol
                 and f.since <= version), None)
    return twin if per_thread and twin else plain[-1]
