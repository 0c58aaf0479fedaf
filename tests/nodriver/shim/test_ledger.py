"""Records that were lost: what is alive then is said once more, all of it and nothing else."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from shim.layout import lib
from shim.wire import Kind, Record, records
from tests import null_driver
from tests.material import ROOT
from tests.nodriver.shim.living import living
from tests.nodriver.shim.observed import SECONDS, Listener, preloaded
from tests.nodriver.shim.programs import FOLDER
from tools import driver, native
from tools.venv import PYTHON

Seen = tuple[list[Record], list[set[tuple[int, int]]]]
ROUNDS = 2
LAUNCHES = lib.WIRE_RING_BYTES // 32768 + 100
"""More than a ring has room for."""


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Seen:
    """The records of the program, and what it says it has, after each time that nobody read and at the end."""
    program = tmp_path_factory.mktemp("epochs") / "epochs"
    command = [native.compiler(), *native.FLAGS, f"-I{driver.headers(PYTHON)}", f"-I{ROOT / 'shim'}",
               FOLDER / "epochs.c", null_driver.build(), "-o", program]
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    with tempfile.TemporaryDirectory(prefix="shim-") as name, Listener(Path(name, "socket")) as listener:
        environment = {**os.environ, **preloaded(Path(name, "socket"), null_driver.LIBRARY)}
        told = list(_talk([str(program), str(ROUNDS), str(LAUNCHES)], environment, listener))
    (taken,) = listener.taken
    return list(records(b"".join(taken))), told


def _talk(command: list[str], environment: dict[str, str], listener: Listener) -> Iterator[set[tuple[int, int]]]:
    listener.reading.clear()
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe, text=True) as started:
        assert started.stdin
        assert started.stdout
        for _ in range(ROUNDS):
            yield {(kind, handle) for kind, handle in json.loads(started.stdout.readline())}
            listener.idle.clear()
            listener.reading.set()
            assert listener.idle.wait(SECONDS)
            listener.reading.clear()
            started.stdin.write("\n")
            started.stdin.flush()
        yield {(kind, handle) for kind, handle in json.loads(started.stdout.readline())}
        listener.reading.set()
        assert started.wait(SECONDS) == 0


def _pairs(found: list[Record]) -> list[tuple[int, int]]:
    return [(int(record.kind), int(record.body[0])) for record in found]


def _epochs(found: list[Record]) -> list[int]:
    return [place for place, record in enumerate(found) if record.kind is Kind.EPOCH]


def test_what_is_alive_is_said_again(seen: Seen) -> None:
    found, told = seen
    places = _epochs(found)
    assert len(places) == ROUNDS
    for number, place in enumerate(places):
        end = next(k for k in range(place + 1, len(found)) if not found[k].flags & lib.WIRE_RESTATED)
        said = _pairs(found[place + 1:end])
        assert sorted(said) == sorted(told[number])
        assert found[place].body.epoch == number + 1
        assert found[place].body.lost == found[place].sequence - found[place - 1].sequence - 1 > 0
        assert found[end].kind is Kind.MEMORY  # what the program made then
    assert not any(record.flags & lib.WIRE_RESTATED for record in found[:places[0]])


def test_only_lost_records_leave_gaps(seen: Seen) -> None:
    found, _ = seen
    gaps = [k for k in range(1, len(found)) if found[k].sequence != found[k - 1].sequence + 1]
    assert gaps == _epochs(found)


def test_a_reader_has_it_all_in_the_end(seen: Seen) -> None:
    found, told = seen
    since = found[_epochs(found)[-1]:]
    assert {(int(key[0]), int(key[1])) for key in living(since)} == told[-1]


def test_it_is_said_as_it_was(seen: Seen) -> None:
    found, _ = seen
    first, second = _epochs(found)
    before, after = living(found[:first]), living(found[first:second])
    same = before.keys() & after.keys()
    assert len(same) > 40  # the program has ended the others, or made them later
    for key in same:
        old, new = before[key], after[key]
        assert (old.thread, old.function, old.body, bytes(old.tail)) == (
            new.thread, new.function, new.body, bytes(new.tail))
