"""A machine with a CUDA driver, and programs that use it: checks run in processes of their own, which may break."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 120.0
END_SECONDS = 10.0
"""For a program that is told to end."""


def python(program: str, *arguments: object) -> list[str]:
    """The command of a program of ``programs/``."""
    return [sys.executable, "-m", f"tests.device.programs.{program}", *map(str, arguments)]


def say(name: str, fact: object) -> None:
    """Print a fact, for whoever keeps the output."""
    print(json.dumps({name: fact}))


@dataclass(frozen=True)
class Machine:
    """``variables``: the whole environment of programs; ``home``, ``worker``: numbers of two devices, of the same one
    twice where there is only one; ``driver``: the file of the driver, an absolute path."""

    real: bool
    variables: Mapping[str, str]
    home: int
    worker: int
    driver: str

    def start(self, program: str, *arguments: object, files: Sequence[int] = ()) -> Program:
        """A program of ``programs/``, which inherits file descriptors."""
        return self.command(python(program, *arguments), files)

    def command(self, command: Sequence[str | Path], files: Sequence[int] = (), **more: str) -> Program:
        process = subprocess.Popen(command, env={**self.variables, **more}, cwd=ROOT, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, pass_fds=files)
        return Program(" ".join(map(str, command)), process)

    def run(self, program: str, *arguments: object, seconds: float = SECONDS) -> Any:
        """What one program reports."""
        return finish(self.start(program, *arguments), seconds=seconds)[0]


@dataclass(frozen=True)
class Program:
    name: str
    process: subprocess.Popen[str]

    def end(self, seconds: float = SECONDS) -> tuple[str, str]:
        """Its output and errors. When it does not end in time it is told to, which it may pass on, then killed."""
        with suppress(subprocess.TimeoutExpired):
            return self.process.communicate(timeout=max(seconds, 0))
        output = errors = ""
        for stop in (self.process.terminate, self.process.kill):
            stop()
            with suppress(subprocess.TimeoutExpired):
                output, errors = self.process.communicate(timeout=END_SECONDS)
                break
        return output, f"{errors}\nended: it took longer than {seconds:.0f} seconds"


def outputs(*programs: Program, seconds: float = SECONDS, meanwhile: Callable[[], None] = lambda: None) -> list[str]:
    """What the programs print; all must end well within a time. What is done ``meanwhile`` must have a deadline of its
    own."""
    deadline = time.monotonic() + seconds
    trouble: list[str] = []
    try:
        meanwhile()
    except TimeoutError as error:
        deadline = time.monotonic()
        trouble = [str(error)]
    said = [program.end(deadline - time.monotonic()) for program in programs]
    for program, (output, errors) in zip(programs, said, strict=True):
        if status := program.process.returncode:
            trouble.append(f"{program.name} ended with {status}\n{output[-2000:]}\n{errors[-6000:]}")
    assert not trouble, "\n".join(trouble)
    return [output for output, _ in said]


def finish(*programs: Program, seconds: float = SECONDS, meanwhile: Callable[[], None] = lambda: None) -> list[Any]:
    """The same for programs that report JSON on the last line of their output: what they report."""
    return [json.loads(output.splitlines()[-1]) for output in outputs(*programs, seconds=seconds, meanwhile=meanwhile)]
