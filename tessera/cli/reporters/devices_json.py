"""``tessera devices --json``: one object, described by ``docs/schema/devices.json``."""

from __future__ import annotations

import json
from typing import Any, TextIO

from tessera.cards import FIGURES, SOURCES, Card
from tessera.cli.inventory import Connection, Device, Inventory

SCHEMA = "tessera.devices"
VERSION = 1

Json = dict[str, Any]


def write(found: Inventory, out: TextIO) -> None:
    """Write it as one object, on several lines."""
    json.dump(document(found), out, indent=1, ensure_ascii=False)
    out.write("\n")


def document(found: Inventory) -> Json:
    """The whole output as plain data."""
    version = found.driver_version
    return {
        "schema": SCHEMA,
        "version": VERSION,
        "kind": "real" if found.real else "software",
        "note": found.note,
        "driver_version": None if version is None else f"{version[0]}.{version[1]}",
        "devices": [device_object(device) for device in found.devices],
        "links": [link_object(connection) for connection in found.connections],
        "sources": SOURCES,
    }


def device_object(device: Device) -> Json:
    major, minor = device.capability
    return {
        "name": device.gpu.name,
        "ordinal": device.gpu.ordinal,
        "full_name": device.full_name,
        "capability": f"{major}.{minor}",
        "sms": device.sms,
        "memory": device.memory,
        "price_usd_h": device.gpu.price,
        "card": card_object(device.gpu.card) if device.gpu.card else None,
    }


def card_object(card: Card) -> Json:
    """What the table has of a card; each figure with the letter of its source."""
    figures = {name: card.figures[name] for name in FIGURES if name in card.figures}
    return {
        "name": card.name,
        "memory": card.memory,
        "pcie_generation": card.pcie_generation,
        "host_gb_s": card.host_gb_s,
        "figures": {name: {"value": figure.value, "source": figure.source} for name, figure in figures.items()},
    }


def link_object(connection: Connection) -> Json:
    return {
        "devices": list(connection.ends),
        "bandwidth_gb_s": connection.bandwidth_gb_s,
        "latency_us": connection.latency_us,
        "peer": connection.peer,
        "source": connection.source,
    }
