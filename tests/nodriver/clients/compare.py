"""Differences between what two devices, or a device and numpy, made of the same tensor programs."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

Found = Mapping[str, np.ndarray]

TOLERANCE = {
    "float64": 1e-14, "float32": 1e-6, "float16": 2e-3, "__bf16": 1.6e-2, "float8_e4m3": 0.13, "float8_e5m2": 0.26,
}  # fmt: skip
"""What one operation may differ by, in relation to the result and to the greatest of its array's: two to eight of the
type's steps, since approximate functions and the order of sums differ between devices. A case's ``loose`` multiplies
it."""


def errors(found: Found) -> dict[str, str]:
    """Cases that raised, with the end of what they raised."""
    return {key.removesuffix("/error"): str(value) for key, value in found.items() if key.endswith("/error")}


def names(found: Found) -> set[str]:
    """Cases that have results."""
    return {key.removesuffix("/loose") for key in found if key.endswith("/loose")}


def differences(found: Found, other: Found) -> list[str]:
    """What of the results of ``found`` is not the same in ``other`` within the tolerances, for cases that both have."""
    said = []
    common = names(found) & names(other)
    for key, value in found.items():
        name, _, rest = key.partition("/")
        if name not in common or rest == "loose" or rest.endswith("/numpy"):
            continue
        kind = rest.partition("/")[2] or value.dtype.name
        said += compared(key, value, other[key], TOLERANCE.get(kind, 0.0) * float(found[f"{name}/loose"]))
    return said


def from_numpy(found: Found) -> list[str]:
    """What of the results of ``found`` is not what numpy made of the same numbers, within the tolerances."""
    said = []
    for key, expected in found.items():
        if key.endswith("/numpy"):
            place = key.removesuffix("/numpy")
            value = found.get(place)
            if value is None:
                said.append(f"{place}: no result of the type that numpy has")
                continue
            loose = float(found[f"{place.partition('/')[0]}/loose"])
            said += compared(f"{place} and numpy", value, expected, TOLERANCE.get(value.dtype.name, 0.0) * loose)
    return said


def compared(what: str, value: np.ndarray, expected: np.ndarray, tolerance: float) -> list[str]:
    if value.shape != expected.shape:
        return [f"{what}: shape {value.shape}, expected {expected.shape}"]
    if tolerance == 0:
        wrong = value != expected
    else:
        value, expected = value.astype(np.float64), expected.astype(np.float64)
        finite = np.abs(expected[np.isfinite(expected)])
        allowed = tolerance * (np.abs(expected) + (finite.max() if finite.size else 0.0))
        with np.errstate(invalid="ignore"):
            near = np.abs(value - expected) <= allowed
        wrong = ~(near | (value == expected) | (np.isnan(value) & np.isnan(expected)))
    if not wrong.any():
        return []
    first = tuple(int(i) for i in np.argwhere(wrong)[0])
    return [f"{what}: {int(wrong.sum())} of {wrong.size} differ, at {first}: {value[first]}, not {expected[first]}"]
