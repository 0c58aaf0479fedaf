"""Cards and fleets: figures that agree with each other, texts and files, and what is wrong with the others."""

from __future__ import annotations

from pathlib import Path

import pytest

from tessera.cards import GIB, SOURCES, CardError, card_named, cards
from tessera.fleet import Fleet, FleetError, Link, parse_fleet
from tests.documents import card_rows, table_rows
from tests.material import ROOT

DECIDED = (
    "H100-SXM", "H100-PCIE", "H200", "H20", "A100-80G", "A100-80G-SXM", "A100-40G", "A10", "A30", "A40", "L4", "L40S",
    "RTX4090", "RTX5090", "RTXPRO6000", "T4", "V100", "B200",
)


def fleet_file(folder: Path, text: str) -> Fleet:
    (folder / "fleet.toml").write_text(text)
    return parse_fleet("@fleet.toml", folder)


def test_every_card_has_its_figures_with_sources() -> None:
    assert tuple(card.name for card in cards()) == DECIDED
    names = [name.upper() for card in cards() for name in {card.name, *card.aliases}]
    assert len(names) == len(set(names))
    for card in cards():
        assert set(card.figures) >= {"sms", "tensor_tflops", "fp32_tflops", "bandwidth_gb_s", "l2_mib"}
        assert all(figure.source in SOURCES and figure.value > 0 for figure in card.figures.values())
        assert card.figure("tensor_tflops") > card.figure("fp32_tflops")
        assert card.figure("nvlink_gb_s") == 0 or card.figure("nvlink_gb_s") > 3 * card.host_gb_s
        assert 1300 < card.clock_mhz < 2700, "peak, SMs and results in a clock do not belong together"


def test_a_card_by_name() -> None:
    assert card_named("a100-80g") is card_named("A100") is cards()[4]
    assert card_named("L40S").memory == 48 * GIB
    with pytest.raises(CardError, match=r"no card is named 'A101'; did you mean A100-80G or A100-80G-SXM or A100-40G"):
        card_named("A101")
    with pytest.raises(CardError, match="there are H100-SXM, H100-PCIE, H200"):
        card_named("MI300X")


def test_documented_cards_are_those_of_the_table() -> None:
    assert table_rows(ROOT / "docs" / "fleets.md", "card") == card_rows(), "python -m tests.documents writes them anew"


def test_a_fleet_in_words() -> None:
    fleet = parse_fleet(" A100-80G, l40s ")
    assert [gpu.name for gpu in fleet.gpus] == ["A100-80G", "L40S"] and not fleet.real
    assert [gpu.memory for gpu in fleet.gpus] == [80 * GIB, 48 * GIB]
    assert [gpu.name for gpu in parse_fleet("L40S,T4,l40s").gpus] == ["L40S-0", "T4", "L40S-1"]
    real = parse_fleet("cuda:1,cuda:0,cuda:1")
    assert real.real and [gpu.ordinal for gpu in real.gpus] == [1, 0, 1]
    assert [gpu.name for gpu in real.gpus] == ["cuda:1-0", "cuda:0", "cuda:1-1"]


def test_links_that_nobody_named_go_through_the_host() -> None:
    fleet = parse_fleet("H100-SXM,T4,L4")
    assert fleet.link(0, 1) == fleet.link(1, 0) == Link(15.754, None, False)
    assert fleet.link(2, 0).bandwidth_gb_s == 31.508


FILE = """
[[gpu]]
name = "big"
card = "A100-80G"
memory_gib = 0.5
price_usd_h = 1.19
[[gpu]]
card = "L40S"
[[gpu]]
card = "T4"
[[link]]
from = "L40S"
to = "big"
bandwidth_gb_s = 23.06
latency_us = 10
peer = true
"""


def test_a_fleet_from_a_file(tmp_path: Path) -> None:
    fleet = fleet_file(tmp_path, FILE)
    assert [gpu.name for gpu in fleet.gpus] == ["big", "L40S", "T4"]
    assert fleet.gpus[0].memory == GIB // 2 and fleet.gpus[0].price == 1.19
    assert fleet.link(0, 1) == fleet.link(1, 0) == Link(23.06, 10, True)
    assert not fleet.link(0, 2).peer


