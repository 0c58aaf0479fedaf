"""Whatever it is given, the engine compiles it or says what it does not take; memory keeps its books."""

from __future__ import annotations

import random
from functools import cache

import numpy as np
import pytest

from ptxparse.model import Module
from ptxparse.parser import parse
from softgpu import engine
from softgpu.engine.kernel import translate
from softgpu.engine.objects import compile_object
from softgpu.engine.options import Options
from softgpu.engine.target import host_target
from tessera.errors import TesseraError
from tests.nodriver.engine.mutations import mutated
from tests.nodriver.engine.tiny import run, text_of
from tests.ptxtext import fixture_files

NAMES = [path.name for path in fixture_files()]


@cache
def _text(name: str) -> str:
    return next(path for path in fixture_files() if path.name == name).read_text()


def check_mutations(name: str, count: int, seed: int, compiled: float) -> None:
    """Translate ``count`` changed copies; of those that the engine takes, compile a part. Nothing but the errors of
    this project may come out."""
    random_ = random.Random(f"{name} {seed}")
    for _ in range(count):
        changed = mutated(_text(name), random_)
        if changed is None:
            continue
        text, line = changed
        options = Options(random_.choice([None, (64, 1, 1), (5, 7, 1)]), random_.random() < 0.2, random_.random() < 0.2)
        try:
            module = parse(text)
            translation = translate(module, _kernel_at(module, line), options, host_target())
        except engine.CompileError:
            raise
        except TesseraError:
            continue
        if random_.random() < compiled:
            compile_object(translation.text, target=host_target(), verify=True)


def _kernel_at(module: Module, line: int):  # type: ignore[no-untyped-def]
    """The kernel that stands before a line last, else the first."""
    entries = [entry for entry in module.entries if entry.instructions is not None]
    return max((entry for entry in entries if entry.line <= line), key=lambda entry: entry.line, default=entries[0])


@pytest.mark.parametrize("name", NAMES)
def test_changed_kernels_compile_or_are_refused(name: str) -> None:
    check_mutations(name, 8, 1, 0.1)


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_many_changed_kernels_compile_or_are_refused(name: str) -> None:
    check_mutations(name, 200, 2, 0.2)


