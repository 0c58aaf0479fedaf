"""Contents put together from pieces of records."""

from __future__ import annotations

import tracemalloc
from collections.abc import Sequence

from orchestrator.session.payloads import Payloads
from shim.wire import Kind, encode, records
from tessera.content import content


def give(payloads: Payloads, data: bytes, start: int, size: int, *, total: int | None = None,
         name: bytes | None = None) -> bytes | None:
    piece = data[start : start + size]
    record = encode(Kind.DATA, content=name or content(data), total=len(data) if total is None else total, offset=start,
                    bytes=len(piece), tail=piece)
    (one,) = records(record)
    return payloads.take(one)


def give_all(payloads: Payloads, data: bytes, starts: Sequence[int]) -> list[bool]:
    return [give(payloads, data, start, 4) == content(data) for start in starts]


DATA = b"0123456789"


def test_pieces_in_order() -> None:
    payloads = Payloads()
    assert give_all(payloads, DATA, [0, 4]) == [False, False]
    assert payloads.get(content(DATA)) is None
    assert give_all(payloads, DATA, [8, 8, 0]) == [True, False, False]
    assert payloads.get(content(DATA)) == DATA
    payloads.drop(content(DATA))
    assert payloads.get(content(DATA)) is None


def test_several_threads_send_the_same() -> None:
    assert give_all(Payloads(), DATA, [0, 0, 4, 4, 8, 8]) == [False] * 4 + [True, False]
    assert give_all(Payloads(), DATA, [0, 4, 0, 8, 4, 8]) == [False] * 3 + [True, False, False]


def test_a_gap_is_filled_when_all_is_sent_again() -> None:
    assert give_all(Payloads(), DATA, [0, 8, 0, 4, 8]) == [False] * 4 + [True]
    assert give_all(Payloads(), DATA, [4, 8, 0]) == [False] * 3


def test_pieces_that_overlap() -> None:
    payloads = Payloads()
    assert give(payloads, DATA, 0, 6) is None
    assert give(payloads, DATA, 3, 7) == content(DATA)
    assert payloads.get(content(DATA)) == DATA


def test_other_bytes_than_the_hash_names_are_not_taken() -> None:
    payloads = Payloads()
    assert give(payloads, DATA, 0, 10, name=bytes(32)) is None
    assert payloads.get(bytes(32)) is None
    assert give(payloads, DATA, 0, 10) == content(DATA)


def test_lengths_that_change_and_pieces_of_nothing() -> None:
    payloads = Payloads()
    assert give(payloads, DATA, 0, 4, total=20) is None
    assert give(payloads, DATA, 4, 4) is None  # of another whole
    assert give_all(payloads, DATA, [0, 4, 8]) == [False, False, True]
    assert give(Payloads(), DATA, 10, 4) is None
    assert give(Payloads(), b"", 0, 0) is None


def test_what_is_announced_takes_no_memory() -> None:
    payloads = Payloads()
    tracemalloc.start()
    for number in range(100):
        give(payloads, DATA, 0, 4, total=255 << 20, name=content(bytes([number])))
        give(payloads, DATA, 0, 4, total=1 << 63, name=content(bytes([number, 1])))
    assert tracemalloc.get_traced_memory()[1] < 1 << 20
    tracemalloc.stop()


def test_what_was_not_used_for_the_longest_time_goes() -> None:
    payloads = Payloads(limit=30)
    first, second, third, part = (bytes([k]) * 10 for k in range(4))
    for data in (first, second, third):
        assert give(payloads, data, 0, 10) == content(data)
    assert payloads.get(content(first)) == first
    assert give(payloads, part, 0, 5) is None
    assert [payloads.get(content(data)) for data in (first, second, third)] == [first, None, third]
    assert give(payloads, part, 5, 5) == content(part)
    assert payloads.get(content(first)) == first
    assert give(payloads, bytes(31), 0, 31) is None
