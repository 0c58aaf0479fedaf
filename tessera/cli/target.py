"""Which driver a program gets, and with it which GPUs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tessera.cli.inventory import Inventory, take
from tessera.errors import TesseraError, UsageError

_VISIBLE = "CUDA_VISIBLE_DEVICES"


@dataclass(frozen=True)
class Target:
    """``driver``: an absolute path. ``environment``: the program's own, in which the driver shows the GPUs that are
    wanted. ``note`` says which GPUs these are where nobody named them."""

    driver: str
    environment: Mapping[str, str]
    note: str | None = None


def choose(fleet: str | None, driver: Path | None) -> Target:
    """The driver at a path as it is, else that of a fleet's text, else as :func:`tessera.cli.inventory.take` finds it.
    Raises :class:`TesseraError`: a fleet that cannot be, no driver."""
    if driver is not None:
        if fleet is not None:
            raise UsageError("--driver and --fleet both say which driver: leave one of them out")
        if not driver.is_file():
            raise TesseraError(f"--driver {driver}: there is no such file")
        return Target(str(driver.absolute()), dict(os.environ))
    found = take(fleet, 0)
    if found.real:
        return Target(found.library, _visible(found) if fleet is not None else dict(os.environ))
    from softgpu import environ

    note = found.note and f"the program gets {found.fleet.text}: {found.note}"
    return Target(str(environ.FOLDER / "libcuda.so.1"), environ.environment(found.fleet), note)


def _visible(found: Inventory) -> dict[str, str]:
    """The environment in which NVIDIA's driver shows the GPUs of a fleet in its order."""
    before = os.environ.get(_VISIBLE)
    names = before.split(",") if before else [str(number) for number in range(64)]
    if any(device.gpu.memory is not None for device in found.devices):
        raise UsageError("a program sees all the memory of a real GPU: leave out memory_gib")
    wanted = [device.gpu.ordinal or 0 for device in found.devices]
    if len(set(wanted)) < len(wanted):
        raise UsageError("a real GPU can stand only once in the fleet of a program")
    return {**os.environ, _VISIBLE: ",".join([names[number] for number in wanted])}
