"""The program of random calls (``fuzz/``), and how it is run. To run it once more as a test did:

    python -m tests.nodriver.driver.fuzz_program KIND SEED THREADS SHARED CALLS

KIND: ``plain`` or a kind of sanitizers. SHARED: 1 if threads use each other's handles.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.nodriver.driver.fuzz_calls import source
from tests.nodriver.driver.programs import compile_program, run_program

FOLDER = Path(__file__).resolve().parent / "fuzz"
PLAIN = "plain"
PATIENCE = 60
"""Seconds that a call may take: a compilation on a busy machine, with sanitizers, is far from it."""

SHOWN = 60
_LINE = re.compile(rb"(\d+) (thread \d+: [^\0]*)")
_OF_DRIVER = "softgpu: "


@dataclass(frozen=True)
class Run:
    """One run: what it was told, and what came of it. ``calls``: the last ones of each thread, in order."""

    kind: str
    seed: int
    threads: int
    shared: bool
    most: int
    code: int
    made: int
    errors: str
    calls: tuple[str, ...]

    def report(self) -> str:
        """What a person needs to find out why it failed."""
        again = f"{self.kind} {self.seed} {self.threads} {int(self.shared)} {self.most}"
        return "\n".join([
            f"exit status {self.code}; again: python -m tests.nodriver.driver.fuzz_program {again}",
            "the last calls, those without a result never returned:", *self.calls[-SHOWN:], self.errors,
        ])


def build(kind: str, folder: Path) -> Path:
    """The program, made in a folder."""
    calls = folder / "calls.c"
    calls.write_text(source(), encoding="utf-8")
    return compile_program(folder / f"fuzz-{kind}", [calls, *sorted(FOLDER.glob("*.c"))], "" if kind == PLAIN else kind,
                           f"-I{FOLDER}", "-O0", "-rdynamic")


def run(program: Path, kind: str, seed: int, threads: int, shared: bool, most: int = 10 ** 9, seconds: float = 3600,
        patience: float = PATIENCE, variables: Mapping[str, str] | None = None) -> Run:
    """Run it. Accesses to the program's own memory may be without order, everything else may not."""
    trace = program.with_suffix(".trace")
    told = {"TSAN_OPTIONS": f"ignore_interceptors_accesses=1:suppressions={FOLDER / 'races'}", **(variables or {})}
    arguments = [seed, threads, int(shared), most, seconds, patience, trace]
    try:
        done = run_program(program, told, [str(argument) for argument in arguments], seconds + 2 * patience + 60,
                           program.parent)
        code, output, errors = done.returncode, done.stdout, done.stderr
    except subprocess.TimeoutExpired as late:
        code, output, errors = -1, "", (late.stderr or b"").decode(errors="replace")
    lines = sorted((int(number), text.decode(errors="replace")) for number, text in _LINE.findall(trace.read_bytes()))
    said = [line for line in errors.splitlines() if not line.startswith(_OF_DRIVER)]
    made = int(output.split()[0]) if code == 0 else 0
    return Run(kind, seed, threads, shared, most, code, made, "\n".join(said), tuple(text for _, text in lines))


def main() -> int:
    """Build and run it, and say what came of it."""
    kind, *numbers = sys.argv[1:]
    seed, threads, shared, most = map(int, numbers)
    with tempfile.TemporaryDirectory() as folder:
        found = run(build(kind, Path(folder)), kind, seed, threads, bool(shared), most)
    print(found.report() if found.code else f"{found.made} calls")
    return found.code != 0


if __name__ == "__main__":
    sys.exit(main())
