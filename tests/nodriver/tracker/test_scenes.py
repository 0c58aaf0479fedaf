"""Small programs about single rules of the tracker: the same bytes as on one GPU, and what is refused and why."""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator.session.tracker import Tracker
from tests.nodriver.tracker.all_scenes import SCENES


@pytest.mark.parametrize("name", sorted(SCENES))
def test_a_scene(name: str) -> None:
    known: dict[str, Any] = {}
    assert SCENES[name].wrong(Tracker, known) == []
