"""Runs the small programs of the hazards with the library preloaded, and takes in what it records of them."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import softgpu
from tessera.environment import DEVICES, DRIVER, INSTRUMENT, LOG, SOCKET
from tests import null_driver
from tests.hazards.listener import Answer, Client, Kind, Listener
from tools import driver, native, shim
from tools.venv import PYTHON

FOLDER = Path(__file__).resolve().parent
LIBRARY = shim.PRELOAD
SECONDS = 20.0
"""For a program; those that hang are ended, which fails the test."""
OURS = ("LD_PRELOAD", "TESSERA_", DEVICES.name, INSTRUMENT.name)


@dataclass(frozen=True)
class Done:
    """What came of a program; ``log``: lines that the library wrote; ``clients``: the processes that it recorded."""

    status: int
    output: str
    errors: str
    seconds: float
    log: str
    clients: list[Client]

    def launches(self) -> int:
        """How many were recorded, of all clients together."""
        return sum(kind == Kind.LAUNCH for client in self.clients for kind, _ in client.heads)


def compiled(source: Path, program: Path, *flags: str) -> Path:
    """A program or, with ``-shared``, a library, of one C or C++ file; linked with the null driver by its SONAME."""
    library = null_driver.build()
    plus = source.suffix == ".cc"
    language = ["-std=c++17" if flag == "-std=c11" else flag for flag in native.FLAGS] if plus else native.FLAGS
    command = [native.compiler().replace("gcc", "g++") if plus else native.compiler(), *language, "-O1",
               f"-I{driver.headers(PYTHON)}", f"-I{FOLDER}", str(source), "-o", str(program),
               *(["-L" + str(library.parent), f"-l:{library.name}"] if "-DOPENED" not in flags else []), "-ldl", *flags]
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    return program


def environment(library: Path, variables: Mapping[str, str], preload: Sequence[Path | str] = (LIBRARY,)
                ) -> dict[str, str]:
    """Of a program that finds a driver by its name, and the library before it; without ``preload`` it runs bare."""
    base = {name: text for name, text in os.environ.items() if not name.startswith(OURS)}
    base = softgpu.environment("A100-80G,L40S", base=base)
    base["LD_LIBRARY_PATH"] = f"{library.parent}:{base['LD_LIBRARY_PATH']}"
    if preload:
        base |= {"LD_PRELOAD": ":".join(map(str, preload)), DRIVER.name: str(library)}
    return base | dict(variables)


def run(command: Sequence[Path | str], *, library: Path | None = None, answer: Answer | None = Answer.WELCOME,
        preload: Sequence[Path | str] = (LIBRARY,), seconds: float = SECONDS,
        given: Mapping[str, str | None] | None = None) -> Done:
    """Run a program on a driver (the null driver without ``library``) and a listener that answers somehow (None: there
    is none). ``given``: variables of the environment, None for those that are not to be there. Fails if it takes longer
    than ``seconds``."""
    with tempfile.TemporaryDirectory(prefix="hazard-") as name, ExitStack() as stack:
        folder = Path(name)
        variables = {SOCKET.name: str(folder / "socket"), LOG.name: str(folder / "log")} | dict(given or {})
        wanted = {name: text for name, text in variables.items() if text is not None}
        made = environment(library or null_driver.build(), wanted, preload)
        for missing in variables.keys() - wanted.keys():
            made.pop(missing, None)
        listener = stack.enter_context(Listener(folder / "socket", answer)) if answer else None
        began = time.monotonic()
        process = subprocess.Popen([str(word) for word in command], env=made, text=True, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
        try:
            output, errors = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            raise AssertionError(f"{command[0]} hangs: it has not ended after {seconds:.0f} s") from None
        took = time.monotonic() - began
        clients = listener.ended() if listener else []
        log = folder / "log"
        return Done(process.returncode, output, errors, took, log.read_text() if log.exists() else "", clients)
