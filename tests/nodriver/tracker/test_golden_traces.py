"""What the tracker says of the kept traces, compared with texts in ``tests/fixtures/tracker``.

After an intended change: ``python -m tests.nodriver.tracker.golden`` writes the texts anew; read the difference before
keeping it.
"""

from __future__ import annotations

import re

import pytest

from tests.nodriver.tracker.golden import BY_RULES, PLACEMENTS, TEXTS, operations, stems, texts


def test_the_tracker_says_what_it_said() -> None:
    found = texts()
    assert {path.name for path in TEXTS.glob("*")} == {path.name for path in found}
    for path, text in found.items():
        assert text == path.read_text(encoding="utf-8"), f"{path.name}: see above"


@pytest.mark.parametrize("stem", stems())
def test_texts_are_worth_comparing(stem: str) -> None:
    """They have launches with their bytes, dependencies, and jobs under both placements, and nothing that a new
    recording of the same program would change."""
    said = operations(stem)
    assert " launch on " in said and "  MUSTW a" in said and "  RAW of " in said
    assert not re.search(r"0x[0-9a-f]{4,}|\d{10,}", said)
    for kind in ("rules", "file"):
        decided = (TEXTS / f"{stem}.{kind}.txt").read_text(encoding="utf-8")
        assert re.search(r" (sent to|mirrored on) GPU \d.*; gather ", decided)
    assert stem in BY_RULES and (PLACEMENTS / f"{stem}.json").exists()
