"""The kit for a real GPU: one folder that checks, on a machine without a network, what is only believed without one."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable
from pathlib import Path

from tools import driver, native, report, venv, wheel
from tools.steps import BUILD, ROOT, StepFailed, relative, run, say

KIT = BUILD / "gpu-kit"
LIMIT = 60 << 20
"""Bytes that all of it may take."""
PLATFORMS = tuple([f"manylinux_2_{minor}_x86_64" for minor in range(17, 29)] + ["manylinux2014_x86_64"])
"""Wheels for glibc 2.28 and newer."""

PROGRAM = {"check": ROOT / "tools" / "kit_check.sh", "check.py": ROOT / "tools" / "kit_check.py",
           "README.md": ROOT / "docs" / "gpu-kit.md"}
"""Where files of the kit come from, but for the checks."""
CHECKS = ("pyproject.toml", "tests/__init__.py", "tests/conftest.py", "tests/folders.py", "tests/compilers.py",
          "benchmarks/shim/nothing.ptx", "tests/device", "tests/gpu", "tests/softgpu",
          "tests/nodriver/driver/images/default.fatbin")
"""Files and folders of the repository that go into ``checks``."""
MADE = ("tiny.gguf", "cudart", "launches")
"""What ``tests.device.made`` makes; the others only where there are nvcc, and a C compiler."""


def sources() -> list[Path]:
    """The files of the repository that go into ``checks``."""
    found = [path for name in CHECKS for path in ([ROOT / name] if (ROOT / name).is_file() else walk(ROOT / name))]
    return sorted(found)


def walk(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts]


def build(python: str) -> Path:
    """Make the folder anew, for one version of Python (3.11). Raises StepFailed, also when it is too large."""
    lock = venv.KIT_LOCKS[python]
    venv.ensure(clients=True)
    native.prepare()
    driver.build(venv.PYTHON)
    ours = wheel.build()
    shutil.rmtree(KIT, ignore_errors=True)
    wheels, checks = KIT / "wheels", KIT / "checks"
    for folder in (wheels, checks / "made"):
        folder.mkdir(parents=True)
    shutil.copy2(ours, wheels)
    shutil.copy2(lock, KIT / "requirements.txt")
    download(python, lock, wheels)
    for name, source in PROGRAM.items():
        shutil.copy2(source, KIT / name)
    for source in sources():
        place = checks / source.relative_to(ROOT)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, place)
    run("make the model and the program of nvcc", [venv.PYTHON, "-m", "tests.device.made", checks / "made"],
        "They are made by tests/device/made.py.")
    (KIT / "python").write_text(f"{python}\n", encoding="utf-8")
    (KIT / "kit.json").write_text(json.dumps({"commit": report.commit(), "python": python}) + "\n", encoding="utf-8")
    check_size(walk(KIT))
    for name in MADE:
        if not (checks / "made" / name).exists():
            say(f"-- {name} is not in it, as what it is made with was not found: see {relative(BUILD / 'log')}")
    return KIT


def download(python: str, lock: Path, folder: Path) -> None:
    """The locked wheels for a version of Python."""
    command: list[str | Path] = [venv.PYTHON, "-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes"]
    command += ["--only-binary", ":all:", "--implementation", "cp", "--python-version", python]
    command += [word for tag in ("cp" + python.replace(".", ""), "abi3", "none") for word in ("--abi", tag)]
    command += [word for platform in PLATFORMS for word in ("--platform", platform)]
    run(f"download wheels for Python {python}", [*command, "--dest", folder, "-r", lock], venv.NETWORK_ADVICE)


def check_size(files: Iterable[Path]) -> None:
    """Say how large the kit is; raises StepFailed when it is too large."""
    sizes = {path: path.stat().st_size for path in files}
    total = sum(sizes.values())
    say(f"-- {relative(KIT)}: {len(sizes)} files, {total / (1 << 20):.1f} MiB of {LIMIT >> 20}")
    if total > LIMIT:
        largest = max(sizes, key=lambda path: sizes[path])
        raise StepFailed(f"the kit takes {total} bytes, more than {LIMIT}; the largest file is {relative(largest)}")
