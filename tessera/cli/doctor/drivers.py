"""Which driver programs get here and why, and how its functions compare with the list."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from tessera.cli.doctor import elf
from tessera.cli.doctor.findings import Finding, Topic
from tessera.cli.target import Target, choose
from tessera.driver_api import functions
from tessera.errors import ExitCode, TesseraError
from tessera.real_gpus import DriverDeadline, DriverTrouble, RealMachine, ask

_FUNCTION = re.compile(r"cu[A-Z]\w*")
_SHOWN = 5


@dataclass(frozen=True)
class Device:
    """A GPU; ``memory`` in bytes."""

    name: str
    capability: str
    memory: int


@dataclass(frozen=True)
class Driver:
    """``path``: its file; ``why`` it is this one. ``version``: of CUDA, as in 13.0. ``lacks``: functions of the list
    that it does not export. ``unlisted``: functions that it exports and the list has not; None if its file cannot be
    read. What is unknown because it does not answer is None or empty."""

    path: str
    why: str
    version: str | None = None
    software: bool | None = None
    devices: tuple[Device, ...] = ()
    lacks: tuple[str, ...] | None = None
    unlisted: tuple[str, ...] | None = None


def look(fleet: str | None, driver: Path | None, findings: list[Finding]) -> tuple[Driver | None, Target | None]:
    """The driver and how programs get it; no driver is a finding. Raises what says that the options do not fit."""
    try:
        target = choose(fleet, driver)
    except TesseraError as error:
        if error.exit_code not in (ExitCode.NO_DRIVER, ExitCode.DEADLINE):
            raise
        findings.append(Finding(Topic.NO_DRIVER, str(error)))
        return None, None
    named = "--driver names it" if driver else f"--fleet {fleet}" if fleet else "NVIDIA's driver is found"
    why = target.note or named
    try:
        said = ask(target.driver, target.environment)
        trouble = None if said else f"{target.driver} cannot be opened as a library"
    except (DriverTrouble, DriverDeadline) as error:
        said, trouble = None, str(error)
    if trouble:
        findings.append(Finding(Topic.NO_DRIVER, trouble))
    lacks, unlisted = _compared(Path(target.driver), findings)
    return _described(target.driver, why, said, lacks, unlisted, findings), None if trouble else target


def _described(path: str, why: str, said: RealMachine | None, lacks: tuple[str, ...] | None,
               unlisted: tuple[str, ...] | None, findings: list[Finding]) -> Driver:
    if said is None:
        return Driver(path, why, lacks=lacks, unlisted=unlisted)
    if said.software:
        findings.append(Finding(Topic.SOFTWARE, "these are software GPUs: NVIDIA's runtime library (cudart) refuses "
                                "them with error 103, which Tessera leaves as it is"))
    devices = tuple([Device(gpu.name, f"{gpu.capability[0]}.{gpu.capability[1]}", gpu.memory) for gpu in said.gpus])
    return Driver(path, why, f"{said.version[0]}.{said.version[1]}", said.software, devices, lacks, unlisted)


def _compared(path: Path, findings: list[Finding]) -> tuple[tuple[str, ...] | None, tuple[str, ...] | None]:
    """The functions of the list that a driver lacks, and those that it has beyond it."""
    try:
        exported = {symbol for symbol in elf.read(path).defines if _FUNCTION.fullmatch(symbol)}
    except (OSError, TesseraError):
        return None, None  # that it is no driver has been said
    listed = {function.symbol for function in functions()}
    lacks, unlisted = tuple(sorted(listed - exported)), tuple(sorted(exported - listed))
    if lacks:
        findings.append(Finding(Topic.OLDER_DRIVER, f"the driver lacks {len(lacks)} of {len(listed)} functions: "
                                f"{some(lacks)}"))
    if unlisted:
        findings.append(Finding(Topic.NEWER_DRIVER, f"the driver has {len(unlisted)} functions that are not in the "
                                f"list, so that calls of them are not seen: {some(unlisted)}"))
    return lacks, unlisted


def some(names: tuple[str, ...]) -> str:
    """The first names, and how many more."""
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