def test_a_program_sees_its_home_first(tmp_path: Path) -> None:
    fleet = fleet_file(tmp_path, FILE).rotated(1)
    assert [gpu.name for gpu in fleet.gpus] == ["L40S", "T4", "big"]
    assert fleet.link(0, 2).peer and not fleet.link(0, 1).peer
    assert fleet.rotated(0) == fleet
    with pytest.raises(FleetError, match="home 3: the fleet has GPUs 0 to 2"):
        fleet.rotated(3)


@pytest.mark.parametrize(("text", "message"), [
    ("", "fleet '', GPU 0: no card is named"),
    ("A100,,T4", "GPU 1: no card is named"),
    ("A100,T5", "GPU 1: no card is named 'T5'; did you mean T4\\?|no card is named 'T5'; there are"),
    ("A100,cuda:0", "software and real GPUs cannot be mixed"),
    ("cuda:", "'cuda:' is no real GPU; these are named cuda:0"),
    ("cuda:-1", "is no real GPU"),
    (",".join(["T4"] * 65), "65 GPUs; there must be 1 to 64"),
    ("@nowhere.toml", "fleet file .*nowhere.toml: No such file"),
    ("@.", "fleet file .*: Is a directory"),
])
def test_fleets_that_cannot_be(text: str, message: str) -> None:
    with pytest.raises(FleetError, match=message):
        parse_fleet(text)


@pytest.mark.parametrize(("text", "message"), [
    ("", "0 GPUs; there must be 1 to 64"),
    ("gpu = 3", r"gpu must stand in double brackets, \[\[gpu\]\]"),
    ("[gpu]\ncard = 'T4'", "gpu must stand in double brackets"),
    ("[[gpu]\n", "is not TOML: .*line 1"),
    ("[[gpus]]\ncard = 'T4'", "'gpus' is not known; there are gpu, link"),
    ("[[gpu]]\ncard = 'T4'\nmemory = 4", "GPU 0: 'memory' is not known; there are card, memory_gib, name"),
    ("[[gpu]]\ncard = 4", "GPU 0: no card is named"),
    ("[[gpu]]\ncard = 'T4'\nname = 4", "GPU 0: name must be a text"),
    ("[[gpu]]\ncard = 'T4'\nmemory_gib = 17", "GPU 0: 17 GiB; a T4 has 16"),
    ("[[gpu]]\ncard = 'T4'\nmemory_gib = -1", "GPU 0: memory_gib = -1 must be a number above 0"),
    ("[[gpu]]\ncard = 'T4'\nmemory_gib = true", "memory_gib = True must be a number above 0"),
    ("[[gpu]]\ncard = 'T4'\nprice_usd_h = inf", "price_usd_h = inf must be a number above 0"),
    ("[[gpu]]\ncard='T4'\nname='x'\n[[gpu]]\ncard='L4'\nname='x'", "2 GPUs are named 'x'"),
])
def test_files_that_cannot_be(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(FleetError, match=message):
        fleet_file(tmp_path, text)


@pytest.mark.parametrize(("text", "message"), [
    ("from = 'big'\nto = 'T5'\nbandwidth_gb_s = 1", "link 1: to = 'T5'; the GPUs are named big, L40S, T4"),
    ("to = 'T4'\nbandwidth_gb_s = 1", "link 1: from = None; the GPUs are named"),
    ("from = 'T4'\nto = 'T4'\nbandwidth_gb_s = 1", "link 1: it begins and ends at T4"),
    ("from = 'T4'\nto = 'big'", "link 1: bandwidth_gb_s is missing"),
    ("from = 'T4'\nto = 'big'\nbandwidth_gb_s = '1'", "bandwidth_gb_s = '1' must be a number above 0"),
    ("from = 'T4'\nto = 'big'\nbandwidth_gb_s = 1\npeer = 1", "peer must be true or false"),
    ("from = 'T4'\nto = 'big'\nbandwidth_gb_s = 1\nspeed = 1", "'speed' is not known"),
    ("from = 'big'\nto = 'L40S'\nbandwidth_gb_s = 1", "link 1: big and L40S have one already"),
])
def test_links_that_cannot_be(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(FleetError, match=message):
        fleet_file(tmp_path, f"{FILE}[[link]]\n{text}\n")
