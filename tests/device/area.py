"""The memory that the programs of a check share: a file in memory, and who waits for whom in it. Needs no driver."""

from __future__ import annotations

import mmap
import os
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

PAGE = 4096
FLAGS = PAGE
"""Bytes of the first part of an area; each flag has a cache line of its own."""
LINE = 64
SECONDS = 30.0
"""The longest that anything in these checks may take; then the program ends."""


@contextmanager
def shared_file(size: int) -> Iterator[int]:
    """A descriptor of a file in memory."""
    file = os.memfd_create("exchange-area")
    try:
        os.truncate(file, size)
        yield file
    finally:
        os.close(file)


def until(condition: Callable[[], bool], what: str, seconds: float = SECONDS) -> None:
    """Look again and again, until a condition is true; raises TimeoutError."""
    deadline = time.monotonic() + seconds
    pause = 0.0
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not within {seconds:g} seconds")
        time.sleep(pause)
        pause = min(pause + 1e-6, 1e-3)


class Mapping:
    """The file as one process sees it."""

    def __init__(self, file: int) -> None:
        self.size = os.fstat(file).st_size
        self.memory = mmap.mmap(file, self.size)

    def flag(self, number: int) -> int:
        return int(struct.unpack_from("<I", self.memory, number * LINE)[0])

    def set_flag(self, number: int, value: int) -> None:
        struct.pack_into("<I", self.memory, number * LINE, value)

    def wait(self, number: int, value: int, what: str) -> None:
        """Until a flag has at least a value; raises TimeoutError."""
        until(lambda: self.flag(number) >= value, what)
