"""Where launches are to run."""

from __future__ import annotations

from typing import Protocol

from orchestrator.session.operations import Dimensions


class Placement(Protocol):
    """Asked for every launch in the order of the records."""

    def devices(self, kernel: str, grid: Dimensions, block: Dimensions, home: int) -> tuple[int, ...]:
        """GPUs by their numbers in the fleet. Empty, or ``(home,)``: where it was launched; ``(d,)``: sent to d;
        ``(home, d, ...)``: at home and mirrored on d."""

    def step_over(self) -> None:
        """The program has waited: what is launched next begins a step."""


class Home:
    """Everything stays where it was launched."""

    def devices(self, kernel: str, grid: Dimensions, block: Dimensions, home: int) -> tuple[int, ...]:
        return ()

    def step_over(self) -> None:
        pass
