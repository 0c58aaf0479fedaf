"""The driver from C: each program of ``c/``, linked with ``-lcuda``, alone and with the compiler's sanitizers."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from tessera.environment import DEVICES
from tools import driver, native
from tools.venv import PYTHON

FOLDER = Path(__file__).resolve().parent / "c"
PROGRAMS = sorted(path.stem for path in FOLDER.glob("*.c"))
KINDS = ["", *native.SANITIZERS]
SECONDS = 120
FLEET = "A100-80G,L40S;from=A100-80G:to=L40S:bandwidth_gb_s=23:peer=true"
SAID = {
    "access": (r"kernel (put|get), line \d+: (st|ld).global.u32 (reads|writes) .*",),
    "clock": ("modelled clock: .*",),
    "kernels": (
        "a module cannot be loaded: .*PTX:4:11.*", r"kernel saxpy, line \d+: .* at 0x1000, outside every allocation.*",
        r"kernel saxpy, line \d+: ld.global.f32 reads 4 bytes at 0x\w+, outside .*",
        "kernel wide, .* not aligned to 8.*", "kernel stop, .*trap.*"),
    "notes": (r"SOFTGPU_DRIVER_VERSION=v\d+ is no version as in 12040; 13000 is reported",),
}
"""What the driver says on standard error, in lines; nothing when the program is not here."""


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind or "plain")
@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name: str, kind: str, tmp_path: Path) -> None:
    library = driver.build(PYTHON, kind)
    program = tmp_path / name
    command = [native.compiler(), *native.FLAGS, *native.sanitizer_flags(kind), "-O0", f"-I{driver.headers(PYTHON)}",
               f"{FOLDER / name}.c", "-o", str(program), str(library), f"-Wl,-rpath,{library.parent}"]
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    done = subprocess.run([program], capture_output=True, text=True, check=False, timeout=SECONDS,
                          env={**os.environ, DEVICES.name: FLEET})
    assert done.returncode == 0, done.stdout + done.stderr
    assert_said(done.stderr.splitlines(), SAID.get(name, ()))


def assert_said(lines: list[str], expected: tuple[str, ...]) -> None:
    for line in lines:
        assert any(re.match(f"softgpu: {text}", line) for text in expected), line
    for text in expected:
        assert any(re.match(f"softgpu: {text}", line) for line in lines), f"{text} is not among {lines}"
