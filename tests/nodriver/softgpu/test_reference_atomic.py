"""Atomics: every operation and type, threads one after another in row order where they meet at one place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from softgpu.reference import MemoryFault, Schedule, UnsupportedInstruction
from tests.reference_kernels import HEADER, REGISTERS, Run, checked, container

Step = Callable[[int, int, int], int]
M32, M64 = 2**32 - 1, 2**64 - 1


def s32(value: int) -> int:
    return value - 2**32 if value >> 31 else value


def s64(value: int) -> int:
    return value - 2**64 if value >> 63 else value


INTEGER: dict[str, Step] = {
    "add.u32": lambda old, b, c: old + b & M32, "add.s32": lambda old, b, c: old + b & M32,
    "add.u64": lambda old, b, c: old + b & M64,
    "min.u32": lambda old, b, c: min(old, b), "max.u32": lambda old, b, c: max(old, b),
    "min.s32": lambda old, b, c: min(old, b, key=s32), "max.s32": lambda old, b, c: max(old, b, key=s32),
    "min.u64": lambda old, b, c: min(old, b), "max.u64": lambda old, b, c: max(old, b),
    "min.s64": lambda old, b, c: min(old, b, key=s64), "max.s64": lambda old, b, c: max(old, b, key=s64),
    "and.b32": lambda old, b, c: old & b, "or.b32": lambda old, b, c: old | b, "xor.b32": lambda old, b, c: old ^ b,
    "and.b64": lambda old, b, c: old & b, "or.b64": lambda old, b, c: old | b, "xor.b64": lambda old, b, c: old ^ b,
    "exch.b32": lambda old, b, c: b, "exch.b64": lambda old, b, c: b,
    "cas.b16": lambda old, b, c: c if old == b else old, "cas.b32": lambda old, b, c: c if old == b else old,
    "cas.b64": lambda old, b, c: c if old == b else old,
    "inc.u32": lambda old, b, c: 0 if old >= b else old + 1,
    "dec.u32": lambda old, b, c: b if old == 0 or old > b else old - 1,
}


def kernel(operation: str, space: str, qualifiers: str = "") -> Run:
    """Thread i applies the operation to place[i] of 8 places with operands b[i], c[i] and stores what it found."""
    kind = operation.rsplit(".", maxsplit=1)[-1]
    size = container(kind).itemsize
    register = {2: "%h", 4: "%r", 8: "%rd"}[size]
    third = f", {register}12" if operation.startswith("cas") else ""
    in_shared = "shared" in space
    text = f"""{HEADER}
