"""A program bare and under the preload library: what can be seen of it is the same, and records say all that was done,
once."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any

from shim.wire import Kind, lib
from tests.nodriver.shim.expansion import Work, announced, done
from tests.nodriver.shim.observed import Observed, Seen

ANYWHERE = [(re.compile(pattern), put) for pattern, put in (
    (r"; the one before it is .* at 0x[0-9a-f]+", ""), (r"0x[0-9a-f]+", "0x"), (r'"parameters": "[0-9a-f]*"', ""),
    (r"\d+\.\d+ ms", "ms"), (r"modelled clock: .*", "modelled clock"))]
"""Addresses, and times, which differ from run to run."""
SAME = ("result", "kernel", "device", "grid", "block", "shared", "cooperative", "parameter_bytes", "row", "rows",
        "slices", "element", "width", "operation", "bits", "value", "sha256")
"""What is the same of a piece of work in every run."""


def assert_complete(seen: Seen) -> Counter[str]:
    """All that was done stands in the records once and as it was done; how many pieces of each kind that were. What is
    left in a stream when something in it has failed need not have been done."""
    for records in seen.clients:
        assert [record.sequence for record in records] == list(range(1, len(records) + 1)), "records are lost"
    said = [piece for records in seen.clients for piece in announced(records)]
    work = done(seen.log)
    own = _own(seen)
    work = [piece for piece in work if piece not in own]
    missed, more = Counter(work) - Counter(said), Counter(said) - Counter(work)
    failed = {int(line["stream"], 16) for line in seen.work() if line["result"] != "CUDA_SUCCESS"}
    wrong = {piece: count for piece, count in more.items() if piece.stream not in failed}
    assert not missed, f"done {missed.total()} times more often than recorded: {_few(missed)}"
    assert not wrong, f"recorded {sum(wrong.values())} times more often than done: {_few(wrong)}"
    if not more and len(seen.clients) == 1:
        assert _in_streams(said) == _in_streams(work)
    return Counter(piece.kind for piece in work)


def _own(seen: Seen) -> set[Work]:
    """Host functions of the preload library, which it has for payloads: one function of each process, called at most
    once for each of the contents that it tells."""
    if not seen.options & lib.WIRE_PAYLOADS:
        return set()
    every = [record for records in seen.clients for record in records]
    known = {record.body.function for record in every if record.kind is Kind.HOST_FUNCTION}
    own = [piece for piece in done(seen.log)
           if piece.kind == "host function" and not piece.graph and piece.what[0] not in known]
    assert len({piece.what[0] for piece in own}) <= len(seen.clients)
    assert len(own) <= sum(record.kind is Kind.OUTCOME and record.body.has_content for record in every)
    return set(own)


def _few(pieces: Iterable[Work]) -> list[Work]:
    return sorted(pieces)[:5]


def _in_streams(work: Iterable[Work]) -> dict[int, list[Work]]:
    """In the order of the program's streams; nodes of graphs have none, nor has work of default streams, of which each
    context and thread has one."""
    found = defaultdict(list)
    for piece in work:
        if piece.stream > 2 and not piece.graph:
            found[piece.stream].append(piece)
    return found


def assert_same_text(bare: Observed, under: Observed) -> None:
    """Exit status and output, but for addresses and times."""
    assert (under.status, masked(under.output), masked(under.errors)) == (
        bare.status, masked(bare.output), masked(bare.errors))


def masked(text: str) -> str:
    for pattern, put in ANYWHERE:
        text = pattern.sub(put, text)
    return text


def assert_same_work(bare: Seen, under: Seen, addresses: bool = False) -> int:
    """The same was done in both, by streams in the same order, with the same bytes brought to the host, which are
    counted. ``addresses``: what comes to the host are addresses, and handles come back, so that neither is compared."""
    assert not bare.clients
    own = {hex(piece.what[0]) for piece in _own(under)}
    one, other = (_without_addresses(seen.log, own, addresses) for seen in (bare, under))
    assert other == one, f"only under the library: {list(other - one)[:5]}; only bare: {list(one - other)[:5]}"
    return sum(line["bytes"] for line in under.work("copy") if "sha256" in line)


def _without_addresses(log: Iterable[dict[str, Any]], own: set[str], addresses: bool) -> Counter[Any]:
    """Sequences of streams, and pieces that have no order, as often as each is there."""
    streams, found = defaultdict(list), Counter[Any]()
    for line in log:
        if "work" not in line or line.get("function") in own:
            continue
        sides = [(line[side]["memory"], line[side].get("device")) for side in ("source", "destination") if side in line]
        piece = (line["work"], *(str(line.get(name)) for name in SAME), *sides)
        if addresses:
            piece = tuple(word for word in piece if word != line.get("sha256"))
        if addresses or line["graph"] or int(line["stream"], 16) <= 2:
            found[piece] += 1
        else:
            streams[line["stream"]].append(piece)
    found.update(map(tuple, streams.values()))
    return found
