"""``tessera ptx --json``: every output fits its schema, and says what the analysis says."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from ptxparse.launch_text import parse_launch
from tessera.cli import app
from tessera.cli.examination import apply_launch, examine
from tessera.cli.reporters import ptx_json
from tessera.reasons import Reason
from tests.material import ROOT, require_material

SCHEMA = json.loads((ROOT / "docs" / "schema" / "ptx.json").read_text(encoding="utf-8"))
EXAMPLES = sorted((ROOT / "examples").glob("*.ptx"))
FIXTURES = sorted((ROOT / "tests" / "fixtures" / "ptx").rglob("*.ptx"))
KERNELS = ROOT / "examples" / "kernels.ptx"


def validated(document: Any) -> Any:
    jsonschema.Draft202012Validator(SCHEMA).validate(document)
    return document


def output(path: Path, launch: str | None = None, kernel: str | None = None) -> Any:
    """The output for one file as a reader gets it, checked against the schema."""
    found = [examine(str(path), kernel)]
    if launch is not None:
        apply_launch(found, parse_launch(launch))
    return validated(json.loads(json.dumps(ptx_json.document(found))))


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("path", EXAMPLES + FIXTURES, ids=lambda path: path.stem)
def test_output_fits_the_schema(path: Path) -> None:
    file = output(path)["files"][0]
    assert file["error"] is None
    assert file["kernels"]
    for kernel in file["kernels"]:
        assert kernel["opaque"] is None or Reason(kernel["opaque"])
        assert (kernel["opaque"] is None) == (kernel["problems"] == [])


def test_output_for_the_corpus_fits_the_schema() -> None:
    files = sorted((require_material() / "corpus" / "ptx").glob("*.ptx"))
    document = validated(json.loads(json.dumps(ptx_json.document([examine(str(path)) for path in files]))))
    assert sum(len(file["kernels"]) for file in document["files"]) == 115


def test_schema_refuses_what_is_not_described() -> None:
    document = output(KERNELS)
    document["files"][0]["kernels"][0]["accesses"][0]["kind"] = "MAYBE"
    with pytest.raises(jsonschema.ValidationError):
        validated(document)
    document = output(KERNELS)
    document["files"][0]["surprise"] = 1
    with pytest.raises(jsonschema.ValidationError):
        validated(document)


def test_what_is_said_of_saxpy() -> None:
    saxpy = output(KERNELS)["files"][0]["kernels"][0]
    assert (saxpy["name"], saxpy["line"], saxpy["opaque"], saxpy["deterministic"]) == ("saxpy", 9, None, True)
    assert [(p["type"], p["offset"], p["size"]) for p in saxpy["params"]] == [
        ("u64", 0, 8), ("u64", 8, 8), ("f32", 16, 4), ("u32", 20, 4),
    ]
    assert [(a["kind"], a["base"], a["line"]) for a in saxpy["accesses"]] == [
        ("R", "saxpy_param_1", 36), ("R", "saxpy_param_0", 38), ("W", "saxpy_param_0", 40),
    ]
    write = saxpy["accesses"][2]
    assert write["offset"] == "4*ctaid.x*ntid.x + 4*tid.x"
    assert write["spans"] == [[0, 4]]
    assert write["conditions"] == ["ctaid.x*ntid.x + tid.x < saxpy_param_3"]
    assert write["range"] is None


def test_what_is_said_of_a_launch() -> None:
    launch = "grid=2 block=32 args=ptr:4000,ptr:8000,f32:2,i32:50"
    saxpy = output(KERNELS, launch, "saxpy")["files"][0]["kernels"][0]
    assert [(a["kind"], a["range"], a["exact"]) for a in saxpy["accesses"]] == [
        ("R", {"allocation": "saxpy_param_1", "lo": 0, "hi": 200}, True),
        ("R", {"allocation": "saxpy_param_0", "lo": 0, "hi": 200}, True),
        ("W", {"allocation": "saxpy_param_0", "lo": 0, "hi": 200}, True),
    ]
    made = saxpy["launch"]
    assert (made["grid"], made["block"], made["shared"], made["opaque"]) == ([2, 1, 1], [32, 1, 1], 0, None)
    assert [(a["name"], a["size"]) for a in made["allocations"]] == [("saxpy_param_0", 4000), ("saxpy_param_1", 8000)]
    assert {(r["kind"], r["allocation"], r["lo"], r["hi"]) for r in made["ranges"]} == {
        ("R", "saxpy_param_1", 0, 200), ("R", "saxpy_param_0", 0, 200), ("MUSTW", "saxpy_param_0", 0, 200),
    }


def test_module_variables_have_memory_at_a_launch() -> None:
    text = KERNELS.read_text(encoding="utf-8")
    start = text.index("{", text.index("saxpy"))
    declared = text[:start].replace(".visible .entry", ".global .align 4 .b8 table[256];\n.visible .entry", 1)
    body = "{\n.reg .b32 %r<2>; .reg .b64 %rd<3>;\nmov.u32 %r1, %tid.x; mul.wide.u32 %rd1, %r1, 4;\n"
    body += "mov.u64 %rd2, table; add.s64 %rd1, %rd2, %rd1; st.global.u32 [%rd1], %r1; ret;\n}\n"
    found = examine_text(declared + body)
    apply_launch(found, parse_launch("grid=1 block=32 args=ptr:8,ptr:8,f32:1,i32:1"))
    kernel = validated(json.loads(json.dumps(ptx_json.document(found))))["files"][0]["kernels"][0]
    assert [(r["kind"], r["allocation"], r["lo"], r["hi"]) for r in kernel["launch"]["ranges"]] == [
        ("MUSTW", "table", 0, 128)
    ]


def examine_text(text: str) -> list[Any]:
    """What is found in a text, as ``examine`` finds it in a file."""
    from tempfile import NamedTemporaryFile

    with NamedTemporaryFile("w", suffix=".ptx") as file:
        file.write(text)
        file.flush()
        return [examine(file.name)]


def test_a_malformed_file_is_an_entry_with_its_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = tmp_path / "broken.ptx"
    broken.write_text(".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k( { ret; }\n")
    monkeypatch.setattr(sys, "argv", ["tessera", "ptx", "--json", str(broken), str(KERNELS), str(tmp_path / "none")])
    with pytest.raises(SystemExit) as left:
        app.main()
    assert left.value.code == 3
    first, second, third = validated(json.loads(capsys.readouterr().out))["files"]
    assert (first["error"]["line"], first["module"], first["kernels"]) == (4, None, [])
    assert first["error"]["column"] >= 1
    assert [kernel["name"] for kernel in second["kernels"]] == ["saxpy", "matmul_tiled"]
    assert third["error"]["message"].endswith("none: No such file or directory")
