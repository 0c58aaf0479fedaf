"""tinygrad's tensors on the software driver: programs give what numpy or tinygrad's CPU device makes of the same."""

from __future__ import annotations

import hashlib
import sqlite3
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest

from tests.nodriver.clients import compare, place

CPU = "CPU:X86"
"""tinygrad's CPU device with the compiler that is its own, so that the tests need no clang."""
RENDERERS = {"PTX": f"CUDA:PTX;{CPU}", "NVRTC": f"CUDA;{CPU}"}
"""Copies between devices go by way of the CPU device where they cannot be made directly."""
SECONDS = 400.0
NOT_IN_TINYGRAD = {
    "PTX": {
        "functions of doubles": "CUDA Error",  # its PTX has sin.approx.f64 and the like, which do not exist
        "arithmetic in double": "CUDA Error",  # likewise rcp.approx.f64
        "reductions in bfloat16": "needs to be memory",  # its renderer raises
    },
    "NVRTC": {},
}
"""Cases that tinygrad's renderers cannot do on any device, with a piece of what they say."""


def results(path: Path, device: str, choice: str, **variables: str) -> compare.Found:
    """What the programs give on one device, whose compiled programs are kept."""
    place.run("tensors.py", path, choice, seconds=SECONDS, DEV=device, CACHEDB=str(programs(device)), **variables)
    return dict(np.load(path))


def programs(device: str) -> Path:
    return place.made("tinygrad") / f"{device.replace(':', '-').replace(';', '-')}.db"


@pytest.fixture(scope="session")
def on_cpu() -> compare.Found:
    """Those of which nothing else says what they should give, on the CPU; made anew when the programs have changed."""
    sources = b"".join(path.read_bytes() for path in sorted(place.PROGRAMS.glob("tensor*.py")))
    digest = hashlib.sha256(version("tinygrad").encode() + sources).hexdigest()
    path = place.made("tinygrad") / f"cpu-{digest[:16]}.npz"
    with place.alone("cpu"):
        if not path.exists():
            assert not compare.errors(results(path.with_suffix(".unfinished.npz"), CPU, "unknown"))
            path.with_suffix(".unfinished.npz").rename(path)
    return dict(np.load(path))


RUNS = [
    ("PTX", "1", "first", 41), ("NVRTC", "2", "second", 41), ("PTX", "2", "recorded", 9), ("NVRTC", "1", "recorded", 9),
    *[pytest.param(*run, marks=pytest.mark.long) for run in (("PTX", "1", "all", 116), ("NVRTC", "2", "all", 119))],
]  # fmt: skip


@pytest.mark.parametrize(("renderer", "jit", "choice", "least"), RUNS)
def test_programs_agree(
    renderer: str, jit: str, choice: str, least: int, on_cpu: compare.Found, tmp_path: Path
) -> None:
    found = results(tmp_path / "found.npz", RENDERERS[renderer], choice, JIT=jit)
    errors = compare.errors(found)
    assert all(piece in errors.pop(name, piece) for name, piece in NOT_IN_TINYGRAD[renderer].items())
    assert not errors
    assert len(compare.names(found)) >= least
    assert compare.from_numpy(found) == []
    assert compare.differences(found, on_cpu) == []
    compiled = compiled_texts(programs(RENDERERS[renderer]))
    assert any(b"mma.sync" in text and b".f16" in text for text in compiled)
    if renderer == "NVRTC" and choice != "recorded":  # the other one has no bfloat16
        assert any(b"mma.sync" in text and b".bf16" in text for text in compiled)


def compiled_texts(path: Path) -> list[bytes]:
    """The kernels that tinygrad keeps."""
    with sqlite3.connect(path) as database:
        tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE name LIKE 'compile_%'")]
        return [bytes(row[0]) for table in tables for row in database.execute(f"SELECT val FROM {table}")]
