"""Messages: only one that continues what came before is taken, and a wrong one ends its own session only."""

from __future__ import annotations

import os
import time
from typing import Any

import pytest
import zmq
from hypothesis import given
from hypothesis import strategies as st
from zmq.utils.monitor import recv_monitor_message

from orchestrator.reader import Reader
from orchestrator.session.messages import Session
from shim.errors import WireError
from shim.layout import lib
from shim.listen import Client
from shim.messages import BATCH, BYE, batch
from shim.relay import identity
from shim.room import room
from shim.wire import Head, Kind, encode, records

CLIENT = Client(7, 100, "program")


def calls(*numbers: int) -> bytes:
    return b"".join([encode(Kind.CALL, head=Head(sequence=number)) for number in numbers])


def message(data: bytes = b"", **fields: int) -> tuple[bytes, bytes]:
    return batch(**{"client": 7, "process": 100, "bytes": len(data), **fields}), data


def test_counts() -> None:
    session = Session(CLIENT)
    head, data = session.take(message(calls(0, 1, 2), lost=0, ticks=5, nanoseconds=6))
    assert (head.ticks, head.nanoseconds) == (5, 6) and [record.sequence for record in records(data)] == [0, 1, 2]
    epoch = encode(Kind.EPOCH, head=Head(sequence=10), epoch=1, lost=7)
    session.take(message(epoch + calls(11), number=1, position=96, lost=7))
    assert not session.ended
    session.take(message(number=2, position=96 + len(epoch) + 32, lost=7, last=1))
    assert session.ended and session.trouble is None
    assert (session.records, session.missing, session.epochs, session.lost) == (5, 7, 1, 7)
    assert session.kinds == {Kind.CALL: 4, Kind.EPOCH: 1} and session.bytes == 128 + len(epoch)


@pytest.mark.parametrize("words, wrong", [
    ("1 parts, and must be 2", (b"one",)),
    ("head of a message: 3 bytes", (b"one", b"two")),
    ("magic is 1,", message(magic=1)),
    ("version is 9, and must be 1", message(version=9)),
    ("client is 8, and must be 7", message(client=8)),
    ("process is 8, and must be 100", message(process=8)),
    ("number is 0, and must be 1", message(position=32)),
    ("number is 2, and must be 1", message(number=2, position=32)),
    ("position is 0, and must be 32", message(number=1)),
    ("bytes is 5, and must be 0", message(number=1, position=32, bytes=5)),
    ("at byte 32 of 40: it is shorter", message(calls(1) + bytes(8), number=1, position=32)),
    ("not in the order of their numbers", message(calls(0), number=1, position=32)),
    ("not in the order of their numbers", message(calls(2, 1), number=1, position=32)),
])
def test_a_message_that_cannot_be_the_next_is_refused(words: str, wrong: tuple[bytes, ...]) -> None:
    session = Session(CLIENT)
    session.take(message(calls(0)))
    with pytest.raises(WireError, match=words):
        session.take(wrong)


def test_nothing_comes_after_the_end() -> None:
    session = Session(CLIENT)
    session.take(message(trouble=lib.WIRE_MALFORMED_RING))
    assert session.ended and session.trouble == "what it wrote into its ring is no records"
    with pytest.raises(WireError, match="after the last one"):
        session.take(message(number=1))


GOOD = b"".join(message(calls(0, 1)))


@given(st.lists(st.tuples(st.integers(0, len(GOOD) - 1), st.integers(0, 255)), max_size=4), st.binary(max_size=200))
def test_no_bytes_do_harm(changes: list[tuple[int, int]], random: bytes) -> None:
    data = bytearray(GOOD)
    for place, value in changes:
        data[place] = value
    for parts in ((data[:BATCH.size], data[BATCH.size:]), (data[:BATCH.size], random), (random, random)):
        session = Session(CLIENT)
        try:
            _, found = session.take([bytes(part) for part in parts])
        except WireError:
            continue
        assert len(list(records(found))) == session.records


