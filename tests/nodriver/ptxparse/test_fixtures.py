"""The committed fixtures: made by the command on their first line, small, free of this machine's paths."""

from __future__ import annotations

import re

import pytest

from tests.fixtures import make
from tests.launches.catalog import fixture_kernels
from tests.launches.place import parsed

FILES = sorted(make.OUTPUTS.glob("*.ptx"))
COMPILED = [path for path in FILES if not path.name.startswith("hand_")]


def test_every_source_has_its_ptx() -> None:
    assert sorted(p.stem for p in make.SOURCES.glob("*.cu")) == [p.stem for p in COMPILED]


def test_every_kernel_has_launches() -> None:
    entries = {f"ptx/{path.name}": [e.name for e in parsed(path.read_text(), path.name).entries] for path in FILES}
    launched = {(kernel.file, kernel.kernel) for kernel in fixture_kernels()}
    assert launched == {(file, name) for file, names in entries.items() for name in names}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_fixture_says_how_it_was_made(path) -> None:  # type: ignore[no-untyped-def]
    text = path.read_text()
    first = text.partition("\n")[0]
    if path in COMPILED:
        assert first == "// " + " ".join(make.command(path.stem, f"tests/fixtures/ptx/{path.name}"))
    else:
        assert first.startswith("// written by hand")
    assert not re.search(r"/(root|home|tmp|work|usr)/", text)


def test_fixtures_stay_small() -> None:
    assert sum(path.stat().st_size for path in FILES) < 600_000


@pytest.mark.parametrize("path", COMPILED, ids=lambda path: path.stem)
def test_fixture_is_what_the_compiler_makes(path) -> None:  # type: ignore[no-untyped-def]
    if not make.same_compiler(path.read_text()):
        pytest.skip("the nvcc that made the fixtures is not on PATH: install the CUDA toolkit of that release")
    assert make.compile_fixture(path.stem) == path.read_text()


def test_check_finds_a_difference(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "bits.ptx").write_text("// something else\n")
    monkeypatch.setattr(make, "OUTPUTS", tmp_path)
    monkeypatch.setattr(make, "compile_fixture", lambda stem: f"// {stem}\n")
    monkeypatch.setattr(make.shutil, "which", lambda name: "/bin/true")
    assert make.run(["bits"], check=True) == 1
    assert make.run(["bits"], check=False) == 0
    assert make.run(["bits"], check=True) == 0
