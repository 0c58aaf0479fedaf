"""Placements in JSON files, as ``docs/placement.md`` and ``docs/schema/placement.json`` describe them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, TypeAlias

from orchestrator.session.steps import SIGNATURE_BYTES
from tessera.errors import TesseraError

VERSION = 1
ROUNDING = 1e-6
"""By so much the sum of shares may differ from 1."""


class PlacementError(TesseraError):
    """A placement that cannot be read, or that is none: what is wrong, and where."""


class Placing(NamedTuple):
    """Where a launch of a step runs. ``kernel``: what it has to be the launch of."""

    kernel: str
    gpus: tuple[int, ...]


class Mixed(NamedTuple):
    """A placement for the ``share`` of the steps of a class: launches by their places in the step, from 0; those that
    are not named stay at home."""

    share: float
    launches: Mapping[int, Placing]


Mixtures: TypeAlias = Mapping[str, tuple[Mixed, ...]]
"""By the signatures of step classes."""


def read_mixtures(path: Path, gpus: int) -> Mixtures:
    """What a file says, for a fleet of so many GPUs. Raises :class:`PlacementError`."""
    where = f"placement file {path}"
    try:
        return mixtures_of(json.loads(path.read_text(encoding="utf-8")), gpus, where)
    except OSError as error:
        raise PlacementError(f"{where}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise PlacementError(f"{where} is not JSON: {error}") from None


def mixtures_of(document: object, gpus: int, where: str) -> Mixtures:
    """The same of what has been read already; ``where`` stands before what is wrong with it."""
    top = _Part(document, where)
    top.object("version", "step_classes")
    top.member("version").integer(VERSION, VERSION, f"must be {VERSION}")
    found: dict[str, tuple[Mixed, ...]] = {}
    for part in top.member("step_classes").elements():
        part.object("signature", "mixture")
        signature = part.member("signature").text()
        if not re.fullmatch(f"[0-9a-f]{{{2 * SIGNATURE_BYTES}}}", signature):
            part.member("signature").fail(f"must be {2 * SIGNATURE_BYTES} hexadecimal digits in lower case")
        if signature in found:
            part.member("signature").fail("stands there twice")
        mixture = part.member("mixture")
        found[signature] = tuple([_mixed(element, gpus) for element in mixture.elements()])
        total = sum(mixed.share for mixed in found[signature])
        if abs(total - 1) > ROUNDING:
            raise PlacementError(f"{mixture.where}: the shares add up to {total:g}, and must to 1")
    return found


def _mixed(part: _Part, gpus: int) -> Mixed:
    part.object("share", "launches")
    share = part.member("share")
    if isinstance(share.value, bool) or not isinstance(share.value, int | float) or not 0 < share.value <= 1:
        share.fail("must be a number above 0 and up to 1")
    launches: dict[int, Placing] = {}
    for launch in part.member("launches").elements():
        launch.object("index", "kernel", "devices")
        index = launch.member("index").integer(0, None, "must be the place of a launch in its step, from 0")
        if index in launches:
            launch.member("index").fail("stands there twice")
        devices = launch.member("devices")
        found = tuple([gpu.integer(0, gpus - 1, f"must be a GPU of the fleet, 0 to {gpus - 1}")
                       for gpu in devices.elements()])
        if not found or len(set(found)) < len(found):
            devices.fail("must name at least one GPU, and none twice")
        launches[index] = Placing(launch.member("kernel").text(), found)
    return Mixed(float(share.value), launches)


class _Part:
    """A value of the document, and where it stands."""

    def __init__(self, value: Any, where: str) -> None:
        self.value, self.where = value, where

    def fail(self, wanted: str) -> NoReturn:
        said = json.dumps(self.value)
        raise PlacementError(f"{self.where} is {said if len(said) < 80 else said[:76] + ' ...'}; it {wanted}")

    def object(self, *keys: str) -> None:
        """It has to be an object with these members and no others."""
        if not isinstance(self.value, dict):
            self.fail(f"must be an object with {', '.join(keys)}")
        for key in keys:
            if key not in self.value:
                raise PlacementError(f"{self.where}: {key} is missing")
        for key in self.value:
            if key not in keys:
                raise PlacementError(f"{self.where}: {key!r} is not known; there are {', '.join(keys)}")

    def member(self, key: str) -> _Part:
        return _Part(self.value[key], f"{self.where}, {key}")

    def elements(self) -> list[_Part]:
        if not isinstance(self.value, list):
            self.fail("must be an array")
        return [_Part(value, f"{self.where}[{number}]") for number, value in enumerate(self.value)]

    def integer(self, least: int, most: int | None, wanted: str) -> int:
        value = self.value
        if type(value) is not int or value < least or (most is not None and value > most):
            self.fail(wanted)
        return int(value)

    def text(self) -> str:
        if not isinstance(self.value, str):
            self.fail("must be a text")
        return self.value
