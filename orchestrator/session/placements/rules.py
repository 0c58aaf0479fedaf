"""A placement by the names of kernels."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

from orchestrator.session.operations import Dimensions
from orchestrator.session.placement import named
from orchestrator.session.step_classes import StepClass
from orchestrator.session.steps import LaunchKey


class Rule(NamedTuple):
    """Launches of kernels whose names match ``pattern`` (``*``, ``?``, ``[...]``), of that grid only if there is one,
    run on ``gpus``."""

    pattern: str
    grid: Dimensions | None
    gpus: tuple[int, ...]


class Rules:
    """The first rule that a launch matches holds; a launch that matches none stays at home."""

    ambiguous = 0

    def __init__(self, rules: Sequence[Rule]) -> None:
        self.rules = tuple(rules)

    def devices(self, launch: LaunchKey, home: int) -> tuple[int, ...]:
        for rule in self.rules:
            if (rule.grid is None or rule.grid == launch.grid) and fnmatchcase(launch.kernel, rule.pattern):
                return named(rule.gpus, home)
        return ()

    def token(self) -> Hashable:
        return 0

    def step_over(self, step: StepClass | None) -> None:
        pass
