"""Programs under the preload library on the software driver, and all records that they write."""

from __future__ import annotations

import os
import select
import socket
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from shim.messages import HELLO, read_hello, welcome
from shim.ring import Ring
from shim.wire import Kind, Record, records
from softgpu.environ import FOLDER as DRIVER_FOLDER
from softgpu.environ import environment
from tessera.driver_api import functions
from tessera.environment import DRIVER, SOCKET
from tools import driver, native, shim
from tools.venv import PYTHON

FOLDER = Path(__file__).resolve().parent / "c"
DEVICES = "A100-80G,L40S;from=A100-80G:to=L40S:bandwidth_gb_s=23:peer=true"
SECONDS = 120
_MOST = 1 << 20


def build(name: str, folder: Path, kind: str = "", *flags: str) -> Path:
    """The program of a file of ``c/``, linked with the software driver as any program is with a driver; ``kind``: of
    sanitizers."""
    program = folder / name
    command = [native.compiler(), *native.FLAGS, *native.sanitizer_flags(kind), f"-I{driver.headers(PYTHON)}", *flags,
               FOLDER / f"{name}.c", "-o", program, driver.LIBRARY]
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr[:2000]
    return program


@dataclass
class Observed:
    """What a program did: how it ended, and the records of its first process that called the driver, in order."""

    status: int = 0
    output: str = ""
    errors: str = ""
    records: list[Record] = field(default_factory=list)
    lost: int = 0

    def of(self, *kinds: Kind) -> list[Record]:
        """The records of some kinds."""
        return [record for record in self.records if record.kind in kinds]


def symbol(record: Record) -> str:
    """The function that was called."""
    return functions()[record.function].symbol


def run(command: Sequence[str | Path], *, options: int = 0, kind: str = "", instrument: Path | None = None,
        variables: Mapping[str, str] | None = None, seconds: float = SECONDS) -> Observed:
    """Run a program under the library, of which ``kind`` says with which sanitizers it is built; ``options`` are those
    of the answer to its greeting."""
    seen = Observed()
    library = shim.preload(PYTHON, kind)
    with tempfile.TemporaryDirectory(prefix="seen-") as folder:
        path = Path(folder, "socket")
        settings = environment(DEVICES, instrument=instrument) | {
            "LD_PRELOAD": _before(library, kind), DRIVER.name: str(DRIVER_FOLDER / "libcuda.so.1"),
            SOCKET.name: str(path), **(variables or {}),
        }
        with _listening(path, options, seen):
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=seconds, env=settings)
    seen.status, seen.output, seen.errors = done.returncode, done.stdout, done.stderr
    return seen


def _before(library: Path, kind: str) -> str:
    """The libraries to load first: a sanitizer's own has to come before all others."""
    if not kind:
        return str(library)
    name = {"address,undefined": "libasan.so", "thread": "libtsan.so"}[kind]
    asked = [native.compiler(), f"-print-file-name={name}"]
    found = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    return f"{Path(found).resolve()} {library}"


@contextmanager
def _listening(path: Path, options: int, seen: Observed) -> Iterator[None]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(str(path))
        listener.listen()
        ended, let_go = os.pipe()
        thread = threading.Thread(target=_take, args=(listener, ended, options, seen))
        thread.start()
        try:
            yield
        finally:
            os.close(let_go)
            thread.join(SECONDS)
            os.close(ended)
    assert not thread.is_alive()


def _take(listener: socket.socket, ended: int, options: int, seen: Observed) -> None:
    """The first process that says hello, until the program that was started has ended."""
    if listener not in select.select([listener, ended], [], [])[0]:
        return
    with listener.accept()[0] as connection:
        message, descriptors, _, _ = socket.recv_fds(connection, HELLO.size, 1)
        read_hello(message)
        connection.send(welcome(1, options))
    with Ring(descriptors[0]) as ring:
        os.close(descriptors[0])
        data = bytearray()
        while True:
            over = bool(select.select([ended], [], [], 0)[0])  # asked first: whatever it wrote is there now
            taken = ring.take(_MOST)
            if not taken and over:
                break
            data += taken
            ring.advance(len(taken))
            if not taken:
                ring.wait(ended, -1, 100_000)
        seen.lost = ring.lost
    seen.records = list(records(bytes(data)))
