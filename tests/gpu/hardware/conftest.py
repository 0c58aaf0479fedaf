"""A real machine: the GPUs that NVIDIA's driver knows, the first as home, the second, or the first again, as worker."""

from __future__ import annotations

import os

import pytest

from tessera import real_gpus
from tessera.errors import TesseraError
from tests.device.machine import ROOT, Machine


@pytest.fixture(scope="session")
def machine() -> Machine:
    try:
        found = real_gpus.find()
    except TesseraError as error:
        pytest.skip(str(error))
    if found is None:
        pytest.skip("no driver of NVIDIA")
    return Machine(True, {**os.environ, "PYTHONPATH": str(ROOT)}, home=0, worker=min(1, len(found.gpus) - 1),
                   driver=found.library)
