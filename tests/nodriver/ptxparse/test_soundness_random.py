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
from ptxparse.api import Range, analyze, count, evaluate
from ptxparse.evaluation import counting, scope
from ptxparse.opcodes import lookup
from ptxparse.parser import parse
from tests.random_kernels.examine import Report, examine
from tests.random_kernels.kernel import generate
from tests.random_kernels.launches import cases
from tests.random_kernels.reduce import reduce

HUGE = (
    ((2**31 - 1, 65535, 65535), (1024, 1, 1)), ((70000, 1, 1), (32, 32, 1)), ((1, 65535, 1), (16, 8, 8)),
    ((2**31 - 1, 1, 1), (1, 1, 1)),
)  # fmt: skip
LAUNCHES = 3
GROUP = 20
GROUPS = 14
LONG_GROUPS = 520
SEED = 1 << 20
"""First seed of the suite."""


OPCODES = """
add sub mul.lo mul.hi mul.wide.s32 mul.wide.u32 mad.lo mad.wide shl.b32 shl.b64 shr.s32 shr.u64 and.b32 or.b32 xor.b32
not.b32 neg.s32 abs.s32 min.s32 max.u32 div.s32 div.u32 rem.s32 rem.u32 bfe.s32 bfe.u32 bfi.b32 cvt.s64.s32 cvt.u64.u32
cvt.u32.u64 cvt.s32.s16 cvt.sat selp and.pred or.pred xor.pred not.pred mov.b64\t{ mov.b32\t{ %laneid %tid.z %nctaid.x
ld.global.v4 st.global.v2 red.global atom.global cvta.to.global cvta.shared ld.u32 st.b32 brx.idx call ld.param.v2
cp.async shfl.sync vote.sync setp.lt.u32 setp.ge.and bra.uni exit ,\tG; ,\tPA; ,\tIA;
""".replace("\n", " ").split(" ")


def run(seed: int, checks: str = "abcdef") -> Report:
    return examine(generate(seed), cases(seed, LAUNCHES), checks)


def describe(seed: int, report: Report) -> str:
    """What was violated, with the smallest kernel that shows it."""
    check, sentence = report.violations[0]
    text, case = reduce(generate(seed), cases(seed, LAUNCHES), check)
    return f"seed {seed}, check ({check}): {sentence}\n{case}\n{text}"


def check_group(first: int) -> None:
    """So many kernels: nothing is violated, and little is thrown away."""
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


@pytest.mark.parametrize("points", [1, 40])
@pytest.mark.parametrize("group", range(4))
def test_random_kernels_when_little_is_listed(monkeypatch: pytest.MonkeyPatch, group: int, points: int) -> None:
    """Launches are small here, so that all index values would be listed; large ones go by intervals."""
    monkeypatch.setattr(scope, "MOST_POINTS", points)
    monkeypatch.setattr(counting, "MOST_POINTS", points)
    check_group(2 * SEED + GROUP * group + 1000 * points)


@pytest.mark.parametrize("group", range(4))
def test_huge_launches_are_evaluated(group: int) -> None:
    """No number is too large: launches that nobody could interpret."""
    choose = random.Random(group)
    for seed in range(3 * SEED + GROUP * group, 3 * SEED + GROUP * (group + 1)):
        (program,) = analyze(parse(generate(seed)))
        for grid, block in HUGE:
            parameters = choose.choices((0, 0, 1, 127, 128, 255), k=program.parameter_bytes)
            for word in range(0, len(parameters) - 7, 8):
                if choose.random() < 0.5:
                    parameters[word:word + 8] = (4096 + 256 * word).to_bytes(8, "little")
            evaluate(program, grid, block, bytes(parameters), [("a", 4096, 1 << 20)])
            for amount in count(program, grid, block, bytes(parameters)).values():
                assert 0 <= amount.low <= amount.high and amount.expected <= amount.high * (1 + 1e-9)


@pytest.mark.long
@pytest.mark.parametrize("group", range(GROUPS, LONG_GROUPS))
def test_many_random_kernels(group: int) -> None:
    check_group(SEED + GROUP * group)


@pytest.mark.long
@pytest.mark.parametrize("points", [1, 40])
@pytest.mark.parametrize("group", range(4, 100))
def test_many_random_kernels_when_little_is_listed(monkeypatch: pytest.MonkeyPatch, group: int, points: int) -> None:
    test_random_kernels_when_little_is_listed(monkeypatch, group, points)


def test_the_generator_covers_what_compilers_emit() -> None:
    texts = [generate(SEED + n) for n in range(300)]
    whole = "\n".join(texts)
    for opcode in (name.replace("\t", " ") for name in OPCODES):
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
