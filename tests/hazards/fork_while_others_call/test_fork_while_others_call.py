"""P23: a program forks while another of its threads is in the interposer: the child finds its locks held, for ever.

Children go on at any time, and record on their own."""

from __future__ import annotations

import pytest

from tests.hazards.conftest import Build
from tests.hazards.kit import run
from tests.hazards.listener import Kind
from tools import shim
from tools.venv import PYTHON


@pytest.mark.parametrize("children", [30, pytest.param(1000, marks=pytest.mark.long)])
def test_children_of_a_busy_program_go_on(build: Build, children: int) -> None:
    done = run([build("program.c", "-pthread"), str(children)], seconds=120)
    assert (done.status, done.errors) == (0, "")
    parent, *others = done.clients
    assert [client.counts(Kind.LAUNCH) for client in others] == children * [{"cuLaunchKernel": 3}]
    assert {client.process for client in others} & {parent.process} == set()


@pytest.mark.long
def test_no_race_by_the_thread_sanitizer(build: Build) -> None:
    library = shim.preload(PYTHON, "thread")
    done = run([build("program.c", "-pthread", "-fsanitize=thread"), "50"], preload=(library,), seconds=120,
               given={"TSAN_OPTIONS": "die_after_fork=0 exitcode=66"})
    assert (done.status, done.errors) == (0, "")
