"""Kin of P35: the log is a pipe, and a program waits for somebody to read it, or ends as nobody does any more; or it
is a link to a file of the user's.

The library writes into no pipe, follows no link, and is silent without a log."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.hazards.kit import compiled, run

PROGRAM = Path(__file__).resolve().parents[1] / "nobody_answers" / "program.c"


@pytest.mark.parametrize("kind", ["pipe", "pipe with a reader", "link", "folder", "relative", None])
def test_where_no_line_can_be_written(tmp_path: Path, kind: str | None) -> None:
    log, other = tmp_path / "log", tmp_path / "other"
    other.write_text("mine")
    reader = -1
    if kind and kind.startswith("pipe"):
        os.mkfifo(log)
        reader = os.open(log, os.O_RDONLY | os.O_NONBLOCK) if kind != "pipe" else -1
    elif kind == "link":
        log.symlink_to(other)
    elif kind == "folder":
        log.mkdir()
    given = {"TESSERA_LOG": None if kind is None else "log" if kind == "relative" else str(log)}
    done = run([compiled(PROGRAM, tmp_path / "program")], answer=None, given=given, seconds=4)
    assert (done.status, done.output, done.errors) == (0, "done\n", "")
    if reader >= 0:
        assert os.read(reader, 100) == b""
        os.close(reader)
    assert other.read_text() == "mine" and not Path("log").exists()
