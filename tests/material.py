"""The one place that finds the reference material, which a person who clones the project does not have."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tessera.environment import MATERIAL

ROOT = Path(__file__).resolve().parent.parent
"""The repository."""


def material() -> Path | None:
    """The folder of reference material, or None: what the environment names, else ``shared`` beside the repository."""
    named = os.environ.get(MATERIAL.name)
    folder = Path(named) if named else ROOT.parent / "shared"
    return folder if (folder / "corpus").is_dir() else None


def require_material() -> Path:
    """The folder of reference material; skips the test (or the module being collected) where there is none."""
    folder = material()
    if folder is None:
        pytest.skip("reference material not found", allow_module_level=True)
    return folder
