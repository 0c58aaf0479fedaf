"""``tessera graph`` as people, scripts and Graphviz get it."""

from __future__ import annotations

import json
import re
import shlex
import struct
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shim.wire import Kind
from tessera.cli import app
from tessera.cli.reporters import graph_dot, graph_svg
from tessera.errors import ExitCode
from tests.material import ROOT
from tests.program_records import Program, write

TRACES = ROOT / "tests" / "fixtures" / "traces"
KEPT = sorted(path.stem for path in TRACES.glob("*.trace"))
SCHEMA = json.loads((ROOT / "docs" / "schema" / "graph.json").read_text(encoding="utf-8"))
SVG = "{http://www.w3.org/2000/svg}"
ODD = 'a<b> & "c\\d"\n]]>'


def tessera(*words: str, monkeypatch: pytest.MonkeyPatch) -> int:
    """Run the command line in this process; its exit code."""
    monkeypatch.setattr(sys, "argv", ["tessera", *words])
    with pytest.raises(SystemExit) as left:
        app.main()
    assert isinstance(left.value.code, int)
    return left.value.code


@pytest.fixture
def odd(tmp_path: Path) -> str:
    """A trace with kernels of an odd name that nobody has the PTX of, in two streams that nothing orders."""
    program = Program()
    program.begin()
    for handle in (0x51, 0x52):
        program.record(Kind.STREAM, handle=handle, context=0xC000, flags=1)
    program.function(ODD, [(0, 8)])
    for stream in (0x51, 0x52):
        program.launch(struct.pack("<Q", 0x10000), place=(stream, 0xC000))
    program.synchronize()
    return str(write(tmp_path / "odd.trace", program))


