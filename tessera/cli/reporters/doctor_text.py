"""``tessera doctor`` for people: what is here, what a program did, and last what was found."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.console import ConsoleRenderable
from rich.table import Table
from rich.text import Text

from tessera.cards import GIB
from tessera.cli.reporters import output

if TYPE_CHECKING:
    from tessera.cli.doctor.drivers import Driver
    from tessera.cli.doctor.observation import Observation, UsingProcess
    from tessera.cli.doctor.report import Report

WAYS = {"linked": "its own file is linked to", "dlsym": "looked up with dlsym", "proc_address": "cuGetProcAddress gave",
        "other": "linked to by a library of its, or found otherwise"}
GETTERS = ("cuGetProcAddress", "cuGetProcAddress_v2")
KINDS = {"track": "tracked", "note": "noted", "pass": "passed on"}
MOST_FUNCTIONS = 20
"""The JSON output has all."""


def write(found: Report) -> None:
    """Everything to standard output."""
    output.show(parts(found))


def parts(found: Report) -> list[ConsoleRenderable]:
    """Tables of two columns with headings, then the findings."""
    shown = _titled("Tessera", _installation(found))
    shown += _titled("Driver", _driver(found.driver))
    shown += _titled("System", ((limit.name, limit.value) for limit in found.limits))
    if found.variables:
        shown += _titled("Environment", ((variable.name, variable.value) for variable in found.variables))
    if found.program:
        shown += _titled("Program", _program(found.program))
        for process in found.program.using:
            shown += _titled(f"Process {process.process}", _using(process))
    problems = [finding for finding in found.findings if finding.topic.problem]
    notes = [finding for finding in found.findings if not finding.topic.problem]
    shown += _titled("Amiss", ((finding.topic.value, finding.text) for finding in problems))
    shown += _titled("Good to know", ((finding.topic.value, finding.text) for finding in notes))
    return [*shown, Text(f"{len(problems)} things are amiss" if len(problems) != 1 else "1 thing is amiss")]


def _titled(title: str, rows: Iterator[tuple[str, str]]) -> list[ConsoleRenderable]:
    """A heading and its rows; nothing where there are none."""
    table = Table.grid(padding=(0, 2, 0, 0))
    for row in rows:
        table.add_row("", *[Text(cell) for cell in row])
    return [Text(title, "bold"), table, Text()] if table.row_count else []


def _installation(found: Report) -> Iterator[tuple[str, str]]:
    for name, version in found.installation.versions.items():
        yield name, version or "not there"
    yield "driver functions", f"{found.installation.functions}, list {found.installation.list}"
    for part in found.installation.parts:
        yield part.name, part.path if part.built else f"not built: {part.path}"


def _driver(found: Driver | None) -> Iterator[tuple[str, str]]:
    if found is None:
        yield "", "none"
        return
    yield "file", found.path
    yield "why", found.why
    if found.version:
        yield "CUDA", found.version + (", software" if found.software else "")
    for number, device in enumerate(found.devices):
        yield f"GPU {number}", f"{device.name}, capability {device.capability}, {device.memory / GIB:.6g} GiB"
    if found.lacks is not None and found.unlisted is not None:
        yield "functions", f"{len(found.lacks)} of the list are not there; {len(found.unlisted)} are not in the list"


def _program(found: Observation) -> Iterator[tuple[str, str]]:
    yield "command", " ".join(found.command)
    yield "executable", found.file or "not found"
    yield "exit code", "not run" if found.exit_code is None else str(found.exit_code)
    yield "processes", f"{len(found.using)} called the driver, {len(found.others)} others were seen"
    for process in found.others:
        reason = process.obstacle or "it called no function of the driver"
        yield f"process {process.process}", f"{process.program}: {reason}"


def _using(found: UsingProcess) -> Iterator[tuple[str, str]]:
    yield "executable", found.program
    yield "driver", f"{found.driver}, CUDA {found.driver_version}"
    yield "records", f"{found.records}, {max(found.lost, found.missing)} missing"
    for way, words in WAYS.items():
        kinds = [function.kind for function in found.functions if way in function.ways]
        if kinds:
            counts = ", ".join([f"{kinds.count(kind)} {word}" for kind, word in KINDS.items() if kind in kinds])
            yield words, f"{len(kinds)} functions: {counts}"
    forms = [function for function in found.functions if function.symbol in GETTERS]
    newest = max((function.since for function in found.functions if "proc_address" in function.ways), default=0)
    if forms and newest:
        names = ", ".join([form.symbol for form in forms])
        yield "asked the driver with", f"{names}; the newest form is of CUDA {newest // 1000}.{newest % 1000 // 10}"
    for name in found.unlisted:
        yield name, "not in the list: its calls are not seen"
    called = sorted([function for function in found.functions if function.records], key=lambda f: -f.records)
    for function in called[:MOST_FUNCTIONS]:
        yield function.symbol, f"{function.records} records, {KINDS[function.kind]}"
    if len(called) > MOST_FUNCTIONS:
        yield "", f"{len(called) - MOST_FUNCTIONS} more functions have records"
