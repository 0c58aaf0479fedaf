"""``docs/formats.md`` against the code that implements it."""

from __future__ import annotations

import re

import pytest

from ptxparse.launch_text import BLOCK_LIMIT, GRID_LIMIT, KINDS, THREADS_LIMIT, parse_launch
from tessera.errors import ExitCode, TesseraError, UsageError
from tests.documents import table_rows
from tests.material import ROOT

DOCUMENT = ROOT / "docs" / "formats.md"


def test_exit_codes() -> None:
    rows = table_rows(DOCUMENT, "code")
    assert [(int(code), name) for code, name, _ in rows] == [(int(c), f"`{c.name}`") for c in ExitCode]


def test_errors_have_documented_exit_codes() -> None:
    assert TesseraError.exit_code is ExitCode.BAD_INPUT
    assert UsageError.exit_code is ExitCode.USAGE


def test_argument_types() -> None:
    named = [word for row in table_rows(DOCUMENT, "argument") for word in re.findall(r"`(\w+):", row[0])]
    assert sorted(named) == sorted(KINDS)


def test_the_launch_shown_is_one() -> None:
    shown = re.search(r"^grid=.*$", DOCUMENT.read_text(encoding="utf-8"), re.MULTILINE)
    assert shown
    assert len(parse_launch(shown.group(0)).arguments) == 3


def test_limits() -> None:
    text = DOCUMENT.read_text(encoding="utf-8").replace("\n", " ")
    assert (GRID_LIMIT, BLOCK_LIMIT, THREADS_LIMIT) == ((2**31 - 1, 65535, 65535), (1024, 1024, 64), 1024)
    assert "x 2³¹−1, y and z 65535; block 1024, 1024, 64, together 1024" in text


@pytest.mark.parametrize("document", [p.name for p in (ROOT / "docs").glob("*.md")])
def test_links_between_documents_lead_somewhere(document: str) -> None:
    path = ROOT / "docs" / document
    for target in re.findall(r"\]\(([^)#:]+)\)", path.read_text(encoding="utf-8")):
        assert (path.parent / target).exists(), target


@pytest.mark.parametrize("document", ["README.md", "CONTRIBUTING.md"])
def test_links_at_the_top_lead_somewhere(document: str) -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", (ROOT / document).read_text(encoding="utf-8")):
        assert (ROOT / target).exists(), target
