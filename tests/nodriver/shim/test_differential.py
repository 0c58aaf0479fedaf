"""Programs do under the preload library what they do without, and records say each piece of it once: C programs that
call all there is of the driver, right and wrong, and programs that find it in all ways there are."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from shim.wire import lib
from tests.material import ROOT
from tests.nodriver.driver.programs import FOLDER
from tests.nodriver.shim.differential import assert_complete, assert_contents, assert_same_text, assert_same_work
from tests.nodriver.shim.observed import Observed, observe
from tests.nodriver.shim.programs import linked
from tools import driver

PAYLOADS = int(lib.WIRE_PAYLOADS)
PROGRAMS = sorted(path.stem for path in FOLDER.glob("*.c"))
IDLE = {"contexts", "fleets", "links", "notes", "occupancy", "peers"}
"""These give the driver nothing to do."""
ADDRESSES = {"kernels"}
"""What kernels of these write are addresses."""
STALE = {"links"}
"""These need handles that are no more to be nobody's."""
THREADS = {"captures", "graph_many", "pools", "streams"}
"""Threads of these make streams, and take each other's handles."""
FAILED = {"graph_kernels"}
"""These launch graphs with nodes of a context that has failed and of one that has not: what is done of those hangs on
the moment at which the failure is noticed."""
MODELLED = {"clock"}
"""These hold modelled times to what they should be, to which the library's own work in streams adds."""
LONG = {"memory"}
RUNS = [
    *[(name, 0) for name in PROGRAMS],
    *[pytest.param(name, PAYLOADS, marks=[pytest.mark.long] if name in LONG else [])
      for name in PROGRAMS if name not in MODELLED],
]


@pytest.mark.parametrize(("name", "options"), RUNS)
def test_programs_of_the_drivers_tests(name: str, options: int, tmp_path: Path,
                                       record_property: pytest.RecordProperty) -> None:
    program = linked(name, tmp_path, source=FOLDER / f"{name}.c")
    under = observe([program], options=options, reuse=name not in STALE, cwd=tmp_path)
    pieces = assert_complete(under)
    assert (not pieces) == (name in IDLE)
    if options:
        record_property("contents that came to the host", assert_contents(under))
    bare = observe([program], preload=False, reuse=name not in STALE, cwd=tmp_path)
    assert bare.status == 0
    assert_same_text(bare, under)
    if name not in FAILED:
        brought = assert_same_work(bare, under, name not in THREADS, name in ADDRESSES)
        record_property("bytes to the host", brought)
    record_property("pieces of work", pieces.total())


def test_the_example(tmp_path: Path) -> None:
    program = linked("driver", tmp_path, source=ROOT / "examples" / "driver.c")
    bare, under = (observe([program, ROOT / "examples" / "kernels.ptx"], preload=preload) for preload in (False, True))
    assert assert_complete(under) == {"copy": 6, "kernel": 2}
    assert bare.status == 0 and len(bare.output.splitlines()) == 2
    assert_same_text(bare, under)
    assert assert_same_work(bare, under) == 2 * 4 << 20


ANSWER = "2672\n"
LINKED, NUMBERED, PLAIN, BY_PATH, ALL_SYMBOLS, ASKED = range(6)
UNSEEN = {(PLAIN, "deep"), (BY_PATH, "deep"), *[(find, "name space") for find in range(6)]}
"""Ways in which the preloaded library does not stand: another name space; and one who opens the driver by another
name of its file than the library has, and is bound to the loader's own dlsym."""


@pytest.mark.parametrize(("find", "load"), [
    (find, load) for find in range(6) for load in ("plain", "deep", "name space")
    if (find, load) != (ALL_SYMBOLS, "name space")])  # which has no symbols that are all's
