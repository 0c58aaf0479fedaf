"""What the benchmark of the shim measures with: programs that launch, and libraries that stand before the driver."""

from __future__ import annotations

import mmap
import os
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import _shim_programs as programs
from tests import null_driver

COUNT = 6400
PAGE, RING_BYTES, HEAD, TAIL, LOST = 4096, 64 << 20, 64, 128, 192
LAUNCH, CALL = 48, 5
"""As in wire.h."""
CLIENT = """
import os, socket, struct, sys
with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as peer:
    peer.connect(sys.argv[1])
    hello = struct.pack("<6IQ256s", 0x41525345, 1, 288, os.getpid(), 0, 0, 64 << 20, b"client")
    socket.send_fds(peer, [hello], [int(sys.argv[2])])
    assert struct.unpack("<6I", peer.recv(64)) == (0x41525345, 1, 24, 1, 0, 1)
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> programs.Programs:
    return programs.build(tmp_path_factory.mktemp("programs"))


def test_one_program_is_linked_and_one_is_not(made: programs.Programs) -> None:
    needed = {path: subprocess.run(["readelf", "-d", path], capture_output=True, text=True, check=True).stdout
              for path in (made.opened, made.linked)}
    assert ["libcuda.so.1" in shown for shown in needed.values()] == [False, True]


@pytest.mark.parametrize("every", [0, 128])
def test_programs_launch_as_often_as_they_say(made: programs.Programs, every: int) -> None:
    variables = programs.environment(null_driver.build())
    for program in (made.opened, made.linked):
        found = programs.run(program, COUNT, every, variables)
        assert found.launches == COUNT and 0 < found.median_ns <= found.p99_ns
    assert programs.run(made.opened, COUNT + 63, every, variables).launches == COUNT, "whole batches"


def test_a_pointer_is_between_only_what_is_linked(made: programs.Programs) -> None:
    for program, there in ((made.linked, True), (made.opened, False)):
        bound = subprocess.run([program, str(COUNT), "0"], capture_output=True, text=True, check=True, env={
            **programs.environment(null_driver.build()), programs.PRELOAD: str(made.pointer), "LD_DEBUG": "bindings",
        }).stderr
        assert (f"file {program} [0] to {made.pointer} [0]: normal symbol `cuLaunchKernel'" in bound) is there


def test_a_message_comes_for_each_launch(made: programs.Programs, tmp_path: Path) -> None:
    launches, received = programs.zmq_each(made, tmp_path, COUNT)
    assert launches.launches == received == COUNT


def test_the_reader_counts_what_is_in_a_ring(made: programs.Programs, tmp_path: Path) -> None:
    """One of the records goes on at the ring's beginning, and one number is missing."""
    launches, others, size, missing = 300, 5, 48, 100
    kinds = [LAUNCH] * launches + [CALL] * others
    records = b"".join(
        struct.pack("<IHHQQII", size, kind, 0, number + (number >= missing), 0, 0, 0).ljust(size, b"\0")
        for number, kind in enumerate(kinds)
    )
    begin = 3 * RING_BYTES - 32
    memory = os.memfd_create("ring")
    os.truncate(memory, PAGE + RING_BYTES)
    with mmap.mmap(memory, PAGE + RING_BYTES) as ring:
        ring[PAGE + RING_BYTES - 32 :] = records[:32]
        ring[PAGE : PAGE + len(records) - 32] = records[32:]
        for place, number in ((HEAD, begin + len(records)), (TAIL, begin), (LOST, 7)):
            ring[place : place + 8] = number.to_bytes(8, "little")
        with programs.reader(made, tmp_path / "socket") as reader:
            subprocess.run([sys.executable, "-c", CLIENT, tmp_path / "socket", str(memory)], pass_fds=[memory],
                           check=True, timeout=programs.SILENCE)
            found = programs.drained(reader)
        assert int.from_bytes(ring[TAIL : TAIL + 8], "little") == begin + len(records)
    os.close(memory)
    assert found == programs.Drained(launches + others, launches, len(records), 1, 7)
