"""The wheel: built when a source is newer than the last one, and checked for what must and may be in it."""

from __future__ import annotations

import shutil
import tomllib
import zipfile
from pathlib import Path
from typing import Any

from tools import driver, native, shim
from tools.steps import BUILD, ROOT, StepFailed, relative, run, say
from tools.venv import PYTHON

WHEELS = BUILD / "wheel"
TAG = "py3-none-linux_x86_64"
"""Any Python 3, but one platform: the wheel holds a library."""

COMPILED = (*[f"softgpu/lib/{name}" for name in (
    "engine-info", native.LIBRARY.name, driver.LIBRARY.name, driver.LINK.name)],
    *[path.relative_to(ROOT).as_posix() for path in shim.products()])
"""What setup.py adds."""


def settings() -> dict[str, Any]:
    """What ``pyproject.toml`` says to setuptools."""
    metadata = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return dict(metadata["tool"]["setuptools"])


def contents() -> list[str]:
    """The files that the wheel holds, without its own metadata."""
    listed = settings()
    modules = [path for name in listed["packages"] for path in folder(name).glob("*.py")]
    data = [folder(name) / path for name, paths in listed["package-data"].items() for path in paths]
    return sorted([*[path.relative_to(ROOT).as_posix() for path in (*modules, *data)], *COMPILED])


def folder(package: str) -> Path:
    return ROOT / package.replace(".", "/")


def sources() -> list[Path]:
    """What the wheel is made from."""
    made = [ROOT / name for name in contents() if name not in COMPILED]
    metadata = [ROOT / name for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE")]
    builders = [ROOT / "tools" / name for name in ("native.py", "driver.py", "shim.py")]
    return [*metadata, *builders, *made, *native.inputs(), *driver.inputs(), *shim.sources()]


def current() -> Path | None:
    """The wheel already built, if no source is newer."""
    built = sorted(WHEELS.glob("*.whl"))
    if not built:
        return None
    made = built[-1].stat().st_mtime
    return built[-1] if all(p.stat().st_mtime <= made for p in sources()) else None


def check_contents(wheel: Path) -> None:
    """Raise if the wheel is not for our platform, or holds anything else than :func:`contents` and its metadata."""
    if not wheel.name.endswith(f"-{TAG}.whl"):
        raise StepFailed(f"{wheel.name} should end in {TAG}.whl")
    held = {n for n in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in n}
    expected = set(contents())
    if extra := held - expected:
        raise StepFailed(f"the wheel holds {min(extra)}, which is in no listed package")
    if missing := expected - held:
        raise StepFailed(f"the wheel lacks {min(missing)}")


def build() -> Path:
    """The path of an up-to-date wheel under ``build/wheel``."""
    present = current()
    if present:
        say(f"-- {relative(present)} is up to date")
        return present
    for stale in (*BUILD.glob("lib*"), *BUILD.glob("bdist.*"), WHEELS):
        shutil.rmtree(stale, ignore_errors=True)
    run(
        "build the wheel",
        [PYTHON, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", WHEELS, ROOT],
        "The metadata in pyproject.toml or a listed package is broken.",
    )
    wheel = sorted(WHEELS.glob("*.whl"))[-1]
    check_contents(wheel)
    return wheel
