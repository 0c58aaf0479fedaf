"""Random sequences of valid and invalid calls, from several threads, never crash or hang the driver."""

from __future__ import annotations

import signal
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from softgpu.instrument import Delay, Instrument
from tests.nodriver.driver import fuzz_program
from tests.nodriver.driver.fuzz_calls import NEVER, left_out
from tests.nodriver.driver.fuzz_program import PLAIN, Run, build
from tools import native

SECONDS, LONG_SECONDS, LONG_SEEDS = 7.0, 60.0, 5
THREADS = 4
OFTEN = ("cuLaunchKernel", "cuMemcpyHtoDAsync_v2", "cuEventRecord", "cuGraphLaunch", "cuMemAllocAsync", "cuMemcpy3D_v2")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzz")


@cache
def program(kind: str, folder: Path) -> Path:
    return build(kind, folder)


def warm_up(folder: Path) -> None:
    """All that is compiled comes from the cache afterwards, and the compile service runs: a process with the sanitizer
    of threads cannot start it."""
    found = fuzz_program.run(program(PLAIN, folder), PLAIN, 1, 1, False, 20000)
    assert found.code == 0, found.report()


@pytest.mark.parametrize("shared", [False, True], ids=["own", "shared"])
@pytest.mark.parametrize("kind", native.SANITIZERS)
def test_no_crash_and_no_hang(kind: str, shared: bool, folder: Path, long_run: bool) -> None:
    for seed in range(1, LONG_SEEDS + 1 if long_run else 2):
        warm_up(folder)
        seconds = LONG_SECONDS if long_run else SECONDS
        found = fuzz_program.run(program(kind, folder), kind, seed, THREADS, shared, seconds=seconds)
        assert found.code == 0 and not found.errors, found.report()
        assert found.made > 1000


def symbols(found: Run) -> list[str]:
    return [call.split(": ")[1].split("(")[0] for call in found.calls]


def test_the_same_seed_makes_the_same_calls(folder: Path) -> None:
    """With the sanitizer of addresses: what was freed is not used again, and a dead handle is that of nothing else."""
    kind = native.SANITIZERS[0]
    runs = [fuzz_program.run(program(kind, folder), kind, seed, 1, False, 1500) for seed in (1, 1, 2)]
    assert all(found.code == 0 and found.made == 1500 for found in runs)
    assert symbols(runs[0]) == symbols(runs[1]) != symbols(runs[2])


def test_a_call_that_hangs_is_found(folder: Path) -> None:
    with Instrument(rules=[Delay("cuEventQuery", 5, seconds=3600)]).variables() as variables:
        found = fuzz_program.run(program(PLAIN, folder), PLAIN, 1, 2, False, patience=1, variables=variables)
    assert found.code == -signal.SIGABRT
    report = found.report()
    assert "hangs" in report and "instrument_before" in report, "with the stack of the thread"
    assert any("cuEventQuery" in call and " = " not in call for call in found.calls)


def test_all_that_is_implemented_is_called(folder: Path, tmp_path: Path) -> None:
    """And most of it succeeds now and then: nothing is found by calls that all fail at their first check."""
    assert set(left_out()) == set(NEVER)
    instrument = Instrument(tmp_path / "log", calls=True)
    with instrument.variables() as variables:
        found = fuzz_program.run(program(PLAIN, folder), PLAIN, 7, 2, False, 20000, variables=variables)
    assert found.code == 0, found.report()
    called, succeeded = Counter[str](), Counter[str]()
    for record in instrument.records():
        if "call" in record:
            called[record["call"]] += 1
            succeeded[record["call"]] += record["result"] == "CUDA_SUCCESS"
    never = {symbol for symbol in called if not succeeded[symbol]}
    assert len(never) < 0.3 * len(called), sorted(never)
    assert all(succeeded[symbol] > 5 for symbol in OFTEN)
