"""Many threads make and end things, whose handles and addresses the driver gives to others at once."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from shim.wire import Kind
from tests.material import ROOT
from tests.nodriver.shim.living import living
from tests.nodriver.shim.observed import observe
from tests.nodriver.shim.programs import FOLDER
from tools import driver, native
from tools.venv import PYTHON


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("churn") / "churn"
    command = [native.compiler(), *native.FLAGS, f"-I{driver.headers(PYTHON)}", f"-I{ROOT / 'shim'}",
               FOLDER / "churn.c", driver.LIBRARY, "-o", made]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return made


@pytest.mark.parametrize("reuse", [False, True])
def test_the_records_say_what_is_left(program: Path, *, reuse: bool) -> None:
    seen = observe([program, "6", "1500"], reuse=reuse)
    assert seen.status == 0, seen.errors
    told = {(kind, handle) for kind, handle in json.loads(seen.output)}
    alive = {(int(key[0]), int(key[1])) for key in living(seen.records) if key[0] is not Kind.DEVICE}
    assert alive == told
    assert len(told) > 20
