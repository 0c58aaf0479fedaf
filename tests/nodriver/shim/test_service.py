"""Records on their way from programs to whoever wants them, and what happens to them when somebody ends or stops."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from orchestrator.service import Service
from orchestrator.session.messages import Session
from shim.listen import Client
from shim.wire import records
from tessera.environment import SOCKET
from tests.material import ROOT

CLIENT = Path(__file__).with_name("client.py")
SECONDS = 60.0


class Collect:
    """Keeps the numbers of all records, by program; waits before each batch while ``gate`` is closed."""

    def __init__(self) -> None:
        self.numbers: dict[int, list[int]] = {}
        self.ends: dict[int, str | None] = {}
        self.threads: set[int] = set()
        self.gate = threading.Event()
        self.gate.set()

    def begin(self, client: Client) -> None:
        self.threads.add(threading.get_ident())
        self.numbers[client.number] = []

    def batch(self, client: Client, batch: Any, data: memoryview) -> None:
        self.threads.add(threading.get_ident())
        assert self.gate.wait(SECONDS)
        self.numbers[client.number] += [record.sequence for record in records(data)]

    def end(self, client: Client, trouble: str | None) -> None:
        self.threads.add(threading.get_ident())
        self.ends[client.number] = trouble


@pytest.fixture
def sink() -> Collect:
    return Collect()


@pytest.fixture(params=["ipc"])
def service(request: pytest.FixtureRequest, sink: Collect) -> Iterator[Service]:
    with Service([sink], request.param) as service:
        yield service


def start(service: Service, *words: str) -> subprocess.Popen[str]:
    environment = {**os.environ, SOCKET.name: str(service.socket), "PYTHONPATH": str(ROOT)}
    return subprocess.Popen([sys.executable, CLIENT, *words], env=environment, text=True, stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE)


def run(service: Service, *words: str) -> str:
    """Run a client to its end; what it said."""
    client = start(service, *words)
    said, _ = client.communicate(timeout=SECONDS)
    assert client.returncode == 0
    return said


def until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + SECONDS
    while not true():
        assert time.monotonic() < end
        time.sleep(0.01)


def drained(service: Service) -> list[Session]:
    """All sessions, when everything was read."""
    assert service.drain(0, lambda seconds: bool(time.sleep(seconds))) == []
    return service.reader.sessions()


@pytest.mark.parametrize("service", ["ipc", "tcp"], indirect=True)
def test_all_that_is_written_is_read_in_its_order(service: Service, sink: Collect) -> None:
    clients = [start(service, "calls", "20000") for _ in range(3)]
    assert [client.wait(SECONDS) for client in clients] == [0, 0, 0]
    sessions = drained(service)
    assert sorted(session.client.process for session in sessions) == sorted(client.pid for client in clients)
    assert sink.numbers == {number: list(range(20000)) for number in (1, 2, 3)}
    assert sink.ends == {1: None, 2: None, 3: None}
    assert all((s.records, s.bytes, s.missing, s.lost) == (20000, 640000, 0, 0) for s in sessions)
    assert len(sink.threads) == 1 and threading.get_ident() not in sink.threads


def test_many_programs_at_once(service: Service, sink: Collect) -> None:
    run(service, "many", "64")
    assert len(drained(service)) == 64
    assert sink.numbers == {number: list(range(100)) for number in range(1, 65)}
    assert set(sink.ends.values()) == {None} and not service.listener.refused


def test_a_forked_child_is_a_program_of_its_own(service: Service, sink: Collect) -> None:
    run(service, "fork", "1000")
    assert [session.records for session in drained(service)] == [2000, 2000]
    assert sink.numbers == {1: list(range(2000)), 2: list(range(2000))}


def test_a_program_that_is_killed_has_said_what_it_finished(service: Service, sink: Collect) -> None:
    assert start(service, "killed", "3000").wait(SECONDS) == -signal.SIGKILL
    drained(service)
    assert sink.numbers == {1: list(range(3000))} and sink.ends == {1: None}


def test_the_largest_records_go_round_the_ring(service: Service, sink: Collect) -> None:
    run(service, "large", "20")
    assert drained(service)[0].bytes > 2 * 64 << 20
    assert sink.numbers == {1: list(range(20))}


@pytest.mark.parametrize("mode", ["garbage", "ruined"])
def test_what_is_no_record_ends_that_program_only(service: Service, sink: Collect, mode: str) -> None:
    good = start(service, "wait", "100")
    assert good.stdout and good.stdout.readline() == "ready\n"
    bad = start(service, mode, "100")
    until(lambda: len(sink.ends) == 1)
    good.communicate("", SECONDS)
    bad.communicate("", SECONDS)
    drained(service)
    assert sink.ends == {1: None, 2: "what it wrote into its ring is no records"}
    assert sink.numbers[1] == list(range(200))
    assert sink.numbers[2] == list(range(100)) or mode == "ruined"  # whose records may be behind the ruin


def test_a_slow_reader_gets_all_that_was_accepted(service: Service, sink: Collect) -> None:
    sink.gate.clear()
    count = int(run(service, "full"))
    assert count > 200
    sink.gate.set()
    drained(service)
    assert sink.numbers == {1: list(range(count))} and sink.ends == {1: None}


def relay_of(service: Service) -> int:
    until(lambda: len(service.listener._served) == 1)
    return service.listener._served[0].relay.pid


def test_a_relay_that_stood_still_goes_on(service: Service, sink: Collect) -> None:
    client = start(service, "wait", "5000")
    assert client.stdout and client.stdout.readline() == "ready\n"
    until(lambda: len(sink.numbers.get(1, ())) == 5000)
    relay = relay_of(service)
    os.kill(relay, signal.SIGSTOP)
    client.communicate("", SECONDS)
    assert client.returncode == 0 and len(sink.numbers[1]) == 5000
    os.kill(relay, signal.SIGCONT)
    drained(service)
    assert sink.numbers == {1: list(range(10000))}


def test_a_relay_that_is_killed_is_noticed(service: Service, sink: Collect) -> None:
    client = start(service, "wait", "10")
    assert client.stdout and client.stdout.readline() == "ready\n"
    until(lambda: len(sink.numbers.get(1, ())) == 10)
    os.kill(relay_of(service), signal.SIGKILL)
    until(lambda: 1 in sink.ends)
    assert sink.ends == {1: "its relay has ended (exit status -9) before it had sent everything"}
    client.communicate("", SECONDS)
    assert client.returncode == 0


def test_relays_end_with_a_service_that_is_killed() -> None:
    program = (
        "import sys, time\nfrom orchestrator.service import Service\n"
        "with Service([]) as service:\n"
        "    print(service.socket, flush=True)\n"
        "    while not service.listener._served: time.sleep(0.01)\n"
        "    print(service.listener._served[0].relay.pid, flush=True)\n"
        "    time.sleep(100)\n"
    )
    killed = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, cwd=ROOT)
    assert killed.stdout
    environment = {**os.environ, SOCKET.name: killed.stdout.readline().strip(), "PYTHONPATH": str(ROOT)}
    client = subprocess.Popen([sys.executable, CLIENT, "wait", "10"], env=environment, stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True)
    relay = os.pidfd_open(int(killed.stdout.readline()))
    killed.kill()
    killed.wait(SECONDS)
    assert select.select([relay], [], [], SECONDS)[0] == [relay]
    os.close(relay)
    client.communicate("", SECONDS)
    assert client.returncode == 0


def test_a_sink_that_fails_stops_no_program(service: Service, sink: Collect) -> None:
    def fail(*_: object) -> None:
        raise OSError("no room")

    sink.batch = fail  # type: ignore[method-assign]
    run(service, "large", "20")
    drained(service)
    assert str(service.reader.failure) == "no room"
    assert sink.ends == {}


def test_nothing_is_left(sink: Collect) -> None:
    before = set(os.listdir("/proc/self/fd"))
    with Service([sink]) as service:
        client = start(service, "wait", "10")
        assert client.stdout and client.stdout.readline() == "ready\n"
        relay, folder = relay_of(service), service.socket.parent
        assert folder.stat().st_mode & 0o777 == 0o700
        assert service.drain(0, lambda _: False) == [service.reader.sessions()[0].client]
    assert not folder.exists() and not Path("/proc", str(relay)).exists()
    assert sink.ends == {1: "its records were no longer read"}
    client.communicate("", SECONDS)
    assert client.returncode == 0
    for stream in (client.stdin, client.stdout):
        assert stream is None or stream.closed
    assert set(os.listdir("/proc/self/fd")) == before
