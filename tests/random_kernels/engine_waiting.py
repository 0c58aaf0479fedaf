"""Threads that wait for others that come later: in another round of a loop, or by a flag."""

from __future__ import annotations

from tests.random_kernels.engine_builder import EngineBuilder
from tests.random_kernels.engine_warp import WAITING


def late_meeting(b: EngineBuilder) -> None:
    """Some lanes leave out the first rounds of a loop with a shuffle in it, and make up for them at the end."""
    if b.mask is None or b.depth > 1:
        return
    i, last, d = b.fresh("r", 4, fixed=True), b.fresh("r"), b.fresh("r", 32)
    late, p, q, r = b.pick("p"), b.fresh("p"), b.fresh("p"), b.fresh("p")
    kept = b.fresh("p")
    head, skip = b.label(), b.label()
    b.emit(f"mov.pred {kept.name}, {late.name}" if b.maybe(0.5) else f"not.pred {kept.name}, {late.name}")
    rounds, missed = b.choose.choice((2, 3)), b.choose.choice((1, 2))
    b.emit(f"selp.u32 {last.name}, {rounds + missed}, {rounds}, {kept.name}")
    b.emit(f"mov.u32 {i.name}, 0")
    b.emit(f"mov.u32 {d.name}, {b.pick('r').name}")
    b.mark(head)
    b.emit(f"add.s32 {i.name}, {i.name}, 1")
    b.emit(f"setp.le.u32 {p.name}, {i.name}, {missed}")
    b.emit(f"and.pred {q.name}, {p.name}, {kept.name}")
    b.emit(f"@{q.name} bra {skip}")
    b.emit(f"shfl.sync.bfly.b32 {d.name}, {d.name}, {b.choose.choice((1, 2, 16))}, 31, {b.mask}")
    b.emit(f"add.s32 {d.name}, {d.name}, {i.name}")
    b.mark(skip)
    b.emit(f"xor.b32 {d.name}, {d.name}, {i.name}")
    b.emit(f"setp.lt.u32 {r.name}, {i.name}, {last.name}")
    b.emit(f"@{r.name} bra {head}")
    b.declare(d)


def chain_of_flags(b: EngineBuilder) -> None:
    """Every thread waits for the flag of the next one and then sets its own: also within a warp."""
    if not b.together or b.suffix or b.depth > 1:
        return
    b.traits.add("shared")
    linear, threads = b.linear().name, b.threads().name
    place, seen, d = b.fresh("r"), b.fresh("r"), b.fresh("r", 32)
    last, p, q = b.fresh("p"), b.fresh("p"), b.fresh("p")
    limit = b.fresh("r")
    head, go = b.label().replace("$L", WAITING), b.label()
    b.emit("bar.sync 0")
    b.emit(f"mad.lo.s32 {place.name}, {linear}, 4, smem")
    b.emit(f"st.volatile.shared.u32 [{place.name}], 0")
    b.emit("bar.sync 0")
    b.emit(f"mov.u32 {d.name}, {b.pick('r').name}")
    b.emit(f"or.b32 {d.name}, {d.name}, 1")
    b.emit(f"and.b32 {limit.name}, {linear}, {b.choose.choice((3, 7, 33))}")
    b.emit(f"setp.eq.u32 {last.name}, {limit.name}, 0")
    b.emit(f"add.s32 {limit.name}, {linear}, 1")
    b.emit(f"setp.ge.u32 {q.name}, {limit.name}, {threads}")
    b.emit(f"or.pred {last.name}, {last.name}, {q.name}")
    b.emit(f"@{last.name} bra {go}")
    b.mark(head)
    b.emit(f"ld.{b.choose.choice(('volatile.shared', 'acquire.cta.shared', 'relaxed.gpu.shared'))}.u32 {seen.name}, "
           f"[{place.name}+4]")
    b.emit(f"setp.eq.u32 {p.name}, {seen.name}, 0")
    b.emit(f"@{p.name} bra {head}")
    b.emit(f"add.s32 {d.name}, {d.name}, {seen.name}")
    b.emit(f"or.b32 {d.name}, {d.name}, 1")
    b.mark(go)
    if b.maybe(0.5):
        b.emit("membar.cta")
    b.emit(f"st.{b.choose.choice(('volatile.shared', 'release.cta.shared', 'relaxed.cta.shared'))}.u32 [{place.name}], "
           f"{d.name}")
    b.emit("bar.sync 0")
    b.declare(d)
