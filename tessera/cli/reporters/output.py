"""Text for people on standard output."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterable, Sequence

from rich.console import Console, ConsoleRenderable

PIPED_WIDTH = 100_000
"""Columns where the output is no terminal: every row stays on one line."""


def show(parts: Sequence[ConsoleRenderable]) -> None:
    """All parts: with colours on a terminal (unless NO_COLOR is set), plain elsewhere."""
    if sys.stdout.isatty():
        console = Console(highlight=False)
        for part in parts:
            console.print(part)
        return
    sys.stdout.write(plain(parts))


def plain(parts: Iterable[ConsoleRenderable], width: int = PIPED_WIDTH) -> str:
    """The text without colours and without spaces at the ends of lines."""
    console = Console(file=io.StringIO(), width=width, highlight=False, color_system=None)
    with console.capture() as captured:
        for part in parts:
            console.print(part)
    return "".join(f"{line.rstrip()}\n" for line in captured.get().splitlines())
