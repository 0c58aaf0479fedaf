"""Checks on this machine's GPUs what Tessera relies on, and writes what it found to report.json and report.txt.

Makes an environment from the wheels beside this file, without a network, and runs the checks in it. Exit status: 0 all
passed; 1 some failed; 2 unknown options; 3 the environment cannot be made; 4 nothing was checked, as there is no GPU.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
FILE_SECONDS, ALL_SECONDS, INSTALL_SECONDS = 240.0, 900.0, 300.0
PASSED, FAILED, NOT_RUN, SKIPPED = "passed", "failed", "not run", "skipped"
NO_INSTALLATION, NO_DRIVER = 3, 4
LONG = 1000
"""Characters of a fact that stands in the JSON alone."""


@dataclass
class Found:
    """What the checks found: their results, numbers by name, and what the driver said by name."""

    results: list[dict[str, Any]] = field(default_factory=list)
    measured: dict[str, float] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)

    def outcomes(self) -> list[str]:
        return [result["outcome"] for result in self.results]

    def verdict(self) -> str:
        if {FAILED, NOT_RUN} & set(self.outcomes()):
            return FAILED
        return PASSED if PASSED in self.outcomes() else "nothing checked"


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="check", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--softgpu", action="store_true", help="check the software driver of the wheel instead")
    parser.add_argument("--output", type=Path, default=HERE / "report", metavar="FOLDER",
                        help="for the environment and the reports; by default 'report' beside this file")
    return parser.parse_args()


def ended(command: list[str | Path], seconds: float, **more: Any) -> tuple[int | None, str]:
    """The exit status of a command, None when it had to be ended with all that it started, and its output."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                          text=True, errors="replace", start_new_session=True, **more) as process:
        try:
            output, _ = process.communicate(timeout=seconds)
            return process.returncode, output
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            output, _ = process.communicate()
            return None, output


def install(folder: Path) -> Path:
    """The Python of an environment with the kit's wheels. Exits when it cannot be made."""
    python = folder / "bin" / "python"
    pip: list[str | Path] = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index",
                             "--no-deps"]
    steps: list[list[str | Path]] = [
        [sys.executable, "-m", "venv", "--clear", folder],
        [*pip, "--find-links", HERE / "wheels", "--require-hashes", "-r", HERE / "requirements.txt"],
        [*pip, *sorted((HERE / "wheels").glob("tessera_gpu-*.whl"))],
    ]
    for step in steps:
        status, output = ended(step, INSTALL_SECONDS)
        if status != 0:
            print(f"check: no environment in {folder}: {' '.join(map(str, step))}\n{output}", file=sys.stderr)
            sys.exit(NO_INSTALLATION)
    return python


