"""SmolLM2-135M-Instruct in tinygrad on the software driver goes on as on tinygrad's CPU device; what its server answers
is a matter of ``test_shim.py``."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.nodriver.clients import llm

EXPECTED: dict[str, Any] = json.loads(llm.ANSWERS.read_text())
TIE = 1e-3
"""Two logits are tied when they differ by less than this share of the greater."""
TIES = 2


def tied(step: dict[str, float]) -> bool:
    return step["first"] - step["second"] < TIE * abs(step["first"])


def test_the_answers_are_those_of_these_questions() -> None:
    assert (EXPECTED["question"], EXPECTED["prompt"], len(EXPECTED["steps"])) == (llm.QUESTION, llm.PROMPT, llm.COUNT)
    assert len({step["token"] for step in EXPECTED["steps"]}) > 5


@pytest.mark.parametrize("device", ["CUDA"])
def test_greedy_tokens_are_those_of_the_cpu(device: str) -> None:
    expected = EXPECTED["steps"]
    found = llm.greedy(device, [step["token"] for step in expected])["steps"]
    steps = list(zip(found, expected, strict=True))
    different = [(mine, theirs) for mine, theirs in steps if mine["token"] != theirs["token"]]
    assert len(different) <= TIES
    assert all(tied(mine) and tied(theirs) for mine, theirs in different)
    assert all(abs(mine["first"] - theirs["first"]) < 5 * TIE * abs(theirs["first"]) for mine, theirs in steps)
