"""What launches count and log, against what the interpreter executed and accessed."""

from __future__ import annotations

from collections import Counter

import numpy as np
import numpy.typing as npt
import pytest

from ptxparse.model import Mnemonic
from ptxparse.opcodes import accessed_bytes
from softgpu import engine
from softgpu.engine.work import CLASSES, products
from softgpu.reference import AccessLog
from tests.engine_compare import Outcome, run_both
from tests.launches.place import place, text_of
from tests.nodriver.engine.test_corpus import KERNELS, SLOW, pool_of
from tests.nodriver.engine.tiny import run, same
from tests.nodriver.engine.tiny import text_of as tiny

UNLIKE = {
    "sync:hand_over": "blocks wait for one another, one look at a flag at a time",
    "calls:call_recursive": "the frames of recursive functions are kept by instructions of the engine's own",
}
"""Kernels whose numbers of instructions rightly differ, and why."""

CHOSEN = [name for name in KERNELS if name not in SLOW and name not in UNLIKE]
SAMPLE = CHOSEN[::12]


def launched(name: str, **options: bool) -> Outcome:
    kernel = KERNELS[name]
    placed = place(kernel, kernel.first(1, seed=3)[0])
    case = placed.case
    outcome = run_both(placed.memory, placed.loaded, text_of(kernel), placed.entry.name, case.grid, case.block,
                       placed.parameters, shared=case.shared, cooperative=case.cooperative, pool=pool_of(1),
                       deadline=60.0, **options)
    assert outcome.error is None, outcome.error
    return outcome


def ranges(log: AccessLog, kind: bytes) -> npt.NDArray[np.uint64]:
    """Rows (start, end) of the addresses accessed in one way, sorted, disjoint, and not touching one another."""
    chosen = log.entries[log.entries["kind"] == kind]
    starts = np.unique(np.stack([chosen["address"], chosen["address"] + chosen["width"].astype(np.uint64)], 1), axis=0)
    rows: list[list[int]] = []
    for start, end in starts.tolist():
        if rows and start <= rows[-1][1]:
            rows[-1][1] = max(rows[-1][1], end)
        else:
            rows.append([start, end])
    return np.array(rows, np.uint64).reshape(-1, 2)


def check_counts(name: str) -> None:
    outcome = launched(name, counts=True)
    assert outcome.result is not None and outcome.expected is not None
    assert comparable(outcome.result.instructions) == comparable(outcome.expected.instructions)
    check_work(outcome.result)


def comparable(instructions: dict[str, int]) -> Counter[tuple[str, ...]]:
    """Counts by opcode and modifiers in any order, without what inlining a function leaves out or puts in: the call,
    its parameters' way through memory, and comparisons of the address that an indirect call has."""
    found: Counter[tuple[str, ...]] = Counter()
    for mnemonic, times in instructions.items():
        if not mnemonic.startswith(("call", "ld.param", "st.param", "setp.ne.u64")):
            found[tuple(sorted(mnemonic.split(".")))] += times
    return found


def check_work(result: engine.LaunchResult) -> None:
    """Every executed instruction is one operation of one class; bytes are what the analysis says of the mnemonics."""
    assert tuple(result.work) == CLASSES
    operations = sum(result.work[name] for name in CLASSES[:CLASSES.index("global_read")])
    assert operations == sum(result.instructions.values())
    moved: Counter[str] = Counter()
    for mnemonic, times in result.instructions.items():
        opcode, *modifiers = mnemonic.split(".")
        if opcode not in ("ld", "ldu", "st", "atom", "red"):
            continue
        bytes_ = times * accessed_bytes(Mnemonic(mnemonic, opcode, tuple(modifiers)))
        space = next((m.partition("::")[0] for m in modifiers if m.partition("::")[0] in SPACES), "global")
        if opcode != "st":
            moved[{"const": "param"}.get(space, space) + "_read"] += bytes_
        if opcode not in ("ld", "ldu"):
            moved[{"param": "local"}.get(space, space) + "_written"] += bytes_
    for name, amount in moved.items():
        if not any(m.startswith(("cp.async.c", "wmma.load", "wmma.store", "ldmatrix", "stmatrix"))
                   for m in result.instructions):
            assert result.work[name] == amount, name
        assert result.work[name] >= amount, name


