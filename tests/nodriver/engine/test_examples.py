"""The examples of the engine run as they say."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.material import ROOT
from tests.nodriver.engine.services import Home, home_of_test
from tools import native

RESULT = "y[0] = 1, y[999] = 1999"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    yield from home_of_test(tmp_path, monkeypatch)


def test_c(home: Home) -> None:
    home.interpreter(f'PYTHONPATH={ROOT} exec {sys.executable} "$@"')  # with the compiler, not a fake
    program, library = home.folder / "engine", Path(native.build())
    subprocess.run([native.compiler(), "-std=c11", "-Wall", "-Wextra", "-Werror", "-I", ROOT / "softgpu/engine/runtime",
                    ROOT / "examples/engine.c", library, "-o", program], check=True, timeout=60)
    environment = {**os.environ, "LD_LIBRARY_PATH": str(library.parent)}
    for _ in range(2):  # compiled, and taken from the cache
        done = subprocess.run([program, ROOT / "examples/kernels.ptx"], env=environment, capture_output=True, text=True,
                              timeout=60, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (0, f"{RESULT}\n", "")


def test_python(home: Home) -> None:
    done = subprocess.run([sys.executable, ROOT / "examples/engine.py"], env={**os.environ, "PYTHONPATH": str(ROOT)},
                          capture_output=True, text=True, timeout=60, check=True)
    first, second, third = done.stdout.splitlines()
    assert first == RESULT
    assert second == "1000 fused multiply and adds, 8000 bytes read"
    assert third.startswith("kernel saxpy, line 36: ld.global.f32 reads 4 bytes at 0x")
    assert third.endswith("(block 7,0,0 thread 104,0,0)")
