"""``pyproject.toml``, the lock files and the tree say the same."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.material import ROOT
from tools.venv import KIT_LOCKS

METADATA = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
KITS = [lock.stem for lock in KIT_LOCKS.values()]
LOCKS = ["dev", "clients", *KITS]
PINNED = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)", re.MULTILINE)


def locked(extra: str) -> dict[str, set[str]]:
    """Versions by name in a lock file; a name may have one per Python version."""
    text = (ROOT / "requirements" / f"{extra}.lock").read_text(encoding="utf-8")
    found: dict[str, set[str]] = {}
    for name, version in PINNED.findall(text):
        found.setdefault(canonicalize_name(name), set()).add(version)
    return found


def test_every_package_is_listed() -> None:
    rooms = {name.partition(".")[0] for name in METADATA["tool"]["setuptools"]["packages"]}
    folders = {p.parent.relative_to(ROOT).as_posix() for room in rooms for p in (ROOT / room).rglob("__init__.py")}
    assert sorted(METADATA["tool"]["setuptools"]["packages"]) == sorted(f.replace("/", ".") for f in folders)


def test_no_module_lies_outside_a_package() -> None:
    for room in ("tessera", "ptxparse", "softgpu", "shim", "orchestrator"):
        orphans = [p for p in (ROOT / room).rglob("*.py") if not (p.parent / "__init__.py").exists()]
        assert not orphans


def requirements(extra: str) -> list[str]:
    """What an extra names, with what the extras of this project name that it includes."""
    found: list[str] = []
    for text in METADATA["project"]["optional-dependencies"][extra]:
        wanted = Requirement(text)
        included = sorted(wanted.extras) if wanted.name == METADATA["project"]["name"] else []
        found += [inner for other in included for inner in requirements(other)] or [text]
    return found


def test_the_suite_needs_the_engine() -> None:
    engine = requirements("softgpu")
    assert {Requirement(text).name for text in engine} == {"cffi", "llvmlite", "lz4", "zstandard"}
    assert set(engine) <= set(requirements("dev"))


@pytest.mark.parametrize("extra", LOCKS)
def test_lock_satisfies_the_requirements(extra: str) -> None:
    pins = locked(extra)
    for text in (*METADATA["project"]["dependencies"], *requirements(extra.partition("-")[0])):
        wanted = Requirement(text)
        versions = pins.get(canonicalize_name(wanted.name), set())
        assert versions, f"{wanted.name} is not locked: run python3 build.py lock"
        assert all(wanted.specifier.contains(version) for version in versions), text


@pytest.mark.parametrize("extra", LOCKS)
def test_lock_has_hashes_and_names_no_index(extra: str) -> None:
    text = (ROOT / "requirements" / f"{extra}.lock").read_text(encoding="utf-8")
    assert "://" not in text
    assert not [line for line in text.splitlines() if line.startswith("-")]
    blocks = re.split(r"^(?=[A-Za-z0-9])", text, flags=re.MULTILINE)[1:]
    assert len(blocks) == sum(len(versions) for versions in locked(extra).values())
    assert all("--hash=sha256:" in block for block in blocks)


def test_the_locks_agree() -> None:
    dev, clients = locked("dev"), locked("clients")
    assert {name: dev[name] for name in dev.keys() & clients.keys()} == {
        name: clients[name] for name in dev.keys() & clients.keys()
    }
    for lock in KITS:
        assert all(found <= dev.get(name, clients.get(name, set())) for name, found in locked(lock).items()), lock


def test_continuous_integration_runs_the_documented_command_and_nothing_else() -> None:
    lines = (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    commands = [line for line in lines if line and not line.startswith("#")]
    assert commands == ["set -euo pipefail", 'cd "$(dirname "$0")/.."', "exec python3 build.py test"]
    assert (ROOT / ".ci" / "run").stat().st_mode & 0o100
    assert "python3 build.py test" in (ROOT / "README.md").read_text(encoding="utf-8")


def tracked_texts() -> list[Path]:
    """The files of the repository that people wrote (all of them where git cannot tell)."""
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )
    names = listing.stdout.splitlines() or [p.relative_to(ROOT).as_posix() for p in ROOT.rglob("*.py")]
    return [ROOT / n for n in names if Path(n).suffix in {".py", ".md", ".toml", ".cu", ".json", ".lock", ""}]


def test_no_file_holds_a_path_of_one_machine() -> None:
    pattern = re.compile(r"(?<![\w.<])/(?:work|root|home/\w+|farm)/\w")
    for path in tracked_texts():
        if path.is_file() and path != Path(__file__).resolve():
            found = pattern.search(path.read_text(encoding="utf-8", errors="replace"))
            assert not found, f"{path.relative_to(ROOT)}: {found.group(0) if found else ''}"


def test_sources_stay_small() -> None:
    sources = [p for p in tracked_texts() if p.suffix == ".py" and p.is_file() and "generated" not in p.name]
    lengths = {p.relative_to(ROOT).as_posix(): len(p.read_text(encoding="utf-8").splitlines()) for p in sources}
    assert {path: lines for path, lines in lengths.items() if lines > 600} == {}