def run(python: Path, room: str, output: Path) -> Found:
    """All files of a room, each by a pytest of its own, so that one that hangs costs only its own time."""
    found = Found()
    started = time.monotonic()
    for file in sorted((HERE / "checks" / "tests" / room).rglob("test_*.py")):
        left = min(FILE_SECONDS, ALL_SECONDS - (time.monotonic() - started))
        if left <= 0:
            found.results.append({"test": file.stem, "outcome": NOT_RUN, "seconds": 0.0, "message": "no time was left"})
            continue
        print(f"-- {file.stem.removeprefix('test_')}", flush=True)
        results = output / f"{file.stem}.xml"
        results.unlink(missing_ok=True)
        command: list[str | Path] = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--junitxml", results,
                                     "-o", "junit_family=xunit1", "-o", "junit_logging=system-out", file]
        status, text = ended(command, left, cwd=HERE / "checks", env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"})
        if results.exists():
            read(results, found)
            results.unlink()
        else:
            why = f"ended after {left:.0f} s" if status is None else f"pytest's exit status is {status}"
            found.results.append({"test": file.stem, "outcome": FAILED, "seconds": left,
                                  "message": f"{why}\n{text[-4000:]}"})
    return found


def read(results: Path, found: Found) -> None:
    """Add what pytest wrote of one file."""
    for case in ElementTree.parse(results).getroot().iter("testcase"):
        trouble = next((part for name in ("failure", "error") if (part := case.find(name)) is not None), None)
        skipped = case.find("skipped")
        outcome = FAILED if trouble is not None else SKIPPED if skipped is not None else PASSED
        said = trouble.text if trouble is not None else skipped.get("message") if skipped is not None else None
        found.results.append({"test": case.get("name"), "outcome": outcome,
                              "seconds": float(case.get("time") or 0), "message": said or ""})
        for note in case.iter("property"):
            found.measured[note.get("name") or ""] = float(note.get("value") or "nan")
        for line in "".join(part.text or "" for part in case.iter("system-out")).splitlines():
            with contextlib.suppress(ValueError):
                fact = json.loads(line)
                found.facts |= fact if isinstance(fact, dict) else {}


def system() -> dict[str, Any]:
    """The machine, as far as it says."""
    said: dict[str, Any] = {
        "system": platform.platform(), "libc": " ".join(platform.libc_ver()), "python": platform.python_version(),
        "processors": os.cpu_count(), "nvidia_smi": None, "kernel_module": None,
    }  # fmt: skip
    if shutil.which("nvidia-smi"):
        said["nvidia_smi"] = ended(["nvidia-smi"], 60.0)[1]
    with contextlib.suppress(OSError):
        said["kernel_module"] = Path("/proc/driver/nvidia/version").read_text(encoding="utf-8", errors="replace")
    return said


def text(report: dict[str, Any]) -> str:
    """The report for a person: all but what is long, which stands in the JSON."""
    lines = [f"verdict: {report['verdict']}", f"kit: {report['kit']['commit']}", f"room: {report['room']}",
             f"system: {report['system']['system']}, Python {report['system']['python']}"]
    if report["system"]["kernel_module"]:
        lines.append(report["system"]["kernel_module"].splitlines()[0])
    driver = report["facts"].get("driver")
    if driver:
        files = ", ".join(driver.get("libraries", ()))
        lines.append(f"driver: CUDA {driver['version'] // 1000}.{driver['version'] % 1000 // 10} {files}".rstrip())
        lines += [f"device: {device['name']}, {device['memory'] >> 20} MiB" for device in driver["devices"]]
    lines += ["", *[f"{one['outcome']:<8} {one['seconds']:7.1f} s  {one['test']}" for one in report["results"]]]
    lines += ["", *[f"{name}: {value:g}" for name, value in report["measured"].items()]]
    facts = {name: json.dumps(fact) for name, fact in report["facts"].items()}
    lines += ["", *[f"{name}: {fact}" for name, fact in facts.items() if name != "driver" and len(fact) <= LONG]]
    for one in report["results"]:
        if one["outcome"] != PASSED:
            lines += ["", f"{one['outcome']}: {one['test']}", one["message"]]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Check, and write the reports."""
    chosen = options()
    output = chosen.output.resolve()
    output.mkdir(parents=True, exist_ok=True)
    started, begun = datetime.datetime.now(datetime.UTC), time.monotonic()
    print("-- install", flush=True)
    python = install(output / "environment")
    room = "softgpu" if chosen.softgpu else "gpu"
    found = run(python, room, output)
    report = {
        "schema": "tessera.gpu-kit", "version": 1, "verdict": found.verdict(), "room": room,
        "started": started.isoformat(timespec="seconds"), "seconds": round(time.monotonic() - begun, 1),
        "kit": json.loads((HERE / "kit.json").read_text(encoding="utf-8")), "system": system(),
        "results": found.results, "measured": found.measured, "facts": found.facts,
    }  # fmt: skip
    (output / "report.json").write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    (output / "report.txt").write_text(text(report), encoding="utf-8")
    print(f"{text(report)}\n-- wrote {output}/report.json and report.txt")
    return {PASSED: 0, FAILED: 1}.get(found.verdict(), NO_DRIVER)


if __name__ == "__main__":
    sys.exit(main())
