"""Runs tensor programs on tinygrad's default device and writes what they give as .npz.

    tensors.py RESULTS all|first|second|recorded|unknown

``first`` and ``second`` are thirds of them, both with those for tensor cores; ``recorded`` are those that are repeated,
``unknown`` those that nothing but another device can be compared with. Keys are ``NAME/NUMBER``, and
``NAME/NUMBER/numpy`` for what numpy makes of the same numbers; types that numpy lacks are written as f32 under
``NAME/NUMBER/TYPE``. ``NAME/loose`` is the case's factor; one that raises has a text under ``NAME/error``.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable

import numpy as np
import tensor_cases_jit  # noqa: F401 - adds cases
from tensor_cases import CASES, Case
from tinygrad import Tensor

CHOICES: dict[str, Callable[[int, Case], bool]] = {
    "all": lambda number, one: True,
    "first": lambda number, one: number % 3 == 0 or "cores" in one.name,
    "second": lambda number, one: number % 3 == 1 or "cores" in one.name,
    "unknown": lambda number, one: one.expected is None,
    "recorded": lambda number, one: one.name.startswith("recorded"),
}


def results(one: Case) -> dict[str, np.ndarray]:
    found: dict[str, np.ndarray] = {}
    try:
        tensors = one.make()
        Tensor.realize(*tensors)
        for number, tensor in enumerate(tensors):
            wide = tensor.dtype.fmt is None
            key = f"{one.name}/{number}" + (f"/{tensor.dtype.name}" if wide else "")
            found[key] = (tensor.float() if wide else tensor).numpy()
        if one.expected is not None:
            expected = one.expected()
            assert len(expected) == len(tensors), "a case and its arrays differ in number"
            found |= {f"{one.name}/{number}/numpy": np.asarray(array) for number, array in enumerate(expected)}
        found[f"{one.name}/loose"] = np.asarray(one.loose)
    except Exception:
        found[f"{one.name}/error"] = np.asarray(traceback.format_exc()[-1500:])
    return found


def main() -> None:
    path, choice = sys.argv[1:]
    found: dict[str, np.ndarray] = {}
    for number, one in enumerate(CASES.values()):
        if CHOICES[choice](number, one):
            found |= results(one)
    np.savez(path, **found)


if __name__ == "__main__":
    main()
