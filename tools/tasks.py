"""The tasks that ``build.py`` offers, one function each."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

from tools import driver, native, report, shim, tiers, venv, wheel
from tools.steps import BUILD, ROOT, StepFailed, relative, run, say, stream

TYPED = ("tessera", "ptxparse", "softgpu", "shim", "orchestrator", "tools", "build.py", "setup.py")
BENCHMARKS = ROOT / "benchmarks"


def test(names: list[str], long: bool, jobs: int) -> None:
    """Install, and for the whole suite build and check; then run the tiers. Raises if anything failed."""
    started = time.monotonic()
    chosen = tiers.select(names)
    venv.ensure(clients=not names or bool(venv.CLIENTS_USERS & set(names)))
    times: dict[str, float] = {}
    if not names or (native.USERS | driver.USERS) & set(names):
        native.prepare()
    if not names or driver.USERS & set(names):
        driver.build(venv.PYTHON)
    if not names or shim.USERS & set(names):
        shim.prepare(venv.PYTHON)
    if not names:
        wheel.build()
    times["install"] = time.monotonic() - started
    if not names:
        times["checks"] = check()
    outcomes = []
    for tier in chosen:
        left = None if long else report.LIMIT_SECONDS - (time.monotonic() - started)
        outcomes.append(tiers.run_tier(tier, long, jobs, left))
        times[tier.name] = outcomes[-1].seconds
    report.print_times(times)
    report.print_outcomes(outcomes)
    if long and not names:
        report.write_summary(outcomes, times)
    judge(outcomes, 0.0 if long else time.monotonic() - started)


def judge(outcomes: list[tiers.Outcome], seconds: float) -> None:
    """Raise for tiers that failed or ran out of time, and for a suite past its limit."""
    for outcome in outcomes:
        if outcome.status is None:
            raise StepFailed(f"tier {outcome.tier.name} was ended: the suite is limited to {limit()} minutes")
    bad = [outcome for outcome in outcomes if not outcome.ok]
    if bad:
        example = relative(bad[0].tier.folder)
        listed = ", ".join(f"{o.tier.name} (pytest exit status {o.status})" for o in bad)
        raise StepFailed(f"failed: {listed}. To run one again: .venv/bin/python -m pytest {example} --last-failed")
    if seconds > report.LIMIT_SECONDS:
        raise StepFailed(f"all passed, but the suite took {seconds:.0f} s and is limited to {limit()} minutes")


def limit() -> int:
    return round(report.LIMIT_SECONDS / 60)


def check() -> float:
    """ruff and mypy over everything that is ours; seconds taken."""
    python = venv.PYTHON
    seconds = run("ruff check", [python, "-m", "ruff", "check", "."], "Many findings mend themselves with --fix.")
    # A cache of its own: two mypy at once in one cache give nonsense.
    mypy: list[str | Path] = [python, "-m", "mypy", "--strict", "--cache-dir", BUILD / "mypy", *TYPED]
    return seconds + run("mypy --strict", mypy, "Each line says what it misses.")


def build() -> None:
    """The libraries of this source tree, and the wheel under ``build/wheel``."""
    venv.ensure()
    native.prepare()
    driver.build(venv.PYTHON)
    shim.prepare(venv.PYTHON)
    say(f"-- {relative(wheel.build())} is ready: pip install it on any Linux on x86-64")


def benchmarks() -> list[str]:
    return sorted(p.stem for p in BENCHMARKS.glob("*.py") if not p.stem.startswith("_"))


def bench(name: str | None, arguments: list[str], clients: bool) -> None:
    """One benchmark by name with its own arguments, or all of them in order."""
    known = benchmarks()
    if name is not None and name not in known:
        raise StepFailed(f"no benchmark is named '{name}'; there are: {', '.join(known) or 'none yet'}", code=2)
    say(f"-- benchmarks: {', '.join(known) or 'none yet'}")
    chosen = [name] if name else known
    venv.ensure(clients or bool(venv.CLIENTS_USERS & set(chosen)))
    if (native.USERS | driver.USERS) & set(chosen):
        native.prepare()
    if driver.USERS & set(chosen):
        driver.build(venv.PYTHON)
    if shim.USERS & set(chosen):
        shim.prepare(venv.PYTHON)
    failed = []
    for stem in chosen:
        say(f"-- benchmark {stem}")
        if stream([venv.PYTHON, BENCHMARKS / f"{stem}.py", *arguments]) != 0:
            failed.append(stem)
    if failed:
        raise StepFailed(f"failed: benchmark {', '.join(failed)}")


def clean() -> None:
    """Remove what build.py and its tools made; an adopted ``.venv`` stays."""
    caches = [ROOT / name for name in (".mypy_cache", ".ruff_cache", ".pytest_cache", ".hypothesis")]
    libraries = [ROOT / "softgpu" / "lib", ROOT / "shim" / "lib", ROOT / "shim" / shim.EXTENSION.name]
    made = [BUILD, *libraries, *caches, *ROOT.glob("*.egg-info"), *compiled()]
    if venv.read_stamp().made_here:
        made.append(venv.VENV)
    elif venv.VENV.exists():
        say("-- .venv was not made by build.py and stays")
    for path in made:
        if path.exists():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
            say(f"-- removed {relative(path)}")


def compiled() -> list[Path]:
    """Folders of byte code beside our sources."""
    found = []
    for folder, inner, _ in os.walk(ROOT):
        inner[:] = [name for name in inner if not name.startswith(".")]
        if "__pycache__" in inner:
            inner.remove("__pycache__")
            found.append(Path(folder, "__pycache__"))
    return found
