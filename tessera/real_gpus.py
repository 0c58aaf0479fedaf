"""The GPUs of this machine that NVIDIA's driver knows.

    python -m tessera.real_gpus [LIBRARY]

prints as JSON what a driver says. :func:`find` asks in a process of its own, so that a driver that hangs or crashes
harms nobody.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from ctypes import CDLL, byref, c_char, c_char_p, c_int, c_size_t, c_void_p, cast, create_string_buffer
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tessera.errors import ExitCode, TesseraError

LIBRARY = "libcuda.so.1"
SOFTWARE = b"softgp"
"""How the identities of software GPUs begin: they are no real ones, whoever is first on the loader's path."""
SECONDS = 60.0
_MAJOR, _MINOR, _SMS = 75, 76, 16
"""CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, ..._MINOR, ..._MULTIPROCESSOR_COUNT."""
_NO_LIBRARY = 69  # exit status of the process that asks


class DriverTrouble(TesseraError):
    """NVIDIA's driver is there and does not work."""

    exit_code = ExitCode.NO_DRIVER


class DriverDeadline(TesseraError):
    """NVIDIA's driver does not answer."""

    exit_code = ExitCode.DEADLINE


@dataclass(frozen=True)
class RealGpu:
    """What the driver says of a GPU; ``memory`` in bytes, ``peers`` the numbers of those whose memory it may access."""

    name: str
    capability: tuple[int, int]
    memory: int
    sms: int
    peers: frozenset[int]


@dataclass(frozen=True)
class RealMachine:
    """``version``: the one of CUDA that the driver reports, (13, 0). ``library``: its file, an absolute path.
    ``software``: they are ours, and not real."""

    version: tuple[int, int]
    gpus: tuple[RealGpu, ...]
    library: str = ""
    software: bool = False


def find(library: str = LIBRARY) -> RealMachine | None:
    """The real GPUs; None where there is no driver of NVIDIA. Raises :class:`DriverTrouble` when there is one that has
    no GPU to offer, or crashes, and :class:`DriverDeadline` when it does not answer."""
    said = ask(library)
    return None if said is None or said.software else said


def ask(library: str, environment: Mapping[str, str] | None = None) -> RealMachine | None:
    """What a driver says, whoever made it, in an environment (this process's own without one); None if it cannot be
    opened. Raises as :func:`find`."""
    command = [sys.executable, "-m", "tessera.real_gpus", library]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False, env=environment)
    except subprocess.TimeoutExpired:
        raise DriverDeadline(f"{library} did not say within {SECONDS:g} seconds which GPUs there are") from None
    if done.returncode == _NO_LIBRARY:
        return None
    if done.returncode:
        end = (done.stderr.strip().splitlines() or ["nothing on standard error"])[-1]
        raise DriverTrouble(f"{library} ends a program that asks for its GPUs (exit status {done.returncode}: {end})")
    said = json.loads(done.stdout)
    if said["failed"]:
        raise DriverTrouble(f"{library} is here and has no GPU that works: {said['failed']}")
    gpus = [RealGpu(g["name"], (g["major"], g["minor"]), g["memory"], g["sms"], frozenset(g["peers"]))
            for g in said["gpus"]]
    version = said["version"] // 1000, said["version"] % 1000 // 10
    return RealMachine(version, tuple(gpus), said["library"], said["software"])


class _Failed(Exception):
    """A function of the driver did not succeed."""


class _Driver:
    """A CUDA driver, by its exported functions; each raises unless it succeeds."""

    def __init__(self, library: CDLL) -> None:
        self._library = library

    def call(self, function: str, *arguments: object) -> None:
        result = getattr(self._library, function)(*arguments)
        if result:
            raise _Failed(f"{function} returns {self._named(result)}")

    def _named(self, result: int) -> str:
        text = c_char_p()
        self._library.cuGetErrorName(result, byref(text))
        return text.value.decode(errors="replace") if text.value else str(result)

    def number(self, function: str, *arguments: object) -> int:
        """What a function writes to its first parameter."""
        found = c_int()
        self.call(function, byref(found), *arguments)
        return found.value

    def gpu(self, device: int, count: int) -> dict[str, Any]:
        memory, name = c_size_t(), create_string_buffer(256)
        self.call("cuDeviceTotalMem_v2", byref(memory), device)
        self.call("cuDeviceGetName", name, len(name), device)
        peers = [other for other in range(count)
                 if other != device and self.number("cuDeviceCanAccessPeer", device, other)]
        return {
            "name": name.value.decode(errors="replace"), "memory": memory.value, "peers": peers,
            "major": self.number("cuDeviceGetAttribute", _MAJOR, device),
            "minor": self.number("cuDeviceGetAttribute", _MINOR, device),
            "sms": self.number("cuDeviceGetAttribute", _SMS, device),
        }  # fmt: skip

    def path(self) -> str:
        """The file of the library."""
        address = cast(self._library.cuInit, c_void_p).value or 0
        for line in Path("/proc/self/maps").read_text(encoding="utf-8").splitlines():
            span, *_, name = line.split(maxsplit=5)
            begin, _, end = span.partition("-")
            if int(begin, 16) <= address < int(end, 16):
                return name
        return ""

    def software(self) -> bool:
        identity = (c_char * 16)()
        self.call("cuDeviceGetUuid", identity, 0)
        return identity.raw.startswith(SOFTWARE)

    def ask(self) -> dict[str, Any]:
        """All that :func:`find` wants to know."""
        self.call("cuInit", 0)
        count = self.number("cuDeviceGetCount")
        return {
            "failed": None if count else "it counts none", "software": count > 0 and self.software(),
            "version": self.number("cuDriverGetVersion"), "library": self.path(),
            "gpus": [self.gpu(n, count) for n in range(count)],
        }  # fmt: skip


def main() -> int:
    """Print what a driver says; the exit status."""
    try:
        driver = _Driver(CDLL(sys.argv[1] if len(sys.argv) > 1 else LIBRARY))
    except OSError:
        return _NO_LIBRARY
    try:
        found = driver.ask()
    except (_Failed, AttributeError) as error:  # AttributeError: it lacks a function
        found = {"failed": str(error), "software": False}
    print(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
