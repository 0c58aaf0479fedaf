"""Independent numpy implementations of the kernels that have launches: what a kernel must leave in memory.

A reference is given the case's arguments by name (arrays as they were before the launch, scalars as numbers) and
returns arrays by argument name or by buffer. It knows the operator, not the program: no reference looks at PTX.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tests.launches.case import Buffer, LaunchCase, Packed, Pointer

Array = npt.NDArray[Any]
Expected = Mapping[str | Buffer, npt.ArrayLike]


class Inputs:
    """A case's arguments as attributes: arrays (copies), numbers, and packed structs as they are."""

    def __init__(self, case: LaunchCase) -> None:
        self.case = case
        self.grid, self.block = case.grid, case.block
        self.threads = case.block[0] * case.block[1] * case.block[2]
        self.blocks = case.grid[0] * case.grid[1] * case.grid[2]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name not in self.case.arguments:
            raise AttributeError(name)
        value = self.case.arguments[name]
        if isinstance(value, Pointer):
            value = value.buffer if value.buffer is not None else value
        if isinstance(value, Buffer):
            return value.data.copy() if isinstance(value.data, np.ndarray) else value.data
        if isinstance(value, Packed):
            return value
        return value.item()

    def variable(self, name: str) -> Array:
        """A module variable's contents before the launch."""
        value = self.case.globals[name]
        assert isinstance(value, np.ndarray)
        return value


@dataclass(frozen=True)
class Reference:
    """``compute`` and how near the kernel must come: exactly (NaNs alike, signs of zero ignored) or within bounds.

    ``unordered`` compares sorted contents. Buffers that the reference does not return must be unchanged, unless it is
    ``partial``.
    """

    compute: Callable[[Inputs], Expected]
    rtol: float = 0.0
    atol: float = 0.0
    unordered: bool = False
    partial: bool = False


REFERENCES: dict[str, Reference] = {}
"""By registry name."""


def references(stem: str) -> Callable[..., Callable[[Callable[[Any], Expected]], Callable[[Any], Expected]]]:
    """A decorator for the references of one PTX file; its options are the fields of :class:`Reference`."""

    def options(
        name: str = "", rtol: float = 0.0, atol: float = 0.0, unordered: bool = False, partial: bool = False
    ) -> Any:
        def register(compute: Callable[[Inputs], Expected]) -> Callable[[Inputs], Expected]:
            REFERENCES[f"{stem}:{name or compute.__name__}"] = Reference(compute, rtol, atol, unordered, partial)
            return compute

        return register

    return options


def compare(expected: npt.ArrayLike, found: Array, reference: Reference, where: str) -> None:
    """Asserts that a buffer holds what it must. bfloat16 buffers are compared as bits or given as floats."""
    wanted = np.asarray(expected)
    found = found.reshape(wanted.shape)
    if wanted.dtype.kind == "f" and found.dtype == np.uint16:
        found = from_bf16(found)
    if wanted.dtype.kind == "f" and found.dtype.kind in "ui":
        raise AssertionError(f"{where}: a reference of floats for a buffer of {found.dtype}")
    if reference.unordered:
        wanted, found = np.sort(wanted, axis=None), np.sort(found, axis=None)
    if reference.rtol or reference.atol:
        np.testing.assert_allclose(found, wanted, rtol=reference.rtol, atol=reference.atol, err_msg=where)
    else:
        np.testing.assert_array_equal(found, wanted, err_msg=where)


def from_bf16(bits: Array) -> Array:
    """bfloat16 bits as float32 values."""
    return (bits.astype(np.uint32) << 16).view(np.float32)


def to_bf16(values: npt.ArrayLike) -> Array:
    """Values rounded to the nearest bfloat16 (ties to even), as float32. Exact for inputs of at most 53 bits."""
    wide = np.asarray(values, np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        _, exponent = np.frexp(wide)
        step = np.ldexp(1.0, np.maximum(exponent - 8, -133))
        rounded = np.where(np.isfinite(wide), np.rint(wide / step) * step, wide)
        largest = np.float64(3.3895313892515355e38)
        rounded = np.where(np.isfinite(wide) & (np.abs(rounded) > largest), np.copysign(np.inf, wide), rounded)
        return rounded.astype(np.float32)


def to_f16(values: npt.ArrayLike) -> Array:
    """Rounded to the nearest float16; overflow to infinity without a warning."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(values).astype(np.float16)


def quiet(function: Callable[..., Any]) -> Callable[..., Any]:
    """Runs a function without numpy's floating-point warnings."""

    def run(*arguments: Any, **options: Any) -> Any:
        with np.errstate(all="ignore"):
            return function(*arguments, **options)

    run.__name__ = function.__name__
    return run
