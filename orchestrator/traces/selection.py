"""Rows of a view that a person wants: ``COLUMN=VALUE`` in place of SQL."""

from __future__ import annotations

import re
from typing import Any

from orchestrator.traces.errors import TraceUsage
from orchestrator.traces.reader import Query, Trace
from orchestrator.traces.views import VIEWS

NUMBER = re.compile(r"-?\d{1,18}")
RANGE = re.compile(r"(-?\d{1,18})?\.\.(-?\d{1,18})?")


def select(trace: Trace, view: str, wanted: list[str], most: int | None) -> Query:
    """At most ``most`` rows and one more. Raises TraceUsage for a view or a column that there is not."""
    if view not in VIEWS:
        raise TraceUsage(f"{view!r} is no view of a trace; these are: {', '.join(sorted(VIEWS))}")
    columns = trace.view(view, limit=0).columns
    conditions: list[str] = []
    values: list[Any] = []
    for text in wanted:
        column, equals, value = text.partition("=")
        if not equals or column not in columns:
            raise TraceUsage(f"--where {text}: must be COLUMN=VALUE; {view} has the columns {', '.join(columns)}")
        condition, more = _condition(column, value)
        conditions.append(condition)
        values += more
    return trace.view(view, " AND ".join(conditions), tuple(values), None if most is None else most + 1)


def _condition(column: str, value: str) -> tuple[str, list[Any]]:
    """SQL for one wish, and its values. Column names are ours."""
    between = RANGE.fullmatch(value)
    if between and value != "..":
        low, high = between.groups()
        parts = [(f"{column} >= ?", low), (f"{column} <= ?", high)]
        return " AND ".join([sql for sql, end in parts if end]), [int(end) for _, end in parts if end]
    if NUMBER.fullmatch(value):
        return f"{column} = ?", [int(value)]
    return f"{column} GLOB ?", [value]
