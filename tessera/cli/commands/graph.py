"""``tessera graph``: one step of a traced program, with what makes its operations wait for each other."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Annotated

import typer

from tessera.errors import TesseraError, UsageError


def graph(
    file: Annotated[Path, typer.Argument(metavar="TRACE", help="A trace of tessera record.")],
    step: Annotated[
        str, typer.Option("--step", metavar="CLASS", help="The beginning of a signature; else the most frequent.")
    ] = "",
    client: Annotated[int | None, typer.Option(metavar="N", help="Only this program of the trace.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object, see docs/schema/graph.json.")] = False,
    as_dot: Annotated[bool, typer.Option("--dot", help="Text for Graphviz.")] = False,
    svg: Annotated[Path | None, typer.Option(metavar="FILE", help="Write a picture to FILE, too.")] = None,
) -> None:
    """Show the operations of a step, the bytes for which each waits, and what else orders them.

    Exit code 3: the trace is damaged, or has no such step. 4: a package is missing.
    """
    from orchestrator.traces.reader import Trace
    from orchestrator.traces.step_graph import choose_step, graph_of
    from tessera.cli.reporters import graph_dot, graph_json, graph_svg, graph_text

    if as_json and as_dot:
        raise UsageError("--json and --dot: one of them")
    with Trace(file) as opened:
        chosen = choose_step(opened, client, step)
        found = graph_of(opened, chosen)
    if svg is not None:
        picture = io.StringIO()
        graph_svg.write(chosen, found, picture)
        try:
            svg.write_text(picture.getvalue(), encoding="utf-8")
        except OSError as error:
            raise TesseraError(f"{svg}: {error.strerror}") from error
    if as_json:
        graph_json.write(str(file), chosen, found, sys.stdout)
    elif as_dot:
        graph_dot.write(chosen, found, sys.stdout)
    else:
        graph_text.write(chosen, found)
