"""Lock files from ``pyproject.toml``: every package with its version and hashes, no address of any index."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tools.steps import StepFailed, relative, run
from tools.venv import CLIENTS_LOCK, DEV_LOCK, KIT_LOCKS, NETWORK_ADVICE


def check_plain(lock: Path) -> None:
    """Raise if ``lock`` names a host or an index: it has to work with whatever index a machine uses."""
    for number, line in enumerate(lock.read_text(encoding="utf-8").splitlines(), 1):
        if "://" in line or line.startswith("--"):
            raise StepFailed(f"{relative(lock)}:{number} names an index or an address: {line.strip()}")


def compile_lock(uv: Path, extra: str, lock: Path, constraints: list[Path], python: str = "") -> None:
    """Lock an extra; if one version of Python is named, for that one on Linux alone."""
    command: list[str | Path] = [uv, "pip", "compile", "--quiet", "--python-version", python or "3.11"]
    command += ["--python-platform", "linux"] if python else ["--universal"]
    command += ["--generate-hashes", "--no-emit-index-url", "--no-emit-find-links"]
    command += ["--custom-compile-command", "python3 build.py lock", "--extra", extra]
    for constraint in constraints:
        command += ["--constraint", relative(constraint)]
    run(f"lock {extra}", [*command, "--output-file", relative(lock), "pyproject.toml"], NETWORK_ADVICE)
    check_plain(lock)


def lock() -> None:
    """Write the lock files, keeping the versions they have where ``pyproject.toml`` still allows them."""
    with tempfile.TemporaryDirectory() as room:
        run("make a temporary environment", [sys.executable, "-m", "venv", room], "Python's venv module is needed.")
        run("install uv in it", [Path(room, "bin/python"), "-m", "pip", "install", "uv"], NETWORK_ADVICE)
        uv = Path(room, "bin/uv")
        compile_lock(uv, "dev", DEV_LOCK, [])
        compile_lock(uv, "clients", CLIENTS_LOCK, [DEV_LOCK])
        for python, kit_lock in KIT_LOCKS.items():
            compile_lock(uv, "kit", kit_lock, [DEV_LOCK, CLIENTS_LOCK], python)
