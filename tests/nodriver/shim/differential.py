"""A program bare and under the preload library: what can be seen of it is the same, and records say all that was done,
once."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any

from shim.wire import Kind, lib
from tests.nodriver.shim.expansion import Work, announced, by_record, done
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


def assert_contents(seen: Seen) -> int:
    """What records say of the bytes that came to the host is true of what came there: two hashes of them, by different
    functions, are the same for the same copies. How many copies that were."""
    pairs = set[tuple[bytes, str]]()
    count = 0
    log: dict[Work, list[str]] = defaultdict(list)
    for line, piece in zip(seen.work(), done(seen.log), strict=True):
        log[piece].append(line.get("sha256", ""))
    for records in seen.clients:
        contents = {record.body.of: record.body.content for record in records
                    if record.kind is Kind.OUTCOME and record.body.has_content}
        for record, piece in by_record(records):
            if record.kind is Kind.COPY and record.body.to.kind == lib.WIRE_SIDE_HOST and log[piece]:
                digest = log[piece].pop(0)
                if record.sequence in contents:
                    pairs.add((contents[record.sequence], digest))
                    count += 1
    assert len(pairs) == len({content for content, _ in pairs}) == len({digest for _, digest in pairs})
    return count


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


def assert_same_work(bare: Seen, under: Seen, ordered: bool = True, addresses: bool = False) -> int:
    """The same was done in both, by streams in the same order, with the same bytes brought to the host, which are
    counted. ``ordered``: handles come back in the same order in both (``STEADY``), so that they tell streams apart.
    ``addresses``: what comes to the host are addresses, which are not compared."""
    assert not bare.clients
    own = {hex(piece.what[0]) for piece in _own(under)}
    one, other = (_sequences(seen.log, own, ordered, addresses) for seen in (bare, under))
    assert other == one, f"only under the library: {list(other - one)[:5]}; only bare: {list(one - other)[:5]}"
    return sum(line["bytes"] for line in under.work("copy") if "sha256" in line)


def _sequences(log: Iterable[dict[str, Any]], own: set[str], ordered: bool, addresses: bool) -> Counter[Any]:
    """What streams did one after the other, and pieces that have no order, as often as each is there."""
    streams, found = defaultdict(list), Counter[Any]()
    for line in log:
        if "work" not in line or line.get("function") in own:
            continue
        sides = [(line[side]["memory"], line[side].get("device")) for side in ("source", "destination") if side in line]
        same = [line.get(name) for name in SAME if name != "sha256" or not addresses]
        piece = (line["work"], *map(str, same), *sides)
        if ordered and int(line["stream"], 16) > 2 and not line["graph"]:
            streams[line["stream"]].append(piece)
        else:
            found[piece] += 1
    found.update(map(tuple, streams.values()))
    return found
