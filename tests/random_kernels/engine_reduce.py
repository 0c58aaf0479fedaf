"""Makes a module smaller for which engine and interpreter differ."""

from __future__ import annotations

from tessera.errors import TesseraError
from tests.random_kernels.engine_run import EngineCase, compare
from tests.random_kernels.reduce import _drop, _simplify, _without_declarations


def reduce(text: str, case: EngineCase, sort: str = "") -> str:
    """A smaller text that still differs in this launch, in a sentence that contains ``sort``.

    Races may come in, as barriers are left out too: look whether the result is still defined.
    """

    def failing(candidate: str) -> bool:
        try:
            sentence = compare(candidate, case).sentence
        except (TesseraError, ArithmeticError, LookupError, ValueError, AssertionError):
            return False
        return bool(sentence) and sort in sentence and (bool(sort) or "stops" not in sentence)

    lines = text.splitlines()
    before = -1
    while len(lines) != before:
        before = len(lines)
        lines = _drop(lines, lambda candidate: failing("\n".join(candidate)))
        lines = _simplify(lines, lambda candidate: failing("\n".join(candidate)))
    return _without_declarations("\n".join(lines) + "\n", failing)
