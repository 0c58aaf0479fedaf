"""Fleets: which GPUs a machine has, and what is between them.

``A100-80G,L40S`` are software GPUs, ``cuda:0,cuda:1`` real ones. More can be said of them and of what is between them:
``A100-80G:name=big:memory_gib=4,L40S;from=big:to=L40S:bandwidth_gb_s=23.06:peer=true``. ``@file.toml`` has the same::

    [[gpu]]
    name = "big"             # what links and reports call it; else the card's name, numbered where there are several
    card = "A100-80G"        # or "cuda:0"
    memory_gib = 4           # less than the card has, for a test; else all of it
    price_usd_h = 1.19

    [[link]]
    from = "big"
    to = "small"
    bandwidth_gb_s = 23.06
    latency_us = 10
    peer = false             # whether one may access the other's memory; else it goes through the host

A fleet has at least one GPU, and software and real ones are never mixed. ``softgpu/driver/fleet.c`` reads the text of a
software fleet by the same rules; files are read only here.
"""

from __future__ import annotations

import os
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tessera.cards import GIB, Card, CardError, card_named
from tessera.errors import TesseraError

DEFAULT = "A100-80G,L40S"
"""The software fleet where nobody names one; the driver has the same."""
MOST_GPUS = 64
LONGEST_NAME = 63
"""Bytes."""
_MIB = 1 << 20
_REAL = re.compile(r"cuda:(\d{1,3})")
_GPU_KEYS = {"name", "card", "memory_gib", "price_usd_h"}
_LINK_KEYS = {"from", "to", "bandwidth_gb_s", "latency_us", "peer"}
_NAME = re.compile(r"[^,;:=\x00-\x1f\x7f]+")
_NUMBER = re.compile(r"[0-9.eE+-]+")
_NUMBERS = {"memory_gib", "price_usd_h", "bandwidth_gb_s", "latency_us"}
_TRUTHS = {"true": True, "false": False}
_SPACES = " \t\n\r\v\f"


class FleetError(TesseraError):
    """A fleet that cannot be: what is wrong, where, and what would be right."""


@dataclass(frozen=True)
class Gpu:
    """A GPU. ``card`` is None for a real one, whose number is ``ordinal``. ``memory`` in bytes, whole MiB, None for all
    that a real one has; ``price`` in US dollars an hour."""

    name: str
    card: Card | None
    ordinal: int | None = None
    memory: int | None = None
    price: float | None = None


@dataclass(frozen=True)
class Link:
    """What is between two GPUs, in both directions: bandwidth in 10^9 bytes a second, latency in microseconds."""

    bandwidth_gb_s: float
    latency_us: float | None
    peer: bool


@dataclass(frozen=True)
class Fleet:
    """GPUs in their order; ``links`` by pairs of indices, the lower first, as far as the fleet says them."""

    gpus: tuple[Gpu, ...]
    links: Mapping[tuple[int, int], Link]

    @property
    def real(self) -> bool:
        return self.gpus[0].card is None

    def rotated(self, home: int) -> Fleet:
        """The same GPUs, beginning with number ``home``, as a program sees them whose home that is."""
        count = len(self.gpus)
        if not 0 <= home < count:
            raise FleetError(f"home {home}: the fleet has GPUs 0 to {count - 1}")
        order = [(home + k) % count for k in range(count)]
        place = {old: new for new, old in enumerate(order)}
        links = {_pair(place[a], place[b]): link for (a, b), link in self.links.items()}
        return Fleet(tuple([self.gpus[old] for old in order]), links)

    def link(self, a: int, b: int) -> Link:
        """What is between two software GPUs: what the fleet says, else through the host, at the slower one's pace."""
        known = self.links.get(_pair(a, b))
        if known is not None:
            return known
        ends = [self.gpus[a].card, self.gpus[b].card]
        return Link(min(card.host_gb_s for card in ends if card is not None), None, False)

    @property
    def text(self) -> str:
        """The fleet in one line, from which :func:`parse_fleet` makes the same."""
        usual = _numbered(tuple([replace(gpu, name=_usual_name(gpu)) for gpu in self.gpus]), set(range(len(self.gpus))))
        named = [gpu.name for gpu in usual] != [gpu.name for gpu in self.gpus]
        gpus = [_gpu_text(gpu, named) for gpu in self.gpus]
        links = [_link_text(self.gpus[a].name, self.gpus[b].name, link) for (a, b), link in sorted(self.links.items())]
        return ";".join([",".join(gpus), *links])