class Ends:
    """Knows how programs ended."""

    def __init__(self) -> None:
        self.ends: dict[int, str | None] = {}

    def begin(self, client: Client) -> None:
        pass

    def batch(self, client: Client, batch: Any, data: memoryview) -> None:
        pass

    def end(self, client: Client, trouble: str | None) -> None:
        self.ends[client.number] = trouble


def dealer(context: zmq.Context[Any], endpoint: str, name: bytes) -> zmq.Socket[Any]:
    socket = context.socket(zmq.DEALER)
    socket.setsockopt(zmq.IDENTITY, name)
    socket.setsockopt(zmq.LINGER, 0)
    socket.setsockopt(zmq.RCVTIMEO, 10000)
    socket.connect(endpoint)
    return socket


def test_who_was_never_accepted_is_not_heard_and_a_wrong_message_ends_one_session() -> None:
    sink = Ends()
    with room() as folder, zmq.Context() as context:
        reader = Reader(folder, [sink])
        reader.start()
        endpoint = reader.begun(Client(1, 100, "x")).endpoint
        reader.begun(Client(2, 100, "x"))
        stranger = dealer(context, endpoint, b"stranger")
        bad, good = dealer(context, endpoint, identity(1)), dealer(context, endpoint, identity(2))
        stranger.send_multipart(message(client=1, last=1))
        bad.send_multipart(message(client=2, last=1))  # as if it were the other
        assert bad.recv() == BYE
        good.send_multipart(message(calls(0), client=2))
        good.send_multipart(message(client=2, number=1, position=32, last=1))
        assert good.recv() == BYE
        end = time.monotonic() + 10
        while not reader.strays:
            assert time.monotonic() < end
            time.sleep(0.01)
        for socket in (stranger, bad, good):
            socket.close()
        reader.close()
    assert sink.ends == {1: "its relay sent what is no message: message 0: client is 2, and must be 1", 2: None}
    assert reader.strays == 1


@pytest.mark.parametrize("keys", ["none", "own", "ours"])
def test_only_relays_with_keys_of_this_run_connect_by_tcp(keys: str) -> None:
    with zmq.Context() as context:
        reader = Reader(None, [])
        reader.start()
        way = reader.begun(CLIENT)
        assert way.endpoint.startswith("tcp://127.0.0.1:") and way.public_key and way.server_key
        socket = context.socket(zmq.DEALER)
        socket.setsockopt(zmq.LINGER, 0)
        if keys != "none":
            public, secret = zmq.curve_keypair()
            own = keys == "own"
            socket.curve_serverkey = way.server_key.encode()
            socket.curve_publickey = public if own else way.public_key.encode()
            socket.curve_secretkey = secret if own else way.secret_key.encode()
        events = (zmq.EVENT_HANDSHAKE_SUCCEEDED | zmq.EVENT_HANDSHAKE_FAILED_AUTH | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL
                  | zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL)
        monitor = socket.get_monitor_socket(events | zmq.EVENT_DISCONNECTED)
        socket.connect(way.endpoint)
        assert monitor.poll(10000)
        event = recv_monitor_message(monitor)["event"]
        assert (event == zmq.EVENT_HANDSHAKE_SUCCEEDED) == (keys == "ours")
        socket.disable_monitor()
        socket.close()
        reader.close()


def test_keys_stand_in_no_command_line_and_no_environment() -> None:
    from orchestrator.service import Service
    from tests.nodriver.shim.client import FakeClient

    with Service([], "tcp") as service:
        FakeClient(str(service.socket))
        end = time.monotonic() + 10
        while not service.listener._served:
            assert time.monotonic() < end
            time.sleep(0.01)
        relay = service.listener._served[0].relay.pid
        with open(f"/proc/{relay}/cmdline", "rb") as command, open(f"/proc/{relay}/environ", "rb") as environment:
            said = command.read() + environment.read()
        keys = service.reader._keys
        assert keys and keys._known
        assert not any(key in said for key in keys._known) and service.reader._server_key not in said
    assert os.getpid() not in [s.client.process for s in service.reader.sessions() if not s.ended]
