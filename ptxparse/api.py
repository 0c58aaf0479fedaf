"""What other parts call: ``parse``, ``analyze``, ``evaluate``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import cast

from ptxparse.analysis import analyze_kernel
from ptxparse.cache import ProgramCache
from ptxparse.codec import ProgramFormatError, program_from_json, program_to_json
from ptxparse.errors import PtxError
from ptxparse.evaluation.allocations import Allocation, Allocations
from ptxparse.evaluation.counting import Amount
from ptxparse.evaluation.launch import Evaluation, Evaluator, Range
from ptxparse.model import Module
from ptxparse.parser import parse
from ptxparse.program import AccessProgram

Dimensions = tuple[int, int, int]


def analyze(module: Module) -> list[AccessProgram]:
    """The access program of every kernel of a module, in file order."""
    return [analyze_kernel(module, kernel) for kernel in module.entries]


def evaluate(
    program: AccessProgram,
    grid: Dimensions,
    block: Dimensions,
    params: bytes,
    allocations: Allocations | Iterable[tuple[object, int, int]],
    module_globals: Mapping[str, tuple[int, int]] | None = None,
    contents: Sequence[tuple[object, int, bytes]] | None = None,
    shared: int = 0,
) -> Evaluation:
    """The byte ranges that one launch may touch.

    ``grid`` and ``block`` in blocks and threads (x, y, z); ``params`` is the parameter block as ``parameter_layout``
    lays it out; ``allocations`` are (id, address, bytes), best given as :class:`Allocations`, whose identity lets
    equal launches be remembered. ``module_globals`` maps names of module variables to (address, bytes); variables not
    in it are reported under their own name. ``contents`` are (allocation id, offset, bytes) known to lie there: loads
    through such tables are evaluated exactly. ``shared`` is the launch's dynamic shared memory in bytes. Raises
    ``UsageError`` when ``params`` is too short.
    """
    evaluator = _evaluator(program)
    if not isinstance(allocations, Allocations):
        allocations = Allocations(allocations)
    return evaluator.evaluate(grid, block, params, allocations, module_globals, contents, shared)


def count(
    program: AccessProgram, grid: Dimensions, block: Dimensions, params: bytes, shared: int = 0
) -> dict[str, Amount]:
    """Operations by class and global bytes of one launch, all threads together; arguments as for :func:`evaluate`.

    Bytes are what the instructions ask for, so a byte read twice counts twice; the footprint is in the ranges.
    """
    return _evaluator(program).count(grid, block, params, shared)


def relevant_bytes(program: AccessProgram) -> tuple[tuple[int, int], ...]:
    """Parts [first, last) of the parameter block, in order, on which the byte ranges of a launch depend."""
    return _evaluator(program).relevant_bytes()


def _evaluator(program: AccessProgram) -> Evaluator:
    """The program's evaluator, kept with it: it lives as long as the program and is found without hashing."""
    found = program.__dict__.get("_evaluator")
    if found is None:
        found = program.__dict__["_evaluator"] = Evaluator(program)
    return cast(Evaluator, found)


__all__ = [
    "AccessProgram",
    "Allocation",
    "Allocations",
    "Amount",
    "Evaluation",
    "Evaluator",
    "Module",
    "ProgramCache",
    "ProgramFormatError",
    "PtxError",
    "Range",
    "analyze",
    "analyze_kernel",
    "count",
    "evaluate",
    "parse",
    "program_from_json",
    "program_to_json",
    "relevant_bytes",
]
