"""Processes beside each other on one device: each goes on until both have done enough, so that neither can wait for the
other's end."""

from __future__ import annotations

import json
from collections.abc import Callable

from tests.device.area import PAGE, shared_file
from tests.device.machine import Machine, finish


def test_two_processes_share_a_device(machine: Machine, record_property: Callable[[str, object], None]) -> None:
    rounds = 100
    with shared_file(PAGE) as file:
        sides = [machine.start("beside", machine.home, side, file, rounds, files=[file]) for side in (0, 1)]
        said = finish(*sides)
    assert min(one["rounds"] for one in said) >= rounds
    record_property("rounds of two processes on one device", sum(one["rounds"] for one in said))
    print(json.dumps({"beside each other": said}))
