"""``tessera replay`` for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import ConsoleRenderable
from rich.text import Text

from tessera.cli.reporters import output

if TYPE_CHECKING:
    from orchestrator.traces.replay.parent import Request
    from orchestrator.traces.replay.report import Mismatch, Report


def write(request: Request, report: Report) -> None:
    """Everything to standard output."""
    output.show(parts(request, report))


def parts(request: Request, report: Report) -> list[ConsoleRenderable]:
    """What was done, where memory was, what was compared, and what makes that uncertain."""
    lines = [
        f"{report.launches} launches, {report.graph_launches} of graphs; {report.copies} copies of "
        f"{report.copied_bytes} bytes; {report.memsets} memsets; {report.clients} clients; {report.seconds:.3f} s",
        f"memory: {report.allocations['recorded']} allocations at their recorded addresses, "
        f"{report.allocations['elsewhere']} elsewhere; {report.rebased['analysed']} addresses in parameters changed by "
        f"analysis of the kernel, {report.rebased['guessed']} because they looked like one",
    ]
    if request.verify:
        lines.append(f"verified {report.verified} copies to the host; {report.mismatched} differ, "
                     f"{report.unverifiable} differ and cannot be expected to agree, {report.unchecked} nobody "
                     "waited for")
    lines += [line(mismatch) for mismatch in report.mismatches]
    if report.mismatched > len(report.mismatches):
        lines.append(f"differ, too: {report.mismatched - len(report.mismatches)} more")
    for title, counts in (("skipped", report.skipped), ("unverifiable from here on", report.doubts),
                          ("note", report.notes)):
        lines += [f"{title}: {reason} ({count})" for reason, count in counts.most_common()
                  if title == "skipped" or reason not in report.skipped]
    return [Text(text) for text in lines]


def line(mismatch: Mismatch) -> str:
    """One copy whose bytes are others."""
    return (f"differs: client {mismatch.client}, record {mismatch.sequence}, {mismatch.bytes} bytes on stream "
            f"{mismatch.stream}, after kernel {mismatch.kernel}: {mismatch.found[:16]} instead of "
            f"{mismatch.expected[:16]}")
