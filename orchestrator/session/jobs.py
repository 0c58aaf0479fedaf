"""What the tracker decides: plain data that a worker, or a test, carries out to the letter.

A launch that stands in no decision runs at home, where the program launched it. A **segment** is a run of launches of
one stream for one GPU; a decision comes when the segment is closed, and stands before whatever closed it. How a
:class:`Job` is carried out, for its stream ``s`` and its GPU ``d``:

1. ``s`` waits until everything that was queued before in the streams ``waits`` is done.
2. In ``s``, all at one moment: the bytes of ``gather`` are read from program memory.
3. On ``d``, behind its earlier jobs: memory for ``evicted`` replicas is given back, memory for all ``replicas`` is
   there (kept from job to job); ``gather`` is written into replicas; if the bytes of ``assumed`` are not those, the job
   ends here, and *all* jobs of ``d`` from this one on are run at home, where nothing of them was done
   (:meth:`orchestrator.session.tracker.Tracker.withdraw` must be told before the next record).
   Then the launches run in their order, with the words of ``pointers`` set to the replicas' addresses. What is
   ``evicted`` is given back also where a job is run at home.
4. In ``s``: the bytes of ``apply`` are written from the replicas into program memory. Until then no other stream begins
   what was queued after the job, if ``holds``.
5. ``mirrored``: nothing is applied and nobody held. With ``runs_home`` the launches run in ``s`` as well, behind the
   gathering: of the jobs that mirror a segment on several GPUs it is the last one that has it.

Launches of a graph that is taken apart come as jobs, and as :class:`Rest` for the nodes between them that run at
home, in the order in which all this must be queued. A graph that is not taken apart is in no decision.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, TypeAlias

from orchestrator.session.operations import Known, Launch, StreamKey
from tessera.reasons import Reason


class Span(NamedTuple):
    """``bytes`` at ``address`` of program memory, which are those at ``offset`` of an allocation's replica."""

    address: int
    allocation: int
    offset: int
    bytes: int


class Assumed(NamedTuple):
    """What the bytes at ``address``, which are a part of what is gathered, must be."""

    address: int
    data: bytes


class Placed(NamedTuple):
    """A launch of a segment: record, node of a graph (or -1), what it is."""

    sequence: int
    node: int
    launch: Launch


def relied(launches: Iterable[Placed]) -> tuple[Known, ...]:
    """Contents without which the ranges of a segment's launches could not have been told. The segment itself may have
    written them since."""
    return tuple(dict.fromkeys([known for one in launches for known in one.launch.assumed]))


class Replica(NamedTuple):
    """Memory of a GPU for an allocation of the program. ``bytes``: as many; if only parts of them need memory, as those
    of a reservation, ``mapped`` has these, offsets and ends, which may be more in a later job. ``variable``: it is that
    variable of the GPU's own copy of the kernels' module, which is there as soon as the module is loaded."""

    allocation: int
    bytes: int
    variable: str = ""
    module: int = -1
    mapped: tuple[tuple[int, int], ...] = ()


class Job(NamedTuple):
    """A segment sent to GPU ``device``, or mirrored there. Numbers count the segments of the client from 0."""

    number: int
    device: int
    home: int
    stream: StreamKey
    launches: tuple[Placed, ...]
    mirrored: bool
    runs_home: bool
    waits: tuple[StreamKey, ...]
    holds: bool
    replicas: tuple[Replica, ...]
    evicted: tuple[int, ...]
    gather: tuple[Span, ...]
    assumed: tuple[Assumed, ...]
    apply: tuple[Span, ...]


class Refused(NamedTuple):
    """A segment that cannot go where it was to: its launches run at home, and why."""

    number: int
    device: int
    home: int
    stream: StreamKey
    launches: tuple[Placed, ...]
    mirrored: bool
    reason: Reason
    kernel: str


class Rest(NamedTuple):
    """Nodes of the graph launched by record ``sequence`` that run at home now, in this order."""

    sequence: int
    nodes: tuple[int, ...]


Decision: TypeAlias = Job | Refused | Rest
