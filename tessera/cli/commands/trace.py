"""``tessera trace``: what is in a trace."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

MOST_ROWS = 50

trace = typer.Typer(no_args_is_help=True, help="Show what is in a trace: info, ls, sql.")

File = Annotated[Path, typer.Argument(metavar="FILE", help="A trace of tessera record.")]
Partial = Annotated[bool, typer.Option("--partial", help="Take what can be read of a damaged trace.")]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON object, see docs/schema.")]
Limit = Annotated[int, typer.Option(min=0, metavar="N", help="At most so many rows; 0 for all.")]


@trace.command("info")
def info(file: File, partial: Partial = False, as_json: AsJson = False) -> None:
    """Say what a trace holds, and whether it is complete."""
    from orchestrator.traces.reader import Trace
    from orchestrator.traces.summary import summary_of
    from tessera.cli.reporters import trace_json, trace_text

    with Trace(file, partial) as opened:
        found = summary_of(opened)
    if as_json:
        trace_json.write_info(found, sys.stdout)
    else:
        trace_text.write_info(found)


@trace.command("ls")
def ls(
    file: File,
    view: Annotated[str, typer.Argument(metavar="VIEW", help="launches, copies, allocations, ...")] = "launches",
    where: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN=VALUE", help="A number, A..B, or a pattern such as gemm*.")
    ] = None,
    limit: Limit = MOST_ROWS,
    partial: Partial = False,
    as_json: AsJson = False,
) -> None:
    """List the rows of a view of a trace; docs/trace.md has the views."""
    from orchestrator.traces.reader import Trace
    from orchestrator.traces.selection import select

    with Trace(file, partial) as opened:
        show(select(opened, view, where or [], limit or None), opened.missing, as_json, limit)


@trace.command("sql")
def sql(
    file: File,
    query: Annotated[str, typer.Argument(metavar="QUERY", help="One statement that reads, in SQLite's SQL.")],
    limit: Limit = 0,
    partial: Partial = False,
    as_json: AsJson = False,
) -> None:
    """Ask a trace: a query over its views; docs/trace.md has them."""
    from orchestrator.traces.reader import Trace

    with Trace(file, partial) as opened:
        show(opened.query(query, limit + 1 if limit else None), opened.missing, as_json, limit)


def show(found: object, missing: list[str], as_json: bool, limit: int) -> None:
    from orchestrator.traces.reader import Query
    from tessera.cli.reporters import trace_json, trace_text

    assert isinstance(found, Query)
    if as_json:
        trace_json.write_rows(found, missing, limit, sys.stdout)
    else:
        trace_text.write_rows(found, missing, limit)
