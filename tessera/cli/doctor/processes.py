"""The processes of a program while it runs: all that ``/proc`` shows of them, time and again.

Whoever lives shorter than :data:`PERIOD_SECONDS` may not be seen.
"""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass, field
from pathlib import Path

from shim.places import PRELOAD
from tessera.cli.doctor.files import obstacle
from tessera.cli.under_shim import PRELOAD as PRELOAD_VARIABLE

PERIOD_SECONDS = 0.05
END_SECONDS = 5.0
PROC = Path("/proc")
_PARENT, _BEGUN = 1, 19  # fields of /proc/PID/stat behind the name


@dataclass
class Process:
    """One process as one program. ``obstacle``: why it has no library under it; None if it has. ``drivers``: files of
    CUDA drivers that were seen in one without."""

    process: int
    program: str
    obstacle: str | None
    drivers: set[str] = field(default_factory=set)


class Processes:
    """Looks from :meth:`start` to :meth:`stop`, in a thread of its own."""

    def __init__(self) -> None:
        self._seen: dict[tuple[int, str, str], Process] = {}
        self._known: dict[int, str] = {}  # processes of the program, and when they began
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="processes", daemon=True)

    def start(self, process: int) -> None:
        """Begin with the program's first process, which lives."""
        self.look(process)
        self._thread.start()

    def stop(self) -> list[Process]:
        """What was seen, in the order in which it was."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(END_SECONDS)
        return list(self._seen.values())

    def _run(self) -> None:
        while not self._stop.wait(PERIOD_SECONDS):
            self.look()

    def look(self, first: int | None = None) -> None:
        """Look once; ``first``: a process that is the program's, with all below it."""
        stats = _stats()
        self._known = {process: begun for process, begun in self._known.items()
                       if process in stats and stats[process][1] == begun}
        if first in stats:
            self._known[first] = stats[first][1]
        added = True
        while added:
            new = {process: begun for process, (parent, begun) in stats.items()
                   if parent in self._known and process not in self._known}
            self._known |= new
            added = bool(new)
        for process, begun in self._known.items():
            self._note(process, begun)

    def _note(self, process: int, begun: str) -> None:
        try:
            program = os.readlink(PROC / str(process) / "exe")
            told = (PROC / str(process) / "environ").read_bytes()
            found = self._seen.get((process, begun, program))
            if found is None:
                found = self._seen[process, begun, program] = Process(process, program, _why(program, told))
            if found.obstacle:
                found.drivers |= _drivers((PROC / str(process) / "maps").read_bytes())
        except OSError:
            return  # it has ended, or is another user's


def _why(program: str, told: bytes) -> str | None:
    prefix = f"{PRELOAD_VARIABLE}=".encode()
    named = [word for line in told.split(b"\0") if line.startswith(prefix)
             for word in line[len(prefix):].replace(b":", b" ").split()]
    if os.fsencode(PRELOAD) not in named:
        return f"its environment has no {PRELOAD_VARIABLE} with the library"
    return obstacle(Path(program), os.getuid(), os.getgid())


def _drivers(maps: bytes) -> set[str]:
    paths = {line.split(None, 5)[5] for line in maps.splitlines() if line.count(b"/")}
    return {os.fsdecode(path) for path in paths if path.rpartition(b"/")[2].startswith(b"libcuda.so")}


def _stats() -> dict[int, tuple[int, str]]:
    """The parent of every process, and when it began."""
    found = {}
    for name in os.listdir(PROC):
        if not name.isdigit():
            continue
        try:
            fields = (PROC / name / "stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
        except OSError:
            continue
        if fields[0] not in "ZX":
            found[int(name)] = int(fields[_PARENT]), fields[_BEGUN]
    return found
