"""``tessera devices``: the devices a program would see, in words and as JSON, and what is said where there are none."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tessera import real_gpus
from tessera.cards import GIB, SOURCES, cards
from tessera.cli import app, inventory
from tessera.cli.inventory import take
from tessera.cli.reporters import devices_json
from tessera.environment import DEVICES
from tessera.errors import ExitCode
from tessera.real_gpus import DriverDeadline, DriverTrouble, RealGpu, RealMachine, find
from tests.material import ROOT

SCHEMA = json.loads((ROOT / "docs" / "schema" / "devices.json").read_text(encoding="utf-8"))
FLEET = "A100:name=big:memory_gib=4.5:price_usd_h=1.5,B200,T4;from=big:to=T4:bandwidth_gb_s=20:latency_us=10:peer=true"
MACHINE = RealMachine((13, 0), (
    RealGpu("NVIDIA H200", (9, 0), 140 * GIB, 132, frozenset({1})),
    RealGpu("NVIDIA H200", (9, 0), 140 * GIB, 132, frozenset({0})),
    RealGpu("Tesla T4", (7, 5), 15 * GIB, 40, frozenset()),
))  # fmt: skip


@pytest.fixture(autouse=True)
def no_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a machine without NVIDIA's driver, whatever this one has."""
    monkeypatch.setattr(inventory, "find", lambda: None)
    monkeypatch.delenv(DEVICES.name, raising=False)


@pytest.fixture
def real(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inventory, "find", lambda: MACHINE)


def output(fleet: str | None, home: int = 0) -> Any:
    """The JSON output as a reader gets it, checked against the schema."""
    document = json.loads(json.dumps(devices_json.document(take(fleet, home))))
    jsonschema.Draft202012Validator(SCHEMA).validate(document)
    return document


