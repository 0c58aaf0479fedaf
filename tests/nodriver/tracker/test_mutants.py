"""Every rule of the tracker is held by a test that fails without it: trackers that are wrong are found out."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from orchestrator.session.placements.text import parse_placement
from orchestrator.session.tracker import Tracker
from tests.generated import random_program
from tests.material import ROOT
from tests.nodriver.tracker.all_scenes import SCENES
from tests.nodriver.tracker.altered import altered, mutated, source
from tests.nodriver.tracker.mutants import MUTANTS, Mutant
from tests.nodriver.tracker.proof import ROOM, Way, bare, placed
from tests.nodriver.tracker.test_dependencies import check_edges, check_orders
from tests.nodriver.tracker.work import random_operations

KNOWN: dict[str, Any] = {}
"""Scenes, and what comes of them at home."""
PROGRAMS, READS = 1000, ("R", "R", "R", "R", "MUSTW")


def dependencies_wrong(check: str, made: Any) -> bool:
    """Whether a random program shows it."""
    rng = random.Random(check)
    for _ in range(PROGRAMS):
        try:
            if check == "edges":
                check_edges(random_operations(rng), made)
            elif check == "orders":
                check_orders(random_operations(rng), rng.randrange(1000), rng.random() < 0.5, made)
            else:
                check_orders(random_operations(rng, READS), rng.randrange(1000), False, partial(made, 2))
        except AssertionError:
            return True
    return False


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: f"{mutant.rule} {mutant.name}")
def test_a_mutant_is_found_out(mutant: Mutant, record_property: Callable[[str, object], None]) -> None:
    text = mutated(mutant.name, mutant.module, mutant.old, mutant.new)
    if mutant.module == "dependencies":
        assert dependencies_wrong(mutant.scene, altered("dependencies", text, "dependencies").Dependencies)
        return
    wrong = SCENES[mutant.scene].wrong(altered(mutant.module, text).Tracker, KNOWN)
    record_property("shown by", wrong[0] if wrong else "nothing")
    assert wrong, f"mutant {mutant.name!r} survives scene {mutant.scene}"


@pytest.fixture(scope="module")
def same() -> Any:
    """The tracker loaded anew with its own text."""
    return altered("tracker", source("tracker").read_text(encoding="utf-8")).Tracker


def test_a_tracker_loaded_anew_is_one_of_its_own(same: Any) -> None:
    """It has no module but its own, and does as the other one, also with steps that it knows."""
    program = random_program(18, 60, {"loops", "tables"}).records
    way = Way((ROOM,) * 3, lambda: parse_placement("*=1", 3))
    runs = [placed(program, way, tracker=tracker) for tracker in (same, Tracker)]
    assert runs[0].known and runs[0].seen() == runs[1].seen()
    assert [run.outcome.differences(bare(program, way)) for run in runs] == [[], []]


@pytest.mark.parametrize("scene", sorted({mutant.scene for mutant in MUTANTS if mutant.module != "dependencies"}))
def test_what_shows_a_mutant_is_right_without_it(scene: str, same: Any) -> None:
    assert same is not Tracker
    assert SCENES[scene].wrong(same, KNOWN) == []


def test_every_rule_has_mutants() -> None:
    page = (ROOT / "docs" / "tracker.md").read_text(encoding="utf-8")
    rules = {int(number) for number in re.findall(r"^(\d+)\. \*\*", page, re.MULTILINE)}
    count = Counter(mutant.rule for mutant in MUTANTS)
    assert rules and set(count) == rules | {0}
    assert all(number >= 3 for number in count.values()), count
    names = Counter((mutant.rule, mutant.name) for mutant in MUTANTS)
    assert max(names.values()) == 1