SPACES = ("global", "const", "shared", "local", "param")


def check_log(name: str) -> None:
    outcome = launched(name, log=True)
    assert outcome.result is not None and outcome.expected is not None
    log = outcome.expected.log
    for kind, found in ((b"R", outcome.result.read), (b"W", outcome.result.written), (b"A", outcome.result.atomic)):
        expected = ranges(log, kind)
        workspace = outcome.expected.workspace
        if workspace:  # the barrier of a cooperative grid lies elsewhere in the engine
            expected = _outside(expected, *workspace)
            found = _outside(found, outcome.result.workspace, workspace[1])
        assert np.array_equal(found, expected), (kind, found[:5], expected[:5])


def _outside(rows: npt.NDArray[np.uint64], start: int, size: int) -> npt.NDArray[np.uint64]:
    """The ranges that do not begin in some bytes."""
    return rows[(rows[:, 0] < start) | (rows[:, 0] >= start + size)]


@pytest.mark.parametrize("name", SAMPLE)
def test_counts_of_a_sample(name: str) -> None:
    check_counts(name)


@pytest.mark.parametrize("name", SAMPLE)
def test_logs_of_a_sample(name: str) -> None:
    check_log(name)


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name in KERNELS if name not in UNLIKE])
def test_counts_of_all(name: str) -> None:
    check_counts(name)


@pytest.mark.long
@pytest.mark.parametrize("name", KERNELS)
def test_logs_of_all(name: str) -> None:
    check_log(name)


WORK = {
    "add.u32 %r1, %r1, 1;": {"integer": 1}, "mad.lo.u64 %rd1, %rd1, %rd1, %rd1;": {"integer": 1},
    "fma.rn.f32 %f1, %f1, %f1, %f1;": {"single": 1}, "add.f64 %fd1, %fd1, %fd1;": {"double": 1},
    "add.rn.f16 %rs1, %rs1, %rs1;": {"half": 1}, "sin.approx.f32 %f1, %f1;": {"special": 1},
    "cvt.rn.f32.u32 %f1, %r1;": {"convert": 1}, "selp.b32 %r1, %r1, %r2, %p1;": {"move": 1},
    "bar.sync 0;": {"barrier": 1}, "membar.gl;": {"barrier": 1},
    "shfl.sync.idx.b32 %r1, %r1, 0, 31, -1;": {"exchange": 1},
    "ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%a];": {"memory": 1, "global_read": 16},
    "st.shared.u16 [s], %rs1;": {"memory": 1, "shared_written": 2},
    "ld.local.f64 %fd1, [l];": {"memory": 1, "local_read": 8},
    "ld.u8 %rs1, [%a];": {"memory": 1, "global_read": 1},
    "red.global.add.u64 [%a], 1;": {"atomics": 1, "global_read": 8, "global_written": 8},
    "atom.shared.add.u32 %r1, [s], 1;": {"atomics": 1, "shared_read": 4, "shared_written": 4},
    "cp.async.ca.shared.global [s], [%a], 8;": {"memory": 1, "global_read": 8, "shared_written": 8},
    "cp.async.cg.shared.global [s], [%a], 16;": {"memory": 1, "global_read": 16, "shared_written": 16},
    "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r1, %r2}, [s];": {"memory": 1, "shared_read": 8},
    "stmatrix.sync.aligned.m8n8.x4.shared.b16 [s], {%r1, %r2, %r3, %r4};": {"memory": 1, "shared_written": 16},
    "wmma.load.c.sync.aligned.row.m16n16k16.global.f32 {%f1, %f2, %f3, %f4, %f5, %f6, %f7, %f8}, [%a];":
        {"memory": 1, "global_read": 32},
    "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4}, {%r1, %r2}, {%r3}, {%f1, %f2, %f3, %f4};":
        {"tensor": 1, "products": 32},
}


