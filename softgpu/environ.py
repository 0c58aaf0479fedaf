"""The environment in which programs find the software driver, and what it is told there."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from tessera import environment as variables
from tessera.errors import UsageError

if TYPE_CHECKING:  # imported when they are needed, so that `import softgpu` stays light
    from tessera.cards import Card
    from tessera.fleet import Fleet

FOLDER = Path(__file__).with_name("lib")
"""Where ``libcuda.so.1`` lies."""
PTXAS = "softgpu-ptxas"

Devices: TypeAlias = "str | Fleet | Sequence[str | Card]"


def environment(
    devices: Devices | None = None,
    *,
    machine: str | None = None,
    strict: bool | None = None,
    clock: float | str | None = None,
    driver_version: int | None = None,
    instrument: str | os.PathLike[str] | None = None,
    cache: str | os.PathLike[str] | None = None,
    decree: str | os.PathLike[str] | None = None,
    rounding: bool | None = None,
    base: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """The environment for a child process whose CUDA driver is to be the software one::

        subprocess.run(command, env=softgpu.environment(devices=["A100-80G", "L40S"]))

    ``devices`` is a fleet, its text, or a list of cards or their names, each with what a fleet's text may say of one
    (``"T4:memory_gib=4"``); ``clock`` a factor for the modelled clock, or ``"off"``; ``driver_version`` a number as in
    12040. What is None stays as it is in ``base``, which is this process's environment without a word. Raises
    :class:`~tessera.fleet.FleetError` for a fleet that cannot be and :class:`~tessera.errors.UsageError` for other
    values.

    Programs find the driver by the loader's path, Triton also by ``TRITON_LIBCUDA_PATH``. Beside that Triton gets the
    stand-in for its assembler, and tinygrad the NVRTC and the headers of NVIDIA's wheels, as far as they are installed.
    """
    made = dict(os.environ if base is None else base)
    made["LD_LIBRARY_PATH"] = _library_path(made.get("LD_LIBRARY_PATH", ""))
    made |= _triton()
    if not os.path.isdir(made.get("CUDA_PATH", "")):  # tinygrad takes a file of that name for the driver
        made.pop("CUDA_PATH", None)
        made |= _headers()
    told = {
        variables.DEVICES: None if devices is None else _devices(devices),
        variables.MACHINE: machine,
        variables.STRICT: _truth(strict),
        variables.CLOCK: _clock(clock),
        variables.DRIVER_VERSION: _version(driver_version),
        variables.INSTRUMENT: _path(instrument),
        variables.CACHE: _path(cache),
        variables.DECREE: _path(decree),
        variables.ROUNDING: _truth(rounding),
    }
    return made | {variable.name: text for variable, text in told.items() if text is not None}


def _library_path(paths: str) -> str:
    """A loader's path with our own folder first, and last that of NVIDIA's NVRTC, whose parts find each other so. Empty
    entries, which would mean the current directory, do not stay."""
    wanted = [str(FOLDER), *[path for path in paths.split(os.pathsep) if path], *_nvrtc()]
    return os.pathsep.join(dict.fromkeys(wanted))


def _devices(devices: Devices) -> str:
    from tessera.cards import Card
    from tessera.fleet import Fleet, FleetError, parse_fleet

    if not isinstance(devices, Fleet):
        words = [devices] if isinstance(devices, str) else [d.name if isinstance(d, Card) else d for d in devices]
        devices = parse_fleet(",".join(words))
    if devices.real:
        raise FleetError(f"fleet {devices.text!r}: the software driver has no real GPUs")
    return devices.text


def _truth(value: bool | None) -> str | None:
    return None if value is None else str(int(value))


def _clock(value: float | str | None) -> str | None:
    if value is None or value == "off":
        return value if isinstance(value, str) else None
    if isinstance(value, str) or not 0 < value < float("inf"):
        raise UsageError(f"clock {value!r} must be 'off', or a number above 0 by which the modelled time is longer")
    return f"modelled:{value!r}"


def _version(value: int | None) -> str | None:
    if value is not None and not 1000 <= value <= 99999:
        raise UsageError(f"driver_version {value} is no version as in 12040 for 12.4")
    return None if value is None else str(value)


def _path(value: str | os.PathLike[str] | None) -> str | None:
    """Absolute, for programs that run elsewhere."""
    return None if value is None else os.path.abspath(value)


def _triton() -> dict[str, str]:
    """For cards from 9.0 on Triton has an assembler of another name."""
    import shutil
    import sysconfig

    scripts = [sysconfig.get_path("scripts"), sysconfig.get_path("scripts", f"{os.name}_user")]
    found = shutil.which(PTXAS, path=os.pathsep.join([*scripts, os.environ.get("PATH", "")]))
    assembler = {name: found for name in ("TRITON_PTXAS_PATH", "TRITON_PTXAS_BLACKWELL_PATH") if found}
    return {"TRITON_LIBCUDA_PATH": str(FOLDER)} | assembler


def _nvrtc() -> list[str]:
    """The folders of NVIDIA's wheels that have it."""
    return [str(toolkit / "lib") for toolkit in _toolkits() if any(toolkit.glob("lib/libnvrtc.so.*"))]


def _headers() -> dict[str, str]:
    """Where tinygrad's NVRTC looks for them."""
    found = [toolkit for toolkit in _toolkits() if (toolkit / "include" / "cuda_fp16.h").exists()]
    return {"CUDA_PATH": str(found[0])} if found else {}


def _toolkits() -> list[Path]:
    """Folders of NVIDIA's wheels, which share one package."""
    from importlib.util import find_spec

    found = find_spec("nvidia")
    return [Path(folder, "cu13") for folder in found.submodule_search_locations or ()] if found else []
