"""The tiers of the suite: which folders they are, running one with pytest, what came out."""

from __future__ import annotations

import os
import time
import xml.etree.ElementTree as ElementTree
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from tools.steps import BUILD, ROOT, StepFailed, relative, say, stream
from tools.venv import PYTHON

TESTS = ROOT / "tests"
ROOMS = ("nodriver", "softgpu", "gpu")
"""Folders under ``tests`` whose sub-folders are tiers; a room is named for what it needs of the machine."""
ALONE = ("hazards",)
"""Folders under ``tests`` that are tiers themselves."""
BY_NAME = frozenset({"gpu"})
"""Rooms whose tiers run only when they are named."""


@dataclass(frozen=True)
class Tier:
    """One folder of tests, run by one pytest."""

    name: str
    folder: Path


@dataclass
class Outcome:
    """What one tier did: wall-clock seconds, pytest's exit status (None: out of time), counts, and what tests noted.

    ``noted`` holds the values that tests handed to pytest's ``record_property``, by property name: numbers are
    summed, other values collected.
    """

    tier: Tier
    seconds: float
    status: int | None
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    skip_reasons: Counter[str] = field(default_factory=Counter)
    noted: dict[str, float | list[str]] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        return self.status == 0


def tiers() -> list[Tier]:
    """All tiers; raises when a test file lies in none of them, where nothing would run it."""
    folders = [folder for room in ROOMS for folder in sorted((TESTS / room).iterdir())]
    folders += [TESTS / name for name in ALONE]
    found = [Tier(folder.name, folder) for folder in folders if folder.is_dir() and any(folder.rglob("test_*.py"))]
    stray = [p for p in TESTS.rglob("test_*.py") if not any(p.is_relative_to(t.folder) for t in found)]
    if stray:
        rooms = ", ".join([*(f"tests/{room}/<tier>" for room in ROOMS), *(f"tests/{name}" for name in ALONE)])
        raise StepFailed(f"{relative(stray[0])} lies in no tier, so nothing would run it: move it under {rooms}")
    return found


def select(names: list[str]) -> list[Tier]:
    """The tiers of these names; without any all but those of ``BY_NAME``. Raises with exit status 2 for a name that is
    none."""
    known = tiers()
    unknown = [name for name in names if name not in {tier.name for tier in known}]
    if unknown:
        raise StepFailed(f"no tier is named '{unknown[0]}'; there are: {', '.join(t.name for t in known)}", code=2)
    return [tier for tier in known if (tier.name in names if names else tier.folder.parent.name not in BY_NAME)]


def run_tier(tier: Tier, long: bool, jobs: int, timeout: float | None) -> Outcome:
    """Run the tests of one tier with their output on the terminal, ``timeout`` in seconds."""
    results = BUILD / "test" / f"{tier.name}.xml"
    results.parent.mkdir(parents=True, exist_ok=True)
    results.unlink(missing_ok=True)
    say(f"-- test {tier.name} ({relative(tier.folder)}, {jobs} processes)")
    command: list[str | Path] = [PYTHON, "-m", "pytest", "-q", "--junitxml", results, tier.folder]
    if jobs > 1:
        command += ["-n", str(jobs), "--dist", "worksteal"]
    if long:
        command += ["--long"]
    started = time.monotonic()
    status = stream(command, timeout)
    outcome = Outcome(tier, time.monotonic() - started, status)
    if results.exists():
        read_results(outcome, results)
    return outcome


def read_results(outcome: Outcome, results: Path) -> None:
    """Counts, skip reasons and noted properties from pytest's JUnit file."""
    for case in ElementTree.parse(results).getroot().iter("testcase"):
        skipped = case.find("skipped")
        if case.find("failure") is not None or case.find("error") is not None:
            outcome.failed += 1
        elif skipped is not None and skipped.get("type") == "pytest.skip":
            outcome.skipped += 1
            outcome.skip_reasons[skipped.get("message") or "no reason given"] += 1
        else:
            outcome.passed += 1
        for note in case.iter("property"):
            record(outcome.noted, note.get("name") or "", note.get("value") or "")


def record(noted: dict[str, float | list[str]], name: str, value: str) -> None:
    """Add one property: numbers under one name are summed, anything else is listed once."""
    try:
        number = float(value)
    except ValueError:
        known = noted.setdefault(name, [])
        if isinstance(known, list) and value not in known:
            known.append(value)
        return
    before = noted.setdefault(name, 0.0)
    if isinstance(before, float):
        noted[name] = before + number


def default_jobs() -> int:
    """Two test processes, which is what the time limits are for; one on a machine with one core."""
    return min(2, os.cpu_count() or 1)
