"""Places that only the run shows: lanes at neighbouring ones, in runs, scattered, with lanes that are not active."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from softgpu import engine
from tests.nodriver.engine.tiny import run, text_of

LANES = np.arange(32)
NOWHERE = 0x7FFFFFFF
"""The index of lanes that are not active: one access there would be a fault."""
PLACES = {
    "neighbours": LANES + 3,
    "one part a round behind": np.where(LANES < 8, LANES, LANES + 8),
    "one part behind, not at a run": np.where(LANES < 11, LANES + 32, LANES),
    "runs anywhere": np.repeat([24, 3, 40, 11], 8) + LANES % 8,
    "runs of four": np.repeat([24, 3, 40, 11, 32, 48, 16, 52], 4) + LANES % 4,
    "a stray in a run": np.where(LANES == 13, 60, LANES),
    "the first one astray": np.where(LANES == 0, 50, LANES),
    "backwards": 31 - LANES,
    "every second": 2 * LANES,
    "one": np.full(32, 5),
    "scattered": np.random.default_rng(1).permutation(64)[:32],
}
ACTIVE = {
    "all": LANES >= 0,
    "the first run": LANES < 8,
    "all but the first run": LANES >= 8,
    "half a run less": LANES < 28,
    "not the first": LANES > 0,
    "every second": LANES % 2 == 0,
    "one": LANES == 21,
    "none": LANES < 0,
}
FORMS = {
    "u8": (1, "%rs1"), "u16": (2, "%rs1"), "u32": (4, "%r5"), "u64": (8, "%rd5"),
    "v4.u8": (4, "{%rs1, %rs2, %rs3, %rs4}"), "v2.u32": (8, "{%r5, %r6}"),
    "v4.u32": (16, "{%r5, %r6, %r7, %r8}"), "v2.u64": (16, "{%rd5, %rd6}"),
}
"""Type of an access in its mnemonic -> bytes and registers of a thread."""
START = """
    mov.u32 %r0, %tid.x; mul.wide.u32 %rd0, %r0, 4; add.u64 %rd1, %places, %rd0; ld.global.u32 %r1, [%rd1];
    setp.eq.u32 %p1, %r1, 0x7fffffff; mul.wide.u32 %rd2, %r0, WIDTH; mul.wide.u32 %rd3, %r1, WIDTH;
    add.u64 %rd7, %from, PLACE_READ; add.u64 %rd8, %to, PLACE_WRITTEN; mov.u32 %r2, s; mul.lo.u32 %r3, %r1, WIDTH;
    add.u32 %r3, %r3, %r2; @%p1 ret;
"""
"""Threads' own places, and those of their indices, in memory and in shared memory."""
BODIES = {
    "read": "ld.global.KIND REGISTERS, [%rd7]; st.global.KIND [%rd8], REGISTERS;",
    "written": "ld.global.KIND REGISTERS, [%rd7]; st.global.KIND [%rd8], REGISTERS;",
    "shared": "ld.global.KIND REGISTERS, [%rd7]; st.shared.KIND [%r3], REGISTERS; mov.u32 %r5, 0; mov.u64 %rd5, 0; "
              "ld.shared.KIND REGISTERS, [%r3]; st.global.KIND [%rd8], REGISTERS;",
}


def kernel(body: str, form: str) -> str:
    """A kernel in which every thread copies one value; ``body``: what is done at the places of the indices."""
    width, registers = FORMS[form]
    own, given = "%rd2", "%rd3"
    text = (START + BODIES[body]).replace("WIDTH", str(width)).replace("KIND", form).replace("REGISTERS", registers)
    text = text.replace("PLACE_READ", given if body == "read" else own)
    return text_of(text.replace("PLACE_WRITTEN", given if body == "written" else own), "places:u64 from:u64 to:u64",
                   before=".shared .align 16 .b8 s[1024];\n")


@pytest.mark.usefixtures("level")
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("logs", [False, True], ids=["", "logged"])
def test_places(body: str, form: str, logs: bool) -> None:
    """The buffers end with the last byte that is accessed."""
    module, width = engine.LoadedModule(kernel(body, form), engine.Memory()), FORMS[form][0]
    for places, active in product(PLACES, ACTIVE):
        lanes = LANES[ACTIVE[active]]
        index = PLACES[places][lanes]
        given = np.where(ACTIVE[active], PLACES[places], NOWHERE).astype(np.uint32)
        read, written = (index if body == "read" else lanes), (index if body == "written" else lanes)
        source = np.random.default_rng(1).integers(0, 256, (max([*read, 0]) + 1, width), np.uint8)
        target = np.full((max([*written, 0]) + 1, width), 0xA5, np.uint8)
        expected = target.copy()
        expected[written] = source[read]  # where several write, the last one's stays
        if body == "shared" and places == "one":
            expected[written] = source[read[-1:]]
        engine.launch(module, "k", 1, 32, [given, source, target], log=logs)
        assert (target == expected).all(), (places, active)


@pytest.mark.usefixtures("level")
@pytest.mark.parametrize("body", ["read", "written"])
@pytest.mark.parametrize("places", [name for name in PLACES if name != "one"])
def test_the_last_byte_is_missing(body: str, places: str) -> None:
    """Whatever the way of access, the lane that reaches too far is found, and nobody else's value is lost."""
    index, lane = PLACES[places].astype(np.uint32), int(np.argmax(PLACES[places]))
    length = 4 * (int(index.max()) + 1)
    source = np.zeros(length - 1 if body == "read" else 128, np.uint8)
    target = np.zeros(length - 1 if body == "written" else 128, np.uint8)
    with pytest.raises(engine.LaunchError, match=rf"{length - 1} bytes.*thread {lane},0,0"):
        run(kernel(body, "u32"), 1, 32, index, source, target)
