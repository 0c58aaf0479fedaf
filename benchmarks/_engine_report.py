"""The table of the engine's benchmark: that of the others, with a column for the best runs."""

from __future__ import annotations

from _common import Row, report


def print_rows(name: str, rows: list[Row], as_json: bool, notes: str) -> int:
    """Print the figures; returns the exit code."""
    if as_json:
        return report(name, rows, as_json, notes)
    print(f"| {name} | median | best | limit | |\n| --- | --- | --- | --- | --- |")
    for row in rows:
        best = getattr(row, "best", None)
        limit = "" if row.limit is None else f"{'≥' if row.at_least else '≤'} {row.limit:g} {row.unit}"
        shown = "" if best is None else f"{best:.4g} {row.unit}"
        print(f"| {row.what} | {row.value:.4g} {row.unit} | {shown} | {limit} | {'' if row.ok else 'missed'} |")
    print(f"\n{notes}")
    return 0 if all(row.ok for row in rows) else 1
