"""Events that processes of one machine share."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.nodriver.driver.program import Program

SUCCESS, NOT_READY = 0, 600
PRELUDE = """
import threading
class Handle(ctypes.Structure):
    _fields_ = [("reserved", ctypes.c_char * 64)]
cuda.cuIpcOpenEventHandle.argtypes = [c_void_p, Handle]
def ok(result):
    assert result == 0, result
ok(cuda.cuInit(0))
context, stream, event = c_void_p(), c_void_p(), c_void_p()
ok(cuda.cuCtxCreate_v2(byref(context), 0, 0))
ok(cuda.cuStreamCreate(byref(stream), 1))
gate = threading.Event()
wait = ctypes.CFUNCTYPE(None, c_void_p)(lambda _: gate.wait(60))
def create(flags):
    return cuda.cuEventCreate(byref(event), flags)
def export():
    handle = Handle()
    return cuda.cuIpcGetEventHandle(byref(handle), event) or ctypes.string_at(byref(handle), 64).hex()
def open_event(text):
    return cuda.cuIpcOpenEventHandle(byref(event), Handle.from_buffer_copy(bytes.fromhex(text)))
def record():
    ok(cuda.cuEventRecord(event, stream))
def record_behind_gate():
    gate.clear()
    ok(cuda.cuLaunchHostFunc(stream, wait, None))
    record()
def query():
    return cuda.cuEventQuery(event)
"""


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[Program, Program]]:
    made = Program(tmp_path, "one", "T4", PRELUDE), Program(tmp_path, "one", "T4", PRELUDE)
    yield made
    for program in made:
        program.end(hard=True)


def share(pair: tuple[Program, Program]) -> None:
    assert pair[0].get("create(6)") == SUCCESS
    assert pair[1].get(f"open_event('{pair[0].get('export()')}')") == SUCCESS


def becomes(program: Program, wanted: str) -> None:
    """What is true after a moment, but not later than in a minute."""
    until = time.monotonic() + 60
    while not program.get(wanted):
        assert time.monotonic() < until, wanted
        time.sleep(0.005)


def test_what_is_refused(pair: tuple[Program, Program]) -> None:
    first, second = pair
    assert first.get("create(4)") == 1  # with timing
    assert first.get("create(2)") == SUCCESS
    assert first.get("export()") == 400
    assert first.get("create(6)") == SUCCESS
    handle = first.get("export()")
    assert first.get(f"open_event('{handle}')") == 201
    assert second.get(f"open_event('00{handle[2:]}')") == 400
    assert second.get(f"open_event('{handle}')") == SUCCESS
    assert second.get("export()") == 400


def test_records_are_seen_by_the_other(pair: tuple[Program, Program]) -> None:
    first, second = pair
    share(pair)
    assert first.get("query()") == second.get("query()") == SUCCESS
    first.run("record_behind_gate()")
    assert second.get("query()") == first.get("query()") == NOT_READY
    second.run("ok(cuda.cuStreamWaitEvent(stream, event, 0))")
    assert second.get("cuda.cuStreamQuery(stream)") == NOT_READY
    first.run("gate.set(); ok(cuda.cuStreamSynchronize(stream))")
    assert second.get("query()") == SUCCESS
    second.run("ok(cuda.cuStreamSynchronize(stream))")
    second.run("record_behind_gate()")
    assert first.get("query()") == NOT_READY
    second.run("gate.set()")
    first.run("ok(cuda.cuEventSynchronize(event))")
    assert first.get("query()") == second.get("query()") == SUCCESS
    second.run("record()")
    first.run("record(); ok(cuda.cuEventSynchronize(event)); ok(cuda.cuEventDestroy_v2(event))")
    second.run("record(); ok(cuda.cuEventSynchronize(event))")


def test_who_is_killed_is_not_waited_for(pair: tuple[Program, Program]) -> None:
    first, second = pair
    share(pair)
    first.run("record_behind_gate()")
    second.run("ok(cuda.cuStreamWaitEvent(stream, event, 0))")
    assert second.get("query()") == NOT_READY
    first.end(hard=True)
    becomes(second, "query() == 0")
    second.run("ok(cuda.cuStreamSynchronize(stream))")
