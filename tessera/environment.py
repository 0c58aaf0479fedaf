"""Every environment variable that Tessera reads, in one table; ``docs/environment.md`` shows the same, tested.

No other file spells a variable's name: it asks for the constant here.
"""

from __future__ import annotations

from typing import NamedTuple


class EnvironmentVariable(NamedTuple):
    """One variable: its name, what happens without it, and what it does in one sentence."""

    name: str
    default: str
    meaning: str


MATERIAL = EnvironmentVariable(
    "TESSERA_MATERIAL",
    "a folder beside the repository, where there is one",
    "Folder of reference material for tests and benchmarks; what needs it is skipped where it does not exist.",
)

CACHE = EnvironmentVariable(
    "SOFTGPU_CACHE",
    "`tessera/softgpu` in `$XDG_CACHE_HOME` or `~/.cache`",
    "Folder of the compiled kernels, an absolute path; it must belong to the user and be writable by nobody else.",
)

PYTHON = EnvironmentVariable(
    "SOFTGPU_PYTHON",
    "the one that Tessera was built with, else the one of the installation",
    "Python interpreter of the compile service, an absolute path.",
)

DEVICES = EnvironmentVariable(
    "SOFTGPU_DEVICES",
    "`A100-80G,L40S`",
    "The software driver's GPUs, a fleet: see [fleets.md](fleets.md).",
)

DRIVER_VERSION = EnvironmentVariable(
    "SOFTGPU_DRIVER_VERSION",
    "that of its headers, 13000",
    "The version of CUDA that the software driver has, as in 12040 for 12.4; newer functions are not found.",
)

MACHINE = EnvironmentVariable(
    "SOFTGPU_MACHINE",
    "a machine of the process's own",
    "Name of a machine of software GPUs; processes that name the same one share its GPUs and their memory.",
)

STRICT = EnvironmentVariable(
    "SOFTGPU_STRICT",
    "0",
    "1: what real drivers do not promise fails, or takes as long as it may there: see [driver.md](driver.md).",
)

CLOCK = EnvironmentVariable(
    "SOFTGPU_CLOCK",
    "`off`",
    "`modelled:DILATION`: work takes the time that it would take on the cards, times that: see [clock.md](clock.md).",
)

ROUNDING = EnvironmentVariable(
    "SOFTGPU_ROUNDING",
    "0",
    "1: approximate functions and tensor cores of cards from capability 8.9 on round otherwise than older cards'.",
)

DECREE = EnvironmentVariable(
    "SOFTGPU_DECREE",
    "cubins are refused",
    "Folder of PTX for cubins: `DIGEST.ptx` is what the software driver runs for the one whose SHA-256 is DIGEST.",
)

INSTRUMENT = EnvironmentVariable(
    "SOFTGPU_INSTRUMENT",
    "no instrument",
    "File that says what the software driver logs and what goes wrong in it: see [instrument.md](instrument.md).",
)

DISABLE = EnvironmentVariable(
    "TESSERA_DISABLE",
    "0",
    "1: nothing is put under a program; the preload library, where it is there already, only passes calls on.",
)

DRIVER = EnvironmentVariable(
    "TESSERA_DRIVER",
    "set by `tessera run`",
    "The driver that the preload library passes calls on to, an absolute path.",
)

SOCKET = EnvironmentVariable(
    "TESSERA_SOCKET",
    "set by `tessera run`",
    "Socket where the preload library says hello, an absolute path; without it it only passes calls on.",
)

LOG = EnvironmentVariable(
    "TESSERA_LOG",
    "it is silent",
    "File to which the preload library adds a line about each trouble it has, an absolute path.",
)

OPAQUE = EnvironmentVariable(
    "TESSERA_OPAQUE",
    "they may touch any memory",
    "`parameters`: a promise that kernels that cannot be analysed touch only allocations whose addresses are in their "
    "parameters.",
)

VARIABLES: tuple[EnvironmentVariable, ...] = (
    MATERIAL,
    DISABLE,
    DRIVER,
    SOCKET,
    LOG,
    OPAQUE,
    CACHE,
    PYTHON,
    DEVICES,
    DRIVER_VERSION,
    MACHINE,
    STRICT,
    CLOCK,
    ROUNDING,
    INSTRUMENT,
    DECREE,
)
"""The table, in the order in which the documentation shows it."""
