"""Random kernels in the interpreter against what the analysis claims (``tests/random_kernels``).

A failure prints the seed, a reduced PTX text and the launch; ``generate(seed)`` and ``cases(seed, 3)`` give them again.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from typing import Any

import pytest

import tests.random_kernels.examine as examination
from ptxparse.api import Range
from ptxparse.opcodes import lookup
from ptxparse.parser import parse
from tests.random_kernels.examine import Report, examine
from tests.random_kernels.kernel import generate
from tests.random_kernels.launches import cases
from tests.random_kernels.reduce import reduce

LAUNCHES = 3
GROUP = 20
GROUPS = 12
LONG_GROUPS = 520
SEED = 1 << 20
"""First seed of the suite. Seeds of reported faults stand in ``test_kernels_that_failed_once``."""


OPCODES = (
    "add", "sub", "mul.lo", "mul.hi", "mul.wide.s32", "mul.wide.u32", "mad.lo", "mad.wide", "shl.b32", "shl.b64",
    "shr.s32", "shr.u64", "and.b32", "or.b32", "xor.b32", "not.b32", "neg.s32", "min.s32", "max.u32", "div.s32",
    "div.u32", "rem.s32", "rem.u32", "bfe.s32", "bfe.u32", "bfi.b32", "cvt.s64.s32", "cvt.u64.u32", "cvt.u32.u64",
    "cvt.s32.s16", "selp", "and.pred", "or.pred", "xor.pred", "not.pred", "mov.b64 {", "mov.b32 {", "%laneid",
    "%tid.z", "%nctaid.x", "ld.global.v4", "st.global.v2", "red.global", "atom.global", "cvta.to.global", "ld.u32",
    "st.b32", "brx.idx", "call", "ld.param.v2", "cp.async", "setp.lt.u32", "setp.ge.and", "bra.uni", "exit",
    ", G;", ", PA;", ", IA;",
)  # fmt: skip


def run(seed: int, checks: str = "abcdef") -> Report:
    return examine(generate(seed), cases(seed, LAUNCHES), checks)


def describe(seed: int, report: Report) -> str:
    """What was violated, with the smallest kernel that shows it."""
    check, sentence = report.violations[0]
    text, case = reduce(generate(seed), cases(seed, LAUNCHES), check)
    return f"seed {seed}, check ({check}): {sentence}\n{case}\n{text}"


def check_group(first: int) -> None:
    """Twenty kernels: nothing is violated, and little is thrown away."""
    launches = discarded = 0
    for seed in range(first, first + GROUP):
        report = run(seed)
        assert not report.violations, describe(seed, report)
        launches += report.launches
        discarded += len(report.discarded)
    assert discarded < 0.3 * (launches + discarded)


@pytest.mark.parametrize("group", range(GROUPS))
def test_random_kernels(group: int) -> None:
    check_group(SEED + GROUP * group)


@pytest.mark.long
@pytest.mark.parametrize("group", range(GROUPS, LONG_GROUPS))
def test_many_random_kernels(group: int) -> None:
    check_group(SEED + GROUP * group)


def test_the_generator_covers_what_compilers_emit() -> None:
    texts = [generate(SEED + n) for n in range(300)]
    whole = "\n".join(texts)
    for opcode in OPCODES:
        assert opcode in whole, opcode
    assert sum("$L1:" in text and re.search(r"bra(\.uni)? \$L1;", text) is not None for text in texts) > 30


def test_generated_kernels_are_reproducible_and_known() -> None:
    for seed in range(SEED, SEED + 60):
        text = generate(seed)
        assert generate(seed) == text and cases(seed, 4) == cases(seed, 4)
        for function in parse(text).functions:
            assert all(lookup(i.op) is not None for i in function.instructions or ())


# The harness itself must be able to find a fault.

CHANGES: dict[str, Callable[[Any], list[Range]]] = {
    "a": lambda r: [r._replace(hi=r.hi - 1)],
    "b": lambda r: [r, r._replace(kind="MUSTW", lo=r.lo - 64)] if r.kind == "MUSTW" else [r],
    "d": lambda r: [r._replace(hi=r.hi + random.randrange(1 << 30))],
}


@pytest.mark.parametrize("check", CHANGES)
def test_wrong_ranges_are_found(monkeypatch: pytest.MonkeyPatch, check: str) -> None:
    original = examination.evaluate

    def evaluate(*arguments: Any, **options: Any) -> Any:
        found = original(*arguments, **options)
        return found._replace(ranges=tuple(c for r in found.ranges for c in CHANGES[check](r)))

    monkeypatch.setattr(examination, "evaluate", evaluate)
    violated = {c for seed in range(SEED, SEED + 6) for c, _ in run(seed).violations}
    assert check in violated


def test_wrong_counts_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    original = examination.count
    monkeypatch.setattr(examination, "count", lambda *a: {
        k: v._replace(high=v.low - 1 if v.low else v.high) for k, v in original(*a).items()})
    assert any(run(seed, "c").violations for seed in range(SEED, SEED + 4))


def test_reduction_keeps_the_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    original = examination.evaluate

    def evaluate(*arguments: Any, **options: Any) -> Any:
        found = original(*arguments, **options)
        return found._replace(ranges=tuple(r for r in found.ranges if r.kind == "R"))

    monkeypatch.setattr(examination, "evaluate", evaluate)
    text, case = reduce(generate(SEED), cases(SEED, LAUNCHES), "a")
    assert len(text) < len(generate(SEED)) / 2
    assert any(check == "a" for check, _ in examine(text, [case], "a").violations)
