"""The driver from C: each program of ``c/``, linked with ``-lcuda``, alone and with the compiler's sanitizers."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.nodriver.driver.programs import FOLDER, build_program, run_program
from tools import native

PROGRAMS = sorted(path.stem for path in FOLDER.glob("*.c"))
KINDS = ["", *native.SANITIZERS]
SAID = {
    "graph_kernels": (
        r"kernel mix, line \d+: .* at 0x1000, outside every allocation.*",
        "kernel mix: a graph is launched before its node has got a grid"),
    "access": (r"kernel (put|get), line \d+: (st|ld).global.u32 (reads|writes) .*",),
    "clock": ("modelled clock: .*",),
    "kernels": (
        "a module cannot be loaded: .*PTX:4:11.*", r"kernel saxpy, line \d+: .* at 0x1000, outside every allocation.*",
        r"kernel saxpy, line \d+: ld.global.f32 reads 4 bytes at 0x\w+, outside .*",
        "kernel wide, .* not aligned to 8.*", "kernel stop, .*trap.*"),
    "work": (r"kernel put, line \d+: .* at 0x1000, outside every allocation.*",),
    "notes": (r"PTX of version 10.\d+ is newer than what this driver reads, .*",),
}
"""What the driver says on standard error, in lines; nothing when the program is not here."""


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind or "plain")
@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name: str, kind: str, tmp_path: Path) -> None:
    done = run_program(build_program(name, kind, tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr
    assert_said(done.stderr.splitlines(), SAID.get(name, ()))


def assert_said(lines: list[str], expected: tuple[str, ...]) -> None:
    for line in lines:
        assert any(re.match(f"softgpu: {text}", line) for text in expected), line
    for text in expected:
        assert any(re.match(f"softgpu: {text}", line) for line in lines), f"{text} is not among {lines}"
