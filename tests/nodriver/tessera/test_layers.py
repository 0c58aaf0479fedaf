"""Which package may import which: read from the sources, so that a forbidden import fails even if nothing runs it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.material import ROOT

OURS = {"tessera", "ptxparse", "softgpu", "shim", "orchestrator", "tests", "tools", "benchmarks", "build"}
MAY_IMPORT = {
    "tessera": {"tessera"},
    "tessera/cli": {"tessera", "ptxparse", "softgpu", "shim", "orchestrator"},
    "ptxparse": {"tessera", "ptxparse"},
    "softgpu": {"tessera", "ptxparse", "softgpu"},
    "shim": {"tessera", "shim"},
    "orchestrator": {"tessera", "ptxparse", "shim", "orchestrator"},
    "tools": {"tools"},
}


def imported(path: Path) -> set[str]:
    """Dotted names of the modules that a file imports, anywhere in it."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names.add(node.module)
    return names


def files_of(layer: str) -> list[Path]:
    """The files of a layer, without those of a layer inside it."""
    inner = [ROOT / other for other in MAY_IMPORT if other.startswith(layer + "/")]
    return [p for p in (ROOT / layer).rglob("*.py") if not any(p.is_relative_to(folder) for folder in inner)]


@pytest.mark.parametrize("layer", MAY_IMPORT)
def test_layer_imports_only_what_it_may(layer: str) -> None:
    files = files_of(layer)
    assert files
    for path in files:
        ours = {name for name in imported(path) if name.split(".")[0] in OURS}
        forbidden = {name for name in ours if name.split(".")[0] not in MAY_IMPORT[layer]}
        assert not forbidden, path


def test_nothing_but_the_entry_point_imports_the_command_line() -> None:
    outside = [p for layer in ("tessera", "ptxparse", "softgpu", "shim", "orchestrator") for p in files_of(layer)]
    users = [p for p in outside if any(name.startswith("tessera.cli") for name in imported(p))]
    assert users == [ROOT / "tessera" / "__main__.py"]
