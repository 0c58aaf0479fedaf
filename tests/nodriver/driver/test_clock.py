"""The modelled clock: what a program sees of it, by its own clock and by events, against figures derived by hand."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tessera.environment import CLOCK, DEVICES, MACHINE
from tests.nodriver.driver.client import HEAD, run
from tools import driver

TOLERANCE = 0.05
TRIES = 4
"""This machine may have other things to do: runs that it calls void are made once more."""

FMAS = 128
KERNELS = f"""
.version 7.0
.target sm_70
.address_size 64
.visible .entry copy(.param .u64 py, .param .u64 px) {{
  .reg .b32 %r<6>; .reg .b64 %d<6>; .reg .f32 %f<4>;
  ld.param.u64 %d1, [py]; ld.param.u64 %d2, [px];
  mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x; mad.lo.u32 %r5, %r2, %r3, %r4;
  mul.wide.u32 %d3, %r5, 4; add.u64 %d1, %d1, %d3; add.u64 %d2, %d2, %d3;
  ld.global.f32 %f2, [%d2]; st.global.f32 [%d1], %f2; ret; }}
.visible .entry multiply(.param .u64 py, .param .u32 pn) {{
  .reg .b32 %r<6>; .reg .b64 %d<6>; .reg .f32 %f<4>; .reg .pred %p;
  ld.param.u64 %d1, [py]; ld.param.u32 %r1, [pn]; mov.f32 %f1, 0f3F000000; mov.f32 %f2, %f1;
LOOP:
  {"fma.rn.f32 %f2, %f2, %f1, %f1; " * FMAS}
  sub.u32 %r1, %r1, 1; setp.ne.u32 %p, %r1, 0; @%p bra LOOP;
  mov.u32 %r4, %tid.x; mul.wide.u32 %d3, %r4, 4; add.u64 %d1, %d1, %d3;
  st.global.f32 [%d1], %f2; ret; }}
"""

PROGRAM = f"""
import time
assert cuda.cuInit(0) == 0 or sys.exit("no machine")
KERNELS = {KERNELS!r}
def ok(result):
    assert result == 0, result
def begin(device):
    global context, module, stream, first, last, x, y
    context, module, stream, first, last, x, y = [c_void_p() for _ in range(7)]
    ok(cuda.cuCtxCreate_v2(byref(context), 0, device))
    ok(cuda.cuModuleLoadData(byref(module), KERNELS.encode()))
    ok(cuda.cuStreamCreate(byref(stream), 1))
    for event in (first, last):
        ok(cuda.cuEventCreate(byref(event), 0))
    for memory in (x, y):
        ok(cuda.cuMemAlloc_v2(byref(memory), c_size_t(16 << 20)))
def launch(name, blocks, threads, *arguments):
    function = c_void_p()
    ok(cuda.cuModuleGetFunction(byref(function), module, name))
    given = (c_void_p * len(arguments))(*map(ctypes.addressof, arguments))
    ok(cuda.cuLaunchKernel(function, blocks, 1, 1, threads, 1, 1, 0, stream, given, None))
