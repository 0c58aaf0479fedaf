"""What ``tessera devices`` found out, before anybody words it."""

from __future__ import annotations

import os
from dataclasses import dataclass

from tessera.cards import GIB, Card
from tessera.environment import DEVICES
from tessera.errors import ExitCode, TesseraError
from tessera.fleet import DEFAULT, Fleet, FleetError, Gpu, parse_fleet
from tessera.real_gpus import DriverTrouble, RealGpu, RealMachine, find


class NoDriver(TesseraError):
    """Real GPUs are asked for, and there is no driver for them."""

    exit_code = ExitCode.NO_DRIVER


@dataclass(frozen=True)
class Device:
    """A GPU of the fleet; ``real`` what NVIDIA's driver says of it, None for a software GPU, whose card says it."""

    gpu: Gpu
    real: RealGpu | None = None

    @property
    def full_name(self) -> str:
        return self.real.name if self.real else _card(self.gpu).full_name

    @property
    def capability(self) -> tuple[int, int]:
        return self.real.capability if self.real else _card(self.gpu).capability.version

    @property
    def sms(self) -> int:
        return self.real.sms if self.real else _card(self.gpu).sms

    @property
    def memory(self) -> int:
        """In bytes: what the fleet leaves to it, else all that it has."""
        if self.gpu.memory is not None:
            return self.gpu.memory
        return self.real.memory if self.real else _card(self.gpu).memory


@dataclass(frozen=True)
class Connection:
    """What is between two devices, in both directions: bandwidth in 10^9 bytes a second and latency in microseconds,
    None where nobody says; whether one may access the other's memory. ``source`` of the bandwidth: ``fleet``; ``slot``,
    the slower card's PCI Express slot; or ``driver``, which only knows who is whose peer."""

    ends: tuple[int, int]
    bandwidth_gb_s: float | None
    latency_us: float | None
    peer: bool
    source: str


@dataclass(frozen=True)
class Inventory:
    """The devices of a fleet in a program's order and what is between each two. ``note`` says why it is these, where
    nobody named them; ``driver_version`` and the path ``library`` are those of NVIDIA's driver."""

    fleet: Fleet
    devices: tuple[Device, ...]
    connections: tuple[Connection, ...]
    note: str | None = None
    driver_version: tuple[int, int] | None = None
    library: str = ""

    @property
    def real(self) -> bool:
        return self.driver_version is not None


def take(fleet: str | None, home: int) -> Inventory:
    """The devices of a fleet's text; without one those of NVIDIA's driver, else the software ones of the environment.
    Raises :class:`TesseraError`: a fleet that cannot be, real GPUs that are not there."""
    wanted = parse_fleet(fleet) if fleet is not None else None
    if wanted is not None and not wanted.real:
        return _software(wanted.rotated(home), None)
    try:
        machine = find()
        reason = "no driver of NVIDIA is found"
    except DriverTrouble as trouble:
        if wanted is not None:
            raise
        machine, reason = None, str(trouble)
    if machine is not None:
        everything = wanted or parse_fleet(",".join(f"cuda:{number}" for number in range(len(machine.gpus))))
        return _real(everything.rotated(home), machine)
    if wanted is not None:
        raise NoDriver(f"fleet {wanted.text!r} has real GPUs, and {reason}")
    named = os.environ.get(DEVICES.name)
    origin = f"that {DEVICES.name} names" if named else "that programs get where nobody names others"
    return _software(parse_fleet(named or DEFAULT).rotated(home), f"{reason}: these are the software GPUs {origin}")


def _software(fleet: Fleet, note: str | None) -> Inventory:
    connections = []
    for pair in _pairs(fleet):
        link = fleet.link(*pair)
        source = "fleet" if pair in fleet.links else "slot"
        connections.append(Connection(pair, link.bandwidth_gb_s, link.latency_us, link.peer, source))
    return Inventory(fleet, tuple([Device(gpu) for gpu in fleet.gpus]), tuple(connections), note)


def _real(fleet: Fleet, machine: RealMachine) -> Inventory:
    """What a fleet says of bandwidths is taken from it; who is whose peer the driver knows."""
    devices = tuple([_real_device(gpu, machine) for gpu in fleet.gpus])
    connections = []
    for first, second in _pairs(fleet):
        one, other = fleet.gpus[first].ordinal, fleet.gpus[second].ordinal
        peer = one == other or other in machine.gpus[one or 0].peers
        link = fleet.links.get((first, second))
        bandwidth, latency = (link.bandwidth_gb_s, link.latency_us) if link else (None, None)
        connections.append(Connection((first, second), bandwidth, latency, peer, "fleet" if link else "driver"))
    return Inventory(fleet, devices, tuple(connections), None, machine.version, machine.library)


def _real_device(gpu: Gpu, machine: RealMachine) -> Device:
    if gpu.ordinal is None or gpu.ordinal >= len(machine.gpus):
        raise FleetError(f"GPU {gpu.name}: this machine has cuda:0 to cuda:{len(machine.gpus) - 1}")
    found = machine.gpus[gpu.ordinal]
    if gpu.memory is not None and gpu.memory > found.memory:
        raise FleetError(f"GPU {gpu.name}: {gpu.memory / GIB:g} GiB; it has {found.memory / GIB:g}")
    return Device(gpu, found)


def _pairs(fleet: Fleet) -> list[tuple[int, int]]:
    count = len(fleet.gpus)
    return [(first, second) for first in range(count) for second in range(first + 1, count)]


def _card(gpu: Gpu) -> Card:
    assert gpu.card is not None, "a software GPU has one"
    return gpu.card
