"""Bytes that lanes read one behind another: together where all of them are inside, else each as if it were alone."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from softgpu import engine
from softgpu.engine.compiler import entry_of, translate
from softgpu.engine.options import Options
from softgpu.engine.target import host_target
from tests.nodriver.engine.test_places import ACTIVE, LANES, NOWHERE
from tests.nodriver.engine.tiny import parsed, run, same, text_of

COUNTS = (8, 15, 16, 33, 70)
LOW = 3
PLACES = {
    "rows": lambda count: LANES * (count + 5),
    "rows backwards": lambda count: (31 - LANES) * count,
    "one row": lambda count: LANES * 0 + 7,
    "overlapping": lambda count: LANES,
    "anywhere": lambda count: np.random.default_rng(count).integers(0, 2000, 32),
}
START = """
    mov.u32 %r0, %tid.x; mul.wide.u32 %rd0, %r0, 4; add.u64 %rd1, %places, %rd0; ld.global.u32 %r1, [%rd1];
    setp.eq.u32 %p1, %r1, 0x7fffffff; mul.wide.u32 %rd2, %r0, COUNT; cvt.u64.u32 %rd3, %r1;
    add.u64 %rd7, %from, %rd3; add.u64 %rd8, %to, %rd2; @%p1 ret;
"""


def kernel(count: int) -> str:
    """Each thread copies ``count`` bytes from its place on, in an order of its own; later ones first need four."""
    order = [int(k) for k in np.random.default_rng(count).permutation(count)]
    words = [order[k:k + 4] for k in range(0, count, 4)]
    body = START.replace("COUNT", str(count))
    for number, word in enumerate(words):
        for k, place in enumerate(word):
            kind, register = "u8" if k % 2 else "s8", f"%r{2 + k}"
            body += f"ld.global.{kind} {register}, [%rd7+{LOW + place}]; and.b32 {register}, {register}, 255;"
        packed = "".join(f"shl.b32 %r7, %r7, 8; or.b32 %r7, %r7, %r{2 + k};" for k in reversed(range(len(word))))
        body += f"mov.u32 %r7, 0; {packed} mov.b32 %w{number}, %r7;\n"
    for number, word in enumerate(words):
        for place in word:
            body += f"st.global.u8 [%rd8+{place}], %w{number}; shr.u32 %w{number}, %w{number}, 8;\n"
    text = text_of(body, "places:u64 from:u64 to:u64")
    return text.replace("{", f"{{ .reg .b32 %w<{len(words)}>;", 1)


def has_band(text: str) -> bool:
    module = parsed(text)
    return "@softgpu_band_" in translate(module, entry_of(module, "k"), Options((32, 1, 1)), host_target()).text


@pytest.mark.usefixtures("level")
@pytest.mark.parametrize(("count", "logs"), [*[(count, False) for count in COUNTS], (16, True)])
def test_rows_of_bytes(count: int, logs: bool) -> None:
    """The source ends with the last byte that is read."""
    module = engine.LoadedModule(kernel(count), engine.Memory())
    for places, active in product(PLACES, ACTIVE):
        lanes = LANES[ACTIVE[active]]
        index = PLACES[places](count)
        given = np.where(ACTIVE[active], index, NOWHERE).astype(np.uint32)
        length = max([*(index[lanes] + LOW + count), 1])
        source = np.random.default_rng(1).integers(0, 256, length, np.uint8)
        target = np.full((32, count), 0xA5, np.uint8)
        expected = target.copy()
        for lane in lanes:
            expected[lane] = source[index[lane] + LOW:][:count]
        for _ in range(2):  # the second launch knows the allocation
            engine.launch(module, "k", 1, 32, [given, source, target], log=logs)
            assert (target == expected).all(), (places, active)


def test_loads_without_order_are_read_together() -> None:
    assert has_band(kernel(16))
    ordered = kernel(16).replace("ld.global.s8", "ld.volatile.global.s8")
    assert not has_band(ordered.replace("ld.global.u8", "ld.relaxed.gpu.global.u8"))
    assert not has_band(kernel(7))


@pytest.mark.usefixtures("level")
@pytest.mark.parametrize("count", [8, 20])
def test_the_last_byte_is_missing(count: int) -> None:
    """The one load that reaches too far is found, in the lane that makes it."""
    text = kernel(count)
    index = (LANES * 40).astype(np.uint32)
    source, target = np.zeros(31 * 40 + LOW + count - 1, np.uint8), np.zeros(32 * count, np.uint8)
    line = next(n for n, one in enumerate(text.splitlines(), 1) if f"[%rd7+{LOW + count - 1}]" in one)
    with pytest.raises(engine.LaunchError, match=rf"line {line}: .* {source.size} bytes.*thread 31,0,0"):
        run(text, 1, 32, index, source, target)


@pytest.mark.usefixtures("level")
def test_stores_between_are_seen() -> None:
    """Threads write into their own rows and read what they wrote."""
    body = "mov.u32 %r0, %tid.x; mul.wide.u32 %rd0, %r0, 41; add.u64 %rd1, %data, %rd0; mov.u32 %r1, 0;"
    for place in range(40):
        body += f"ld.global.u8 %r2, [%rd1+{place}]; mad.lo.u32 %r1, %r1, 31, %r2;"
        if place % 12 == 9:
            body += f"st.global.u8 [%rd1+{place + 5}], %r1; red.global.add.u32 [%count], 1;"
    body += "mul.wide.u32 %rd2, %r0, 4; add.u64 %rd2, %to, %rd2; st.global.u32 [%rd2], %r1;"
    text = text_of(body, "data:u64 to:u64 count:u64")
    data = np.random.default_rng(2).integers(0, 256, 41 * 64, np.uint8)
    same(text, 1, 64, data, np.zeros(64, np.uint32), np.zeros(1, np.uint32))
