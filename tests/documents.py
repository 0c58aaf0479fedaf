"""Tables in the documentation that say what the code says. Tests compare them; ``python -m tests.documents`` writes
them anew."""

from __future__ import annotations

from pathlib import Path

from tessera.cards import FIGURES, GIB, cards
from tessera.driver_api import DONE, REFUSED, by_name
from tessera.environment import VARIABLES
from tessera.reasons import Reason
from tests.material import ROOT

Rows = list[list[str]]


def reason_rows() -> Rows:
    """The table of ``docs/reasons.md``."""
    return [[f"`{reason.value}`", reason.kind.value, reason.meaning] for reason in Reason]


def topic_rows() -> Rows:
    """The table of ``docs/doctor.md``."""
    from tessera.cli.doctor.findings import Topic

    return [[f"`{topic.value}`", "yes" if topic.problem else "", topic.meaning] for topic in Topic]


def environment_rows() -> Rows:
    """The table of ``docs/environment.md``."""
    return [[f"`{variable.name}`", variable.default, variable.meaning] for variable in VARIABLES]


def compiled_rows() -> Rows:
    """The first table of ``docs/engine-coverage.md``."""
    from tests.engine_coverage import compiled_rows  # needs the packages of the engine

    return compiled_rows()


def refused_rows() -> Rows:
    """The second table of ``docs/engine-coverage.md``."""
    from tests.engine_coverage import refused_rows

    return refused_rows()


def card_rows() -> Rows:
    """The table of ``docs/fleets.md``."""
    found = []
    for card in cards():
        shown = [f"{card.figures[name].value:g} {card.figures[name].source}" if name in card.figures else ""
                 for name in FIGURES]
        major, minor = card.capability.version
        also = ", ".join([f"`{alias}`" for alias in card.aliases])
        found.append([f"`{card.name}`", also, f"{major}.{minor}", f"{card.memory // GIB}", *shown,
                      f"{card.pcie_generation}"])
    return found


def driver_rows(status: str) -> Rows:
    """The tables of ``docs/driver-coverage.md``: names with the forms of that status, and their versions of CUDA."""
    found = []
    for name in sorted(by_name()):
        forms = [f for f in by_name()[name] if f.status == status]
        if forms:
            listed = ", ".join([f"`{f.symbol}` ({f.since // 1000}.{f.since % 1000 // 10})" for f in forms])
            found.append([f"`{name}`", listed])
    return found


TABLES = (
    ("driver-coverage.md", "function", lambda: driver_rows(DONE)),
    ("driver-coverage.md", "refused function", lambda: driver_rows(REFUSED)),
    ("fleets.md", "card", card_rows),
    ("reasons.md", "reason", reason_rows), ("environment.md", "variable", environment_rows),
    ("doctor.md", "topic", topic_rows),
    ("engine-coverage.md", "instruction", compiled_rows), ("engine-coverage.md", "refused instruction", refused_rows),
)
"""Page, the heading of the table's first column, and what makes its rows."""


def table_span(lines: list[str], first_heading: str) -> tuple[int, int]:
    """Where the rows stand of the Markdown table whose first column is headed ``first_heading``."""
    start = next(i for i, line in enumerate(lines) if line.startswith(f"| {first_heading} |")) + 2
    end = start
    while end < len(lines) and lines[end].startswith("|"):
        end += 1
    return start, end


def table_rows(document: Path, first_heading: str) -> Rows:
    """The cells of that table's rows, without the spaces around them."""
    lines = document.read_text(encoding="utf-8").splitlines()
    start, end = table_span(lines, first_heading)
    return [[cell.strip() for cell in line.strip().strip("|").split(" | ")] for line in lines[start:end]]


def write_tables() -> None:
    """Put the code's rows into the pages."""
    for page, heading, rows in TABLES:
        document = ROOT / "docs" / page
        lines = document.read_text(encoding="utf-8").splitlines()
        start, end = table_span(lines, heading)
        lines[start:end] = [f"| {' | '.join(row)} |" for row in rows()]
        document.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write_tables()
