"""Where launches are to run."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Protocol

from orchestrator.session.step_classes import StepClass
from orchestrator.session.steps import LaunchKey


class Placement(Protocol):
    """One client's: asked for every launch in the order of the records, for those of a graph one by one, as
    :class:`orchestrator.session.step_classes.StepClass` has them. ``ambiguous`` counts the launches that stayed at home
    since it is not known of which class the step is."""

    ambiguous: int

    def devices(self, launch: LaunchKey, home: int) -> tuple[int, ...]:
        """GPUs by their numbers in the fleet. Empty, or ``(home,)``: where it was launched; ``(d,)``: sent to d;
        ``(home, d, ...)``: at home and mirrored on d."""

    def token(self) -> Hashable:
        """Asked right behind :meth:`step_over`, before :meth:`devices`: for the same launches it gives the same
        answers up to the next :meth:`step_over` whenever the token is the same. None: nobody can say."""

    def step_over(self, step: StepClass | None) -> None:
        """The program has waited: what is launched next begins a step. ``step``: of which class the one was that is
        over, itself counted; None if nothing was launched, or too much for a class."""


class Home:
    """Everything stays where it was launched."""

    ambiguous = 0

    def devices(self, launch: LaunchKey, home: int) -> tuple[int, ...]:
        return ()

    def token(self) -> Hashable:
        return 0

    def step_over(self, step: StepClass | None) -> None:
        pass


def named(gpus: tuple[int, ...], home: int) -> tuple[int, ...]:
    """What :meth:`Placement.devices` says for GPUs that somebody has named without knowing the launch's home: one gets
    the launch sent, several have it mirrored, and then it runs at home as well."""
    if len(gpus) == 1:
        return () if gpus[0] == home else gpus
    others = tuple([gpu for gpu in gpus if gpu != home])
    return (home, *others) if others else ()
