"""What the system allows, as far as Tessera needs it, and variables of the environment that change something."""

from __future__ import annotations

import ctypes
import fcntl
import mmap
import os
import platform
import resource
import socket
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from shim.places import PRELOAD
from shim.room import room, socket_in
from tessera.cli.doctor import elf
from tessera.cli.doctor.findings import Finding, Topic
from tessera.cli.under_shim import PRELOAD as PRELOAD_VARIABLE
from tessera.environment import DISABLE, DRIVER, LOG, SOCKET
from tessera.errors import TesseraError

RING_BYTES = (64 << 20) + 4096
"""That a process shares with its reader."""
LEAST_DESCRIPTORS = 256
LEAST_MEMORY = 4 * RING_BYTES
LEAST_ADDRESSES = 1 << 30
LEAST_LIBC = (2, 34)
MADV_WIPEONFORK = 18  # Linux 4.14

WATCHED = {
    "LD_AUDIT": "auditing libraries see and may change which functions programs get",
    "LD_DEBUG": "the loader writes about its work, perhaps into the program's output",
    "CUDA_INJECTION64_PATH": "the driver itself loads that library, whose calls are recorded as the program's",
    "CUDA_VISIBLE_DEVICES": "it says which GPUs NVIDIA's driver shows",
    "CUDA_LAUNCH_BLOCKING": "each launch waits for its end",
    DRIVER.name: "tessera run and tessera record set it anew; it counts only where the library is preloaded by hand",
    SOCKET.name: "tessera run and tessera record set it anew; it counts only where the library is preloaded by hand",
}
"""Variables of others, and why they matter."""


@dataclass(frozen=True)
class Limit:
    """Something that the system has or allows; ``value`` for people."""

    name: str
    value: str
    fine: bool = True


@dataclass(frozen=True)
class Variable:
    name: str
    value: str


def limits(findings: list[Finding]) -> tuple[Limit, ...]:
    """All of them; those that are not fine become findings."""
    found = [
        _machine(), _libc(), Limit("kernel", platform.release()), Limit("cores", str(len(os.sched_getaffinity(0)))),
        _memory(), _at_least("open files", resource.RLIMIT_NOFILE, LEAST_DESCRIPTORS),
        _at_least("size of a file, bytes", resource.RLIMIT_FSIZE, RING_BYTES),
        _at_least("address space, bytes", resource.RLIMIT_AS, LEAST_ADDRESSES),
        _tried("memory that is shared and sealed (memfd)", _memfd), _tried("pages that forks empty", _wiped),
        _tried("pidfd", lambda: os.close(os.pidfd_open(os.getpid()))), _tried("folder for sockets", _sockets),
    ]
    findings += [Finding(Topic.LIMIT, f"{limit.name}: {limit.value}") for limit in found if not limit.fine]
    return tuple(found)


def _machine() -> Limit:
    return Limit("machine", platform.machine(), platform.machine() == "x86_64")


def _libc() -> Limit:
    name, _, version = (os.confstr("CS_GNU_LIBC_VERSION") or "not glibc").partition(" ")
    numbers = tuple([int(part) for part in version.split(".") if part.isdigit()])
    return Limit("C library", f"{name} {version}", name == "glibc" and numbers >= LEAST_LIBC)


def _memory() -> Limit:
    lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    fields = {name: int(rest.split()[0]) << 10 for name, _, rest in (line.partition(":") for line in lines)}
    free = fields.get("MemAvailable", 0)
    return Limit("available memory, bytes", str(free), free >= LEAST_MEMORY)


def _at_least(name: str, which: int, least: int) -> Limit:
    soft, _ = resource.getrlimit(which)
    if soft == resource.RLIM_INFINITY:
        return Limit(name, "unlimited")
    return Limit(name, str(soft) if soft >= least else f"{soft}, and {least} are needed", soft >= least)


def _tried(name: str, attempt: Callable[[], str | None]) -> Limit:
    try:
        return Limit(name, attempt() or "works")
    except (OSError, TesseraError) as error:
        return Limit(name, str(error), False)


def _memfd() -> None:
    descriptor = os.memfd_create("doctor", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)
    finally:
        os.close(descriptor)


def _wiped() -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    with closing(mmap.mmap(-1, mmap.PAGESIZE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)) as memory:
        page = (ctypes.c_char * mmap.PAGESIZE).from_buffer(memory)
        wrong = libc.madvise(ctypes.byref(page), ctypes.c_size_t(mmap.PAGESIZE), MADV_WIPEONFORK)
        number = ctypes.get_errno()
        del page
    if wrong:
        raise OSError(number, os.strerror(number))


def _sockets() -> str:
    with room() as folder, closing(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)) as listening:
        listening.bind(str(socket_in(folder, "hello")))
        return str(folder.parent)


def variables(environment: Mapping[str, str], findings: list[Finding]) -> tuple[Variable, ...]:
    """Those that are set and change something; what they change becomes findings."""
    shown = sorted({PRELOAD_VARIABLE, DISABLE.name, LOG.name, *WATCHED} & set(environment))
    found = tuple([Variable(name, environment[name]) for name in shown if environment[name]])
    for variable in found:
        if variable.name == PRELOAD_VARIABLE:
            _preloaded(variable.value, findings)
        elif variable.name == DISABLE.name:
            if variable.value != "0":
                findings.append(Finding(Topic.DISABLED, f"{DISABLE.name}={variable.value}: nothing is recorded"))
        elif variable.name == LOG.name:
            if not variable.value.startswith("/"):
                findings.append(Finding(Topic.VARIABLE, f"{LOG.name} is no absolute path: nothing is written there"))
        else:
            findings.append(Finding(Topic.VARIABLE, f"{variable.name}={variable.value}: {WATCHED[variable.name]}"))
    return found


def _preloaded(value: str, findings: list[Finding]) -> None:
    """Other preloaded libraries come behind ours; those that stand before the same functions are in its way."""
    for name in value.replace(":", " ").split():
        if name == str(PRELOAD):
            findings.append(Finding(Topic.VARIABLE, f"{PRELOAD_VARIABLE} has Tessera's library already"))
            continue
        try:
            own = {symbol for symbol in elf.read(Path(name)).defines if symbol == "dlsym" or symbol in _driver()}
        except (OSError, TesseraError) as error:
            findings.append(Finding(Topic.VARIABLE, f"{PRELOAD_VARIABLE} names {name}, which cannot be read: {error}"))
            continue
        if own:
            findings.append(Finding(Topic.INTERPOSED, f"{PRELOAD_VARIABLE} names {name}, which has {len(own)} "
                                    f"functions that Tessera's library has too, among them {min(own)}"))
        else:
            findings.append(Finding(Topic.VARIABLE, f"{PRELOAD_VARIABLE} names {name}: it comes behind Tessera's"))


def _driver() -> frozenset[str]:
    from tessera.driver_api import functions

    return frozenset([function.symbol for function in functions()])
