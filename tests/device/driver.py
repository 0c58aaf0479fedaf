"""What the driver is asked for, and what it says of itself. Facts are printed, for whoever keeps the output."""

from __future__ import annotations

from tests.device.machine import ROOT, Machine, say

NEEDED = ("UNIFIED_ADDRESSING", "CAN_MAP_HOST_MEMORY", "HOST_REGISTER_SUPPORTED")
"""Attributes of a device without which nothing can be placed on it. Memory operations of streams with 32 bits have
none."""
EXCLUSIVE = (2, 3)
"""Compute modes in which no process, or only one, may use a device."""

FATBIN = ROOT / "tests" / "nodriver" / "driver" / "images" / "default.fatbin"
PARAMETERS = {"gather": [[0, 8], [8, 8], [16, 4]], "twice": [[0, 8]]}
"""Offset and bytes of each parameter, by kernel."""


def test_devices_can_do_what_is_needed(machine: Machine) -> None:
    facts = machine.run("facts")
    say("driver", facts)
    for number in {machine.home, machine.worker}:
        device = facts["devices"][number]
        missing = [name for name in NEEDED if not device["attributes"].get(name)]
        assert not missing, f"device {number}, {device['name']}"
        assert device["attributes"]["COMPUTE_MODE"] not in EXCLUSIVE, "several processes have to use it"


def test_parameters_of_kernels_by_every_route(machine: Machine) -> None:
    routes = machine.run("routes", machine.home, FATBIN)
    say("parameters of kernels", routes)
    for kernel, expected in PARAMETERS.items():
        for route, answers in routes[kernel].items():
            assert answers == dict.fromkeys(answers, expected), f"{kernel} by {route}"


def test_functions_are_found_by_both_ways(machine: Machine) -> None:
    found = machine.run("lookup")
    say("functions by dlsym and by cuGetProcAddress", found)
    assert found["equal"] > 0
    if not machine.real:
        assert found["equal"] == found["asked"]
