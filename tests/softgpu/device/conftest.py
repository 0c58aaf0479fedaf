"""The software driver as a machine: two unlike GPUs, which the processes of a check share."""

from __future__ import annotations

from pathlib import Path

import pytest

import softgpu
from tests.device.machine import ROOT, Machine
from tests.folders import own_folders  # noqa: F401 - a fixture


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    variables = softgpu.environment("A100-80G,L40S", machine="checks", strict=True)
    variables |= {"PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(tmp_path)}
    return Machine(False, variables, home=0, worker=1, driver=str(softgpu.environ.FOLDER / "libcuda.so.1"))
