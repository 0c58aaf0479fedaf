"""What is looked at before a step is taken for known, and what is done then, is held by tests that fail without it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.nodriver.tracker import repeats
from tests.nodriver.tracker import test_recognition as first
from tests.nodriver.tracker import test_recognition_things as things
from tests.nodriver.tracker.altered import altered, mutated, source
from tests.nodriver.tracker.mutants_known import GUARDS, KnownMutant

MUTANTS = [pytest.param(mutant, id=f"{guard}: {mutant.name}") for guard, some in GUARDS.items() for mutant in some]
SHOWN = {str(mutant.shown): mutant.shown for some in GUARDS.values() for mutant in some}
"""What shows some of them, once."""


def instead(patch: pytest.MonkeyPatch, module: str, text: str) -> None:
    """The tests' trackers, or their placements, are made with ``text`` for what ``module`` says."""
    if module.startswith("placements."):
        made: Any = altered(module, text, module).FilePlacement
        for tests in (first, things):
            patch.setattr(tests, "FilePlacement", made)
    else:
        patch.setattr(repeats, "Tracker", altered(module, text).Tracker)


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_mutant_is_found_out(mutant: KnownMutant, monkeypatch: pytest.MonkeyPatch) -> None:
    instead(monkeypatch, mutant.module, mutated(*mutant[:-1]))
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        mutant.shown()


@pytest.mark.parametrize("module", ["tracker", "placements.followed"])
def test_what_shows_a_mutant_is_right_without_it(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    instead(monkeypatch, module, source(module).read_text(encoding="utf-8"))
    for shown in SHOWN.values():
        shown()
