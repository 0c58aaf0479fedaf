"""Who is let in: programs that say hello as ``wire.h`` has it; everybody else is told so, nothing of theirs stays."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from orchestrator.service import Service
from shim import listen
from shim.errors import ShimTrouble
from shim.layout import lib
from shim.messages import WELCOME, hello
from shim.room import room, socket_in
from tests.nodriver.shim.client import BYTES, FakeClient, greet, memory

ME = os.getpid()


@pytest.fixture
def service() -> Iterator[Service]:
    with Service([], options=lib.WIRE_PAYLOADS) as service:
        yield service


def answer(service: Service, message: bytes, descriptors: list[int]) -> bool:
    """Whether the listener accepts, as its answer says."""
    with greet(str(service.socket), message, descriptors) as connection:
        for descriptor in descriptors:
            os.close(descriptor)
        said = WELCOME.read(connection.recv(100))
        assert connection.recv(100) == b""  # it closes after the answer
    assert (said.magic, said.version, said.size) == (lib.WIRE_MAGIC, lib.WIRE_VERSION, WELCOME.size)
    return bool(said.accepted)


def test_programs_get_numbers_and_options(service: Service) -> None:
    clients = [FakeClient(str(service.socket)) for _ in range(3)]
    assert [(c.welcome.accepted, c.welcome.client, c.welcome.options) for c in clients] == [
        (1, number, lib.WIRE_PAYLOADS) for number in (1, 2, 3)]
    assert [s.client.process for s in service.reader.sessions()] == [ME] * 3


REFUSED: list[tuple[str, bytes, Callable[[], list[int]]]] = [
    ("magic is", hello(ME, "x", magic=1), lambda: [memory()]),
    ("version is 7, and must be 1", hello(ME, "x", version=7), lambda: [memory()]),
    ("size is", hello(ME, "x", size=8), lambda: [memory()]),
    ("functions is 3", hello(ME, "x", functions=3), lambda: [memory()]),
    ("list is", hello(ME, "x", list=3), lambda: [memory()]),
    ("ring_bytes is", hello(ME, "x", ring_bytes=3), lambda: [memory()]),
    ("greeting: 4 bytes", b"what", lambda: [memory()]),
    ("bytes, and must be", hello(ME, "x") + bytes(8), lambda: [memory()]),
    ("it sent 0 descriptors", hello(ME, "x"), list),
    ("it sent 2 descriptors", hello(ME, "x"), lambda: [memory(), memory()]),
    ("it has another size", hello(ME, "x"), lambda: [memory(BYTES - 4096)]),
    ("it has another size", hello(ME, "x"), lambda: [os.open("/dev/null", os.O_RDONLY)]),
    ("not sealed against shrinking", hello(ME, "x"), lambda: [memory(seals=0)]),
    ("it does not begin as a ring does", hello(ME, "x"), lambda: [memory(magic=0)]),
    ("it is of another version", hello(ME, "x"), lambda: [memory(version=2)]),
    ("its head says another size", hello(ME, "x"), lambda: [memory(bytes=1 << 62)]),
    ("it cannot be mapped", hello(ME, "x"), lambda: [read_only(memory())]),
]


def read_only(descriptor: int) -> int:
    again = os.open(f"/proc/self/fd/{descriptor}", os.O_RDONLY)
    os.close(descriptor)
    return again


@pytest.mark.parametrize("words, message, descriptors", REFUSED)
def test_what_is_no_greeting_is_refused(
    service: Service, words: str, message: bytes, descriptors: Callable[[], list[int]]
) -> None:
    before = set(os.listdir("/proc/self/fd"))
    assert not answer(service, message, descriptors())
    [(reason, count)] = service.listener.refused.items()
    assert words in reason and count == 1
    assert set(os.listdir("/proc/self/fd")) == before
    assert service.reader.sessions() == []
    assert answer(service, hello(ME, "x"), [memory()])


def test_too_many_descriptors_stay_nowhere(service: Service) -> None:
    descriptors = [memory() for _ in range(40)]
    before = len(os.listdir("/proc/self/fd")) - len(descriptors)
    assert not answer(service, hello(ME, "x"), descriptors)
    assert len(os.listdir("/proc/self/fd")) == before


def test_who_says_nothing_is_sent_away_and_keeps_nobody_waiting(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listen, "HELLO_SECONDS", 0.2)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as silent:
        silent.settimeout(10)
        silent.connect(str(service.socket))
        assert FakeClient(str(service.socket)).welcome.accepted
        assert not WELCOME.read(silent.recv(100)).accepted
    assert service.listener.refused == {"no greeting in time": 1}


def test_who_leaves_is_forgotten(service: Service) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as gone:
        gone.connect(str(service.socket))
    assert FakeClient(str(service.socket)).welcome.accepted  # connections are looked at in turn
    assert service.listener.refused == {"it closed the connection without a greeting": 1}


def test_programs_at_a_time_are_bounded(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listen, "MOST_CLIENTS", 2)
    clients = [FakeClient(str(service.socket)) for _ in range(3)]
    assert [client.welcome.accepted for client in clients] == [1, 1, 0]
    assert service.listener.refused == {"there are 2 programs already": 1}


def test_a_relay_that_does_not_start_is_no_reason_to_stop(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert FakeClient(str(service.socket)).welcome.accepted  # by the relay that was there before
    monkeypatch.setattr(listen.sys, "executable", "/no/such/python")
    assert not FakeClient(str(service.socket)).welcome.accepted
    monkeypatch.undo()
    assert FakeClient(str(service.socket)).welcome.accepted
    assert service.listener.refused == {"no relay for it: No such file or directory": 1}


def test_a_relay_that_has_ended_before_its_program_came_is_replaced(service: Service) -> None:
    spare = service.listener._spare
    assert spare is not None
    spare.process.kill()
    spare.process.wait(10)
    assert FakeClient(str(service.socket)).welcome.accepted


def test_every_room_is_its_own_and_those_left_behind_go() -> None:
    with room() as one, room() as other:
        assert one != other and one.is_dir() and other.is_dir()
        assert {path.stat().st_mode & 0o777 for path in (one, other)} == {0o700}
        left = one.parent / "run-left"
        (left / "inner").mkdir(parents=True)
        with room():
            assert not left.exists() and one.is_dir() and other.is_dir()
    assert not one.exists() and not other.exists()


def test_rooms_made_at_once_do_not_harm_each_other() -> None:
    found: list[Path] = []

    def make() -> None:
        for _ in range(20):
            with room() as folder:
                (folder / "file").touch()
                found.append(folder)
                assert (folder / "file").exists()

    threads = [threading.Thread(target=make) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 80 and not any(folder.exists() for folder in found)


def test_a_path_that_is_too_long_for_a_socket_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ShimTrouble, match="at most 107 bytes"):
        socket_in(Path("/", "x" * 120), "hello")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    (tmp_path / "tessera").mkdir()
    (tmp_path / "tessera").chmod(0o777)
    from tessera.private import UnsafeFolder

    with pytest.raises(UnsafeFolder, match="nobody else can write to"), Service([]):
        pass


