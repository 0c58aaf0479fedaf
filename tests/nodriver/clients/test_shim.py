"""The clients bare and under the preload library: the same results, the same work, and records of all of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from shim.wire import lib
from tests.nodriver.clients import llm, place
from tests.nodriver.clients.test_c import IMAGES, made
from tests.nodriver.clients.test_programs import LEAST
from tests.nodriver.clients.test_tensors import RENDERERS, results
from tests.nodriver.shim.differential import assert_complete, assert_contents, assert_same_work
from tests.nodriver.shim.observed import STEADY, watch

PAYLOADS = int(lib.WIRE_PAYLOADS)
Both = Callable[[Callable[..., Any], bool], tuple[Any, Any]]


@pytest.fixture(params=[0, pytest.param(PAYLOADS, marks=pytest.mark.long)], ids=["plain", "payloads"])
def both(request: pytest.FixtureRequest, record_property: pytest.RecordProperty) -> Both:
    """What a program gives bare, and under the library with records of all that it did; it takes variables of its
    environment. ``graphs``: whether it launches any."""

    def run(program: Callable[..., Any], graphs: bool) -> tuple[Any, Any]:
        with watch(instrument=STEADY, preload=False) as bare:
            alone = program(**bare.variables)
        with watch(request.param, STEADY) as under:
            recorded = program(**under.variables)
        pieces = assert_complete(under)
        assert pieces["kernel"] and pieces["copy"]
        assert bool(assert_contents(under)) == bool(request.param)
        nodes = sum(line["graph"] for line in under.work())
        assert bool(nodes) == graphs
        for kind, count in pieces.items():
            record_property(f"{kind} under the library", count)
        record_property("nodes of graphs", nodes)
        record_property("bytes to the host", assert_same_work(bare, under))
        return alone, recorded

    return run


@pytest.mark.parametrize("image", IMAGES)
def test_c(image: str, image_program: Path, tmp_path: Path, both: Both) -> None:
    path = made(image, tmp_path / "image")
    for done in both(lambda **variables: place.done([image_program, path], **variables), False):
        assert (done.stdout, done.stderr) == ("done\n", "")


@pytest.mark.parametrize("program", LEAST)
def test_programs(program: str, both: Both) -> None:
    bare, under = both(lambda **variables: place.run(program, **variables), program == "cuda_bindings.py")
    assert under == bare and not any(json.loads(bare.splitlines()[-1]).values())


RUNS = [("PTX", "1", "recorded"), ("NVRTC", "2", "recorded"),
        *[pytest.param(*run, marks=pytest.mark.long) for run in (("PTX", "2", "all"), ("NVRTC", "1", "all"))]]


@pytest.mark.parametrize(("renderer", "jit", "choice"), RUNS)
def test_tensors(renderer: str, jit: str, choice: str, tmp_path: Path, both: Both) -> None:
    path = tmp_path / "found.npz"
    bare, under = both(lambda **variables: results(path, RENDERERS[renderer], choice, JIT=jit, **variables), jit == "1")
    assert under.keys() == bare.keys() and len(bare) > 20
    assert [name for name, value in under.items() if value.tobytes() != bare[name].tobytes()] == []


@pytest.mark.long
def test_tokens(both: Both) -> None:
    bare, under = both(lambda **variables: llm.greedy("CUDA", [], **variables)["steps"], True)
    assert under == bare and len(bare) == llm.COUNT


def test_server(both: Both) -> None:
    """It answers as on tinygrad's CPU device."""
    expected = json.loads(llm.ANSWERS.read_text())["answer"]

    def said(**variables: str) -> dict[str, Any]:
        reply = llm.answer("CUDA:PTX", **variables)
        assert reply["object"] == "chat.completion"
        (choice,) = reply["choices"]
        return {"message": choice["message"], "finish": choice["finish_reason"], "usage": reply["usage"]}

    bare, under = both(said, True)
    assert under == bare
    assert (bare["message"], bare["usage"]) == (expected["message"], expected["usage"])
