"""The kit for a real GPU: what goes into it, and the program that runs its checks."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tessera import real_gpus
from tessera.environment import PYTHON
from tests.device import doors
from tests.material import ROOT
from tests.nodriver.tessera.test_layers import imported
from tools import kit, kit_check, venv
from tools.steps import StepFailed

SCHEMA = json.loads((ROOT / "docs" / "schema" / "gpu-kit.json").read_text(encoding="utf-8"))


def test_all_that_the_checks_import_of_ours_goes_along() -> None:
    sources = kit.sources()
    assert all(path.is_file() for path in sources)
    names = {path.relative_to(ROOT).with_suffix("").as_posix().replace("/", ".") for path in sources}
    present = names | {name.removesuffix(".__init__") for name in names}
    for path in sources:
        if path.suffix == ".py":
            ours = {name for name in imported(path) if name.split(".")[0] in {"tests", "tools", "benchmarks", "build"}}
            assert ours <= present, path


def test_both_rooms_run_all_bodies() -> None:
    bodies = {path.stem for path in (ROOT / "tests" / "device").glob("*.py") if "\ndef test_" in path.read_text()}
    for room in ("softgpu/device", "gpu/hardware"):
        files = (ROOT / "tests" / room).glob("test_*.py")
        assert {path.read_text() for path in files} == {f"from tests.device.{body} import *\n" for body in bodies}


def test_a_kit_that_is_too_large_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = [tmp_path / "small", tmp_path / "large"]
    files[0].write_bytes(b"1")
    files[1].write_bytes(b"123")
    kit.check_size(files)
    monkeypatch.setattr(kit, "LIMIT", 3)
    with pytest.raises(StepFailed, match=f"takes 4 bytes, more than 3; the largest file is {files[1]}"):
        kit.check_size(files)


JUNIT = (
    '<testsuites><testsuite><testcase name="a" time="1.5">'
    '<properties><property name="microseconds: a hop" value="7.5"/></properties><system-out>'
    '{"driver": {"version": 13010, "devices": [{"name": "X", "memory": 1048576}]}}\nwords\n7\n'
    '{"question": {"wrong": []}}\n{"doors of a program": "%(long)s"}\n'
    "</system-out></testcase>%(more)s</testsuite></testsuites>"
)


@pytest.mark.parametrize(
    ("more", "verdict"),
    [
        ("", "passed"),
        ('<testcase name="b"><failure message="m">why</failure></testcase>', "failed"),
        ('<testcase name="b"><error message="m">why</error></testcase>', "failed"),
        ('<testcase name="b"><skipped type="pytest.skip" message="why"/></testcase>', "passed"),
    ],
)
def test_what_is_reported(tmp_path: Path, more: str, verdict: str) -> None:
    (tmp_path / "one.xml").write_text(JUNIT % {"more": more, "long": "x" * kit_check.LONG})
    found = kit_check.Found()
    kit_check.read(tmp_path / "one.xml", found)
    assert found.measured == {"microseconds: a hop": 7.5}
    assert set(found.facts) == {"driver", "question", "doors of a program"}
    assert [one["message"] for one in found.results] == ["", *["why"] * bool(more)]
    assert found.verdict() == verdict
    report = {
        "schema": "tessera.gpu-kit", "version": 1, "verdict": found.verdict(), "room": "gpu", "started": "now",
        "seconds": 1.0, "kit": {"commit": "1", "python": "3.11"}, "system": kit_check.system(),
        "results": found.results, "measured": found.measured, "facts": found.facts,
    }  # fmt: skip
    jsonschema.validate(report, SCHEMA)
    text = kit_check.text(report)
    assert "driver: CUDA 13.1\ndevice: X, 1 MiB\n" in text
    assert "microseconds: a hop: 7.5" in text
    assert 'question: {"wrong": []}\n' in text and "doors of a program" not in text  # which is long
    assert text.count("why") == bool(more)


@pytest.mark.parametrize(
    ("listed", "alone", "under", "where"),
    [
        (True, 10, "cuOne", "doors"),
        (True, 10, "cuSame", "doors"),  # two names of one address
        (True, 10, "cuTwo", "wrong"),
        (True, 99, "cuOne", "private"),
        (True, 10, 10, "wrong"),  # no door
        (True, 99, 99, "passed"),  # there is no symbol of the driver that a door could lead to
        (False, 10, 10, "passed"),
        (False, 10, 20, "wrong"),
        (False, 10, None, "wrong"),
        (True, None, "cuOne", "wrong"),
        (True, None, None, ""),
    ],
)
def test_what_is_right_of_a_way_to_a_function(listed: bool, alone: int | None, under: Any, where: str) -> None:
    compared = doors.Compared({"cuOne": 10, "cuSame": 10, "cuTwo": 20})
    compared.add("dlsym", "cuOne", listed, alone, under)
    found = {name for name in ("wrong", "private", "passed") if getattr(compared, name)}
    assert found == {where} - {"doors", ""}
    assert compared.doors["dlsym"] == (where == "doors" or (isinstance(under, str) and alone is not None))


def test_nothing_but_skipped_checks_is_nothing_checked() -> None:
    skipped = {"test": "a", "outcome": "skipped", "seconds": 0.0, "message": "no driver of NVIDIA"}
    assert kit_check.Found([skipped]).verdict() == "nothing checked"
    assert kit_check.Found([skipped, skipped | {"outcome": "not run"}]).verdict() == "failed"


def test_a_command_out_of_time_is_ended_with_its_children() -> None:
    status, output = kit_check.ended(["sh", "-c", "echo begun; sleep 60 & wait"], 0.5)
    assert (status, output) == (None, "begun\n")


def test_it_says_which_python_it_needs(tmp_path: Path) -> None:
    shutil.copy2(kit.PROGRAM["check"], tmp_path / "check")
    (tmp_path / "python").write_text("9.9\n")
    done = subprocess.run([tmp_path / "check"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == "check: needs Python 9.9 with its modules venv and ensurepip; PYTHON=... names one\n"


def made(python: str) -> None:
    """Make a kit, and look at what is in it."""
    done = subprocess.run([sys.executable, "build.py", "gpu-kit", "--python", python], cwd=ROOT, capture_output=True,
                          text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    files = kit.walk(kit.KIT)
    assert sum(path.stat().st_size for path in files) <= kit.LIMIT
    held = {path.relative_to(kit.KIT).as_posix() for path in files if path.parent.name != "wheels"}
    optional = {"checks/made/cudart", "checks/made/launches"}  # where there are compilers
    expected = {*kit.PROGRAM, "requirements.txt", "python", "kit.json", "checks/made/tiny.gguf"}
    assert held - optional == expected | {f"checks/{path.relative_to(ROOT).as_posix()}" for path in kit.sources()}
    lines = venv.KIT_LOCKS[python].read_text().splitlines()
    locked = [line.split("==")[0].replace("-", "_") for line in lines if "==" in line]
    wheels = [path.name.split("-")[0].lower() for path in (kit.KIT / "wheels").iterdir()]
    assert sorted(wheels) == sorted([*locked, "tessera_gpu"])


@pytest.mark.long
def test_kits_are_complete_and_run_on_the_software_driver(tmp_path: Path) -> None:
    own = f"{sys.version_info.major}.{sys.version_info.minor}"
    for python in sorted(venv.KIT_LOCKS, key=lambda version: version == own):
        made(python)
    if own not in venv.KIT_LOCKS:
        pytest.skip(f"the kit does not support Python {own}")
    variables = {**os.environ, PYTHON.name: sys.executable, "PYTHON": sys.executable}
    for options, status, verdict in ((["--softgpu"], 0, "passed"), ([], 4, "nothing checked")):
        if status == 4 and real_gpus.find() is not None:
            continue
        command = [kit.KIT / "check", "--output", tmp_path, *options]
        done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=900, check=False)
        report = json.loads((tmp_path / "report.json").read_text())
        jsonschema.validate(report, SCHEMA)
        assert (done.returncode, report["verdict"]) == (status, verdict), done.stdout + done.stderr
