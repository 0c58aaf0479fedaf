"""Kernels whose thread i works on element i: dense, with gaps, in place, through a struct, with module variables."""

from __future__ import annotations

import numpy as np

from tests.generated.kernels import Given, Touch, at, define, mix, pair, spans, words


def _affine(g: Given) -> Touch:
    v = g.values
    return pair(v["out"], words(v["out"], v["n"]), v["in"], words(v["in"], v["n"]))


def _strided(g: Given) -> Touch:
    v = g.values
    return pair(v["out"], words(v["out"], v["n"], v["stride"]), v["in"], words(v["in"], v["n"], v["stride"]))


def _octets(g: Given) -> Touch:
    v = g.values
    each = np.arange(v["n"], dtype=np.int64) * v["stride"]
    return pair(v["out"], v["out"] + each, v["in"], v["in"] + each)


LOAD = at("%rd1", "%in", "%i") + "ld.global.u32 %r3, [%rd1];"
STORE = at("%rd2", "%out", "%i") + "st.global.u32 [%rd2], %r3;"

define("affine", "out:u64 in:u64 n:u32 salt:u32", LOAD + mix("%r3") + STORE, _affine)
define("inplace", "out:u64 n:u32 salt:u32",
       at("%rd1", "%out", "%i") + "ld.global.u32 %r3, [%rd1];" + mix("%r3", 5) + "st.global.u32 [%rd1], %r3;",
       lambda g: Touch(own=words(g.values["out"], g.values["n"])))
define("strided", "out:u64 in:u64 n:u32 stride:u32 salt:u32",
       "mul.lo.s32 %r4, %i, %stride;" + at("%rd1", "%in", "%r4") + "ld.global.u32 %r3, [%rd1];" + mix("%r3")
       + at("%rd2", "%out", "%r4") + "st.global.u32 [%rd2], %r3;", _strided)
