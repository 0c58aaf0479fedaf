"""What the software driver logs, what goes wrong in it on purpose, and how it differs from its usual self; see
``docs/instrument.md``.

    instrument = Instrument(log=Path("log"), calls=True, rules=[Fail("cuMemAlloc", call=3)])
    with instrument.variables() as variables:
        subprocess.run(program, env={**os.environ, **variables})
    for record in instrument.records():
        print(record)
"""

from __future__ import annotations

import json
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tessera.driver_api import by_name, functions
from tessera.environment import INSTRUMENT
from tessera.errors import UsageError

EVERY_FUNCTION = "*"


class InstrumentError(UsageError):
    """Something is wanted of the instrument that it does not do; the message says what it does."""


@dataclass(frozen=True)
class _Rule(ABC):
    """Calls of a function, from any thread or from one; threads are numbered from 1 as they make their first calls.

    ``function``: a name (``cuMemAlloc``: all its forms), a symbol (``cuMemAlloc_v2``), or ``*``. ``call``: which one,
    from 1. ``onwards``: all that follow, too.
    """

    function: str
    call: int = 1
    onwards: bool = False
    thread: int | None = None

    def line(self) -> str:
        """The line of the file."""
        known = self.function in by_name() or any(f.symbol == self.function for f in functions())
        if self.function != EVERY_FUNCTION and not known:
            raise InstrumentError(f"{self.function}: the driver has no such function")
        if self.call < 1 or (self.thread is not None and self.thread < 1):
            raise InstrumentError(f"{self.function}: calls and threads are numbered from 1")
        where = "" if self.thread is None else f" thread {self.thread}"
        return f"{self._verb()} {self.function} {self.call}{'+' * self.onwards} {self._what()}{where}"

    @abstractmethod
    def _verb(self) -> str: ...

    @abstractmethod
    def _what(self) -> str: ...


@dataclass(frozen=True)
class Fail(_Rule):
    """They do nothing and give an error: the name or the number of a CUresult."""

    result: str | int = "CUDA_ERROR_UNKNOWN"

    def _verb(self) -> str:
        return "fail"

    def _what(self) -> str:
        return str(self.result)


@dataclass(frozen=True)
class Delay(_Rule):
    """They begin later: by a time in seconds, from a microsecond to an hour."""

    seconds: float = 0.001

    def _verb(self) -> str:
        return "delay"

    def _what(self) -> str:
        microseconds = round(self.seconds * 1e6)
        if not 1 <= microseconds <= 3_600_000_000:
            raise InstrumentError(f"{self.seconds} s: a delay is between a microsecond and an hour")
        return str(microseconds)


@dataclass(frozen=True)
class Instrument:
    """All settings. Without any the driver is as usual.

    ``log``: where the lines go; each process appends its number to the name. ``calls``, ``accesses``, ``work``: every
    call, what every launch has read and written, and every piece of work that streams have done, go there. ``left``: at
    the end of a process, what it has not given back goes there, or to standard error. ``version``: of the driver, as
    12040. ``reuse``: handles and device addresses of what is no more are those of the next that is made. ``loader``:
    ``cuInit`` calls the loader.
    """

    log: Path | None = None
    calls: bool = False
    accesses: bool = False
    work: bool = False
    left: bool = False
    rules: Sequence[Fail | Delay] = ()
    version: int | None = None
    reuse: bool = False
    loader: bool = False

    def text(self) -> str:
        """The file. Raises InstrumentError."""
        if (self.calls or self.accesses or self.work) and self.log is None:
            raise InstrumentError("calls, accesses and work need a log")
        lines = [name for name in ("calls", "accesses", "work", "left", "reuse", "loader") if getattr(self, name)]
        if self.log is not None:
            path = str(self.log.absolute())
            if path != path.strip() or len(path.splitlines()) != 1:
                raise InstrumentError(f"{path!r}: a log's name has no blanks around it and is one line")
            lines.append(f"log {path}")
        if self.version is not None:
            if not 1000 <= self.version <= 99999:
                raise InstrumentError(f"{self.version}: a version is a number like 12040")
            lines.append(f"version {self.version}")
        return "".join([f"{line}\n" for line in [*lines, *[rule.line() for rule in self.rules]]])

    def write(self, path: Path) -> None:
        """Write the file that the variable is to name. Raises InstrumentError."""
        path.write_text(self.text(), encoding="utf-8")

    @contextmanager
    def variables(self) -> Iterator[dict[str, str]]:
        """What the environment of a program needs, as long as it starts within. Raises InstrumentError."""
        with tempfile.TemporaryDirectory(prefix="softgpu-") as folder:
            path = Path(folder, "instrument")
            self.write(path)
            yield {INSTRUMENT.name: str(path)}

    def records(self) -> list[dict[str, Any]]:
        """What is in the logs, process by process, as ``docs/schema/instrument.json`` has it."""
        if self.log is None:
            return []
        found: list[dict[str, Any]] = []
        for path in sorted(self.log.parent.glob(f"{self.log.name}.*")):
            if path.suffix[1:].isdecimal():
                found += [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        return found
