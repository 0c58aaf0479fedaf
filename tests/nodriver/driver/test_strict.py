"""Strict mode: what comes to a standstill with real drivers ends here, with a line that says why. ``c/strict.c`` has
what only takes longer."""

from __future__ import annotations

import pytest

from tessera.environment import STRICT
from tests.nodriver.driver.client import run

PROGRAM = """
import threading, time
assert cuda.cuInit(0) == 0 or sys.exit("no machine")
context, stream, pinned, memory = c_void_p(), c_void_p(), c_void_p(), c_uint64()
assert cuda.cuCtxCreate_v2(byref(context), 0, 0) == 0
assert cuda.cuStreamCreate(byref(stream), 1) == 0
assert cuda.cuMemHostAlloc(byref(pinned), c_size_t(4), 0) == 0
assert cuda.cuMemAlloc_v2(byref(memory), c_size_t(4)) == 0
def wait():
    assert cuda.cuStreamWaitValue32_v2(stream, pinned, 1, 1) == 0
def write(found):
    assert cuda.cuCtxSetCurrent(context) == 0
    time.sleep(0.3)
    found.append(cuda.cuStreamWriteValue32_v2(c_void_p(2), pinned, 1, 0))
def beside(action):
    '''Results of what this thread does and of a write by another one, a little later.'''
    found = []
    thread = threading.Thread(target=write, args=(found,))
    thread.start()
    mine = action()
    thread.join()
    return [mine, *found]
"""
FREE = PROGRAM + "wait()\nshow(beside(lambda: cuda.cuMemFree_v2(memory)))\n"
FULL = PROGRAM + """
function = ctypes.CFUNCTYPE(None, c_void_p)(lambda given: None)
wait()
found = [cuda.cuLaunchHostFunc(stream, function, None) for _ in range(1100)]
show([found.index(702), cuda.cuCtxSynchronize()])
"""


def test_a_free_that_waits_for_what_it_keeps_from_happening() -> None:
    done = run(FREE)
    assert done.shown == [0, 702]
    assert done.errors == ("softgpu: strict: memory or code of a context is given back or loaded, which keeps the "
                           "context until its work is done; nothing of it has gone on for 5 seconds\n")


def test_a_queue_that_is_full_for_good() -> None:
    done = run(FULL)
    assert done.shown == [1023, 702], "with the operation that waits there are 1024"
    assert done.errors == ("softgpu: strict: a stream has 1024 operations, more than which it takes only when some are "
                           "done; none was for 5 seconds\n")


def test_programs_that_rely_on_more_go_on_without_it() -> None:
    done = run(FREE, **{STRICT.name: "0"})
    assert (done.shown, done.errors) == ([0, 0], "")


@pytest.mark.parametrize("text", ["yes", "2", "01"])
def test_texts_that_are_no_mode(text: str) -> None:
    done = run("show(cuda.cuInit(0))", **{STRICT.name: text})
    assert done.shown != 0 and done.errors == f"softgpu: SOFTGPU_STRICT={text} is neither 0 nor 1\n"
