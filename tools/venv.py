"""The virtual environment ``.venv``: made once, filled from the lock files, reused while they do not change."""

from __future__ import annotations

import hashlib
import json
import platform
import subprocess
import sys
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from tools.steps import ROOT, StepFailed, run, say

VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
STAMP = VENV / "tessera-stamp.json"
DEV_LOCK = ROOT / "requirements" / "dev.lock"
CLIENTS_LOCK = ROOT / "requirements" / "clients.lock"
KIT_LOCKS = {python: ROOT / "requirements" / f"kit-{python}.lock" for python in ("3.11", "3.12")}
"""For each version of Python that the kit supports; nothing of it is installed here: see ``tools/kit.py``."""

CLIENTS_USERS = frozenset({"clients", "llm", "record", "stopped"})
"""Tiers and benchmarks that need the packages of ``CLIENTS_LOCK``."""

NETWORK_ADVICE = "pip needs a package index it can reach; try again when the network is there."


@dataclass(frozen=True)
class Stamp:
    """What ``.venv`` holds: digests of the lock files and of the metadata it was filled from, and who made it."""

    made_here: bool = False
    root: str = ""
    dev: str = ""
    project: str = ""
    clients: str = ""


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def read_stamp() -> Stamp:
    """The stamp of the present ``.venv``; an empty one when there is none or it cannot be understood."""
    try:
        return Stamp(**json.loads(STAMP.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return Stamp()


def write_stamp(stamp: Stamp) -> Stamp:
    STAMP.write_text(json.dumps(asdict(stamp), indent=1) + "\n", encoding="utf-8")
    return stamp


def works() -> bool:
    """Whether ``.venv`` has a Python that starts and is new enough."""
    if not PYTHON.exists():
        return False
    probe = "import sys, pip; sys.exit(sys.version_info < (3, 11))"
    return subprocess.run([PYTHON, "-c", probe], capture_output=True, check=False).returncode == 0


def make() -> Stamp:
    """A working ``.venv``: the present one if it works (one made by hand is adopted), else a new one."""
    stamp = read_stamp()
    if works():
        return stamp if stamp.root == str(ROOT) else replace(stamp, root=str(ROOT), project="")
    if VENV.exists() and not stamp.made_here:
        raise StepFailed(".venv has no working Python 3.11 with pip and was not made by build.py: move it away")
    run(
        f"make .venv with Python {platform.python_version()}",
        [sys.executable, "-m", "venv", "--clear", VENV],
        "Python's venv module is needed (Debian and Ubuntu: package python3-venv).",
    )
    return write_stamp(Stamp(made_here=True, root=str(ROOT)))


def install_locked(lock: Path) -> None:
    packages = sum("==" in line for line in lock.read_text(encoding="utf-8").splitlines() if not line.startswith(" "))
    run(
        f"install {packages} locked packages of {lock.relative_to(ROOT)}",
        [PYTHON, "-m", "pip", "install", "--require-hashes", "--no-deps", "-r", lock],
        NETWORK_ADVICE,
    )


def ensure(clients: bool = False) -> None:
    """``.venv`` with the locked packages and the project itself (editable); does only what has changed."""
    stamp = make()
    before = stamp
    if stamp.dev != digest(DEV_LOCK):
        install_locked(DEV_LOCK)
        stamp = write_stamp(replace(stamp, dev=digest(DEV_LOCK), clients=""))
    metadata = digest(ROOT / "pyproject.toml")
    if stamp.project != metadata:
        run(
            "install the project, editable",
            [PYTHON, "-m", "pip", "install", "--no-deps", "--no-build-isolation", "-e", ROOT],
            "The metadata in pyproject.toml or a listed package is broken.",
        )
        stamp = write_stamp(replace(stamp, project=metadata))
    if clients and stamp.clients != digest(CLIENTS_LOCK):
        install_locked(CLIENTS_LOCK)
        stamp = write_stamp(replace(stamp, clients=digest(CLIENTS_LOCK)))
    if stamp == before:
        say("-- .venv is up to date")
