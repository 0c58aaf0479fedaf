"""Processes that name the same machine: limits of memory hold for all of them together, whatever becomes of each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.nodriver.driver.program import Program

GIB = 1 << 30
PRELUDE = """
assert cuda.cuInit(0) == 0 or sys.exit("no machine")
context = c_void_p()
assert cuda.cuCtxCreate_v2(byref(context), 0, 0) == 0
pieces = {}
def take(amount):
    pieces[amount] = c_uint64()
    return cuda.cuMemAlloc_v2(byref(pieces[amount]), c_size_t(amount))
def give(amount):
    return cuda.cuMemFree_v2(pieces[amount])
def unused():
    unused, total = c_size_t(), c_size_t()
    assert cuda.cuMemGetInfo_v2(byref(unused), byref(total)) == 0
    return unused.value
"""


class Process(Program):
    """A program that takes and gives memory."""

    def take(self, amount: int) -> int:
        return int(self.get(f"take({amount})"))

    def give(self, amount: int) -> int:
        return int(self.get(f"give({amount})"))

    def unused(self) -> int:
        return int(self.get("unused()"))


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[type[Process]]:
    made: list[Process] = []

    class Here(Process):
        def __init__(self, machine: str = "one", devices: str = "T4") -> None:
            super().__init__(tmp_path, machine, devices, PRELUDE)
            made.append(self)

    yield Here
    for process in made:
        process.end(hard=True)


def test_one_limit_for_all(machine: type[Process]) -> None:
    first, second = machine(), machine()
    assert first.take(10 * GIB) == 0
    assert second.unused() == 6 * GIB
    assert second.take(7 * GIB) == 2
    assert second.take(6 * GIB) == 0
    assert first.take(1) == 2
    assert first.give(10 * GIB) == 0
    assert second.take(9 * GIB) == 0
    assert first.unused() == GIB


@pytest.mark.parametrize("hard", [False, True], ids=["ended", "killed"])
def test_what_the_dead_had_is_free(machine: type[Process], hard: bool) -> None:
    first, second = machine(), machine()
    assert first.take(12 * GIB) == 0 and second.take(5 * GIB) == 2
    first.end(hard)
    assert second.unused() == 16 * GIB
    assert second.take(16 * GIB) == 0


def test_the_next_process_of_a_machine_finds_it_empty(machine: type[Process]) -> None:
    first = machine()
    assert first.take(12 * GIB) == 0
    first.end(hard=True)
    assert machine(devices="L4").unused() == 24 * GIB, "and may have other devices"


def test_other_machines_and_those_without_a_name(machine: type[Process]) -> None:
    processes = [machine("one"), machine("two"), machine(""), machine("")]
    assert [process.take(16 * GIB) for process in processes] == [0, 0, 0, 0]


@pytest.mark.parametrize(("name", "devices", "message"), [
    ("one", "T4,L4", "the machine one has the devices T4, not T4,L4"),
    ("a/b", "T4", "SOFTGPU_MACHINE=a/b must be up to 64 letters, digits"),
    (".", "T4", "SOFTGPU_MACHINE=. must be"), ("x" * 65, "T4", "must be up to 64 letters"),
])
def test_machines_that_cannot_be(machine: type[Process], name: str, devices: str, message: str) -> None:
    assert machine().take(1) == 0
    assert message in machine(name, devices).end()


def test_a_folder_that_others_may_write(machine: type[Process], tmp_path: Path) -> None:
    (tmp_path / "tessera").mkdir()
    (tmp_path / "tessera").chmod(0o777)
    assert "must be a folder of this user that nobody else can write to" in machine().end()
