"""Placements send what they are to, and a placement by step classes never what only another class would send."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from orchestrator.session.placement import Home, Placement, named
from orchestrator.session.placements import followed
from orchestrator.session.placements.chance import Random
from orchestrator.session.placements.file import Mixed, Mixtures, PlacementError, Placing, mixtures_of, read_mixtures
from orchestrator.session.placements.followed import FilePlacement
from orchestrator.session.placements.rules import Rules
from orchestrator.session.placements.text import FORMS, parse_placement
from orchestrator.session.step_classes import StepClass, StepClasses
from orchestrator.session.steps import LaunchKey, graph_text, launch_text
from tessera.errors import ExitCode, UsageError
from tests.material import ROOT

GPUS = 3
SCHEMA = json.loads((ROOT / "docs" / "schema" / "placement.json").read_text(encoding="utf-8"))
PAGE = ROOT / "docs" / "placement.md"

Keys = tuple[LaunchKey, ...]
Devices = list[tuple[int, ...]]


def keys_of(kernels: Sequence[str]) -> Keys:
    """Launches of kernels of one letter; a capital letter has another grid."""
    return tuple([LaunchKey(name.lower(), (1 + name.isupper(), 1, 1), (32, 1, 1)) for name in kernels])


def signature_of(kernels: Sequence[str]) -> str:
    client = Client(Home())
    client.step(kernels)
    assert client.last is not None
    return client.last.signature


class Client:
    """Does steps, and asks a placement as the tracker does."""

    def __init__(self, placement: Placement, home: int = 0) -> None:
        self.placement, self.home = placement, home
        self.last: StepClass | None = None
        self._classes = StepClasses()

    def step(self, kernels: Sequence[str], graph: bool = False) -> Devices:
        keys = tuple([key._replace(in_graph=graph) for key in keys_of(kernels)])
        if graph:
            self._classes.launched(0, graph_text(launch_text(key) for key in keys), keys)
        else:
            for key in keys:
                self._classes.launched(0, launch_text(key), (key,))
        found = [self.placement.devices(key, self.home) for key in keys]
        self.last = self._classes.over()
        self.placement.step_over(self.last)
        return found


def mixed(kernels: str, gpus: dict[int, tuple[int, ...]], share: float = 1) -> Mixed:
    return Mixed(share, {index: Placing(kernels[index].lower(), numbers) for index, numbers in gpus.items()})


def test_what_gpus_mean_for_a_home() -> None:
    assert [named(gpus, 0) for gpus in [(), (0,), (1,), (0, 1), (1, 0), (1, 2)]] == \
        [(), (), (1,), (0, 1), (0, 1), (0, 1, 2)]
    assert named((0, 1), 1) == (1, 0)


def test_home_sends_nothing() -> None:
    assert Client(parse_placement("home", GPUS)).step("abc") == [(), (), ()]


# by rules


def test_the_first_rule_that_matches_holds() -> None:
    client = Client(parse_placement("a=1, [bc]@2=2, b=0+1, *=0", GPUS))
    assert client.step("abBcCd") == [(1,), (0, 1), (2,), (), (2,), ()]
    client.home = 1
    assert client.step("ab d".replace(" ", "")) == [(), (1, 0), (0,)]


def test_a_rule_for_a_grid() -> None:
    rules = parse_placement("k@8,1,1=1,k@8,2=2,*.x?[!0]@4=1+2", GPUS)
    assert isinstance(rules, Rules)
    assert [rule.grid for rule in rules.rules] == [(8, 1, 1), (8, 2, 1), (4, 1, 1)]
    block = (1, 1, 1)
    assert rules.devices(LaunchKey("k", (8, 1, 1), block), 0) == (1,)
    assert rules.devices(LaunchKey("k", (8, 2, 1), block), 0) == (2,)
    assert rules.devices(LaunchKey("k", (8, 1, 2), block), 0) == ()
    assert rules.devices(LaunchKey("m.xy1", (4, 1, 1), block), 0) == (0, 1, 2)
    assert rules.devices(LaunchKey("m.xy0", (4, 1, 1), block), 0) == ()


@pytest.mark.parametrize(("text", "part"), [
    ("", "says nothing"), ("r_*", "'r_*' is none"), ("a=1,b", "'b' is none"), ("a=1,", "says nothing"), ("=1", "'=1'"),
    ("a=x", "'a=x'"), ("a=1+", "'a=1+'"), ("a=-1", "'a=-1'"), ("a@=1", "'a@=1'"), ("a@1,2,3,4=1", "'a@1,2,3,4=1'"),
    ("a=3", "GPUs 0 to 2"), ("a=1+1", "once"), ("a=1,b=0+9", "b=0+9"), ("random:", "whole number"),
    ("random:x", "whole number"), ("random:٣", "whole number"), ("a=٣", "is none"), (",a=1", "',a=1'"),
])  # fmt: skip
def test_a_text_that_is_no_placement(text: str, part: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_placement(text, GPUS)
    assert part in str(caught.value) and repr(text) in str(caught.value)
    if "is none" in str(caught.value):
        assert FORMS in str(caught.value)


@given(st.text(alphabet="ab*@=,+0123 :.[", max_size=20))
def test_any_text_is_a_placement_or_a_named_error(text: str) -> None:
    try:
        placement = parse_placement(text, GPUS)
    except UsageError:
        return
    except PlacementError:
        assert text.strip().startswith("@")
        return
    assert all(gpu < GPUS for gpus in Client(placement).step("aAbB") for gpu in gpus)


# at random


def test_random_is_the_same_again_and_differs_by_seed() -> None:
    def runs(text: str) -> list[Devices]:
        client = Client(parse_placement(text, GPUS))
        return [client.step("abcABC" * 10) for _ in range(2)]

    first, second = runs("random:7")
    assert first == second and [first, second] == runs("random:7")
    assert first != runs("random:8")[0] and first != runs("random:-7")[0]
    assert len(set(first[::6])) > 1, "the place in the step counts"


def test_random_sends_each_share() -> None:
    count = 6000
    placement = Random(1, GPUS, mirrored=0.5)
    found = Counter(placement.devices(LaunchKey("k", (1, 1, 1), (1, 1, 1)), 1) for _ in range(count))
    assert set(found) == {(), (0,), (2,), (1, 0), (1, 2)}
    assert all(abs(found[one] - share * count) < 0.05 * count
               for one, share in [((), 1 / 3), ((0,), 1 / 6), ((2,), 1 / 6), ((1, 0), 1 / 6), ((1, 2), 1 / 6)])
    sent = Random(1, GPUS, mirrored=0)
    assert all(len(sent.devices(LaunchKey("k", (1, 1, 1), (1, 1, 1)), 1)) < 2 for _ in range(100))


# by step classes


def test_a_class_is_followed_when_it_has_been_seen_whole() -> None:
    placement = FilePlacement({signature_of("abA"): (mixed("abA", {1: (1,), 2: (0, 2)}),)})
    client = Client(placement)
    assert client.step("abA") == [(), (), ()]
    assert client.step("abA") == client.step("abA") == [(), (1,), (0, 2)]
    assert client.step("abB") == [(), (1,), ()], "it could have been the class until then"
    assert client.step("abA") == [(), (), (0, 2)], "now b may be that of the step without a placement"
    assert client.step("cbA") == [(), (), ()], "it has left all that is known"
    assert placement.ambiguous == 1 and placement.faults == {}


def test_a_longer_class_goes_on_where_a_shorter_one_ends() -> None:
    client = Client(FilePlacement({signature_of("aa"): (mixed("aa", {0: (1,), 1: (1,)}),),
                                   signature_of("aab"): (mixed("aab", {0: (1,), 1: (2,), 2: (2,)}),)}))
    client.step("aa"), client.step("aab")
    assert client.step("aab") == [(1,), (), (2,)]
    assert client.step("aa") == [(1,), ()]


def test_a_wait_without_a_step_begins_one() -> None:
    placement = FilePlacement({signature_of("ab"): (mixed("ab", {0: (1,)}),)})
    client = Client(placement)
    client.step("ab")
    client.step("")
    assert client.step("ab") == [(1,), ()]


def test_a_graph_is_placed_by_its_nodes() -> None:
    client = Client(Home())
    client.step("ab", graph=True)
    assert client.last is not None
    placement = FilePlacement({client.last.signature: (mixed("ab", {1: (1,)}),)})
    client = Client(placement)
    client.step("ab", graph=True)
    assert client.step("ab", graph=True) == [(), (1,)]
    client.step("ab")  # the same launches without a graph are another class, which stays at home
    assert client.step("ab", graph=True) == [(), (1,)] and placement.ambiguous == 0


@pytest.mark.parametrize(("index", "kernel", "part"), [(1, "c", "'c' is to be placed, and it launches 'b' there"),
                                                       (2, "b", "it has 2 launches")])
def test_a_placement_for_other_launches_is_a_named_fault(index: int, kernel: str, part: str) -> None:
    signature = signature_of("ab")
    good = mixed("ab", {0: (1,)}, 0.5)
    placement = FilePlacement({signature: (good, Mixed(0.5, {index: Placing(kernel, (1,))}))})
    client = Client(placement)
    assert [client.step("ab") for _ in range(3)] == [[(), ()]] * 3
    assert list(placement.faults) == [signature]
    assert part in placement.faults[signature] and f"mixture 1, launch {index}" in placement.faults[signature]


def test_what_is_forgotten_is_in_nobody_s_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(followed, "MOST_CLASSES", 2)
    client = Client(FilePlacement({signature_of("ab"): (mixed("ab", {0: (1,), 1: (1,)}),)}))
    client.step("ab")
    client.step("aB")
    assert client.step("ab") == [(), (1,)]
    client.step("c")
    client.step("aB")
    client.step("d")  # now c is forgotten, and aB is not
    assert client.step("ab") == [(), (1,)]
    client.step("c")
    assert client.step("ab") == [(1,), (1,)]


@given(st.lists(st.integers(1, 9), min_size=1, max_size=5), st.integers(1, 60))
def test_mixtures_keep_their_shares(weights: list[int], count: int) -> None:
    shares = [weight / sum(weights) for weight in weights]
    mixture = tuple([mixed("a", {0: (gpu,)}, share) for gpu, share in enumerate(shares, 1)])
    client = Client(FilePlacement({signature_of("a"): mixture}))
    client.step("a")
    taken = [client.step("a")[0][0] for _ in range(count)]
    for gpu, share in enumerate(shares, 1):
        assert -len(shares) < taken.count(gpu) - share * count < 1 + 1e-9
    again = Client(FilePlacement({signature_of("a"): mixture}))
    again.step("a")
    assert [again.step("a")[0][0] for _ in range(count)] == taken


STEP = st.text(alphabet="abA", min_size=1, max_size=5)
GPU_LISTS = st.lists(st.integers(0, GPUS - 1), min_size=1, max_size=2, unique=True).map(tuple)
SHARES = st.lists(st.dictionaries(st.integers(0, 4), GPU_LISTS, max_size=5), min_size=1, max_size=3)


@given(st.lists(st.tuples(STEP, st.none() | SHARES), min_size=1, max_size=6, unique_by=lambda pair: pair[0]), st.data())
def test_a_launch_goes_where_the_class_of_its_step_sends_it_or_stays(
    classes: list[tuple[str, list[dict[int, tuple[int, ...]]] | None]], data: st.DataObject
) -> None:
    """And it stays only if another class that was known, and had begun alike, wants something else."""
    mixtures: dict[str, tuple[Mixed, ...]] = {}
    wanted: dict[str, list[Devices]] = {}
    home = data.draw(st.integers(0, GPUS - 1))
    for step, shares in classes:
        options = [{index: gpus for index, gpus in share.items() if index < len(step)} for share in shares or [{}]]
        wanted[step] = [[named(option.get(index, ()), home) for index in range(len(step))] for option in options]
        if shares is not None:
            mixtures[signature_of(step)] = tuple([mixed(step, option, 1 / len(options)) for option in options])
    client = Client(FilePlacement(mixtures), home)
    known: set[str] = set()
    for step in data.draw(st.lists(st.sampled_from([step for step, _ in classes]), max_size=20)):
        found = client.step(step)
        if step in known:
            assert any(fits(found, option, step, [(other, wanted[other]) for other in known - {step}])
                       for option in wanted[step])
        known.add(step)


def fits(found: Devices, option: Devices, step: str, others: list[tuple[str, list[Devices]]]) -> bool:
    for index, (got, mine) in enumerate(zip(found, option, strict=True)):
        differ = any(its[index] != mine for other, options in others if other.startswith(step[:index + 1])
                     for its in options)
        if got != mine and not (got == () and differ):
            return False
    return True


# from a file


def document(**changes: Any) -> dict[str, Any]:
    """One that is right, with changes of its one launch, or of what is around it."""
    launch = {"index": 0, "kernel": "a", "devices": [1]} | changes.pop("launch", {})
    mixture = {"share": 1, "launches": [launch]} | changes.pop("mixed", {})
    step = {"signature": "0123456789abcdef", "mixture": [mixture]} | changes.pop("step", {})
    return {"version": 1, "step_classes": [step]} | changes


def both(value: dict[str, Any], gpus: int = GPUS) -> Mixtures:
    """What is read; the schema accepts it."""
    Draft202012Validator(SCHEMA).validate(value)
    return mixtures_of(value, gpus, "f")


def test_a_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    value = document(mixed={"launches": [{"index": 3, "kernel": "r_8", "devices": [0, 2]}]})
    path.write_text(json.dumps(value), encoding="utf-8")
    wanted = {"0123456789abcdef": (Mixed(1.0, {3: Placing("r_8", (0, 2))}),)}
    assert read_mixtures(path, GPUS) == both(value) == wanted
    assert all(isinstance(parse_placement(text, GPUS), FilePlacement) for text in (f"@{path}", str(path)))
    assert both({"version": 1, "step_classes": []}) == {}


ONE = {"share": 0.5, "launches": []}
WRONG: list[tuple[Any, str, bool]] = [  # what is read, what is said, whether the schema says so as well
    ([], "f is []; it must be an object with version, step_classes", True),
    ({"version": 1}, "f: step_classes is missing", True),
    (document(more=1), "f: 'more' is not known", True),
    (document(version=2), "f, version is 2; it must be 1", True),
    (document(version=True), "version is true", True),
    (document(step_classes={}), "step_classes is {}; it must be an array", True),
    (document(step={"signature": "0123"}), "f, step_classes[0], signature is \"0123\"; it must be 16", True),
    (document(step={"signature": 7}), "signature is 7; it must be a text", True),
    (document(step={"mixture": []}), "mixture: the shares add up to 0, and must to 1", True),
    (document(step={"mixture": [ONE]}), "the shares add up to 0.5", False),
    (document(step={"mixture": [ONE, ONE, ONE]}), "the shares add up to 1.5", False),
    (document(mixed={"share": 0}), "mixture[0], share is 0", True),
    (document(mixed={"share": True}), "share is true", True),
    (document(mixed={"share": float("nan")}), "share is NaN", False),
    (document(mixed={"share": "1"}), "share is \"1\"", True),
    (document(launch={"index": -1}), "launches[0], index is -1", True),
    (document(launch={"index": 1.5}), "index is 1.5", True),
    (document(launch={"kernel": None}), "kernel is null; it must be a text", True),
    (document(launch={"devices": []}), "devices is []; it must name at least one GPU", True),
    (document(launch={"devices": [1, 1]}), "none twice", True),
    (document(launch={"devices": [0, 3]}), "devices[1] is 3; it must be a GPU of the fleet, 0 to 2", False),
    (document(launch={"devices": ["x" * 200]}), "xxx ...; it must be a GPU", True),
    (document(launch={"why": ""}), "launches[0]: 'why' is not known", True),
    (document(mixed={"launches": document()["step_classes"][0]["mixture"][0]["launches"] * 2}),
     "launches[1], index is 0; it stands there twice", False),
    (document(step_classes=document()["step_classes"] * 2), "step_classes[1], signature is", False),
]


@pytest.mark.parametrize(("value", "part", "schema"), WRONG)
def test_what_is_wrong_is_named(value: Any, part: str, schema: bool) -> None:
    with pytest.raises(PlacementError) as caught:
        mixtures_of(value, GPUS, "f")
    assert part in str(caught.value) and caught.value.exit_code is ExitCode.BAD_INPUT
    assert Draft202012Validator(SCHEMA).is_valid(value) != schema


@pytest.mark.parametrize(("data", "part"), [
    (None, "No such file"), (b"", "is not JSON"), (b"{", "is not JSON"), (b"\xff", "is not JSON"),
    (b"[" * 100_000, "is not JSON"), (b"1" * 5000, "is not JSON"), (b"null", "is null"),
])  # fmt: skip
def test_a_file_that_is_none(tmp_path: Path, data: bytes | None, part: str) -> None:
    path = tmp_path / "p.json"
    if data is not None:
        path.write_bytes(data)
    with pytest.raises(PlacementError) as caught:
        parse_placement(f"@{path}", GPUS)
    assert part in str(caught.value) and str(path) in str(caught.value)


def test_the_file_on_the_page_is_one() -> None:
    shown = re.search(r"```json\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert shown
    assert both(json.loads(shown[1]))