@pytest.mark.parametrize("instruction", WORK)
@pytest.mark.parametrize("guarded", [False, True], ids=["all", "guarded"])
def test_work_of_one_instruction(instruction: str, guarded: bool) -> None:
    """A warp of 32 threads; under the guard it is 32 as well (of 64, by whole warps)."""
    start = ".local .align 8 .b8 l[8]; mov.u32 %r9, %tid.x; setp.lt.u32 %p9, %r9, 32; "
    body = start + ("@%p9 " if guarded and not instruction.startswith("bar") else "") + instruction
    before = ".shared .align 16 .b8 s[64];\n"
    threads = 64 if guarded and not instruction.startswith("bar") else 32
    results = [run(tiny(text, before=before), 1, threads, np.zeros(2048, np.uint8), counts=True)
               for text in (start, body)]
    mnemonic = instruction.split(" ", maxsplit=1)[0].rstrip(";")
    assert results[1].instructions[mnemonic] == 32
    assert results[0].instructions.keys() | {mnemonic} == results[1].instructions.keys()
    difference = {name: (results[1].work[name] - results[0].work[name]) // 32 for name in CLASSES}
    assert {name: amount for name, amount in difference.items() if amount} == WORK[instruction]


@pytest.mark.parametrize(("mnemonic", "count"), [
    ("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", 64),
    ("mma.sync.aligned.m16n8k32.row.col.s32.s8.u8.s32", 64),
    ("mma.sync.aligned.m16n8k64.row.col.s32.s4.s4.s32", 64),
    ("mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc", 64),
    ("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32", 64),
    ("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", 64),
    ("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64", 128),
    ("mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32", 64),
    ("wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32", 128),
])
def test_products_in_those_of_f16(mnemonic: str, count: int) -> None:
    """Of 32 threads: factors of 16, 8, 4 and 1 bits make twice, four and 16 times as many in the same time."""
    assert products(mnemonic) == count


def test_logs_of_masked_and_repeated_accesses() -> None:
    body = """mov.u32 %r0, %tid.x; mul.wide.u32 %rd0, %r0, 8; add.u64 %rd1, %a, %rd0; and.b32 %r1, %r0, 3;
        setp.eq.u32 %p1, %r1, 1; @%p1 ld.global.u32 %r2, [%rd1]; @!%p1 st.global.u16 [%rd1+4], %rs1;
        setp.eq.u32 %p2, %r0, 40; @%p2 red.global.add.u32 [%rd1], 5; ld.u8 %rs2, [%a+1]; ld.const.u32 %r3, [c];
        st.shared.u32 [s], %r0; ld.shared.u32 %r4, [s];"""
    text = tiny(body, before=".shared .align 16 .b8 s[64];\n.const .align 4 .b32 c[1] = {1};\n")
    outcome = same(text, 1, 50, np.zeros(100, np.uint32), log=True)
    assert outcome.result is not None and outcome.expected is not None
    found = outcome.result
    for kind, rows in ((b"R", found.read), (b"W", found.written), (b"A", found.atomic)):
        assert np.array_equal(rows, ranges(outcome.expected.log, kind)) and len(rows)


def test_logs_do_not_depend_on_workers() -> None:
    body = """mov.u32 %r0, %ctaid.x; mul.lo.u32 %r1, %r0, 7919; and.b32 %r1, %r1, 1023; mul.wide.u32 %rd1, %r1, 4;
        add.u64 %rd1, %a, %rd1; ld.global.u32 %r2, [%rd1]; add.u32 %r2, %r2, 1; st.global.u32 [%rd1], %r2;"""
    x = np.zeros(1024, np.uint32)
    results = [run(tiny(body), 600, 32, x, log=True, counts=True, pool=pool_of(workers)) for workers in (1, 3)]
    assert np.array_equal(results[0].read, results[1].read) and np.array_equal(results[0].written, results[1].written)
    assert results[0].instructions == results[1].instructions and results[0].work == results[1].work
    addresses = {int(x.ctypes.data) + 4 * (n * 7919 & 1023) for n in range(600)}
    assert sum(int(end - start) for start, end in results[0].read) == 4 * len(addresses)
