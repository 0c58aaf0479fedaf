"""All that runs beside a program: the listener, the relays and the reader, in a folder of their own."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType

from shim.errors import ShimMissing, ShimTrouble

try:
    from orchestrator.reader import Reader
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] != "zmq":
        raise
    raise ShimMissing("records need the package pyzmq (the extra 'shim'): pip install 'tessera-gpu[shim]'") from error
from orchestrator.session.messages import Session, Sink
from shim.listen import Client, Listener
from shim.room import room, socket_in

IPC, TCP = "ipc", "tcp"
TRANSPORTS = (IPC, TCP)
DRAIN_SECONDS = 30.0
"""Without a byte of a program that has ended, after which no more is expected of it."""
SLICE_SECONDS = 0.02


class Service:
    """Takes the records of programs between ``with`` and its end, and gives them to ``sinks`` in a thread of its own.
    ``options``: bits of ``enum wire_option`` for the programs. Raises ShimTrouble if it cannot be."""

    def __init__(self, sinks: Sequence[Sink], transport: str = IPC, options: int = 0) -> None:
        self._sinks, self._transport, self._options = sinks, transport, options
        self._stack = ExitStack()
        self.reader: Reader
        self.listener: Listener
        self.socket: Path
        """Where programs say hello."""

    def __enter__(self) -> Service:
        with ExitStack() as stack:
            folder = stack.enter_context(room())
            try:
                socket_in(folder, "records")
                self.reader = Reader(None if self._transport == TCP else folder, self._sinks)
                stack.callback(self.reader.close)
                self.socket = socket_in(folder, "hello")
                self.listener = Listener(self.socket, self._options, self.reader.begun, self.reader.ended)
                stack.callback(self.listener.close)
                self.reader.start()
                self.listener.start()
            except OSError as error:
                raise ShimTrouble(f"there can be no sockets in {folder}: {error}") from None
            self._stack = stack.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
                 ) -> None:
        self._stack.close()

    def drain(self, linger: float, pause: Callable[[float], bool]) -> list[Client]:
        """Wait until everything is read that programs wrote which have ended, and at most ``linger`` seconds for the
        others to end; these are returned. ``pause`` waits so many seconds and says whether to give up."""
        start = moved = time.monotonic()
        before = -1
        while True:
            waiting = [session for session in self.reader.sessions() if not session.ended]
            living = self._living(waiting)
            now, read = time.monotonic(), sum(session.bytes for session in waiting)
            if read != before:
                before, moved = read, now
            others = len(waiting) > len(living) and now - moved < DRAIN_SECONDS
            if not others and (not living or now - start >= linger):
                return living
            if pause(SLICE_SECONDS):
                return living

    def _living(self, waiting: Sequence[Session]) -> list[Client]:
        wanted = {session.client for session in waiting}
        return [client for client in self.listener.living() if client in wanted]
