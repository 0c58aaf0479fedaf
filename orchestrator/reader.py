"""Where the messages of all relays arrive: a ZeroMQ socket, a thread that reads it, a session for each program."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import zmq
from zmq.auth.thread import ThreadAuthenticator

from orchestrator.session.messages import Session, Sink
from shim.errors import WireError
from shim.listen import Client, Way
from shim.messages import BYE
from shim.relay import HIGH_WATER, identity

POLL_SECONDS = 0.05
GRACE_SECONDS = 2.0
"""How long a message may still be on its way when the relay that sent it has ended."""
CLOSE_SECONDS = 5.0
LARGEST_MESSAGE = 16 << 20


class _Keys:
    """Which relays may connect: the public keys that were made here."""

    def __init__(self) -> None:
        self._known: set[bytes] = set()

    def new(self) -> tuple[bytes, bytes]:
        public, secret = zmq.curve_keypair()
        self._known.add(public)
        return public, secret

    def callback(self, _domain: str, key: bytes) -> bool:
        """What ZeroMQ's authenticator asks for each connection."""
        return key in self._known


class Reader:
    """Reads from :meth:`start` to :meth:`close` and gives to ``sinks`` what programs wrote.

    ``folder``: of the run's sockets, for messages by ``ipc``; None for ``tcp`` on the loopback interface, encrypted and
    only from relays with keys that were made here. ``failure`` is what a sink raised, after which nothing is given any
    more; ``strays`` counts messages that are no session's.
    """

    def __init__(self, folder: Path | None, sinks: Sequence[Sink]) -> None:
        self._sinks = sinks
        self._lock = threading.Lock()
        self._sessions: dict[bytes, Session] = {}
        self._new: list[Session] = []
        self._gone: dict[bytes, tuple[float, int]] = {}
        self.failure: Exception | None = None
        self.strays = 0
        self._stop = threading.Event()
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._keys: _Keys | None = None
        self._server_key = b""
        self._socket = self._context.socket(zmq.ROUTER)
        self._socket.set_hwm(HIGH_WATER)
        self._socket.setsockopt(zmq.MAXMSGSIZE, LARGEST_MESSAGE)
        self._socket.setsockopt(zmq.LINGER, 0)
        self._authenticator: ThreadAuthenticator | None = None
        if folder is None:
            self._encrypt()
            self._socket.bind("tcp://127.0.0.1:*")
        else:
            self._socket.bind(f"ipc://{folder / 'records'}")
        self._endpoint = self._socket.get_string(zmq.LAST_ENDPOINT).rstrip("\0")
        self._thread = threading.Thread(target=self._run, name="reader", daemon=True)

    def _encrypt(self) -> None:
        self._keys = _Keys()
        self._authenticator = ThreadAuthenticator(self._context)
        self._authenticator.start()
        self._authenticator.configure_curve_callback(credentials_provider=self._keys)
        self._server_key, secret = zmq.curve_keypair()
        self._socket.curve_publickey, self._socket.curve_secretkey = self._server_key, secret
        self._socket.curve_server = True

    def start(self) -> None:
        """Begin to read."""
        self._thread.start()

    def begun(self, client: Client) -> Way:
        """Make a session for a program; the way of its relay to here. For :class:`shim.listen.Listener`."""
        with self._lock:
            session = self._sessions[identity(client.number)] = Session(client)
            self._new.append(session)
        if self._keys is None:
            return Way(self._endpoint)
        public, secret = self._keys.new()
        return Way(self._endpoint, self._server_key.decode(), public.decode(), secret.decode())

    def ended(self, client: Client, status: int) -> None:
        """A program's relay has ended. For :class:`shim.listen.Listener`."""
        with self._lock:
            self._gone[identity(client.number)] = time.monotonic(), status

    def sessions(self) -> list[Session]:
        """All of them, in the order of the programs' numbers."""
        with self._lock:
            return list(self._sessions.values())

    def close(self) -> None:
        """Read no more; sessions that have not ended end here."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(CLOSE_SECONDS)
        self._socket.close()
        if self._authenticator:
            self._authenticator.stop()
        self._context.term()

    def _run(self) -> None:
        while not self._stop.is_set():
            if self._socket.poll(round(POLL_SECONDS * 1000)):
                self._receive()
            else:
                self._announce()
                self._bury()
        self._announce()
        for session in self.sessions():
            self._finish(session, "its records were no longer read")

    def _announce(self) -> None:
        with self._lock:
            new, self._new = self._new, []
        for session in new:
            self._tell("begin", session.client)

    def _receive(self) -> None:
        name, *frames = self._socket.recv_multipart(zmq.NOBLOCK, copy=False)
        sender = bytes(name.buffer)
        self._announce()
        with self._lock:
            session = self._sessions.get(sender)
        if session is None or session.ended:
            self.strays += 1
            return
        if not self._take(session, [frame.buffer for frame in frames]):
            self._socket.send_multipart((sender, BYE), zmq.NOBLOCK)

    def _take(self, session: Session, message: Sequence[memoryview]) -> bool:
        """Take a session's message; whether more is to come."""
        try:
            batch, data = session.take(message)
        except WireError as error:
            self._finish(session, f"its relay sent what is no message: {error}")
            return False
        self._tell("batch", session.client, batch, data)
        if session.ended:
            self._tell("end", session.client, session.trouble)
        return not session.ended

    def _bury(self) -> None:
        """End sessions whose relays have ended without a last message."""
        with self._lock:
            now = time.monotonic()
            late = [(self._sessions[name], status) for name, (since, status) in self._gone.items()
                    if now - since > GRACE_SECONDS]
            self._gone = {name: gone for name, gone in self._gone.items() if not self._sessions[name].ended
                          and now - gone[0] <= GRACE_SECONDS}
        for session, status in late:
            self._finish(session, f"its relay has ended (exit status {status}) before it had sent everything")

    def _finish(self, session: Session, trouble: str) -> None:
        if not session.ended:
            session.finish(trouble)
            self._tell("end", session.client, trouble)

    def _tell(self, what: str, *arguments: Any) -> None:
        """Tell all sinks, until one fails."""
        try:
            for sink in self._sinks if self.failure is None else ():
                getattr(sink, what)(*arguments)
        except Exception as error:  # whoever runs the reader says it; programs are read on, so that none has to wait
            self.failure = error