.visible .entry k(.param .u64 memory, .param .u64 place, .param .u64 b, .param .u64 c, .param .u64 out)
{{{REGISTERS} .shared .align 8 .b8 s[64];
    mov.u32 %r0, %tid.x; cvt.u64.u32 %rd0, %r0; ld.param.u64 %rd1, [memory]; ld.param.u64 %rd2, [place];
    mad.lo.s64 %rd2, %rd0, 4, %rd2; ld.global.u32 %r1, [%rd2];
    ld.param.u64 %rd3, [b]; mad.lo.s64 %rd3, %rd0, {size}, %rd3; ld.global.b{8 * size} {register}11, [%rd3];
    ld.param.u64 %rd4, [c]; mad.lo.s64 %rd4, %rd0, {size}, %rd4; ld.global.b{8 * size} {register}12, [%rd4];
    ld.param.u64 %rd5, [out]; mad.lo.s64 %rd5, %rd0, {size}, %rd5; mul.wide.u32 %rd6, %r1, {size};
    mov.u64 %rd7, s; add.s64 %rd8, %rd1, %rd0; add.s64 %rd9, %rd7, %rd0; setp.lt.u32 %p0, %r0, 64; mov.u32 %r20, 0;
    @%p0 ld.global.u8 %r20, [%rd8]; @%p0 st.shared.u8 [%rd9], %r20; bar.sync 0;
    add.s64 %rd10, {'%rd7' if in_shared else '%rd1'}, %rd6;
    {'cvta.shared.u64 %rd10, %rd10;' if space == 'generic shared' else ''}
    atom{qualifiers}{'' if 'generic' in space else '.' + space}.{operation} {register}13, [%rd10], {register}11{third};
    st.global.b{8 * size} [%rd5], {register}13; bar.sync 0;
    {'@%p0 ld.shared.u8 %r20, [%rd9]; @%p0 st.global.u8 [%rd8], %r20;' if in_shared else ''}
}}"""
    run = Run(text)
    checked(run.loaded, "k")
    return run


def apply(run: Run, kind: str, memory: Any, places: Any, b: Any, c: Any) -> tuple[list[int], list[int]]:
    dtype = container(kind)
    count = len(places)
    start = np.zeros(64 // dtype.itemsize, dtype)
    start[:len(memory)] = memory
    cell, out = run.buffer(start), run.buffer(count * dtype.itemsize)
    arrays = [np.asarray(places, np.uint32), np.asarray(b, dtype), np.asarray(c, dtype)]
    run.launch("k", 1, count, cell, *(run.buffer(a) for a in arrays), out)
    return run.read(out, count, dtype).tolist(), run.read(cell, len(start), dtype).tolist()


@pytest.mark.parametrize("operation", INTEGER)
@pytest.mark.parametrize("space", ["global", "shared", "generic", "generic shared"])
def test_integer_operations_one_thread_after_another(operation: str, space: str) -> None:
    kind = operation.rsplit(".", maxsplit=1)[-1]
    dtype = container(kind)
    random = np.random.default_rng(len(operation))
    count = 96
    small = operation[:3] in ("inc", "dec", "cas")
    top = 6 if small else int(np.iinfo(dtype).max)
    memory = random.integers(0, top, 8, dtype, endpoint=True)
    b, c = (random.integers(0, top, count, dtype, endpoint=True) for _ in range(2))
    places = random.integers(0, 3, count)
    places[:5] = [7, 6, 5, 4, 3]
    found, after = apply(kernel(operation, space), kind, memory, places, b, c)
    model = [int(m) for m in memory]
    want = []
    for place, left, right in zip(places.tolist(), b.tolist(), c.tolist(), strict=True):
        want.append(model[place])
        model[place] = INTEGER[operation](model[place], left, right)
    assert found == want
    assert after[:8] == model


@pytest.mark.parametrize(("operation", "dtype"), [
    ("add.f32", np.float32), ("add.f64", np.float64), ("add.noftz.f16", np.float16),
])
@pytest.mark.parametrize("space", ["global", "shared"])
def test_float_addition_rounds_after_every_thread(operation: str, dtype: Any, space: str) -> None:
    random = np.random.default_rng(5)
    values = random.standard_normal(64).astype(dtype)
    places = random.integers(0, 2, 64)
    kind = operation.rsplit(".", maxsplit=1)[-1]
    bits = values.view(container(kind))
    found, after = apply(kernel(operation, space), kind, [0] * 8, places, bits, bits)
    model = [dtype(0), dtype(0)]
    want = []
    for place, value in zip(places.tolist(), values, strict=True):
        want.append(int(np.array([model[place]], dtype).view(container(kind))[0]))
        model[place] = dtype(model[place] + value)
    assert found == want
    assert after[:2] == [int(np.array([m], dtype).view(container(kind))[0]) for m in model]


def test_packed_and_bfloat_addition() -> None:
    halves = np.array([1.5, -2.25] * 32, np.float16)
    found, after = apply(kernel("add.noftz.f16x2", "global"), "f16x2", [0] * 8, [0] * 32, halves.view(np.uint32),
                         halves.view(np.uint32))
    assert np.array(after[:1], np.uint32).view(np.float16).tolist() == [48.0, -72.0]
    assert np.array(found[31:], np.uint32).view(np.float16).tolist() == [46.5, -69.75]
    one_and_half = 0x3FC0
    _, after = apply(kernel("add.noftz.bf16", "global"), "bf16", [0] * 8, [0] * 4, [one_and_half] * 4, [0] * 4)
    assert after[0] == 0x40C0
    _, after = apply(kernel("add.noftz.bf16x2", "shared"), "bf16x2", [0] * 8, [0] * 2 + [7] * 62,
                     [0x3FC04000] * 2 + [0] * 62, [0] * 64)
    assert after[0] == 0x40404080


def test_subnormals_are_flushed_in_global_memory_only() -> None:
    tiny = int(np.float32(1e-40).view(np.uint32))
    for space, want in (("global", 0), ("shared", tiny), ("generic", 0), ("generic shared", tiny)):
        places, added = [0] + [7] * 63, [tiny] + [0] * 63
        assert apply(kernel("add.f32", space), "f32", [0] * 8, places, added, added)[1][0] == want


@pytest.mark.parametrize("qualifiers", [
    ".relaxed.gpu", ".acquire.sys", ".release.cta", ".acq_rel.cluster", ".relaxed", ".gpu", "",
])
def test_orders_and_scopes(qualifiers: str) -> None:
    assert apply(kernel("add.u32", "global", qualifiers), "u32", [5], [0] * 4, [1] * 4, [0] * 4) == (
        [5, 6, 7, 8], [9] + [0] * 15)


def test_red_and_older_spellings() -> None:
    run = Run(f"""{HEADER}.visible .entry k(.param .u64 p)
{{{REGISTERS} ld.param.u64 %rd1, [p]; mov.u32 %r0, %tid.x;
    red.global.add.u32 [%rd1], %r0; red.relaxed.gpu.global.max.s32 [%rd1+4], %r0; red.or.b32 [%rd1+8], 6;
    atom.add.release.gpu.u32 %r1, [%rd1+12], 2; red.global.add.f32 [%rd1+16], 0f3f800000;
    atom.global.add.u32 _, [%rd1+20], 3;
    red.global.add.noftz.f16x2 [%rd1+24], 0x3c003c00; red.async.relaxed.add.u32 [%rd1], 1;
}}""")
    out = run.buffer(32)
    with pytest.raises(UnsupportedInstruction, match="async"):
        run.launch("k", 1, 32, out)
    text = run.loaded.module.entries[0].instructions
    assert text is not None
    del text[-1]
    again = run.loaded.__class__(run.loaded.module, run.memory)
    run.loaded = again
    result = run.launch("k", 1, 32, out)
    got = run.read(out, 7)
    assert got[:4].tolist() == [496, 31, 6, 64]
    assert (got[4:5].view(np.float32)[0], got[5]) == (32.0, 96)
    assert got[6:].view(np.float16).tolist() == [32.0, 32.0]
    assert set(result.log["kind"].tolist()) == {b"A"}
    assert len(result.log) == 7 * 32


def test_vector_atomics() -> None:
    run = Run(f"""{HEADER}.visible .entry k(.param .u64 p)
{{{REGISTERS} ld.param.u64 %rd1, [p]; mov.f32 %f1, 0f3f800000; mov.f32 %f2, 0f40000000;
    atom.global.add.v4.f32 {{%f5, %f6, %f7, %f8}}, [%rd1], {{%f1, %f2, %f1, %f2}};
    red.global.max.noftz.v2.f16x2 [%rd1+16], {{%r1, %r2}};
}}""")
    checked(run.loaded, "k")
    out = run.buffer(32)
    log = run.launch("k", 1, 8, out).log
    assert run.read(out, 4, np.float32).tolist() == [8, 16, 8, 16]
    assert sorted(set(log["width"].tolist())) == [8, 16]


def test_atomics_across_blocks_in_one_batch_still_take_turns() -> None:
    run = Run(f"""{HEADER}.visible .entry k(.param .u64 p, .param .u64 q)
{{{REGISTERS} ld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [q]; mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %ntid.x; mad.lo.u32 %r0, %r1, %r2, %r0; atom.global.add.u32 %r3, [%rd1], 1;
    mul.wide.u32 %rd3, %r3, 4; add.s64 %rd3, %rd3, %rd2; st.global.u32 [%rd3], %r0;
}}""")
    for schedule in (Schedule(), Schedule("reverse"), Schedule("random", seed=9), Schedule(quantum=2)):
        counter, out = run.buffer(4), run.buffer(4 * 600)
        run.launch("k", 20, 30, counter, out, schedule=schedule)
        assert run.read(counter, 1)[0] == 600
        assert sorted(run.read(out, 600).tolist()) == list(range(600))
        if schedule == Schedule():
            assert run.read(out, 600).tolist() == list(range(600))
        if schedule == Schedule("reverse"):
            assert run.read(out, 30).tolist() == list(range(570, 600))


@pytest.mark.parametrize(("operation", "space", "qualifiers"), [
    ("add.s64", "global", ""), ("and.u32", "global", ""), ("inc.s32", "global", ""), ("add.f16", "global", ""),
    ("min.f32", "global", ""), ("mul.u32", "global", ""), ("add.u32", "local", ""), ("add.u32", "global", ".strong"),
    ("add.noftz.f32", "global", ""), ("exch.f32", "global", ""),
])
def test_forms_that_do_not_exist_are_refused(operation: str, space: str, qualifiers: str) -> None:
    run = kernel(operation, space, qualifiers)
    with pytest.raises(UnsupportedInstruction):
        run.launch("k", 1, 1, 0, 0, 0, 0, 0)


def test_misaligned_and_constant_targets_fault() -> None:
    run = Run(f"""{HEADER}.const .u32 c = 1;
.visible .entry k(.param .u64 p)
{{{REGISTERS} ld.param.u64 %rd1, [p]; atom.add.u32 %r1, [%rd1], 1; }}""")
    with pytest.raises(MemoryFault, match="aligned"):
        run.launch("k", 1, 1, run.buffer(8) + 2)
    with pytest.raises(MemoryFault, match="constant"):
        run.launch("k", 1, 1, run.loaded.globals["c"][0])