def copy(count):
    launch(b"copy", count // 256, 256, y, x)
def multiply(blocks, loops):
    launch(b"multiply", blocks, 128, y, c_uint(loops))
def synchronize():
    ok(cuda.cuStreamSynchronize(stream))
def timed(work, times=1):
    '''Seconds by this process's clock, and by events.'''
    start = time.monotonic()
    ok(cuda.cuEventRecord(first, stream))
    for _ in range(times):
        work()
    ok(cuda.cuEventRecord(last, stream))
    synchronize()
    end = time.monotonic()
    found = ctypes.c_float()
    ok(cuda.cuEventElapsedTime(byref(found), first, last))
    return end - start, found.value / 1e3
def warm(work):
    work()
    synchronize()
"""


def keeping_up(code: str, devices: str, check: Callable[[float, Any], None], dilation: float) -> None:
    """Check what a program shows whose run is not void, with a larger dilation when this machine does not keep up."""
    for number in range(TRIES):
        at = dilation * 2**number
        done = run(PROGRAM + code, devices, **{CLOCK.name: f"modelled:{at}"})
        good = re.fullmatch(r"softgpu: modelled clock: kept up: \d+ operations; [^\n]*\n", done.errors)
        assert good or "this run is void" in done.errors, done.errors
        try:
            check(at, done.shown)
        except AssertionError:
            if number == TRIES - 1:
                raise
        else:
            if good:
                return
    pytest.fail("this machine did not keep up with the modelled clock")


@dataclass(frozen=True)
class Card:
    """From data sheets: bytes a second of memory, multiply-adds a second (half the operations that they count), bytes a
    second of 16 lanes of PCI Express."""

    name: str
    memory: float
    multiply_adds: float
    host: float
    most_a_clock: int


CARDS = (
    Card("A100-80G", 1935e9, 19.5e12 / 2, 31.508e9, 64), Card("L40S", 864e9, 91.6e12 / 2, 31.508e9, 128),
    Card("T4", 320e9, 8.1e12 / 2, 15.754e9, 64),
)
LAUNCH, LAUNCH_CALL, COPY, COPY_CALL, EVENT, EVENT_CALL, WAIT = 0.9e-6, 2.2e-6, 3e-6, 3e-6, 0.5e-6, 0.7e-6, 3.6e-6
"""As docs/clock.md has them."""


def check(found: tuple[float, float], dilation: float, work: float, call: float) -> None:
    """The first event is recorded as soon as its call has returned; the work begins when its own call has, ends, the
    second event is recorded, and then the program goes on. (What its call takes is hidden behind the work.)"""
    begin = EVENT_CALL + call
    wall, events = found
    assert events == pytest.approx(begin + work - EVENT_CALL, rel=TOLERANCE)
    assert wall == pytest.approx((begin + work + EVENT + WAIT) * dilation, rel=TOLERANCE)


def test_times_of_kernels_and_copies_on_three_cards() -> None:
    """4 us of each kind of work on each card; the rooflines are 2 * 4 bytes for an element of `copy`, and FMAS * loops
    for a thread of `multiply`."""
    seconds, blocks = 4e-6, 568
    counts = [round(card.memory * seconds / 8 / 256) * 256 for card in CARDS]
    loops = [max(1, round(card.multiply_adds * seconds / (blocks * 128 * FMAS))) for card in CARDS]
    sizes = [round(card.host * seconds) for card in CARDS]
    code = f"""
host = c_void_p()
found = []
for device, (count, loops, size) in enumerate(zip({counts}, {loops}, {sizes})):
    begin(device)
    ok(cuda.cuMemAllocHost_v2(byref(host), c_size_t(size)))
    warm(lambda: copy(256))
    found.append(timed(lambda: copy(count)))
    warm(lambda: multiply(1, 1))
    found.append(timed(lambda: multiply({blocks}, loops)))
    found.append(timed(lambda: ok(cuda.cuMemcpyHtoDAsync_v2(x, host, c_size_t(size), stream))))
show(found)
"""

    def check_all(dilation: float, found: list[tuple[float, float]]) -> None:
        for n, card in enumerate(CARDS):
            memory_bound, compute_bound, copied = found[3 * n:3 * n + 3]
            check(memory_bound, dilation, LAUNCH + 8 * counts[n] / card.memory, LAUNCH_CALL)
            multiply_adds = blocks * 128 * loops[n] * FMAS
            issued = (FMAS + 3) / FMAS if card.most_a_clock == 128 else 1  # the loop's own three instructions, too
            check(compute_bound, dilation, LAUNCH + multiply_adds * issued / card.multiply_adds, LAUNCH_CALL)
            check(copied, dilation, COPY + sizes[n] / card.host, COPY_CALL)

    keeping_up(code, ",".join(card.name for card in CARDS), check_all, 20000)


def test_operations_of_a_stream_do_not_add_up_delays() -> None:
    times, count, card = 60, 1 << 16, CARDS[2]
    one = LAUNCH + 8 * count / card.memory
    assert one > LAUNCH_CALL, "else the calls take longer than the work"

    def check_sum(dilation: float, found: tuple[float, float]) -> None:
        expected = LAUNCH_CALL + times * one
        assert found[1] == pytest.approx(expected, rel=0.01)
        assert found[0] == pytest.approx(dilation * (EVENT_CALL + expected + EVENT + WAIT), rel=TOLERANCE)

    code = f"begin(0)\nwarm(lambda: copy(256))\nshow(timed(lambda: copy({count}), {times}))"
    keeping_up(code, card.name, check_sum, 4000)


def test_few_blocks_use_few_multiprocessors() -> None:
    """One of 108, with 64 results in a clock."""
    card = CARDS[0]
    work = LAUNCH + 128 * 4 * FMAS / (card.multiply_adds / 108)
    keeping_up("begin(0)\nwarm(lambda: multiply(1, 1))\nshow(timed(lambda: multiply(1, 4)))", card.name,
               lambda dilation, found: check(found, dilation, work, LAUNCH_CALL), 20000)


def test_what_a_device_does_side_by_side() -> None:
    """Copies in both directions and a kernel, in streams of their own, take as long as the last one of them."""
    size, count, card = 100_000, 100_000 // 256 * 256, CARDS[2]
    code = f"""
begin(0)
streams = [c_void_p() for _ in range(3)]
hosts = [c_void_p() for _ in range(2)]
for each in streams:
    ok(cuda.cuStreamCreate(byref(each), 1))
for each in hosts:
    ok(cuda.cuMemAllocHost_v2(byref(each), c_size_t({size})))
warm(lambda: copy(256))
stream = streams[2]
start = time.monotonic()
ok(cuda.cuMemcpyHtoDAsync_v2(x, hosts[0], c_size_t({size}), streams[0]))
ok(cuda.cuMemcpyDtoHAsync_v2(hosts[1], y, c_size_t({size}), streams[1]))
copy({count})
ok(cuda.cuCtxSynchronize())
show(time.monotonic() - start)
"""

    def check_last(dilation: float, found: float) -> None:
        assert found == pytest.approx(dilation * (2 * COPY_CALL + COPY + size / card.host + WAIT), rel=TOLERANCE)

    keeping_up(code, card.name, check_last, 20000)


def test_a_run_that_cannot_keep_up_is_void() -> None:
    """No two cores of today do in 5 ms what this card does in 50 us."""
    blocks, loops, card = 568, 256, CARDS[1]
    done = run(PROGRAM + f"begin(0)\nwarm(lambda: copy(256))\nwarm(lambda: multiply(1, 1))\n"
                         f"show(timed(lambda: multiply({blocks}, {loops})))", card.name, **{CLOCK.name: "modelled:100"})
    void = r"softgpu: modelled clock: this run is void: 5 operations; .*, here at most by \d\d+\.\d ms\n"
    assert re.fullmatch(void, done.errors), done.errors
    work = LAUNCH_CALL + LAUNCH + blocks * 128 * loops * FMAS / card.multiply_adds
    assert done.shown[1] == pytest.approx(work, rel=2 * TOLERANCE), "events tell the modelled time all the same"
    assert done.shown[0] > 2 * 100 * work


CHILD = PROGRAM + """
begin(0)
warm(lambda: multiply(1, 1))
print("ready", flush=True)
for line in sys.stdin:
    print(json.dumps(timed(lambda: multiply(568, 2), int(line))), flush=True)
"""


def take_turns(folder: Path, dilation: float, times: int) -> tuple[list[float], bool]:
    """Seconds of modelled time that two processes took for some kernels each, at once; false if the run is void."""
    environment = {**os.environ, DEVICES.name: CARDS[2].name, MACHINE.name: f"turns{dilation}",
                   CLOCK.name: f"modelled:{dilation}", "XDG_RUNTIME_DIR": str(folder)}
    pair = [subprocess.Popen([sys.executable, "-c", HEAD + CHILD, driver.LIBRARY], env=environment, text=True,
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(2)]
    try:
        for process in pair:
            assert process.stdout and process.stdout.readline() == "ready\n"
        for process in pair:
            assert process.stdin
            process.stdin.write(f"{times}\n")
            process.stdin.flush()
        said = [process.communicate(timeout=60) for process in pair]
    finally:
        for process in pair:
            process.kill()
    return [json.loads(output)[1] for output, _ in said], all("kept up" in errors for _, errors in said)


def test_two_processes_that_share_a_device_take_turns(tmp_path: Path) -> None:
    """Each kernel of one waits for one of the other, but perhaps for the first and last."""
    times, loops = 10, 2
    one = LAUNCH + 568 * 128 * FMAS * loops / CARDS[2].multiply_adds
    for number in range(TRIES):
        found, good = take_turns(tmp_path, 20000 * 2**number, times)
        if good and all((2 * times - 2) * one < seconds < (2 * times + 2) * one for seconds in found):
            return
    pytest.fail(f"{found} seconds, not about {2 * times} times {one}; in time: {good}")


@pytest.mark.parametrize("text", [
    "modelled", "modelled:", "modelled:0", "modelled:0.5", "modelled:1e3", "modelled:-2", "on", "modelled:nan",
    "modelled:2x", "modelled:10000000", "modelled:1.2.3",
])
def test_texts_that_are_no_clock(text: str) -> None:
    done = run("show(cuda.cuInit(0))", **{CLOCK.name: text})
    assert done.shown != 0
    assert done.errors == (f"softgpu: SOFTGPU_CLOCK={text} is neither off nor modelled:DILATION, with a dilation from "
                           "1 to 1000000\n")


@pytest.mark.parametrize("text", ["off", ""])
def test_no_clock(text: str) -> None:
    done = run("show(cuda.cuInit(0))", **{CLOCK.name: text})
    assert (done.shown, done.errors) == (0, "")


def test_processes_of_a_machine_have_one_clock(tmp_path: Path) -> None:
    told = {MACHINE.name: "clocks", "XDG_RUNTIME_DIR": str(tmp_path)}
    inner = f"""
import subprocess
assert cuda.cuInit(0) == 0
code = "import ctypes, sys; sys.exit(ctypes.CDLL(sys.argv[1]).cuInit(0) != 0)"
found = []
for clock in ("modelled:5", "off", "modelled:6"):
    done = subprocess.run([sys.executable, "-c", code, sys.argv[1]], env={{**os.environ, "{CLOCK.name}": clock}},
                          capture_output=True, text=True)
    found.append([done.returncode, done.stderr])
show(found)
"""
    same, off, other = run(inner, "T4", **told, **{CLOCK.name: "modelled:5"}).shown
    assert same[0] == 0
    assert off[0] == other[0] == 1
    assert "the machine clocks has the devices T4 at the clock modelled:5, not T4" in off[1]
    assert "not T4 at the clock modelled:6" in other[1]
