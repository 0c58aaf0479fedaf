"""What is printed and written after the tests: times against their shares, skips, the summary of a long run."""

from __future__ import annotations

import datetime
import json
import os
import platform
import subprocess
from pathlib import Path

from tools.steps import ROOT, relative, say
from tools.tiers import Outcome

LIMIT_SECONDS = 18 * 60.0
"""A run of the whole suite that takes longer than this fails; continuous integration allows a little more."""

SHARES: tuple[tuple[str, float, tuple[str, ...]], ...] = (
    ("install, build and checks", 300.0, ("install", "checks")),
    ("ptxparse, interpreter, command line", 120.0, ("ptxparse", "softgpu", "soundness", "tessera")),
    ("engine", 120.0, ("engine",)),
    ("driver and clients", 180.0, ("driver", "clients")),
    ("shim and traces", 120.0, ("shim",)),
    ("hazards", 60.0, ("hazards",)),
    ("tracker", 90.0, ("tracker",)),
    ("live placement", 150.0, ("device", "orchestrator")),
)
"""Parts of the suite: name, seconds on two cores, the tiers in it. A part past its share moves cases to ``--long``."""

MEASURED = ROOT / "docs" / "measured"


def print_times(times: dict[str, float]) -> None:
    """One line per part and per tier with its time; ``times`` holds the seconds of each tier and step."""
    total = sum(times.values())
    rest = {name for name in times if not any(name in members for _, _, members in SHARES)}
    say("\ntime                                      seconds   of all    share")
    for part, share, members in (*SHARES, *([("without a share", 0.0, tuple(sorted(rest)))] if rest else [])):
        inside = {name: times[name] for name in members if name in times}
        if not inside:
            continue
        spent = sum(inside.values())
        note = "  over its share: move cases to --long" if spent > share else ""
        say(f"{part:<40} {spent:>8.1f} {percent(spent, total):>8} {share:>6.0f} s{note}")
        for name, seconds in inside.items():
            say(f"  {name:<38} {seconds:>8.1f} {percent(seconds, total):>8}")
    say(f"{'all':<40} {total:>8.1f} {'':>8} {LIMIT_SECONDS:>6.0f} s")


def percent(part: float, whole: float) -> str:
    return f"{100 * part / whole:.0f} %" if whole > 0 else "-"


def print_outcomes(outcomes: list[Outcome]) -> None:
    """Why tests were skipped, and the closing count."""
    for outcome in outcomes:
        for reason, count in outcome.skip_reasons.most_common():
            say(f"skipped in {outcome.tier.name}: {count} × {reason.removeprefix('Skipped: ')}")
    passed, failed, skipped = (sum(getattr(o, part) for o in outcomes) for part in ("passed", "failed", "skipped"))
    say(f"{passed} passed, {failed} failed, {skipped} skipped")


def write_summary(outcomes: list[Outcome], times: dict[str, float]) -> Path:
    """The dated summary of a long run under ``docs/measured``: machine, commit, counts, what the tests noted."""
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    summary = {
        "schema": "tessera.test-long",
        "version": 1,
        "date": today,
        "commit": commit(),
        "machine": {"processors": os.cpu_count(), "architecture": platform.machine(), "system": platform.system()},
        "python": platform.python_version(),
        "seconds": {name: round(seconds, 1) for name, seconds in times.items()},
        "tiers": {o.tier.name: tier_summary(o) for o in outcomes},
    }
    MEASURED.mkdir(parents=True, exist_ok=True)
    path = MEASURED / f"test-long-{today}.json"
    path.write_text(json.dumps(summary, indent=1) + "\n", encoding="utf-8")
    say(f"-- wrote {relative(path)}")
    return path


def tier_summary(outcome: Outcome) -> dict[str, object]:
    return {
        "passed": outcome.passed,
        "failed": outcome.failed,
        "skipped": dict(outcome.skip_reasons),
        "noted": dict(sorted(outcome.noted.items())),
    }


def commit() -> str:
    """The commit measured, with ``+`` when the tree differs from it; empty outside a git repository."""
    describe = ["git", "describe", "--always", "--abbrev=12", "--dirty=+", "--match=-"]
    return subprocess.run(describe, cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()
