"""Decisions of the tracker as lines for people and for tests."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import groupby

from orchestrator.session.jobs import Decision, Job, Placed, Refused, Rest, Span
from orchestrator.session.operations import StreamKey

Streams = Callable[[StreamKey], str]


def stream_text(key: StreamKey) -> str:
    """A stream by its handle, default streams as the driver's headers number them."""
    return f"stream {key.stream:#x}" + (f" of thread {key.thread}" if key.thread else "")


def record_text(sequence: int, node: int) -> str:
    """A record; behind a colon the node of the graph that it launched."""
    return f"{sequence}" if node < 0 else f"{sequence}:{node}"


def span_text(span: Span) -> str:
    """Bytes of an allocation by its number: the first, and the one behind the last."""
    return f"a{span.allocation}[{span.offset}:{span.offset + span.bytes}]"


def decision_text(decision: Decision, stream: Streams = stream_text) -> str:
    """One line, without addresses."""
    if isinstance(decision, Rest):
        return f"rest: record {decision.sequence}, at home nodes {_numbers(decision.nodes)}"
    where = f"segment {decision.number}: {_records(decision.launches)}, {stream(decision.stream)}, "
    if isinstance(decision, Refused):
        return f"{where}refused on GPU {decision.device}: {decision.reason.value} ({decision.kernel})"
    return f"{where}{_carried(decision)}: {_kernels(decision.launches)}; " + "; ".join(_moved(decision))


def _carried(job: Job) -> str:
    if not job.mirrored:
        return f"sent to GPU {job.device}"
    return f"mirrored on GPU {job.device}" + (", and run at home" if job.runs_home else "")


def _moved(job: Job) -> Iterable[str]:
    for title, spans in (("gather", job.gather), ("apply", job.apply)):
        count = sum(span.bytes for span in spans)
        yield f"{title} {count}" + (f" of {' '.join([span_text(span) for span in spans])}" if spans else "")
    if job.assumed:
        yield f"assumed {sum(len(one.data) for one in job.assumed)}"
    if job.evicted:
        yield f"evicted {' '.join([f'a{number}' for number in job.evicted])}"


def _records(launches: Sequence[Placed]) -> str:
    first, last = [record_text(one.sequence, one.node) for one in (launches[0], launches[-1])]
    return f"record {first}" if len(launches) == 1 else f"records {first} to {last}"


def _kernels(launches: Iterable[Placed]) -> str:
    runs = [(name, len(list(run))) for name, run in groupby(launches, key=lambda one: one.launch.kernel.name)]
    return " ".join([name if count == 1 else f"{count} x {name}" for name, count in runs])


def _numbers(numbers: Iterable[int]) -> str:
    """Numbers in their order, runs of them as first-last."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1] = [runs[-1][0], number]
        else:
            runs.append([number])
    return " ".join(["-".join([str(end) for end in run]) for run in runs])
