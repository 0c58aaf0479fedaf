"""Programs that launch, yardsticks that may stand between them and the driver, and a reader of what the shim writes."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tests import null_driver
from tools import driver, native
from tools.steps import ROOT
from tools.venv import PYTHON

FOLDER = Path(__file__).resolve().parent / "shim"
PTX = FOLDER / "nothing.ptx"
SECONDS = 120
SILENCE = 10
"""Seconds after which nothing more is expected."""
PRELOAD = "LD_PRELOAD"


@dataclass(frozen=True)
class Programs:
    """``opened`` loads the driver by its name, ``linked`` is linked with it. Both are ``launches.c``, as its head says.
    The yardsticks are libraries to preload, which only what is linked meets. ``drain`` reads the shim's ring."""

    opened: Path
    linked: Path
    pointer: Path
    zmq: Path
    drain: Path


@dataclass(frozen=True)
class Launches:
    """What ``launches.c`` prints: nanoseconds of a launch, over the batches."""

    launches: int
    median_ns: float
    p99_ns: float
    mean_ns: float
    per_second: float


@dataclass(frozen=True)
class Drained:
    """What ``drain.c`` prints of the records that it read: ``gaps`` in their numbers, ``lost`` as the ring says it."""

    records: int
    launches: int
    bytes: int
    gaps: int
    lost: int


def build(folder: Path) -> Programs:
    """All of them, made in a folder."""
    library = null_driver.build()
    made = Programs(folder / "opened", folder / "linked", folder / "pointer.so", folder / "zmq_each.so",
                    folder / "drain")
    _compile(made.opened, "launches.c")
    _compile(made.linked, "launches.c", "-DDIRECT", f"-L{library.parent}", f"-l:{library.name}")
    _compile(made.pointer, "pointer.c", "-shared")
    _compile(made.zmq, "zmq_each.c", "-shared")
    _compile(made.drain, "drain.c", f"-I{ROOT / 'shim'}")
    return made


def _compile(made: Path, source: str, *flags: str) -> None:
    command = [native.compiler(), *native.FLAGS, f"-I{driver.headers(PYTHON)}", FOLDER / source, "-o", made, *flags]
    subprocess.run(command, check=True, timeout=SECONDS)


def environment(library: Path, **variables: str) -> dict[str, str]:
    """Of a program that finds a driver by its name."""
    return {**os.environ, "LD_LIBRARY_PATH": str(library.parent), **variables}


def run(program: Path, count: int, every: int, variables: Mapping[str, str], ptx: Path | None = None) -> Launches:
    """One process with ``count`` launches, waited for after each ``every`` (0: at the end)."""
    command = [program, str(count), str(every), *([ptx] if ptx else [])]
    done = subprocess.run(command, env=dict(variables), stdout=subprocess.PIPE, text=True, check=True, timeout=SECONDS)
    return Launches(**json.loads(done.stdout))


@contextmanager
def reader(made: Programs, socket: Path) -> Iterator[subprocess.Popen[str]]:
    """``drain`` at work: it listens when this is entered, and ends once the program that connects has ended."""
    with subprocess.Popen([made.drain, socket], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout and process.stdout.readline() == "listening\n", "it says why"
            yield process
        finally:
            process.kill()


def drained(process: subprocess.Popen[str]) -> Drained:
    """What it has read, once the program has ended."""
    output, _ = process.communicate(timeout=SILENCE)
    assert process.returncode == 0, "it says why"
    return Drained(**json.loads(output))


def zmq_library() -> Path:
    """The libzmq of pyzmq's wheel, whose name has a hash in it."""
    package = importlib.util.find_spec("zmq")
    assert package and package.origin, "pyzmq is not installed"
    (found,) = Path(package.origin).parent.parent.joinpath("pyzmq.libs").glob("libzmq-*.so*")
    return found


def zmq_each(made: Programs, folder: Path, count: int) -> tuple[Launches, int]:
    """Launches with a message for each, and how many messages came; this process reads meanwhile."""
    import zmq

    address = f"ipc://{folder}/yardstick"
    variables = environment(null_driver.build(), **{PRELOAD: str(made.zmq)}, YARDSTICK_ZMQ=str(zmq_library()),
                            YARDSTICK_ENDPOINT=address)
    received = 0
    with zmq.Context() as context, context.socket(zmq.PULL) as socket:
        socket.bind(address)
        socket.rcvtimeo = SILENCE * 1000
        process = subprocess.Popen([made.linked, str(count), "0"], env=variables, stdout=subprocess.PIPE, text=True)
        try:
            with suppress(zmq.Again):
                while received < count:
                    socket.recv()
                    received += 1
            output, _ = process.communicate(timeout=SILENCE)
        finally:
            process.kill()
            process.wait()
    return Launches(**json.loads(output)), received
