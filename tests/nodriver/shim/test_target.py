"""Which driver is put under a program."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from softgpu.environ import FOLDER
from tessera import real_gpus
from tessera.cli import inventory
from tessera.cli.target import choose
from tessera.environment import DEVICES
from tessera.errors import TesseraError, UsageError
from tessera.real_gpus import RealGpu, RealMachine
from tests import null_driver

VISIBLE = "CUDA_VISIBLE_DEVICES"
GPU = RealGpu("NVIDIA H200", (9, 0), 140 << 30, 132, frozenset())
MACHINE = RealMachine((13, 0), (GPU, GPU, GPU), "/usr/lib/libcuda.so.580")


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (DEVICES.name, VISIBLE):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(inventory, "find", lambda: None)


def test_software_gpus_where_there_are_no_real_ones() -> None:
    found = choose(None, None)
    assert found.driver == str(FOLDER / "libcuda.so.1") and found.environment[DEVICES.name] == "A100-80G,L40S"
    assert found.note and found.note.startswith("the program gets A100-80G,L40S: no driver of NVIDIA is found")


def test_a_fleet_needs_no_word() -> None:
    found = choose("T4,L4", None)
    assert found.environment[DEVICES.name] == "T4,L4" and found.note is None


def test_a_driver_is_taken_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "libcuda.so.1").touch()
    found = choose(None, Path("libcuda.so.1"))
    assert found.driver == str(tmp_path / "libcuda.so.1") and found.environment == dict(os.environ)
    with pytest.raises(TesseraError, match="there is no such file"):
        choose(None, Path("other"))


def test_real_gpus_in_the_order_of_the_fleet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inventory, "find", lambda: MACHINE)
    everything = choose(None, None)
    assert (everything.driver, everything.note) == (MACHINE.library, None) and VISIBLE not in everything.environment
    assert choose("cuda:2,cuda:0", None).environment[VISIBLE] == "2,0"
    monkeypatch.setenv(VISIBLE, "GPU-x,5,6")
    assert choose("cuda:2,cuda:0", None).environment[VISIBLE] == "6,GPU-x"
    for fleet in ("cuda:0,cuda:0", "cuda:0:memory_gib=3"):
        with pytest.raises(UsageError):
            choose(fleet, None)


def test_the_file_of_a_driver_is_known() -> None:
    library = null_driver.build()
    driver = real_gpus._Driver(real_gpus.CDLL(str(library)))
    assert Path(driver.path()) == library.resolve()
