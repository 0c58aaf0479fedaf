"""Running one step at a time: one line saying what is done, its time, and on failure what to do."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"
LOGS = BUILD / "log"
TAIL_LINES = 60


class StepFailed(Exception):
    """A step did not succeed; the message says which, how, and what to do. ``code`` is the exit status."""

    def __init__(self, message: str, code: int = 1) -> None:
        super().__init__(message)
        self.code = code


def relative(path: Path) -> str:
    """The path as a person at the top of the repository would type it."""
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else str(path)


def say(line: str) -> None:
    print(line, flush=True)


def child_environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of every child: no Python settings of the caller's, no pip chatter, one BLAS thread each."""
    kept = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")}
    kept["PIP_DISABLE_PIP_VERSION_CHECK"] = "1"
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        kept.setdefault(name, "1")
    kept.update(extra or {})
    return kept


def run(title: str, command: Sequence[str | Path], advice: str) -> float:
    """Run ``command`` with its output in ``build/log``; return the seconds, or raise with the output's end."""
    LOGS.mkdir(parents=True, exist_ok=True)
    log = LOGS / ("-".join(title.replace("/", " ").split()) + ".txt")
    print(f"-- {title} ... ", end="", flush=True)
    started = time.monotonic()
    with log.open("w", encoding="utf-8") as output:
        code = subprocess.run(
            [str(part) for part in command],
            cwd=ROOT, env=child_environment(), stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
            check=False,
        ).returncode
    seconds = time.monotonic() - started
    if code == 0:
        say(f"{seconds:.1f} s")
        return seconds
    say(f"FAILED after {seconds:.1f} s")
    tail = log.read_text(encoding="utf-8", errors="replace").splitlines()[-TAIL_LINES:]
    say("\n".join(f"   | {line}" for line in tail))
    raise StepFailed(f"step '{title}' failed (exit status {code}). {advice} Its whole output: {relative(log)}")


def stream(command: Sequence[str | Path], timeout: float | None = None) -> int | None:
    """Run ``command`` with its output on this terminal; return its exit status, None when ``timeout`` seconds were
    not enough (the command and its children are then ended)."""
    process = subprocess.Popen(
        [str(part) for part in command],
        cwd=ROOT, env=child_environment({"PYTHONPATH": str(ROOT)}), stdin=subprocess.DEVNULL, start_new_session=True,
    )
    try:
        return process.wait(timeout)
    except subprocess.TimeoutExpired:
        return None
    finally:
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
