"""The example of the driver runs as it says."""

from __future__ import annotations

import re
from pathlib import Path

from tests.material import ROOT
from tests.nodriver.driver.programs import compile_program, run_program


def test_driver(tmp_path: Path) -> None:
    program = compile_program(tmp_path / "driver", [ROOT / "examples/driver.c"], "")
    done = run_program(program, arguments=[str(ROOT / "examples/kernels.ptx")])
    assert (done.returncode, done.stderr) == (0, "")
    first, second = done.stdout.splitlines()
    assert re.fullmatch(r"NVIDIA A100.*: y\[0\] = 1, y\[1048575\] = 2.09715e\+06, \d+\.\d+ ms", first)
    assert second.startswith("NVIDIA L40S: y[0] = 1, ")
