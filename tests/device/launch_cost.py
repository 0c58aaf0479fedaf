"""What the preload library adds to a launch of an empty kernel. Times are for reading: no check asks for speed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from statistics import median

from shim.places import library
from tessera.environment import DRIVER
from tests.device import made
from tests.device.machine import ROOT, Machine, outputs
from tests.device.recorded import tessera

KERNEL = ROOT / "benchmarks" / "shim" / "nothing.ptx"
ROUNDS = 5
EVERY = 512
"""Launches that are queued before they are waited for."""
BARE, PASSING, RECORDING = "the driver alone", "calls pass", "recording"


def test_what_a_launch_costs(machine: Machine, tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    count = (100_000 if machine.real else 12_800) // EVERY * EVERY
    program = [made.launches_program(tmp_path), str(count), str(EVERY), str(KERNEL)]
    report = tmp_path / "report.json"
    preloaded = {"LD_PRELOAD": str(library()), DRIVER.name: machine.driver}
    times: dict[str, list[float]] = {BARE: [], PASSING: [], RECORDING: []}
    for _ in range(ROUNDS):  # in turn, so that all meet the same machine
        for way, started in (
            (BARE, lambda: machine.command(program)),
            (PASSING, lambda: machine.command(program, **preloaded)),
            (RECORDING, lambda: tessera(machine, "run", "--report", report, "--", *program)),
        ):
            (text,) = outputs(started())
            said = json.loads(text)
            assert said["launches"] == count
            times[way].append(said["median_ns"])
        recorded = json.loads(report.read_text())
        assert sum(recorded["launches"].values()) == count
        assert [client["missing"] for client in recorded["clients"]] == [0]
    for way, found in times.items():
        record_property(f"nanoseconds of a launch, {way}", round(median(found), 1))
    for way in (PASSING, RECORDING):
        added = [one - bare for one, bare in zip(times[way], times[BARE], strict=True)]
        record_property(f"nanoseconds added to a launch, {way}", round(median(added), 1))