WRONG = {
    "too few operands": "add.u32 %r1, %r2;", "too many operands": "add.u32 %r1, %r2, %r3, %r4;",
    "no operands": "mov.u32;", "no type": "mov %r1, %r2;", "an unknown opcode": "frob.u32 %r1, %r2;",
    "an unknown modifier": "add.u32.wild %r1, %r2, %r3;", "two types": "add.u32.u32 %r1, %r2, %r3;",
    "a register of another size": "add.u32 %r1, %rd1, %r2;", "a predicate": "add.u32 %r1, %p1, %r2;",
    "a double in an integer sum": "add.u32 %r1, %r2, 0d3FF0000000000000;",
    "a constant as destination": "mov.u32 7, %r1;",
    "an undeclared register": "mov.u32 %r1, %zz;", "no address": "ld.global.u32 %r1, %rd1;",
    "a short address": "ld.global.u32 %r1, [%rs1];", "a vector of three": "ld.global.v4.u32 {%r1, %r2, %r3}, [%a];",
    "a barrier without verb": "bar 0;", "a return with a value": "ret %r1;", "a label that is none": "bra nowhere;",
    "half a pair": "shfl.sync.idx.b32 %r1|%r2, %r3, 0, 31, -1;",
    "rounding of integers": "mul.rn.lo.u32 %r1, %r2, %r3;", "ftz of doubles": "add.ftz.f64 %fd1, %fd2, %fd3;",
    "a wrong cache operator": "st.global.ca.u32 [%a], %r1;", "a store to constants": "st.const.u32 [%a], %r1;",
    "a copy of another size": "cp.async.cg.shared.global [%r1], [%a], 8;",
    "a matrix of another shape": "mma.sync.aligned.m16n8k17.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4}, {%r1, %r2}, "
                                 "{%r3}, {%f1, %f2, %f3, %f4};",
    "a matrix with too few registers": "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f1, %f2, %f3}, {%r1, %r2}, "
                                       "{%r3}, {%f1, %f2, %f3, %f4};",
    "a variable that is not there": "ld.global.u32 %r1, [nothing];",
    "a function that is not there": "call nothing, (%r1);",
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_instructions_are_refused(name: str) -> None:
    with pytest.raises(TesseraError) as caught:
        run(text_of(WRONG[name]), 1, 32, np.zeros(32, np.uint32))
    assert not isinstance(caught.value, engine.LaunchError | engine.CompileError), caught.value


EMPTY = {
    "nothing": "", "one return": "ret;", "returns only": "ret; ret; exit;", "a jump to the end": "bra end; end:",
    "code that is never reached": "ret; mov.u32 %r1, 0; st.global.u32 [%a+1000000], %r1;",
    "a guard that is never true": "setp.ne.u32 %p1, %r1, %r1; @%p1 trap;",
    "a loop that never turns": "again: setp.ne.u32 %p1, %r1, %r1; @%p1 bra again;",
}


@pytest.mark.parametrize("name", EMPTY)
def test_kernels_that_do_nothing(name: str) -> None:
    array = np.arange(32, dtype=np.uint32)
    run(text_of(EMPTY[name]), 5, 33, array)
    assert (array == np.arange(32)).all()


def test_large_grids_of_small_blocks() -> None:
    count = np.zeros(1, np.uint64)
    run(text_of("red.global.add.u64 [%a], 1;"), 100_003, 1, count)
    assert count[0] == 100_003


def test_a_long_kernel() -> None:
    lines = "".join([f"mad.lo.u32 %r{2 + n % 7}, %r{2 + (n + 3) % 7}, {n}, %r{2 + (n + 1) % 7};" for n in range(3000)])
    text = text_of("mov.u32 %r2, %tid.x;" + lines + "mul.wide.u32 %rd1, %r2, 1; st.global.u64 [%a], %rd1;")
    run(text, 1, 1, np.zeros(1, np.uint64))


def test_memory_keeps_its_books() -> None:
    memory = engine.Memory()
    first, second = memory.allocate(100), memory.allocate(0, 1024)
    assert first % 256 == 0 and second % 1024 == 0
    memory.write(first + 10, b"abc")
    assert memory.read(first + 9, 5) == b"\0abc\0"
    with pytest.raises(engine.EngineError, match="5 bytes at .* are not inside an allocation"):
        memory.read(first + 96, 5)
    with pytest.raises(engine.EngineError, match="not inside an allocation"):
        memory.write(first + 99, b"ab")
    for size, align in ((-1, 256), (1, 3), (1, 0)):
        with pytest.raises(engine.EngineError, match="cannot allocate"):
            memory.allocate(size, align)
    with pytest.raises(engine.EngineError, match="not the start of an allocation"):
        memory.free(first + 1)
    memory.free(first)
    with pytest.raises(engine.EngineError):
        memory.free(first)
    assert memory.allocation_at(first) is None and [a.start for a in memory.allocations()] == [second]


def test_memory_takes_no_array_twice_or_in_part() -> None:
    memory = engine.Memory()
    array = np.zeros(64, np.uint32)
    assert memory.adopt(array) == memory.adopt(array) == array.ctypes.data
    with pytest.raises(engine.EngineError, match="overlap another allocation"):
        memory.adopt(array[4:8])
    with pytest.raises(engine.EngineError, match="must be contiguous"):
        memory.adopt(array[::2])
    fixed = np.frombuffer(bytes(16), np.uint32)
    with pytest.raises(engine.EngineError, match="writable unless it is constant"):
        memory.adopt(fixed)
    assert memory.adopt(fixed, constant=True) == fixed.ctypes.data
