"""A program run under the library, and what can be said of how it uses the driver."""

from __future__ import annotations

import io
import os
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tessera.cli.doctor.files import imports, obstacle, program_file
from tessera.cli.doctor.findings import Finding, Topic
from tessera.cli.doctor.processes import Process, Processes
from tessera.cli.under_shim import Done, Wanted, run_program
from tessera.driver_api import functions
from tessera.environment import LOG

if TYPE_CHECKING:
    from orchestrator.doors import Used
    from orchestrator.session.messages import Session

LINKED, OTHER = "linked", "other"
UNSEEN = "are not seen"
"""How a line of the library's log ends that says that calls are not seen."""
_WHO = re.compile(r"^tessera\[\d+\]: ")
_LARGEST_LOG = 1 << 20
_MOST_LINES = 50


@dataclass(frozen=True)
class UsedFunction:
    """A function of the driver: ``kind`` and ``since`` as in the list; ``ways`` how the program got at it: ``linked``
    (its own file is), ``dlsym``, ``proc_address``, or ``other``; ``records`` that name it: functions that only pass
    leave none."""

    symbol: str
    kind: str
    since: int
    ways: tuple[str, ...]
    records: int


@dataclass(frozen=True)
class UsingProcess:
    """A process that called the driver, and how its records arrived: see docs/run.md."""

    process: int
    program: str
    driver: str
    driver_version: str
    functions: tuple[UsedFunction, ...]
    unlisted: tuple[str, ...]
    records: int
    lost: int
    missing: int
    epochs: int
    trouble: str | None


@dataclass(frozen=True)
class OtherProcess:
    """A process that did not call the driver through the library; ``obstacle``: why it has none under it, if so."""

    process: int
    program: str
    obstacle: str | None
    drivers: tuple[str, ...]


@dataclass(frozen=True)
class Observation:
    """``file``: the executable that runs for the command; ``exit_code``: the program's, None if it was not run."""

    command: tuple[str, ...]
    file: str | None
    exit_code: int | None
    using: tuple[UsingProcess, ...] = ()
    others: tuple[OtherProcess, ...] = ()


def observe(wanted: Wanted, findings: list[Finding]) -> Observation:
    """Run the program, whose standard output becomes standard error. Raises :class:`TesseraError` if it cannot even be
    tried."""
    from orchestrator.doors import Doors

    doors, processes, lines, done = Doors(), Processes(), io.StringIO(), list[Done]()
    file = program_file(wanted.command[0])
    with tempfile.TemporaryDirectory(prefix="tessera-doctor-") as folder:
        log = Path(folder) / "log"
        told = replace(wanted, variables={**wanted.variables, LOG.name: str(log)})
        with _output_aside():
            code = run_program(told, lines, [doors], done.append, processes.start)
        seen, said = processes.stop(), _log(log)
    if not done:
        findings.append(Finding(Topic.NOT_RUN, lines.getvalue().rstrip().rpartition("tessera: ")[2]))
        return Observation(wanted.command, file, None)
    sessions = done[0].sessions
    using = tuple([_using(session, doors.used[session.client]) for session in sessions if session.client in doors.used])
    called = {process.process for process in using}
    others = tuple([OtherProcess(p.process, p.program, p.obstacle, tuple(sorted(p.drivers)))
                    for p in seen if p.process not in called])
    found = Observation(wanted.command, file, code, using, others)
    findings += [*_reach(found, seen), *said, *_records(done[0]), *_tables(using)]
    if not using and not any(finding.topic is Topic.DISABLED for finding in findings):
        reason = _reason(found, said)
        findings.append(Finding(Topic.NO_CALL, f"no process called the driver through the library: {reason}"))
    return found


@contextmanager
def _output_aside() -> Iterator[None]:
    """What this process's children write to standard output goes to standard error."""
    sys.stdout.flush()
    before = os.dup(1)
    try:
        os.dup2(2, 1)
        yield
    finally:
        os.dup2(before, 1)
        os.close(before)


