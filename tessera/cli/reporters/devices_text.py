"""``tessera devices`` for people: a row for each device, a row for each two that are connected."""

from __future__ import annotations

from rich.console import ConsoleRenderable
from rich.table import Table
from rich.text import Text

from tessera.cards import GIB, SOURCES, Card
from tessera.cli.inventory import Connection, Device, Inventory
from tessera.cli.reporters import output

MEMORY = "memory, GiB"
PEAKS = {
    "tensor, TFLOP/s": "tensor_tflops", "f32, TFLOP/s": "fp32_tflops", "memory, GB/s": "bandwidth_gb_s",
    "L2, MiB": "l2_mib", "NVLink, GB/s": "nvlink_gb_s",
}  # fmt: skip
"""Headings and figures of a card that stand in a column each."""
MOST_CONNECTIONS = 28
"""Those of eight devices; the JSON output has all."""
THROUGH = {"slot": "through the host, at the slower slot's pace", "fleet": "as the fleet says"}


def write(found: Inventory) -> None:
    """Everything to standard output."""
    output.show(parts(found))


def parts(found: Inventory) -> list[ConsoleRenderable]:
    """The note, the devices, what is between them, and whose figures these are."""
    shown: list[ConsoleRenderable] = [Text(found.note)] if found.note else []
    if found.driver_version is not None:
        shown.append(Text(f"NVIDIA's driver for CUDA {found.driver_version[0]}.{found.driver_version[1]}"))
    shown.append(device_table(found))
    if found.connections:
        shown += [Text(), connection_table(found)]
    letters = {figure.source for d in found.devices if d.gpu.card for figure in d.gpu.card.figures.values()}
    if letters:
        listed = "; ".join(f"{letter} {SOURCES[letter]}" for letter in SOURCES if letter in letters)
        shown += [Text(), Text(f"Figures of the cards: {listed}.", "dim")]
    return shown


def device_table(found: Inventory) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    columns = ["", "name", "GPU", "capability", "SMs", MEMORY]
    columns += [] if found.real else [*PEAKS, "PCIe, GB/s"]
    columns += ["USD/h"] if any(device.gpu.price for device in found.devices) else []
    for column in columns:
        table.add_column(column, overflow="fold")
    for number, device in enumerate(found.devices):
        cells = {"": str(number), **device_cells(device)}
        table.add_row(*[Text(cells.get(column, "")) for column in columns])
    return table


def device_cells(device: Device) -> dict[str, str]:
    """What is said of a device, by heading."""
    major, minor = device.capability
    card, price = device.gpu.card, device.gpu.price
    return {
        "name": device.gpu.name, "GPU": device.full_name, "capability": f"{major}.{minor}",
        "SMs": sourced(card, "sms") if card else str(device.sms),
        MEMORY: f"{device.memory / GIB:.6g}" + (f" of {card.memory // GIB}" if limited(device) and card else ""),
        "USD/h": f"{price:g}" if price is not None else "",
        **({heading: sourced(card, name) for heading, name in PEAKS.items()} if card else {}),
        **({"PCIe, GB/s": f"{card.host_gb_s:g} ({card.pcie_generation}.0)"} if card else {}),
    }  # fmt: skip


def limited(device: Device) -> bool:
    """Whether the fleet gives a software GPU less memory than its card has."""
    return device.gpu.card is not None and device.memory < device.gpu.card.memory


def sourced(card: Card, name: str) -> str:
    """A figure and the letter of its source; nothing where the card has none."""
    figure = card.figures.get(name)
    return f"{figure.value:g} {figure.source}" if figure else ""


def connection_table(found: Inventory) -> Table:
    """All connections, unless there are many: then those that somebody says something of."""
    table = Table.grid(padding=(0, 2, 0, 0))
    shown = [c for c in found.connections if c.source != "slot" or len(found.connections) <= MOST_CONNECTIONS]
    for connection in shown:
        table.add_row(*[Text(cell) for cell in connection_cells(found, connection)])
    if len(shown) < len(found.connections):
        table.add_row(Text(f"{len(found.connections) - len(shown)} more"), "", "", "", Text(THROUGH["slot"]))
    return table


def connection_cells(found: Inventory, connection: Connection) -> list[str]:
    first, second = [found.devices[end].gpu.name for end in connection.ends]
    bandwidth = "" if connection.bandwidth_gb_s is None else f"{connection.bandwidth_gb_s:g} GB/s"
    latency = "" if connection.latency_us is None else f"{connection.latency_us:g} µs"
    access = "access to each other's memory" if connection.peer else "no access to each other's memory"
    return [f"{first} - {second}", bandwidth, latency, access, THROUGH.get(connection.source, "")]