def _usual_name(gpu: Gpu) -> str:
    return gpu.card.name if gpu.card is not None else f"cuda:{gpu.ordinal}"


def _gpu_text(gpu: Gpu, named: bool) -> str:
    said = _usual_name(gpu)
    if named:
        said += f":name={gpu.name}"
    if gpu.memory is not None and (gpu.card is None or gpu.memory != gpu.card.memory):
        said += f":memory_gib={_decimal(gpu.memory / GIB)}"
    return said if gpu.price is None else f"{said}:price_usd_h={_decimal(gpu.price)}"


def _link_text(begin: str, end: str, link: Link) -> str:
    said = f"from={begin}:to={end}:bandwidth_gb_s={_decimal(link.bandwidth_gb_s)}"
    if link.latency_us is not None:
        said += f":latency_us={_decimal(link.latency_us)}"
    return f"{said}:peer=true" if link.peer else said


def _decimal(number: float) -> str:
    """The shortest text that is read as this number."""
    return repr(number).removesuffix(".0")


def _pair(a: int, b: int) -> tuple[int, int]:
    return (a, b) if a < b else (b, a)


def parse_fleet(text: str, folder: Path | None = None) -> Fleet:
    """A fleet from its text; files are looked for in ``folder``. Raises :class:`FleetError`."""
    text = text.strip(_SPACES)
    if text.startswith("@"):
        return _from_file(Path(folder or ".", text[1:]))
    where = f"fleet {text!r}"
    gpus, *links = text.split(";")
    return _fleet([_gpu_entry(said, f"{where}, GPU {number}") for number, said in enumerate(gpus.split(","))],
                  [_entry(said.split(":"), _LINK_KEYS, f"{where}, link {number}") for number, said in enumerate(links)],
                  where)


def _gpu_entry(said: str, where: str) -> dict[str, Any]:
    """A GPU in one line: its card, and behind colons what else is said; as it would stand in a file."""
    card, *more = said.split(":")
    if card.strip(_SPACES) == "cuda" and more:
        card = f"cuda:{more.pop(0)}"
    return {"card": card.strip(_SPACES)} | _entry(more, _GPU_KEYS - {"card"}, where)


