"""Kernels that find elements through tables in memory: of indices, of blocks, of pointers."""

from __future__ import annotations

import numpy as np

from tests.generated.kernels import Addresses, Given, Touch, at, define, mix, spans, words
from tests.generated.kernels_elements import LOAD, STORE

INDEX = at("%rd3", "%table", "%i") + "ld.global.u32 %r4, [%rd3];"
BLOCK = ("div.u32 %r6, %i, %b; rem.u32 %r7, %i, %b;" + at("%rd3", "%table", "%r6")
         + "ld.global.u32 %r4, [%rd3]; mad.lo.s32 %r4, %r4, %b, %r7;")


def _indexed(g: Given, base: str) -> Addresses:
    return spans(g.values[base] + 4 * g.tables["table"][:g.values["n"]])


def _table(g: Given, n: int) -> Addresses:
    return words(g.values["table"], n)


def _blocks(g: Given, base: str) -> Addresses:
    n, b = g.values["n"], g.values["b"]
    each = np.arange(n, dtype=np.int64)
    return spans(g.values[base] + 4 * (g.tables["table"][each // b] * b + each % b))


def _used(g: Given) -> Addresses:
    return _table(g, -(-g.values["n"] // g.values["b"]))


define("scatter", "out:u64 table:u64 n:u32 salt:u32",
       INDEX + "mov.u32 %r3, %i;" + mix("%r3", 31) + at("%rd2", "%out", "%r4") + "st.global.u32 [%rd2], %r3;",
       lambda g: Touch(_table(g, g.values["n"]), _indexed(g, "out")))
define("gather", "out:u64 in:u64 table:u64 n:u32 salt:u32",
       INDEX + at("%rd1", "%in", "%r4") + "ld.global.u32 %r3, [%rd1];" + mix("%r3") + STORE,
       lambda g: Touch(np.concatenate([_table(g, g.values["n"]), _indexed(g, "in")]),
                       words(g.values["out"], g.values["n"])))
define("block_read", "out:u64 in:u64 table:u64 n:u32 b:u32 salt:u32",
       BLOCK + at("%rd1", "%in", "%r4") + "ld.global.u32 %r3, [%rd1];" + mix("%r3") + STORE,
       lambda g: Touch(np.concatenate([_used(g), _blocks(g, "in")]), words(g.values["out"], g.values["n"])))
define("block_write", "out:u64 in:u64 table:u64 n:u32 b:u32 salt:u32",
       BLOCK + LOAD + mix("%r3") + at("%rd2", "%out", "%r4") + "st.global.u32 [%rd2], %r3;",
       lambda g: Touch(np.concatenate([_used(g), words(g.values["in"], g.values["n"])]), _blocks(g, "out")))
define("follow", "table:u64 n:u32 salt:u32",
       "ld.global.u64 %rd4, [%table]; cvta.to.global.u64 %rd4, %rd4;" + at("%rd1", "%rd4", "%i")
       + "ld.global.u32 %r3, [%rd1];" + mix("%r3") + "st.global.u32 [%rd1], %r3;",
       lambda g: Touch(spans([g.values["table"]], 8) if g.values["n"] else spans([], 8),
                       own=words(int(g.tables["table"][0]), g.values["n"])))