define("sparse", "out:u64 n:u32 salt:u32",
       "rem.u32 %r4, %i, 3; setp.ne.u32 %p1, %r4, 0; @%p1 bra DONE; mov.u32 %r3, %i;" + mix("%r3", 77) + STORE,
       lambda g: Touch(writes=words(g.values["out"], -(-g.values["n"] // 3), 3)))
define("octets", "out:u64 in:u64 n:u32 stride:u32 salt:u32",
       "mul.lo.s32 %r4, %i, %stride;" + at("%rd1", "%in", "%r4", 1) + "ld.global.u8 %r3, [%rd1];" + mix("%r3")
       + at("%rd2", "%out", "%r4", 1) + "st.global.u8 [%rd2], %r3;", _octets)
define("two", "out:u64 other:u64 in:u64 n:u32 salt:u32",
       LOAD + mix("%r3") + STORE + at("%rd3", "%other", "%i") + "xor.b32 %r3, %r3, 0x5a5a5a5a;"
       "st.global.u32 [%rd3], %r3;",
       lambda g: Touch(words(g.values["in"], g.values["n"]),
                       np.concatenate([words(g.values[name], g.values["n"]) for name in ("out", "other")])))
define("accumulate", "out:u64 in:u64 n:u32 salt:u32",
       LOAD + at("%rd2", "%out", "%i") + "ld.global.u32 %r4, [%rd2]; mul.lo.s32 %r3, %r3, %salt; "
       "add.s32 %r3, %r3, %r4; st.global.u32 [%rd2], %r3;",
       lambda g: Touch(words(g.values["in"], g.values["n"]), own=words(g.values["out"], g.values["n"])))
define("may", "out:u64 in:u64 n:u32 salt:u32",
       LOAD + "and.b32 %r4, %r3, 1; setp.eq.u32 %p1, %r4, 0; @%p1 bra DONE; xor.b32 %r3, %r3, 1;" + mix("%r3", 9)
       + STORE, lambda g: Touch(words(g.values["in"], g.values["n"]), words(g.values["out"], g.values["n"])))
define("exponent", "out:u64 in:u64 n:u32 salt:u32",
       LOAD + "and.b32 %r3, %r3, 7; cvt.rn.f32.u32 %f0, %r3; ex2.approx.f32 %f0, %f0; cvt.rzi.s32.f32 %r3, %f0;"
       + mix("%r3") + STORE, _affine)
define("through", "s:struct",
       "ld.param.u64 %rd5, [s]; ld.param.u64 %rd6, [s+8]; ld.param.u32 %r8, [s+16]; ld.param.u32 %r9, [s+20];"
       "cvta.to.global.u64 %rd5, %rd5; cvta.to.global.u64 %rd6, %rd6; setp.ge.u32 %p0, %i, %r8; @%p0 bra DONE;"
       + at("%rd1", "%rd6", "%i") + "ld.global.u32 %r3, [%rd1]; mad.lo.s32 %r3, %r3, 3, %r9; add.s32 %r3, %r3, %i;"
       + at("%rd2", "%rd5", "%i") + "st.global.u32 [%rd2], %r3;", _affine, guarded=False)
define("stateful", "out:u64 n:u32 salt:u32",
       "mov.u64 %rd4, state;" + at("%rd1", "%rd4", "%i") + "ld.global.u32 %r3, [%rd1];" + mix("%r3")
       + "st.global.u32 [%rd1], %r3;" + STORE,
       lambda g: Touch(writes=words(g.values["out"], g.values["n"]), own=words(g.variables["state"], g.values["n"])))
define("scaled", "out:u64 in:u64 n:u32 salt:u32",
       LOAD + "and.b32 %r4, %i, 7; mov.u64 %rd4, factors;" + at("%rd3", "%rd4", "%r4")
       + "ld.const.u32 %r5, [%rd3]; mul.lo.s32 %r3, %r3, %r5;" + mix("%r3") + STORE,
       lambda g: Touch(np.concatenate([words(g.values["in"], g.values["n"]),
                                       words(g.variables["factors"], min(8, g.values["n"]))]),
                       words(g.values["out"], g.values["n"])))
define("chain", "out:u64 n:u32 gap:u32 salt:u32", """
    mov.u32 %r4, 0;
NEXT: setp.ge.u32 %p1, %r4, %n; @%p1 bra DONE;
    add.s32 %r5, %r4, %gap;""" + at("%rd1", "%out", "%r5") + "ld.global.u32 %r3, [%rd1]; mad.lo.s32 %r3, %r3, 3, %salt;"
       + at("%rd2", "%out", "%r4") + "st.global.u32 [%rd2], %r3; add.s32 %r4, %r4, 1; bra NEXT;",
       lambda g: Touch(words(g.values["out"] + 4 * g.values["gap"], g.values["n"]),
                       words(g.values["out"], g.values["n"])), one=True)
define("total", "out:u64 in:u64 n:u32 salt:u32", """
    mov.u32 %r4, 0; mov.u32 %r6, %salt;
NEXT: setp.ge.u32 %p1, %r4, %n; @%p1 bra LAST;""" + at("%rd1", "%in", "%r4")
       + "ld.global.u32 %r3, [%rd1]; mad.lo.s32 %r6, %r6, 5, %r3; add.s32 %r4, %r4, 1; bra NEXT;\n"
       "LAST: st.global.u32 [%out], %r6;",
       lambda g: Touch(words(g.values["in"], g.values["n"]), words(g.values["out"], 1)), guarded=False, one=True)
define("add", "out:u64 n:u32 m:u32 salt:u32",
       "rem.u32 %r4, %i, %m;" + at("%rd1", "%out", "%r4") + "add.s32 %r3, %salt, %i; red.global.add.u32 [%rd1], %r3;",
       lambda g: Touch(adds=words(g.values["out"], min(g.values["n"], g.values["m"]))))
define("exchange", "out:u64 cells:u64 n:u32 salt:u32",
       at("%rd1", "%cells", "%i") + "add.s32 %r3, %salt, %i; atom.global.exch.b32 %r3, [%rd1], %r3;" + STORE,
       lambda g: Touch(writes=words(g.values["out"], g.values["n"]), own=words(g.values["cells"], g.values["n"])))
define("escape", "out:u64 target:u64 salt:u32",
       "setp.ne.u32 %p0, %i, 0; @%p0 bra DONE; st.global.u64 [%out], %target; st.global.u32 [%out+8], %salt;",
       lambda g: Touch(writes=spans([g.values["out"]], 12)), guarded=False)
