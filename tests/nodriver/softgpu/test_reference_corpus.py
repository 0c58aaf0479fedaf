"""Every kernel of the reference corpus and of our fixtures can be executed, but for those refused by name."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ptxparse.model import parameter_layout
from ptxparse.parser import parse
from softgpu.reference import LoadedModule, Memory, Schedule, launch, unsupported
from tests.material import require_material

FIXTURES = Path(__file__).parents[2] / "fixtures" / "ptx"
REFUSED = {"tma_matmul": "tensormap", "bulk_copy": "mbarrier", "bulk_store": "cp.async.bulk"}
"""Kernels that are refused, and the opcode for which they are."""


def check_all(paths: list[Path]) -> int:
    kernels = 0
    for path in paths:
        module = parse(path.read_text(), path.name)
        for entry in module.entries:
            kernels += 1
            refused = unsupported(entry, module)
            if entry.name in REFUSED:
                assert refused[0][0].startswith(REFUSED[entry.name])
            else:
                assert refused == [], f"{path.name}: {entry.name}"
    return kernels


def test_the_corpus_decodes_whole() -> None:
    assert check_all(sorted((require_material() / "corpus" / "ptx").glob("*.ptx"))) == 115


def test_our_fixtures_decode_whole() -> None:
    assert check_all(sorted(FIXTURES.glob("*.ptx"))) > 50


def memory_after(text: str, given: dict[str, Any], schedule: Schedule) -> tuple[list[bytes], int]:
    """Contents of all buffers after a recorded launch on fixed random floats, and the number of accesses."""
    module = parse(text)
    memory = Memory()
    kernel = module.function(given["kernel"])
    assert kernel is not None
    slots, size = parameter_layout(kernel)
    params = bytearray(size)
    random = np.random.default_rng(5)
    buffers = []
    for slot, parameter in zip(slots, given["params"], strict=True):
        if "i32" in parameter:
            struct.pack_into("<i", params, slot.offset, parameter["i32"])
            continue
        length = parameter["ptr_bytes"]
        address = memory.allocate(length)
        memory.write(address, random.random(length // 4 + 1, np.float32).view(np.uint8)[:length])
        struct.pack_into("<Q", params, slot.offset, address)
        buffers.append((address, length))
    loaded = LoadedModule(module, memory)
    result = launch(loaded, given["kernel"], given["grid"], given["block"], bytes(params), shared=given["shared"],
                    schedule=schedule)
    return [memory.read(*buffer) for buffer in buffers], len(result.log)


def test_recorded_launches_agree_under_two_schedules(long_run: bool) -> None:
    corpus = require_material() / "corpus"
    launches = json.loads((corpus / "launches.json").read_text())
    for number, (name, given) in enumerate(sorted(launches.items())):
        if not long_run and number % 3:
            continue
        text = (corpus / "ptx" / name).read_text()
        first, accesses = memory_after(text, given, Schedule())
        second, again = memory_after(text, given, Schedule("reverse"))
        assert first == second, name
        assert accesses == again > 0


@pytest.mark.parametrize("mnemonic", [
    "wgmma.fence.sync.aligned", "mbarrier.init.shared::cta.b64 [%rd1], 1", "vote.all.pred %p1, %p2",
    "fence.mbarrier_init.release.cluster", "cp.async.bulk.commit_group",
    "tex.1d.v4.f32.s32 {%f1, %f1, %f1, %f1}, [t, {%r1}]",
])
def test_refusal_names_the_full_mnemonic_and_line(mnemonic: str) -> None:
    text = (".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k()\n{ .reg .b32 %r<2>; .reg .b64 %rd<2>;"
            f".reg .pred %p<2>; .reg .f32 %f<2>;\n{mnemonic};\nret; }}")
    module = parse(text)
    assert unsupported(module.entries[0], module) == [(mnemonic.split(maxsplit=1)[0], 6)]