def document(path: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """The JSON output, checked against the schema, and that what it refers to is there."""
    assert tessera("graph", path, "--json", monkeypatch=monkeypatch) == ExitCode.OK
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    jsonschema.Draft202012Validator(SCHEMA).validate(found)
    operations, inputs = ([one["name"] for one in found[what]] for what in ("operations", "inputs"))
    assert len({*operations, *inputs}) == len(operations) + len(inputs)
    assert all(one["stream"] < len(found["streams"]) for one in found["operations"])
    for edge in found["edges"]:
        assert edge["target"] in operations
        assert edge["source"] in (inputs if edge["ordered"] is None else operations)
    parts = [*[part for one in found["inputs"] for part in one["parts"]],
             *[part for edge in found["edges"] for why in edge["why"] for part in why["parts"]]]
    for part in parts:
        assert part["area"] is None or part["hi"] <= found["areas"][part["area"]]["bytes"]
    return found


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("stem", KEPT)
def test_the_json_of_kept_traces(
    stem: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = document(str(TRACES / f"{stem}.trace"), monkeypatch, capsys)
    assert found["edges"] and not any(one["opaque"] for one in found["operations"])
    assert "nothing" not in {edge["ordered"] for edge in found["edges"]}


def test_the_kept_steps_of_tinygrad(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    found = document(str(TRACES / "tinygrad_steps.trace"), monkeypatch, capsys)
    chain = [one["name"] for one in found["operations"]]
    flows = {(e["source"], e["target"]) for e in found["edges"] for why in e["why"] if why["kind"] == "RAW"}
    assert len(chain) == 6 and set(pairwise(chain)) <= flows
    assert [one["bytes"] for one in found["inputs"] if one["weights"]] == [8192, 2048]


def test_opaque_and_unordered(
    odd: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = document(odd, monkeypatch, capsys)
    assert [(one["kernel"], one["read"], one["opaque"]) for one in found["operations"]] == [
        (ODD, None, "unknown_kernel")] * 2
    assert [(edge["ordered"], [why["parts"] for why in edge["why"]]) for edge in found["edges"]] == [
        ("nothing", [[], []])]
    assert tessera("graph", odd, monkeypatch=monkeypatch) == ExitCode.OK
    text = capsys.readouterr().out
    first, second = (one["name"] for one in found["operations"])
    assert f"nothing orders {first} before {second}: a race" in text
    assert f"{first} is opaque (unknown_kernel): No record says which kernel it is" in text


def test_the_documented_session_is_what_happens() -> None:
    page = (ROOT / "docs" / "graph.md").read_text(encoding="utf-8")
    command, _, expected = page.split("```\n$ ")[1].split("\n```")[0].partition("\n")
    done = subprocess.run([sys.executable, "-m", "tessera", *shlex.split(command)[1:]], cwd=ROOT, capture_output=True,
                          text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == expected + "\n"


@pytest.mark.parametrize("stem", [*KEPT, "odd"])
def test_text_for_graphviz(
    stem: str, odd: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = odd if stem == "odd" else str(TRACES / f"{stem}.trace")
    found = document(path, monkeypatch, capsys)
    assert tessera("graph", path, "--dot", monkeypatch=monkeypatch) == ExitCode.OK
    text = capsys.readouterr().out
    bare = re.sub(r'"(?:[^"\\]|\\.)*"', "S", text)  # as Graphviz reads strings
    assert '"' not in bare
    assert bare.startswith("digraph step {\n") and bare.endswith("}\n")
    assert bare.count("\n S [label=S") == len(found["operations"]) + len(found["inputs"])
    assert bare.count("\n S -> S [label=S, tooltip=S, style=") == sum(len(edge["why"]) for edge in found["edges"])
    assert ("color=red" in bare) == (stem == "odd")


@given(st.text())
def test_strings_for_graphviz_hold_any_text(text: str) -> None:
    quoted = graph_dot.quoted(text)
    assert re.fullmatch(r'"(?:[^"\\\n]|\\.)*"', quoted)
    shown = re.sub(r"\\(.)", lambda found: {"n": "\n"}.get(found[1], found[1]), quoted[1:-1])
    assert len(shown) == len(text)
    assert all(a == b or b == "\N{REPLACEMENT CHARACTER}" for a, b in zip(text, shown, strict=True))


@pytest.mark.parametrize("stem", [*KEPT, "odd"])
def test_pictures(
    stem: str, odd: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path, picture = odd if stem == "odd" else str(TRACES / f"{stem}.trace"), tmp_path / "step.svg"
    found = document(path, monkeypatch, capsys)
    assert tessera("graph", path, "--svg", str(picture), monkeypatch=monkeypatch) == ExitCode.OK
    assert capsys.readouterr().out.startswith("step ")
    root = ElementTree.parse(picture).getroot()
    boxes = [tuple(map(float, re.findall(r"[\d.]+", g.attrib["transform"]))) for g in root.findall(f"{SVG}g")]
    assert len(boxes) == len(found["operations"]) + len(found["inputs"])
    assert len(root.findall(f"{SVG}path")) == len(found["edges"])
    for place, (x, y) in enumerate(boxes):
        assert x + graph_svg.WIDTH <= float(root.attrib["width"])
        assert y + graph_svg.HEIGHT <= float(root.attrib["height"])
        for other_x, other_y in boxes[:place]:
            assert abs(x - other_x) >= graph_svg.WIDTH or abs(y - other_y) >= graph_svg.HEIGHT


@given(st.text())
def test_pictures_hold_any_text(text: str) -> None:
    shown = ElementTree.fromstring(f"<t>{graph_svg.plain(text)}</t>").text or ""
    assert len(shown) == len(text)


def test_what_does_not_fit_together(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(TRACES / "tinygrad_steps.trace")
    assert tessera("graph", path, "--json", "--dot", monkeypatch=monkeypatch) == ExitCode.USAGE
    assert capsys.readouterr().err == "tessera: --json and --dot: one of them\n"
    assert tessera("graph", path, "--step", "nothing", monkeypatch=monkeypatch) == ExitCode.BAD_INPUT
    assert "no step whose signature begins with 'nothing'" in capsys.readouterr().err
    assert tessera("graph", path, "--client", "9", monkeypatch=monkeypatch) == ExitCode.BAD_INPUT
    assert "client 9: no steps" in capsys.readouterr().err
    assert tessera("graph", path, "--svg", str(ROOT), monkeypatch=monkeypatch) == ExitCode.BAD_INPUT
    assert capsys.readouterr().err == f"tessera: {ROOT}: Is a directory\n"
    assert tessera("graph", str(ROOT / "README.md"), monkeypatch=monkeypatch) == ExitCode.BAD_INPUT


def test_without_the_package_it_says_what_it_needs() -> None:
    program = "import sys\nsys.modules['networkx'] = None\nfrom tessera.cli.app import main\n"
    words = ["graph", str(TRACES / "tinygrad_steps.trace")]
    done = subprocess.run([sys.executable, "-c", f"{program}sys.argv[1:] = {words!r}\nsys.exit(main())"], cwd=ROOT,
                          capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (
        4, "tessera: graphs need the package networkx (the extra 'orchestrator'): "
           "pip install 'tessera-gpu[orchestrator]'\n")
