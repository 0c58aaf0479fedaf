"""What of Tessera is here: versions, and the parts that are compiled."""

from __future__ import annotations

import platform
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from shim import places
from shim.errors import ShimMissing, ShimTrouble
from softgpu.environ import FOLDER
from tessera.cli.doctor.findings import Finding, Topic
from tessera.driver_api import functions

DISTRIBUTION = "tessera-gpu"


@dataclass(frozen=True)
class Part:
    """A compiled part, its file, and whether it is there."""

    name: str
    path: str
    built: bool


@dataclass(frozen=True)
class Installation:
    """``versions``: by what has them, None for what is not there. ``functions``: how many driver functions the list
    has; ``list``: the digest of their names by which the library and its readers know that they have the same one."""

    versions: dict[str, str | None]
    functions: int
    list: str
    parts: tuple[Part, ...]


def versions() -> dict[str, str | None]:
    """By the names of packages, and what is inside of them."""
    found: dict[str, str | None] = {"tessera": _installed(DISTRIBUTION), "python": platform.python_version(),
                                    "pyzmq": _installed("pyzmq"), "cffi": _installed("cffi"), "libzmq": None,
                                    "records": None}
    try:
        import zmq

        found["libzmq"] = zmq.zmq_version()
    except ImportError:
        pass
    try:
        from shim.layout import lib

        found["records"] = str(lib.WIRE_VERSION)
    except ShimMissing:
        pass
    return found


def _installed(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def look(findings: list[Finding]) -> Installation:
    """What is here; what is not becomes a finding."""
    from shim.generate import digest

    compiled = (
        ("preload library", places.PRELOAD),
        ("its reader for Python", places.PRELOAD.parents[1] / "_wire.abi3.so"),
        ("software driver", FOLDER / "libcuda.so.1"),
    )
    parts = tuple([Part(name, str(path), Path(path).is_file()) for name, path in compiled])
    found = Installation(versions(), len(functions()), f"{digest():#010x}", parts)
    findings += [Finding(Topic.NOT_BUILT, f"{part.name}: {part.path} is not there: run python3 build.py build")
                 for part in parts if not part.built]
    if all(part.built for part in parts):
        try:
            places.library()
        except ShimTrouble as error:
            findings.append(Finding(Topic.NOT_BUILT, str(error)))
    missing = [name for name in ("libzmq", "records") if found.versions[name] is None]
    if "libzmq" in missing:
        findings.append(Finding(Topic.NOT_BUILT, "the package pyzmq is not installed, so that no records can be read"))
    elif not _curve():
        findings.append(Finding(Topic.NO_CURVE, "libzmq has no CURVE: --transport tcp is not possible"))
    if "records" in missing and parts[1].built:
        findings.append(Finding(Topic.NOT_BUILT, f"{parts[1].path} cannot be loaded: is cffi installed?"))
    return found


def _curve() -> bool:
    import zmq

    return bool(zmq.has("curve"))
