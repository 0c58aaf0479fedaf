"""Kernels of a decoder with a paged cache of keys and values: see :mod:`tests.generated.attention`. A thread has one
element of a row of ``d`` words, rows of sequences one after the other; heads have 4 words."""

from __future__ import annotations

import numpy as np

from tests.generated.kernels import Addresses, Given, Touch, at, define, spans, words
from tests.generated.kernels_elements import STORE

HEAD = 4


def _whole(g: Given, name: str, n: int) -> Addresses:
    return words(g.values[name], n)


def _rows(g: Given, base: str, rows: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> Addresses:
    d = g.values["d"]
    return spans((g.values[base] + 4 * (rows[:, None] * d + np.arange(d))).reshape(-1))


def _project(g: Given) -> Touch:
    n, d = g.values["n"], g.values["d"]
    return Touch(np.concatenate([_whole(g, "in", n), _whole(g, "weights", d * d)]), _whole(g, "out", n))


def _cached(g: Given) -> Addresses:
    t, b = np.arange(g.values["length"], dtype=np.int64), g.values["b"]
    rows = g.tables["table"][t // b] * b + t % b
    return np.concatenate([_rows(g, "keys", rows), _rows(g, "values", rows)])


def _attention(g: Given) -> Touch:
    n, used = g.values["n"], -(-g.values["length"] // g.values["b"])
    return Touch(np.concatenate([_whole(g, "in", n), words(g.values["table"], used), _cached(g)]), _whole(g, "out", n))


def _written(g: Given) -> Touch:
    n, d, slots = g.values["n"], g.values["d"], g.tables["slots"][:g.values["n"] // g.values["d"]]
    return Touch(np.concatenate([words(g.values["slots"], n // d), _whole(g, "key", n), _whole(g, "value", n)]),
                 np.concatenate([_rows(g, "keys", slots), _rows(g, "values", slots)]))


define("embed", "out:u64 tokens:u64 weights:u64 n:u32 d:u32 vocabulary:u32",
       "div.u32 %r4, %i, %d; rem.u32 %r5, %i, %d;" + at("%rd1", "%tokens", "%r4")
       + "ld.global.u32 %r6, [%rd1]; rem.u32 %r6, %r6, %vocabulary; mad.lo.s32 %r6, %r6, %d, %r5;"
       + at("%rd3", "%weights", "%r6") + "ld.global.u32 %r3, [%rd3];" + STORE,
       lambda g: Touch(np.concatenate([_whole(g, "tokens", g.values["n"] // g.values["d"]),
                                       _whole(g, "weights", g.values["vocabulary"] * g.values["d"])]),
                       _whole(g, "out", g.values["n"])))
define("project", "out:u64 in:u64 weights:u64 n:u32 d:u32", """
    rem.u32 %r5, %i, %d; sub.s32 %r4, %i, %r5; mul.lo.s32 %r6, %r5, %d; mov.u32 %r7, 0; mov.u32 %r3, 1;
NEXT: setp.ge.u32 %p1, %r7, %d; @%p1 bra LAST;
    add.s32 %r8, %r4, %r7; add.s32 %r9, %r6, %r7;""" + at("%rd1", "%in", "%r8") + at("%rd3", "%weights", "%r9")
       + "ld.global.u32 %r10, [%rd1]; ld.global.u32 %r11, [%rd3]; mad.lo.s32 %r3, %r10, %r11, %r3;"
       "add.s32 %r7, %r7, 1; bra NEXT;\nLAST: " + STORE, _project)
define("kv_write", "keys:u64 values:u64 key:u64 value:u64 slots:u64 n:u32 d:u32",
       "div.u32 %r4, %i, %d; rem.u32 %r5, %i, %d;" + at("%rd1", "%slots", "%r4")
       + "ld.global.u32 %r6, [%rd1]; mad.lo.s32 %r6, %r6, %d, %r5;" + at("%rd2", "%key", "%i")
       + at("%rd3", "%value", "%i") + at("%rd4", "%keys", "%r6") + at("%rd5", "%values", "%r6")
       + "ld.global.u32 %r7, [%rd2]; ld.global.u32 %r8, [%rd3]; st.global.u32 [%rd4], %r7; st.global.u32 [%rd5], %r8;",
       _written)
define("attention", "out:u64 in:u64 keys:u64 values:u64 table:u64 n:u32 d:u32 b:u32 length:u32", f"""
    and.b32 %r4, %i, {-HEAD}; mov.u32 %r5, 0; mov.u32 %r3, 0;
TOKEN: setp.ge.u32 %p1, %r5, %length; @%p1 bra LAST;
    div.u32 %r6, %r5, %b; rem.u32 %r7, %r5, %b;""" + at("%rd1", "%table", "%r6") + """
    ld.global.u32 %r8, [%rd1]; mad.lo.s32 %r8, %r8, %b, %r7; mul.lo.s32 %r8, %r8, %d;
    mov.u32 %r9, 0; mov.u32 %r10, 0;
SCORE: setp.ge.u32 %p2, %r9, """ + f"{HEAD}; @%p2 bra SCORED; add.s32 %r11, %r4, %r9; add.s32 %r12, %r8, %r11;"
       + at("%rd2", "%in", "%r11") + at("%rd3", "%keys", "%r12")
       + "ld.global.u32 %r13, [%rd2]; ld.global.u32 %r14, [%rd3]; mad.lo.s32 %r10, %r13, %r14, %r10;"
       "add.s32 %r9, %r9, 1; bra SCORE;\nSCORED: add.s32 %r12, %r8, %i;" + at("%rd4", "%values", "%r12")
       + "ld.global.u32 %r14, [%rd4]; mad.lo.s32 %r3, %r3, 3, %r5; mad.lo.s32 %r3, %r10, %r14, %r3;"
       "add.s32 %r5, %r5, 1; bra TOKEN;\nLAST: " + at("%rd5", "%out", "%i") + "st.global.u32 [%rd5], %r3;", _attention)
define("largest", "out:u64 in:u64 n:u32 d:u32", """
    mul.lo.s32 %r4, %i, %d; mov.u32 %r5, 0; mov.u32 %r6, 0; mov.u32 %r3, 0;
NEXT: setp.ge.u32 %p1, %r5, %d; @%p1 bra LAST;
    add.s32 %r7, %r4, %r5;""" + at("%rd1", "%in", "%r7") + """
    ld.global.u32 %r8, [%rd1]; setp.lt.u32 %p2, %r8, %r6; @%p2 bra LESS; mov.u32 %r6, %r8; mov.u32 %r3, %r5;
LESS: add.s32 %r5, %r5, 1; bra NEXT;
LAST: """ + STORE,
       lambda g: Touch(_whole(g, "in", g.values["n"] * g.values["d"]), _whole(g, "out", g.values["n"])))
