"""SmolLM2 in tinygrad, recorded on the software driver: in the steady state the tracker moves hardly more bytes than
must be moved, by a count from the driver's log of what launches really touched."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

import pytest

from orchestrator.session.intervals import Intervals
from orchestrator.session.jobs import Job, Span
from orchestrator.session.placements.text import parse_placement
from orchestrator.session.step_classes import STEADY
from softgpu.instrument import Instrument
from tests.nodriver.clients import llm, place
from tests.nodriver.tracker.logged import GPUS, Followed, logged, until
from tests.shadow.least import least
from tests.shadow.outcome import Logged

GATHER, APPLY = 1.2, 1.05
"""So many times the least may be moved."""
TOKENS = 5
SECONDS = 1200.0


class Run(NamedTuple):
    """A model's blocks and words, and which of its kernels, the one that reads the most weights, is sent to GPU 1."""

    blocks: int
    words: int
    kernels: str


FEED_FORWARD = ("r_1536_16_18_2*", "r_576_16_3_2_16")
ATTENTION = "*start_pos*"
"""Kernels whose shape depends on how many tokens came before: they read the cache of keys and values in strides."""
SHORT, WHOLE = Run(1, 256, FEED_FORWARD[0]), Run(30, 49152, "r_512_32_3_18_32")


class Recorded(NamedTuple):
    trace: Path
    log: Instrument
    run: Run


@pytest.fixture(scope="module", params=[SHORT, pytest.param(WHOLE, marks=pytest.mark.long)], ids=["short", "whole"])
def recorded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    """A greedy generation under ``tessera record``, on a driver that logs what launches touch."""
    run: Run = request.param
    folder = tmp_path_factory.mktemp("smollm2")
    trace, log = folder / "made.trace", Instrument(log=folder / "log", accesses=True, work=True)
    command = [sys.executable, "-m", "tessera", "record", "--fleet", place.MACHINE, "-o", trace, "--", sys.executable,
               place.PROGRAMS / "generate.py", place.model(), str(run.blocks), str(run.words), str(TOKENS)]
    with log.variables() as variables:
        environment = place.environment(**llm.environment("CUDA:PTX", **variables))
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.split()) == TOKENS and done.stderr == ""
    return Recorded(trace, log, run)


class Counted:
    """Of a placement: the bytes of the steady state, those of the tracker and the least, and how it begins."""

    def __init__(self, recorded: Recorded, kernels: str) -> None:
        self.followed = Followed(recorded.trace, parse_placement(f"{kernels}=1", len(GPUS)))
        self.log = logged(recorded.log.records(), self.followed)
        ends = self.followed.ends
        first = next(place for place, end in enumerate(ends) if end.repeat == STEADY)
        assert {end.signature for end in ends[first:]} == {ends[first].signature}
        before, last = ends[first - 1], ends[-1]
        self.steps = len(ends) - first
        self.gathered, self.applied = last.gathered - before.gathered, last.applied - before.applied
        whole, warm = [least(until(self.log, end.launches), self.followed.wishes) for end in (last, before)]
        self.least_gathered, self.least_applied = whole.gather - warm.gather, whole.apply - warm.apply
        self.begins = self.followed.launches[before.launches].sequence
        self.begin_of_last = ends[-2].launches

    @property
    def gathers(self) -> list[Span]:
        """In the steady state."""
        return [span for one in self.followed.decisions if isinstance(one, Job)
                and one.launches[0].sequence >= self.begins for span in one.gather]


def weights_by_kernel(counted: Counted) -> Counter[str]:
    """Bytes of weights that each kernel reads in the last step, by the log."""
    weights = counted.followed.tracker.classes.weights(counted.followed.ends[-1].signature)
    found: Counter[str] = Counter()
    for one in last_step(counted):
        found[one.kernel] += sum(hi - lo for extent in one.read for lo, hi in weights.overlap(*extent))
    return found


def last_step(counted: Counted) -> Sequence[Logged]:
    return counted.log[len(until(counted.log, counted.begin_of_last)):]


def carried_over(counted: Counted) -> Intervals:
    """Bytes that the last step reads of what launches of earlier ones wrote: the cache of keys and values."""
    before, now, found = Intervals(), Intervals(), Intervals()
    for one in until(counted.log, counted.begin_of_last):
        for extent in one.written if one.kernel else ():
            before.add(*extent)
    for one in last_step(counted):
        for extent in one.read:
            for old in before.overlap(*extent):
                for part in now.missing(*old):
                    found.add(*part)
        for extent in one.written:
            now.add(*extent)
    return found


def test_the_placement_sends_what_reads_the_most_weights(recorded: Recorded) -> None:
    found = weights_by_kernel(Counted(recorded, recorded.run.kernels))
    most = max(found.values())
    assert most > 0
    assert all(fnmatchcase(name, recorded.run.kernels) for name, count in found.items() if count == most)


def test_hardly_more_is_moved_than_must_be(recorded: Recorded, record_property: pytest.RecordProperty) -> None:
    """For the kernel that reads the most weights, for those of the feed-forward, and for those of the attention."""
    for kernels in dict.fromkeys((recorded.run.kernels, *FEED_FORWARD, ATTENTION)):
        counted = Counted(recorded, kernels)
        assert not counted.followed.tally.refused and counted.steps >= 2
        gather, apply = counted.gathered / counted.least_gathered, counted.applied / counted.least_applied
        record_property(f"gathered for {kernels}, times the least", gather)
        record_property(f"applied for {kernels}, times the least", apply)
        assert 1 <= gather <= GATHER and 1 <= apply <= APPLY, kernels


def test_neither_weights_nor_the_cache_are_gathered_again(recorded: Recorded) -> None:
    counted = Counted(recorded, recorded.run.kernels)
    sent = [count for name, count in weights_by_kernel(counted).items() if fnmatchcase(name, recorded.run.kernels)]
    assert counted.followed.tally.gathered.total() - counted.gathered >= sum(sent) > 0, "they were gathered once"
    weights = counted.followed.tracker.classes.weights(counted.followed.ends[-1].signature)
    cache = carried_over(counted)
    assert cache.total() > 0 and counted.gathers
    for span in counted.gathers:
        for known in (weights, cache):
            assert known.overlap(span.address, span.address + span.bytes) == []
