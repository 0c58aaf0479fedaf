"""The bytes that one launch reads and writes, for people."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from rich.console import ConsoleRenderable
from rich.table import Table
from rich.text import Text

from ptxparse.api import Amount, Range
from ptxparse.program import AccessProgram
from tessera.cli.examination import LaunchFindings
from tessera.cli.reporters import ptx_words
from tessera.cli.reporters.formula import Formulas

KINDS = {"R": "reads", "MAYW": "may write", "MUSTW": "writes all of", "A": "atomic on"}
MOST_PIECES = 4
"""Separate pieces shown for one kind and allocation; the JSON output has all."""


def lines(launch: LaunchFindings, program: AccessProgram) -> list[ConsoleRenderable]:
    """The launch, then a table of kind, memory and bytes, or why nothing is known."""
    written = launch.bound.launch
    grid, block = ("×".join(map(str, size)) for size in (written.grid, written.block))
    shared = f", {written.shared:,} bytes of dynamic shared memory" if written.shared else ""
    title = Text(f"launch of {grid} blocks of {block} threads{shared}:", "bold")
    evaluation = launch.evaluation
    if evaluation.opaque is not None:
        reason = evaluation.opaque
        return [title, Text.assemble(("opaque", "bold red"), f" ({reason.value}): {reason.meaning}")]
    pinned = [Text(f"pinned ({reason.value}): {reason.meaning}", "yellow") for reason in evaluation.pinned]
    body = table(launch, Formulas(program)) if evaluation.ranges else Text("touches no global memory")
    return [title, body, *pinned, *counts(launch.counts)]


def counts(amounts: Mapping[str, Amount]) -> list[Text]:
    """What all threads do together, as far as that can be said."""
    listed = ", ".join(ptx_words.amount(name, number(amounts[name])) for name in ptx_words.in_order(amounts))
    return [Text(f"all threads: {listed}")] if listed else []


def number(found: Amount) -> str:
    """``8,000``; ``about 500 (0 to 8,000)`` where it depends on memory or is not exact."""
    if found.low == found.high:
        return f"{found.expected:,.0f}"
    if math.isinf(found.high):
        return f"{found.low:,.0f} or more"
    return f"about {found.expected:,.0f} ({found.low:,.0f} to {found.high:,.0f})"


def table(launch: LaunchFindings, formulas: Formulas) -> Table:
    """One row for each kind and allocation."""
    sizes = {a.name: a.size for a in launch.allocations}
    made = Table.grid(padding=(0, 2))
    made.add_column(style="bold", no_wrap=True)
    made.add_column(style="green", overflow="fold")
    made.add_column(overflow="fold")
    made.add_column(style="dim", overflow="fold")
    for (kind, allocation), found in grouped(launch.evaluation.ranges).items():
        size = sizes.get(str(allocation))
        of = f"of {size:,} bytes" if size is not None else ""
        exact = "exact" if all(r.exact for r in found) else "may be less"
        made.add_row(KINDS[kind], Text(formulas.short(str(allocation))), Text(f"{pieces(found)} {of}"), exact)
    return made


def grouped(ranges: Sequence[Range]) -> dict[tuple[str, object], list[Range]]:
    """Ranges by kind and allocation, in the order of the kinds."""
    groups: dict[tuple[str, object], list[Range]] = {}
    for found in sorted(ranges, key=lambda r: list(KINDS).index(r.kind)):
        groups.setdefault((found.kind, found.allocation), []).append(found)
    return groups


def merged(ranges: Sequence[Range]) -> list[tuple[int, int]]:
    """The bytes covered, as few pieces in rising order."""
    joined: list[tuple[int, int]] = []
    for low, high in sorted((r.lo, r.hi) for r in ranges):
        if joined and low <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(high, joined[-1][1]))
        else:
            joined.append((low, high))
    return joined


def pieces(ranges: Sequence[Range]) -> str:
    """``0 to 4,000``; several pieces up to a number of them, then only how many and between which ends."""
    found = merged(ranges)
    if len(found) > MOST_PIECES:
        return f"{len(found):,} pieces between {found[0][0]:,} and {found[-1][1]:,}"
    return ", ".join(f"{low:,} to {high:,}" for low, high in found)