def _log(path: Path) -> list[Finding]:
    """A finding for each line that the library wrote, with how often it did."""
    if not path.exists():
        return []
    with path.open("rb") as file:
        text = file.read(_LARGEST_LOG).decode(errors="replace")
    said: Counter[str] = Counter()
    for line in text.splitlines():
        said["".join([c if c.isprintable() else "?" for c in _WHO.sub("", line)])] += 1
    return [Finding(Topic.UNSEEN if line.endswith(UNSEEN) else Topic.LIBRARY, f"{line} ({count} times)" if count > 1
                    else line) for line, count in said.most_common(_MOST_LINES)]


def _using(session: Session, used: Used) -> UsingProcess:
    client = session.client
    linked = imports(Path(client.program))
    listed = []
    for number, function in enumerate(functions()):
        ways = set(used.ways.get(number, ())) | ({LINKED} if function.symbol in linked else set())
        records = used.records[number]
        if ways or records:
            listed.append(UsedFunction(function.symbol, function.kind, function.since, tuple(sorted(ways or {OTHER})),
                                       records))
    version = f"{used.version // 1000}.{used.version % 1000 // 10}"
    return UsingProcess(client.process, client.program, used.driver, version, tuple(listed),
                        tuple(sorted(used.unlisted)), session.records, session.lost, session.missing, session.epochs,
                        session.trouble)


def _reach(found: Observation, seen: Sequence[Process]) -> list[Finding]:
    """Where the library cannot be. The command's own file is known for sure; other processes only if they were seen."""
    why = found.file and obstacle(Path(found.file), os.getuid(), os.getgid())
    said = [Finding(Topic.OUT_OF_REACH, f"{found.file} has no library under it: {why}")] if why else []
    for process in seen:
        if not process.obstacle or (why and process.program == found.file):
            continue
        text = f"process {process.process} ({process.program}) has no library under it: {process.obstacle}"
        if process.drivers:
            said.append(Finding(Topic.OUT_OF_REACH, f"{text}; it has {', '.join(sorted(process.drivers))}"))
        else:
            said.append(Finding(Topic.WITHOUT_LIBRARY, text))
    return said


def _records(done: Done) -> list[Finding]:
    """What is not as usual with the records that came."""
    said = []
    for session in done.sessions:
        who = f"process {session.client.process}"
        if session.lost or session.missing:
            said.append(Finding(Topic.LOST, f"{who}: {max(session.lost, session.missing)} records found no room, "
                                f"{session.records} are there; it said anew what there is {session.epochs} times"))
        if session.trouble and session.client.process not in done.living:
            said.append(Finding(Topic.BROKEN, f"{who}: {session.trouble}"))
    said += [Finding(Topic.REFUSED, f"{reason} ({count} times)") for reason, count in done.refused]
    if done.living:
        said.append(Finding(Topic.OUTLIVED, f"processes {', '.join([str(process) for process in done.living])}"))
    return said


def _tables(using: Sequence[UsingProcess]) -> list[Finding]:
    asked = [(process.process, function.records) for process in using for function in process.functions
             if function.symbol == "cuGetExportTable" and function.records]
    return [Finding(Topic.EXPORT_TABLES, f"process {process} asked {count} times for a table of private functions")
            for process, count in asked]


def _reason(found: Observation, said: Sequence[Finding]) -> str:
    """Likely reasons for no call at all."""
    reasons = []
    if found.file and obstacle(Path(found.file), os.getuid(), os.getgid()):
        reasons.append("the command has no library under it")
    if any(finding.topic is Topic.UNSEEN for finding in said):
        reasons.append("it looked up functions elsewhere than in the driver")
    elif said:
        reasons.append("the library met with trouble")
    if any(process.obstacle for process in found.others):
        reasons.append("processes had no library under them")
    if found.file and {function.symbol for function in functions()} & imports(Path(found.file)):
        reasons.append("it is linked with the driver, and has not come to call it")
    return "; ".join(reasons) or ("perhaps it uses no GPU, or not in this run, or a wrapper took the "
                                  "environment from a process that was too short to be seen")
