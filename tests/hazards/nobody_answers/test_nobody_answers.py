"""P35: a program waits for ever for one who does not answer, refuses, or dies meanwhile.

It waits for a second at most, says so in the log, and goes on without."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from tests.hazards.conftest import Build
from tests.hazards.kit import run
from tests.hazards.listener import Answer, Kind

SECONDS = 4.0
"""For a program that may wait for one."""


@pytest.mark.parametrize("answer", [Answer.SILENCE, Answer.REFUSAL, Answer.CLOSED, Answer.NONSENSE])
def test_a_listener_that_does_not_take_it_in(build: Build, answer: Answer) -> None:
    done = run([build("program.c")], answer=answer, seconds=SECONDS)
    assert (done.status, done.output, done.errors, done.clients) == (0, "done\n", "", [])
    assert done.log.count("nobody takes records at") == 1


@pytest.mark.parametrize("kind", ["missing", "file", "folder", "stream", "full", "long", "relative", "pipe"])
def test_a_path_where_nobody_listens(build: Build, tmp_path: Path, kind: str) -> None:
    path, held = tmp_path / kind, []
    if kind == "file":
        path.touch()
    elif kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "long":
        path = tmp_path / ("x" * 120)
    elif kind == "relative":
        path = Path("socket")
    elif kind in ("stream", "full"):
        type_ = socket.SOCK_STREAM if kind == "stream" else socket.SOCK_SEQPACKET
        held.append(socket.socket(socket.AF_UNIX, type_))
        held[0].bind(str(path))
        held[0].listen(0)
        if kind == "full":
            held.append(socket.socket(socket.AF_UNIX, type_))
            held[1].connect(str(path))
    done = run([build("program.c")], answer=None, seconds=SECONDS, given={"TESSERA_SOCKET": str(path)})
    for one in held:
        one.close()
    assert (done.status, done.output, done.errors) == (0, "done\n", "")
    assert done.log.count("nobody takes records at") == (kind != "relative")


def test_a_late_answer_is_in_time(build: Build) -> None:
    done = run([build("program.c")], answer=Answer.LATE, seconds=SECONDS)
    assert done.launches() == 10 and done.clients[0].kinds(Kind.DRIVER)
