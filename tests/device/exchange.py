"""Gather and apply, and the exchange area between two processes."""

from __future__ import annotations

from collections.abc import Callable

from tests.device.area import FLAGS, PAGE, shared_file
from tests.device.machine import Machine, finish

Note = Callable[[str, object], None]


def test_ranges_are_gathered_and_applied(machine: Machine, long_run: bool, record_property: Note) -> None:
    done = machine.run("ranges", machine.home, 2000 if long_run else 200)
    record_property("launches of gather and apply", done["examples"])


def test_streams_of_two_processes_wait_for_each_other(machine: Machine, record_property: Note) -> None:
    rounds = 1000
    with shared_file(FLAGS + PAGE) as file:
        sides = [machine.start("flags", device, side, file, rounds, files=[file])
                 for side, device in enumerate((machine.home, machine.worker))]
        times = finish(*sides)
    record_property("microseconds of a ping-pong by flags", round(times[0]["microseconds_a_round"], 1))