def tessera(*words: str, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(sys, "argv", ["tessera", "devices", *words])
    with pytest.raises(SystemExit) as left:
        app.main()
    assert isinstance(left.value.code, int)
    return left.value.code


def test_the_schema_is_one_and_knows_the_letters() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["$defs"]["figure"]["properties"]["source"]["enum"] == list(SOURCES)


def test_every_card_fits_the_schema_and_is_told_as_the_table_has_it() -> None:
    found = output(",".join(card.name for card in cards()))
    assert (found["kind"], found["note"], found["driver_version"]) == ("software", None, None)
    for device, card in zip(found["devices"], cards(), strict=True):
        assert (device["name"], device["full_name"], device["sms"]) == (card.name, card.full_name, card.sms)
        assert device["memory"] == card.memory and device["price_usd_h"] is None
        figures = {name: (figure.value, figure.source) for name, figure in card.figures.items()}
        assert {n: (f["value"], f["source"]) for n, f in device["card"]["figures"].items()} == figures


def test_a_fleet_as_its_home_sees_it() -> None:
    found = output(FLEET, 1)
    assert [d["name"] for d in found["devices"]] == ["B200", "T4", "big"]
    big = found["devices"][2]
    assert (big["memory"], big["card"]["memory"], big["price_usd_h"]) == (9 * GIB // 2, 80 * GIB, 1.5)
    assert found["links"] == [
        {"devices": [0, 1], "bandwidth_gb_s": 15.754, "latency_us": None, "peer": False, "source": "slot"},
        {"devices": [0, 2], "bandwidth_gb_s": 31.508, "latency_us": None, "peer": False, "source": "slot"},
        {"devices": [1, 2], "bandwidth_gb_s": 20.0, "latency_us": 10.0, "peer": True, "source": "fleet"},
    ]


def test_in_words(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert tessera("--fleet", FLEET, monkeypatch=monkeypatch) == ExitCode.OK
    rows = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert rows[1] == "0 big NVIDIA A100 80GB PCIe 8.0 108 t 4.5 of 80 312 d 19.5 t 1935 d 40 d 600 d 31.508 (4.0) 1.5"
    assert "big - T4 20 GB/s 10 µs access to each other's memory as the fleet says" in rows
    assert "B200 - T4 15.754 GB/s no access to each other's memory through the host, at the slower slot's pace" in rows
    assert rows[-1] == "Figures of the cards: " + "; ".join(f"{n} {SOURCES[n]}" for n in "dptm") + "."


def test_the_documented_session_is_what_happens(monkeypatch: pytest.MonkeyPatch,
                                                capsys: pytest.CaptureFixture[str]) -> None:
    page = (ROOT / "docs" / "devices.md").read_text(encoding="utf-8")
    command, _, expected = page.split("```\n$ ")[1].split("\n```")[0].partition("\n")
    assert tessera(*shlex.split(command)[2:], monkeypatch=monkeypatch) == ExitCode.OK
    assert capsys.readouterr().out == expected + "\n"


def test_many_devices_stay_readable(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    many = ",".join(["T4"] * 64) + ";from=T4-1:to=T4-2:bandwidth_gb_s=1"
    assert tessera("--fleet", many, monkeypatch=monkeypatch) == ExitCode.OK
    out = capsys.readouterr().out
    assert len(out.splitlines()) == 1 + 64 + 1 + 2 + 2 and "2015 more" in out


def test_without_a_fleet_and_without_a_driver(monkeypatch: pytest.MonkeyPatch,
                                              capsys: pytest.CaptureFixture[str]) -> None:
    assert tessera(monkeypatch=monkeypatch) == ExitCode.OK
    first = capsys.readouterr().out.splitlines()[0]
    assert first == ("no driver of NVIDIA is found: these are the software GPUs that programs get where nobody names "
                     "others")
    assert [d["name"] for d in output(None)["devices"]] == ["A100-80G", "L40S"]
    monkeypatch.setenv(DEVICES.name, "L4,L4")
    found = output(None)
    assert [d["name"] for d in found["devices"]] == ["L4-0", "L4-1"] and DEVICES.name in found["note"]


def test_without_a_fleet_and_with_a_driver_that_does_not_work(monkeypatch: pytest.MonkeyPatch) -> None:
    def trouble() -> None:
        raise DriverTrouble("libcuda.so.1 is here and has no GPU that works: cuInit returns CUDA_ERROR_NO_DEVICE")

    monkeypatch.setattr(inventory, "find", trouble)
    assert "cuInit returns CUDA_ERROR_NO_DEVICE: these are the software GPUs" in output(None)["note"]
    with pytest.raises(DriverTrouble):
        take("cuda:0", 0)


@pytest.mark.usefixtures("real")
def test_real_devices_are_what_their_driver_says() -> None:
    found = output(None)
    assert (found["kind"], found["note"], found["driver_version"]) == ("real", None, "13.0")
    assert found["devices"][2] == {
        "name": "cuda:2", "ordinal": 2, "full_name": "Tesla T4", "capability": "7.5", "sms": 40, "memory": 15 * GIB,
        "price_usd_h": None, "card": None,
    }  # fmt: skip
    peers = [(link["devices"], link["peer"]) for link in found["links"]]
    assert peers == [([0, 1], True), ([0, 2], False), ([1, 2], False)]
    assert {(link["bandwidth_gb_s"], link["source"]) for link in found["links"]} == {(None, "driver")}


@pytest.mark.usefixtures("real")
def test_a_fleet_of_real_devices(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    fleet = "cuda:2,cuda:0:name=a:memory_gib=8,cuda:0:name=b;from=a:to=b:bandwidth_gb_s=50"
    found = output(fleet, 1)
    assert [(d["name"], d["ordinal"], d["memory"]) for d in found["devices"]] == [
        ("a", 0, 8 * GIB), ("b", 0, 140 * GIB), ("cuda:2", 2, 15 * GIB),
    ]
    assert found["links"][0] == {"devices": [0, 1], "bandwidth_gb_s": 50.0, "latency_us": None, "peer": True,
                                 "source": "fleet"}
    assert tessera("--fleet", fleet, monkeypatch=monkeypatch) == ExitCode.OK
    out = capsys.readouterr().out
    assert out.startswith("NVIDIA's driver for CUDA 13.0\n") and "Figures" not in out


@pytest.mark.usefixtures("real")
@pytest.mark.parametrize(("fleet", "said"), [
    ("cuda:3", "GPU cuda:3: this machine has cuda:0 to cuda:2"),
    ("cuda:2:memory_gib=16", "GPU cuda:2: 16 GiB; it has 15"),
])
def test_real_devices_that_are_not_there(fleet: str, said: str, monkeypatch: pytest.MonkeyPatch,
                                         capsys: pytest.CaptureFixture[str]) -> None:
    assert tessera("--fleet", fleet, monkeypatch=monkeypatch) == ExitCode.BAD_INPUT
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(("words", "code", "said"), [
    (["--fleet", "cuda:0"], ExitCode.NO_DRIVER, "fleet 'cuda:0' has real GPUs, and no driver of NVIDIA is found"),
    (["--fleet", "T5"], ExitCode.BAD_INPUT, "GPU 0: no card is named 'T5'"),
    (["--fleet", "@none.toml", "--json"], ExitCode.BAD_INPUT, "fleet file none.toml: No such file"),
    (["--fleet", "T4", "--home", "1"], ExitCode.BAD_INPUT, "home 1: the fleet has GPUs 0 to 0"),
    (["--home", "x"], ExitCode.USAGE, ""), (["T4"], ExitCode.USAGE, ""),
])
def test_what_cannot_be_shown(words: list[str], code: ExitCode, said: str, monkeypatch: pytest.MonkeyPatch,
                              capsys: pytest.CaptureFixture[str]) -> None:
    assert tessera(*words, monkeypatch=monkeypatch) == code
    shown = capsys.readouterr()
    assert shown.out == "" and said in shown.err


def library(folder: Path, body: str) -> str:
    """A module in place of the one that asks a driver, for what comes of it."""
    package = folder / "tessera"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "real_gpus.py").write_text(body)
    return str(folder)


@pytest.mark.parametrize(("body", "said"), [
    ("import os; os.abort()", "ends a program that asks for its GPUs .exit status -6: nothing on standard error"),
    ("raise ValueError('what')", "exit status 1: ValueError: what"),
    ("print('{\"failed\": \"cuInit returns 999\", \"software\": false}')", "no GPU that works: cuInit returns 999"),
])
def test_drivers_in_trouble(body: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", library(tmp_path, body))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DriverTrouble, match=said):
        find()


def test_a_driver_that_does_not_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", library(tmp_path, "import time; time.sleep(60)"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(real_gpus, "SECONDS", 0.3)
    with pytest.raises(DriverDeadline, match="did not say within 0.3 seconds"):
        find()


def test_no_library_is_no_driver() -> None:
    assert find("libcuda-that-is-not-there.so.1") is None


def test_a_library_that_is_no_driver() -> None:
    with pytest.raises(DriverTrouble, match="libc.so.6 is here and has no GPU that works: .*undefined symbol: cuInit"):
        find("libc.so.6")