def _entry(words: list[str], known: set[str], where: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for word in words:
        key, equals, value = [part.strip(_SPACES) for part in word.partition("=")]
        if not equals or key in found:
            raise FleetError(f"{where}: {word!r} is no KEY=VALUE, or there twice; keys are {', '.join(sorted(known))}")
        _check_keys({key: value}, known, where)
        found[key] = _value(key, value)
    return found


def _value(key: str, text: str) -> object:
    """What a file would have there; a text where that is wrong."""
    if key in _NUMBERS and _NUMBER.fullmatch(text):
        try:
            return float(text)
        except ValueError:
            return text
    return _TRUTHS.get(text, text) if key == "peer" else text


def _from_file(path: Path) -> Fleet:
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise FleetError(f"fleet file {path}: {error.strerror}") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise FleetError(f"fleet file {path} is not TOML: {error}") from None
    where = f"fleet file {path}"
    _check_keys(table, {"gpu", "link"}, where)
    for key in ("gpu", "link"):
        if not isinstance(table.get(key, []), list) or not all(isinstance(e, dict) for e in table.get(key, [])):
            raise FleetError(f"{where}: {key} must stand in double brackets, [[{key}]], once for each")
    return _fleet(table.get("gpu", []), table.get("link", []), where)


def _check_keys(entry: Mapping[str, object], known: set[str], where: str) -> None:
    unknown = sorted(set(entry) - known)
    if unknown:
        raise FleetError(f"{where}: {unknown[0]!r} is not known; there are {', '.join(sorted(known))}")


def _fleet(entries: list[dict[str, Any]], links: list[dict[str, Any]], where: str) -> Fleet:
    if not 0 < len(entries) <= MOST_GPUS:
        raise FleetError(f"{where}: {len(entries)} GPUs; there must be 1 to {MOST_GPUS}")
    made = tuple([_gpu(entry, f"{where}, GPU {number}") for number, entry in enumerate(entries)])
    gpus = _numbered(made, {number for number, entry in enumerate(entries) if "name" not in entry})
    if len({gpu.card is None for gpu in gpus}) > 1:
        raise FleetError(f"{where}: software and real GPUs cannot be mixed")
    names = [gpu.name for gpu in gpus]
    for name, count in Counter(names).items():
        if count > 1:
            raise FleetError(f"{where}: {count} GPUs are named {name!r}")
    found: dict[tuple[int, int], Link] = {}
    for number, entry in enumerate(links):
        pair, link = _link(entry, names, f"{where}, link {number}")
        if pair in found:
            raise FleetError(f"{where}, link {number}: {names[pair[0]]} and {names[pair[1]]} have one already")
        found[pair] = link
    return Fleet(gpus, found)


def _numbered(gpus: tuple[Gpu, ...], unnamed: set[int]) -> tuple[Gpu, ...]:
    """GPUs that bear their card's name numbered from 0, where several do."""
    counts = Counter(gpu.name for number, gpu in enumerate(gpus) if number in unnamed)
    seen: Counter[str] = Counter()
    found = []
    for number, gpu in enumerate(gpus):
        if number in unnamed and counts[gpu.name] > 1:
            seen[gpu.name] += 1
            gpu = replace(gpu, name=f"{gpu.name}-{seen[gpu.name] - 1}")
        found.append(gpu)
    return tuple(found)


def _gpu(entry: dict[str, Any], where: str) -> Gpu:
    """One GPU, named for its card where it has no name."""
    _check_keys(entry, _GPU_KEYS, where)
    named = entry.get("card")
    if not isinstance(named, str) or not named:
        raise FleetError(f"{where}: no card is named, as in A100-80G,L40S or card = \"A100-80G\"")
    name = entry.get("name")
    if name is not None:
        _check_name(name, where)
    memory = _number(entry, "memory_gib", where)
    size = None if memory is None else int(memory * (GIB // _MIB)) * _MIB
    if size == 0:
        raise FleetError(f"{where}: memory_gib = {memory:g}: there must be a MiB at least")
    price = _number(entry, "price_usd_h", where)
    real = _REAL.fullmatch(named)
    if real:
        return Gpu(name or named, None, int(real[1]), size, price)
    if named.startswith("cuda"):
        raise FleetError(f"{where}: {named!r} is no real GPU; these are named cuda:0, cuda:1, ...")
    try:
        card = card_named(named)
    except CardError as error:
        raise FleetError(f"{where}: {error}") from None
    if size is not None and size > card.memory:
        raise FleetError(f"{where}: {memory:g} GiB; a {card.name} has {card.memory // GIB}")
    return Gpu(name or card.name, card, None, card.memory if size is None else size, price)


def _check_name(name: object, where: str) -> None:
    if not isinstance(name, str):
        raise FleetError(f"{where}: name must be a text")
    if not _NAME.fullmatch(name) or name != name.strip(_SPACES) or len(os.fsencode(name)) > LONGEST_NAME:
        raise FleetError(f"{where}: name = {name!r} must be 1 to {LONGEST_NAME} bytes without any of , ; : = in it")


def _link(entry: dict[str, Any], names: list[str], where: str) -> tuple[tuple[int, int], Link]:
    _check_keys(entry, _LINK_KEYS, where)
    ends = []
    for key in ("from", "to"):
        if entry.get(key) not in names:
            raise FleetError(f"{where}: {key} = {entry.get(key)!r}; the GPUs are named {', '.join(names)}")
        ends.append(names.index(entry[key]))
    if ends[0] == ends[1]:
        raise FleetError(f"{where}: it begins and ends at {entry['from']}")
    bandwidth = _number(entry, "bandwidth_gb_s", where)
    if bandwidth is None:
        raise FleetError(f"{where}: bandwidth_gb_s is missing")
    peer = entry.get("peer", False)
    if not isinstance(peer, bool):
        raise FleetError(f"{where}: peer must be true or false")
    return _pair(*ends), Link(bandwidth, _number(entry, "latency_us", where), peer)


def _number(entry: dict[str, Any], key: str, where: str) -> float | None:
    """A positive finite number, or None when it is not there."""
    value = entry.get(key)
    if value is None:
        return None
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not 0 < value <= sys.float_info.max:
        raise FleetError(f"{where}: {key} = {value!r} must be a number above 0")
    return float(value)
