"""Shared memory through generic addresses, copies into it that nobody waits for at once, variables of the module."""

from __future__ import annotations

from tests.random_kernels.engine_builder import SHARED_SLOT, EngineBuilder
from tests.random_kernels.engine_memory import load_into, small_index

GLOBAL_WORDS = 64


def _slot(b: EngineBuilder) -> str:
    b.traits.add("shared")
    return b.named("slot", "r", f"mad.lo.s32 {{d}}, {b.linear().name}, {SHARED_SLOT}, own").name


def generic_shared(b: EngineBuilder) -> None:
    """The thread's own slot of shared memory, by its generic address."""
    wide, at, p = b.fresh("rd"), b.fresh("rd"), b.fresh("p", 1)
    b.emit(f"cvt.u64.u32 {wide.name}, {_slot(b)}")
    b.emit(f"cvta.shared.u64 {at.name}, {wide.name}")
    type_, place = b.choose.choice(("u32", "b32", "u16", "u8")), b.choose.choice((0, 4, 8))
    b.emit(f"st.{type_} [{at.name}+{place}], {b.pick('r').name}")
    load_into(b, "", f"{at.name}+{b.choose.choice((0, 8))}", 8)
    if b.maybe(0.3):
        space = b.choose.choice(("shared", "global", "local"))
        other = b.choose.choice((at, b.parameter("IN"))).name
        b.emit(f"isspacep.{space} {p.name}, {other}")
        b.declare(p)


def mixed_generic(b: EngineBuilder) -> None:
    """One access of which some lanes mean shared memory and others the read-only buffer."""
    wide, at, other = b.fresh("rd"), b.fresh("rd"), b.fresh("rd")
    b.emit(f"cvt.u64.u32 {wide.name}, {_slot(b)}")
    b.emit(f"cvta.shared.u64 {at.name}, {wide.name}")
    raw = b.fresh("rd")
    b.emit(f"ld.param.u64 {raw.name}, [IN]")
    b.emit(f"mad.wide.u32 {other.name}, {small_index(b, 256).name}, 8, {raw.name}")
    b.emit(f"selp.b64 {at.name}, {at.name}, {other.name}, {b.pick('p').name}")
    load_into(b, "", at.name, 8)


def copy_async(b: EngineBuilder) -> None:
    """cp.async into the thread's own slot, and what came after the wait."""
    size = b.choose.choice((4, 8, 16))
    slot, source = _slot(b), b.fresh("rd")
    b.emit(f"mad.wide.u32 {source.name}, {small_index(b, 256).name}, {size}, {b.parameter('IN').name}")
    if "generic" in b.traits:
        b.emit(f"cvta.to.global.u64 {source.name}, {source.name}")
    cache = "cg" if size == 16 and b.maybe(0.5) else "ca"
    fewer = f", {b.choose.choice((0, size // 2, size))}" if b.maybe(0.3) else ""
    guard = f"@{b.pick('p').name} " if b.maybe(0.2) else ""
    b.emit(f"{guard}cp.async.{cache}.shared.global [{slot}], [{source.name}], {size}{fewer}")
    if b.maybe(0.5):
        b.emit("cp.async.commit_group")
        b.emit("cp.async.wait_group 0")
    else:
        b.emit("cp.async.wait_all")
    load_into(b, ".shared", slot, size)


def module_variable(b: EngineBuilder) -> None:
    """Read a variable of the module that has initial values."""
    b.traits.add("global")
    at, base = b.fresh("rd"), b.fresh("rd")
    b.emit(f"mul.wide.u32 {at.name}, {small_index(b, GLOBAL_WORDS // 4).name}, 16")
    b.emit(f"mov.u64 {base.name}, gtab")
    b.emit(f"add.s64 {at.name}, {at.name}, {base.name}")
    load_into(b, ".global", at.name, 16)
