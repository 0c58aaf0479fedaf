"""Descriptor tables, and what the analysis says of the kernels that copy by them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator import exchange
from orchestrator.exchange import Entry
from ptxparse.api import analyze, parse
from tessera.errors import TesseraError
from tessera.reasons import Reason

U64 = st.integers(0, (1 << 64) - 1)


@given(st.integers(0, (1 << 32) - 1), st.lists(st.builds(Entry, U64, U64, U64), max_size=9), st.binary(max_size=40))
def test_tables_are_read_back(epoch: int, entries: list[Entry], before: bytes) -> None:
    table = exchange.table(epoch, entries)
    assert len(table) == exchange.table_size(len(entries))
    assert exchange.read_table(before + table, len(before)) == entries
    if entries:
        with pytest.raises(exchange.ExchangeError, match=f"it has {len(entries)} entries, more than fit"):
            exchange.read_table(before + table[:-1], len(before))


@given(st.lists(st.tuples(st.integers(0, 1 << 48), st.integers(0, 5000)), max_size=20), st.integers(0, 99))
def test_ranges_are_arranged_one_behind_the_other_and_aligned_alike(ranges: list[tuple[int, int]], start: int) -> None:
    most = sum(size + exchange.VECTOR for _, size in ranges)
    entries = exchange.arrange(ranges, start, start + most)
    assert [(entry.address, entry.size) for entry in entries] == ranges
    assert all((entry.address - entry.offset) % exchange.VECTOR == 0 for entry in entries)
    ends = [start, *[entry.offset + entry.size for entry in entries]]
    assert all(before <= entry.offset for before, entry in zip(ends, entries, strict=False))
    assert ends[-1] <= start + most
    if ends[-1] > start:
        with pytest.raises(TesseraError, match=r"bytes of the exchange area, which has \d+ for them"):
            exchange.arrange(ranges, start, ends[-1] - 1)


@pytest.mark.parametrize("kernel", [exchange.GATHER, exchange.APPLY])
def test_the_kernels_are_what_the_analysis_can_read(kernel: str) -> None:
    module = parse(exchange.image(kernel).rstrip(b"\0").decode())
    (program,) = analyze(module)
    assert program.kernel.encode() == exchange.entry_point(kernel)
    assert [(one.offset, one.size) for one in program.parameters] == [(0, 8), (8, 8), (16, 4)]
    assert {reason for reason, _ in program.problems} == {Reason.POINTER_FROM_MEMORY}
    assert program.deterministic and program.device_invariant and not program.pinned