def test_a_part_finds_the_driver(find: int, load: str, tmp_path: Path) -> None:
    flags = ["-DPART", f"-DFIND={find}", "-fPIC", "-shared"]
    part = linked("ways", tmp_path, "", *flags, against=find == LINKED).rename(tmp_path / "part.so")
    program = linked("ways", tmp_path, against=False)
    bare, under = (observe([program, part, load, driver.LIBRARY], preload=preload) for preload in (False, True))
    assert (bare.status, bare.output, bare.errors) == (0, ANSWER, "")
    assert_same_text(bare, under)
    assert assert_same_work(bare, under) == 256
    if (find, load) in UNSEEN:
        assert under.clients == []
    else:
        assert assert_complete(under) == {"copy": 3, "kernel": 4, "memset": 3, "host function": 3}


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Observed, Observed]:
    folder = tmp_path_factory.mktemp("pair")
    flags = ["-DPART", f"-DFIND={NUMBERED}", "-fPIC", "-shared"]
    part = linked("ways", folder, "", *flags, against=False).rename(folder / "part.so")
    program = linked("ways", folder, against=False)
    bare, under = (observe([program, part, "plain", driver.LIBRARY], options=PAYLOADS, preload=preload)
                   for preload in (False, True))
    return bare, under


def changed(seen: Observed, number: int, *lines: dict[str, Any]) -> Observed:
    """With other lines in place of a piece of work in the log."""
    log = seen.work()
    return replace(seen, log=[*log[:number], *lines, *log[number + 1:]])


def test_what_is_missed_or_said_twice_is_found(pair: tuple[Observed, Observed]) -> None:
    """Each piece of work that is in the log once more or once less than in the records, or otherwise."""
    bare, under = pair
    assert assert_complete(under) and assert_contents(under) == 2
    for number, line in enumerate(under.work()):
        for lines in ((), (line, line), ({**line, "graph": not line["graph"]},), ({**line, "stream": "0x77"},)):
            with pytest.raises(AssertionError):
                assert_complete(changed(under, number, *lines))
    for number, line in enumerate(bare.work()):
        for lines in ((), (line, line)):
            with pytest.raises(AssertionError):
                assert_same_work(changed(bare, number, *lines), under)
        if "sha256" in line:
            with pytest.raises(AssertionError):
                assert_same_work(changed(bare, number, {**line, "sha256": "0" * 64}), under)


CTYPES = """
import ctypes, os, sys
from ctypes import byref, c_size_t, c_uint, c_uint64, c_void_p
cuda = ctypes.{loader}({name!r}, mode={mode})
def ok(result):
    assert result == 0, result
memory, context, values = c_uint64(), c_void_p(), (c_uint * 1000)()
ok(cuda.cuInit(0))
ok(cuda.cuDevicePrimaryCtxRetain(byref(context), 1))
ok(cuda.cuCtxSetCurrent(context))
ok(cuda.cuMemAlloc_v2(byref(memory), c_size_t(4000)))
ok(cuda.cuMemcpyHtoD_v2(memory, (c_uint * 1000)(*range(1000)), c_size_t(4000)))
ok(cuda.cuMemsetD32_v2(memory, 7, c_size_t(10)))
ok(cuda.cuMemcpyDtoH_v2(values, memory, c_size_t(4000)))
print(sum(values))
"""


@pytest.mark.parametrize("loader", ["CDLL", "PyDLL"])
@pytest.mark.parametrize("mode", ["os.RTLD_LAZY", "os.RTLD_GLOBAL", "os.RTLD_NOW | os.RTLD_DEEPBIND"])
@pytest.mark.parametrize("name", ["libcuda.so", "libcuda.so.1", str(driver.LIBRARY)], ids=lambda name: Path(name).name)
def test_ctypes(name: str, mode: str, loader: str) -> None:
    command = [sys.executable, "-c", CTYPES.format(loader=loader, name=name, mode=mode)]
    bare, under = (observe(command, preload=preload) for preload in (False, True))
    assert (bare.status, bare.output, bare.errors) == (0, f"{sum(range(10, 1000)) + 70}\n", "")
    assert_same_text(bare, under)
    assert assert_same_work(bare, under) == 4000
    assert assert_complete(under) == {"copy": 2, "memset": 1}
