"""The wheel: built when a source is newer than the last one, and checked for what may be in it."""

from __future__ import annotations

import shutil
import tomllib
import zipfile
from pathlib import Path

from tools.steps import BUILD, ROOT, StepFailed, relative, run, say
from tools.venv import PYTHON

WHEELS = BUILD / "wheel"


def packages() -> list[str]:
    """The packages that ``pyproject.toml`` lists."""
    metadata = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return [str(name) for name in metadata["tool"]["setuptools"]["packages"]]


def sources() -> list[Path]:
    """What the wheel is made from."""
    listed = [p for name in packages() for p in (ROOT / name.replace(".", "/")).glob("*.py")]
    return [ROOT / "pyproject.toml", ROOT / "README.md", ROOT / "LICENSE", *listed]


def current() -> Path | None:
    """The wheel already built, if no source is newer."""
    built = sorted(WHEELS.glob("*.whl"))
    if not built:
        return None
    made = built[-1].stat().st_mtime
    return built[-1] if all(p.stat().st_mtime <= made for p in sources()) else None


def check_contents(wheel: Path) -> None:
    """Raise if the wheel holds a file outside the listed packages and its own metadata, or lacks a source."""
    names = [n for n in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in n]
    folders = {name.replace(".", "/") for name in packages()}
    for name in names:
        if name.rpartition("/")[0] not in folders:
            raise StepFailed(f"the wheel holds {name}, which is in no listed package")
    missing = [p for p in sources() if p.suffix == ".py" and p.relative_to(ROOT).as_posix() not in names]
    if missing:
        raise StepFailed(f"the wheel lacks {relative(missing[0])}")


def build() -> Path:
    """The path of an up-to-date wheel under ``build/wheel``."""
    present = current()
    if present:
        say(f"-- {relative(present)} is up to date")
        return present
    for stale in (BUILD / "lib", BUILD / "bdist.linux-x86_64", WHEELS):
        shutil.rmtree(stale, ignore_errors=True)
    run(
        "build the wheel",
        [PYTHON, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", WHEELS, ROOT],
        "The metadata in pyproject.toml or a listed package is broken.",
    )
    wheel = sorted(WHEELS.glob("*.whl"))[-1]
    check_contents(wheel)
    return wheel
