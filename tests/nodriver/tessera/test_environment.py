"""The table of environment variables: equal to the documented one, and the only place that spells a name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tessera.environment import MATERIAL, VARIABLES
from tests.documents import environment_rows, table_rows
from tests.material import ROOT, material, require_material

NAME = re.compile(r"\b(?:TESSERA|SOFTGPU)_(?!\w+_H\b)[A-Z][A-Z0-9_]*\b")  # no include guards
CODE = ("tessera", "ptxparse", "softgpu", "shim", "orchestrator", "benchmarks", "tools")


def test_documented_table_equals_the_code() -> None:
    written = table_rows(ROOT / "docs" / "environment.md", "variable")
    assert written == environment_rows(), "to write it anew: .venv/bin/python -m tests.documents"


def test_names_are_spelled_in_one_file_only() -> None:
    files = [p for folder in CODE for p in (ROOT / folder).rglob("*.py")] + [ROOT / "build.py"]
    spelled = {p.relative_to(ROOT).as_posix(): set(NAME.findall(p.read_text())) for p in files}
    assert {name for names in spelled.values() for name in names} == {v.name for v in VARIABLES}
    assert [path for path, names in spelled.items() if names] == ["tessera/environment.py"]


def test_material_is_what_the_environment_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MATERIAL.name, str(tmp_path))
    assert material() is None
    with pytest.raises(pytest.skip.Exception, match="^reference material not found$"):
        require_material()
    (tmp_path / "corpus").mkdir()
    assert material() == tmp_path
    assert require_material() == tmp_path
