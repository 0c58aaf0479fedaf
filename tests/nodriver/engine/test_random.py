"""Random kernels in the engine and in the interpreter: the same memory to the last bit, counts, ranges of addresses.

A failure prints the seed, a reduced PTX text and the launch; ``generate(seed)`` and ``cases(seed, LAUNCHES)`` of
``tests/random_kernels/engine_kernel.py`` and ``engine_launches.py`` give them again.
"""

from __future__ import annotations

import re

import pytest

from softgpu.engine import shapes
from tests.random_kernels import engine_shapes
from tests.random_kernels.engine_kernel import generate
from tests.random_kernels.engine_launches import cases
from tests.random_kernels.engine_reduce import reduce
from tests.random_kernels.engine_run import EngineCase, compare

LAUNCHES = 2
GROUP = 4
GROUPS = 5
LONG_GROUPS = 750
SHAPE_GROUP = 8
SHAPE_GROUPS = 4
LONG_SHAPE_GROUPS = 400
SEED = 1 << 20

FEATURES = r"""
bar\.sync|barrier\.sync|bar\.red\.popc|bar\.red\.and|bar\.arrive|barrier\.arrive|bar\.warp\.sync|shfl\.sync\.up|
shfl\.sync\.down|shfl\.sync\.bfly|shfl\.sync\.idx|vote\.sync\.ballot|vote\.sync\.uni|match\.any\.sync|match\.all\.sync|
redux\.sync|brx\.idx|call |\.callprototype|ld\.local|ld\.shared\.v2|ld\.const|ld\.param\.|ld\.global\.v4|ld\.volatile|
atom\.global\.add|atom\.shared|red\.shared|red\.global|atom\.global\.cas|atom\.global\.inc|fma\.rn\.f32|setp\.gtu\.f32|
madc\.hi|add\.f16x2|exit|cvta\.local|mov\.b64 %rd\d+, \{
""".replace("\n", "").split("|")


def describe(seed: int, case: EngineCase, sentence: str) -> str:
    """What differs, with the smallest kernel that shows it."""
    stops = re.search("only the (engine|interpreter) stops, [A-Za-z]*", sentence)
    return f"seed {seed}: {sentence}\n{case}\n{reduce(generate(seed), case, stops.group() if stops else '')}"


def check_group(first: int, number: int) -> None:
    """So many kernels: no launch differs, and few are thrown away."""
    discarded = []
    for seed in range(first, first + number):
        text = generate(seed)
        for case in cases(seed, LAUNCHES):
            outcome = compare(text, case)
            assert not outcome.sentence, describe(seed, case, outcome.sentence)
            if outcome.discarded:
                discarded.append(outcome.discarded)
    assert len(discarded) <= 0.3 * number * LAUNCHES + 1, discarded


@pytest.mark.parametrize("group", range(GROUPS))
def test_random_kernels(group: int) -> None:
    check_group(SEED + GROUP * group, GROUP)


@pytest.mark.long
@pytest.mark.parametrize("group", range(GROUPS, LONG_GROUPS))
def test_many_random_kernels(group: int) -> None:
    check_group(SEED + GROUP * group, GROUP)


def check_shapes(first: int, number: int) -> None:
    """Shapes claim nothing of registers that their values do not bear out."""
    for seed in range(first, first + number):
        text = engine_shapes.generate(seed)
        for case in cases(seed, LAUNCHES):
            wrong = engine_shapes.violations(text, case)
            assert not wrong, f"seed {seed}: {wrong[0]}\n{case}\n{text}"


@pytest.mark.parametrize("group", range(SHAPE_GROUPS))
def test_shapes_hold(group: int) -> None:
    check_shapes(SEED + SHAPE_GROUP * group, SHAPE_GROUP)


@pytest.mark.long
@pytest.mark.parametrize("group", range(SHAPE_GROUPS, LONG_SHAPE_GROUPS))
def test_many_shapes_hold(group: int) -> None:
    check_shapes(SEED + SHAPE_GROUP * group, SHAPE_GROUP)


def test_wrong_shapes_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shapes.Shape, "stays", True)
    found = [wrong for seed in range(SEED, SEED + 30) for case in cases(seed, 1)
             for wrong in engine_shapes.violations(engine_shapes.generate(seed), case)]
    assert found


def test_the_generator_covers_what_the_engine_treats_by_itself() -> None:
    whole = "\n".join([generate(SEED + n) for n in range(150)])
    assert [feature for feature in FEATURES if not re.search(feature, whole)] == []


def test_generated_kernels_are_reproducible() -> None:
    for seed in range(SEED, SEED + 20):
        assert generate(seed) == generate(seed) and cases(seed, 4) == cases(seed, 4)
