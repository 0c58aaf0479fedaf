"""Descriptions of modules in C: the same as in Python, and damaged ones are errors, whatever they say."""

from __future__ import annotations

import json
import random
import subprocess
from pathlib import Path
from typing import Any

import pytest

from softgpu.engine.description import describe
from tools import driver, native
from tools.venv import PYTHON

FOLDER = Path(__file__).resolve().parent / "parts"
PARTS = [driver.SOURCES / name for name in ("description.c", "json.c", "storage.c")]
UNKNOWN, INVALID_PTX = 999, 218

MODULE = b"""
.version 8.0
.target sm_80
.address_size 64
.global .align 4 .b8 words[12] = {1, 2, 255};
.visible .const .align 8 .f64 half = 0d3FE0000000000000;
.global .u64 places[3] = {words, words+8, callee};
.global .align 1 .b8 bytes[8] = {0xFF(words), 0xFF00(words)};
.global .align 16 .b8 room[1048576];
.visible .func callee() { ret; }
.visible .entry second(.param .u32 n, .param .align 16 .b8 block[48], .param .u64 p) .maxntid 128, 2 .minnctapersm 3
{ ret; }
.visible .entry first() .reqntid 32, 4, 2 .reqnctapercluster 2 .maxnreg 40 { ret; }
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("parts") / "description"
    folders = [f"-I{folder}" for folder in (driver.headers(PYTHON), driver.SOURCES, native.SOURCES)]
    subprocess.run([native.compiler(), *native.FLAGS, *native.sanitizer_flags("address,undefined"), *folders,
                    FOLDER / "description.c", *PARTS, "-o", path], check=True, timeout=60)
    return path


def read(program: Path, *texts: bytes) -> list[str]:
    done = subprocess.run([program], input=b"".join(text + b"\0" for text in texts), capture_output=True, timeout=60,
                          check=False)
    assert done.returncode == 0, done.stderr.decode()
    lines = done.stdout.decode(errors="replace").splitlines()
    assert len(lines) == len(texts)
    return lines


def encoded(description: Any) -> bytes:
    return json.dumps(description, separators=(",", ":")).encode()


def test_what_python_writes_is_what_c_reads(program: Path) -> None:
    description = describe(MODULE)
    kernels, variables = json.loads(read(program, encoded(description))[0])
    assert kernels == [
        ["second", 8, 72, [[0, 4, 4], [16, 48, 16], [64, 8, 8]], [0, 0, 0], 256, 3, 0, [0, 0, 0]],
        ["first", 8, 0, [], [32, 4, 2], 256, 0, 40, [2, 1, 1]],
    ]
    names = [variable["name"] for variable in description["variables"]]
    for found, variable in zip(variables, description["variables"], strict=True):
        relocations = [[r["offset"], -1 if "address" in r else names.index(r["symbol"]), r.get("address", 0),
                        r["addend"], r["first"], r["bytes"]] for r in variable["relocations"]]
        assert found == [variable["name"], variable["space"] == "const", variable["size"], variable["align"],
                         variable["initial"], relocations]
    assert sum(len(variable[5]) for variable in variables) == 5
    assert read(program, json.dumps(description, indent=2).encode()) == read(program, encoded(description))


def test_what_is_unresolved(program: Path) -> None:
    missing = MODULE + b".extern .global .u32 other;\n.global .u64 place = other;\n"
    assert describe(missing)["unresolved"] == ["other"]
    assert read(program, encoded(describe(missing))) == [f"{INVALID_PTX} undefined reference to 'other'"]
    unused = MODULE + b".extern .global .u32 other;\n.extern .func (.param .b32 r) vprintf(.param .b64 a);\n"
    assert describe(unused)["unresolved"] == []


KERNEL = {"name": "k", "registers": 9, "parameter_bytes": 8, "directives": {},
          "parameters": [{"offset": 0, "size": 8, "align": 8}]}
VARIABLE = {"name": "v", "space": "global", "size": 8, "align": 8, "initial": "00" * 8,
            "relocations": [{"offset": 0, "symbol": "v", "addend": -5, "first": 0, "bytes": 8}]}
"""One of each that is good."""


def whole(kernel: dict[str, Any] | None = None, variable: dict[str, Any] | None = None, **more: Any) -> bytes:
    """A description with some members set to something else; None leaves one out."""
    kernels = {name: value for name, value in {**KERNEL, **(kernel or {})}.items() if value is not None}
    variables = {name: value for name, value in {**VARIABLE, **(variable or {})}.items() if value is not None}
    return encoded({"kernels": [kernels], "variables": [variables], "unresolved": [], **more})


def parameter(**changes: int) -> dict[str, Any]:
    return {"parameters": [{"offset": 0, "size": 8, "align": 8, **changes}]}


def relocation(**changes: Any) -> dict[str, Any]:
    return {"relocations": [{"offset": 0, "symbol": "v", "addend": 0, "first": 0, "bytes": 8, **changes}]}


DAMAGED = {
    "empty": b"", "no object": b"[]", "open": b'{"kernels":[', "behind": whole() + b"x", "two": whole() * 2,
    "no lists": b"{}", "no variables": b'{"kernels":[],"unresolved":[]}', "comma": whole()[:-1] + b",}",
    "deep": b'{"other":' + b"[" * 100000 + b"]" * 100000 + b"}", "escape": whole({"name": "a\\b"}),
    "control": whole().replace(b'"k"', b'"\n"'), "no name": whole({"name": None}),
    "no registers": whole({"registers": None}), "number as name": whole({"name": 7}),
    "no parameters": whole({"parameters": None}), "parameter outside": whole(parameter(size=9)),
    "parameters overlap": whole({"parameters": KERNEL["parameters"] * 2}), "misplaced": whole(parameter(offset=4)),
    "no alignment": whole(parameter(align=0)), "alignment 3": whole(parameter(align=3)),
    "negative": whole(parameter(size=-1)), "huge": whole(parameter(size=1 << 32)),
    "endless": whole(parameter(size=1 << 200)), "fraction": whole().replace(b'"size":8', b'"size":8.5'),
    "zero first": whole().replace(b'"size":8', b'"size":08'), "directive": whole({"directives": {"maxntid": "x"}}),
    "space": whole({}, {"space": "shared"}), "no digits": whole({}, {"initial": "0g"}),
    "odd": whole({}, {"initial": "000"}), "capitals": whole({}, {"initial": "AA" * 8}),
    "too long": whole({}, {"initial": "00" * 9}),
    "no initial": whole({}, {"initial": None}), "align": whole({}, {"align": 12}),
    "relocation outside": whole({}, relocation(offset=1)), "far outside": whole({}, relocation(offset=(1 << 64) - 1)),
    "no bytes": whole({}, relocation(bytes=0)), "nine bytes": whole({}, relocation(bytes=9)),
    "late": whole({}, relocation(first=4)), "no symbol": whole({}, relocation(symbol=None)),
    "large addend": whole({}, relocation(addend=1 << 63)), "twice": whole({"parameters": []}).replace(
        b'}],"variables"', b',"parameters":[{}]}],"variables"'),
}  # fmt: skip


def test_damaged_descriptions(program: Path) -> None:
    assert read(program, whole(), whole(more={"x": [1, -2.5e3, "\\\"", None, {"a": {}}]}))[0].startswith("[[")
    expected = f"{UNKNOWN} the description of a module is damaged"
    found = dict(zip(DAMAGED, read(program, *DAMAGED.values()), strict=True))
    # A member that comes twice is skipped the second time.
    assert {name for name, line in found.items() if line != expected} == {"twice"}


def test_random_damage_harms_nobody(program: Path) -> None:
    choice = random.Random(5)
    good = encoded(describe(MODULE.replace(b"1048576", b"16")))
    texts = []
    for _ in range(3000):
        text = bytearray(good)
        for _ in range(choice.randint(1, 3)):
            start = choice.randrange(len(text))
            end = start + choice.choice((0, 1, 1, 2, 30))
            text[start:end] = choice.choice((b"", b"9", b'"', b"[", b"]", b"{", b"}", b",", b"-1", b"null", b"\xff"))
        texts.append(bytes(text).replace(b"\0", b""))
    lines = read(program, *texts)
    good_ones = sum(line.startswith("[[") for line in lines)
    assert 30 < good_ones < 2900
