"""Programs of other clients on the software driver; every check of each."""

from __future__ import annotations

import json

import pytest

from tests.nodriver.clients import place

LEAST = {"cuda_bindings.py": 10, "cuda_core.py": 4, "numba_kernels.py": 12, "triton_kernels.py": 6}
"""Programs, and how many checks each has at least."""


@pytest.mark.parametrize("program", LEAST)
def test_checks(program: str) -> None:
    said = json.loads(place.run(program).splitlines()[-1])
    assert len(said) >= LEAST[program]
    wrong = {name: text for name, text in said.items() if text}
    assert not wrong, "\n".join(f"{name}: {text}" for name, text in wrong.items())
