"""The opcode tables: every instruction that real modules hold is known, everything invented is reported."""

from __future__ import annotations

import re

import pytest

from ptxparse.model import Mnemonic
from ptxparse.opcodes import (
    OPCODES,
    SPECIAL_REGISTERS,
    Effect,
    Fragment,
    Kind,
    Source,
    accessed_bytes,
    fragment,
    is_contractible,
    is_device_variant,
    is_nondeterministic,
    is_order_dependent,
    is_special,
    lookup,
    matrix_shape,
    operation_count,
    size_operand,
    unknown_modifiers,
)
from ptxparse.parser import mnemonic, parse
from tests.material import require_material
from tests.ptxtext import corpus_files, fixture_files

FMA_TENSOR = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"


def unknown_in(files: list) -> dict[str, tuple[str, ...]]:
    found = {}
    for file in files:
        for function in parse(file.read_text(), file.name).functions:
            for instruction in function.instructions or ():
                op = instruction.op
                if lookup(op) is None or unknown_modifiers(op):
                    found[op.text] = unknown_modifiers(op)
    return found


def test_every_mnemonic_of_the_fixtures_is_known() -> None:
    assert unknown_in(fixture_files()) == {}


def test_every_mnemonic_of_the_corpus_is_known() -> None:
    require_material()
    files = corpus_files()
    assert len(files) == 97
    assert unknown_in(files) == {}


@pytest.mark.parametrize(
    "text",
    [
        "ld.global.nc.L1::no_allocate.L2::128B.v4.f32",
        "ld.global.L2::evict_last.v8.f32",
        "ld.param::entry.b32",
        "ld.global.u32.proxy::readonly",
        "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32",
        "atom.global.v8.f16.max.noftz",
        "atom.acquire.sys.global.cas.b128",
        "red.async.release.sys.global.add.u32",
        "cp.async.ca.shared::cta.global.L2::cache_hint.L2::256B",
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster.L2::cache_hint",
        "cp.async.bulk.tensor.5d.shared::cluster.global.im2col::w::128.mbarrier::complete_tx::bytes.cta_group::2",
        "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group.L2::cache_hint",
        "cp.async.bulk.prefetch.tensor.3d.L2.global.tile",
        "mbarrier.try_wait.parity.acquire.cta.shared::cta.b64",
        "mbarrier.arrive.noComplete.release.cta.shared.b64",
        "fence.proxy.async::generic.acquire.sync_restrict::shared::cluster.cluster",
        "barrier.cluster.arrive.relaxed.aligned",
        "barrier.cta.red.popc.aligned.u32",
        "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32",
        "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3",
        "mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc",
        "wmma.load.b.sync.aligned.col.m32n8k16.shared.f16",
        "wgmma.mma_async.sp.sync.aligned.m64n256k32.f32.f16.f16",
        "tcgen05.mma.ws.sp.cta_group::1.kind::f8f6f4.collector::b2::lastuse",
        "tcgen05.ld.red.sync.aligned.16x32bx2.x8.u32.max",
        "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64",
        "tcgen05.wait::ld.sync.aligned",
        "cvt.rs.relu.satfinite.e2m1x4.f32",
        "cvt.pack.sat.u8.s32.b32",
        "fma.rn.oob.relu.bf16x2",
        "add.rn.ftz.f32x2",
        "add.rz.f32.bf16",
        "add.rn.e5m2x4.e4m3x4.satfinite",
        "min.xorsign.abs.f16x2",
        "setp.neu.and.ftz.f32",
        "lop3.or.b32",
        "shfl.sync.bfly.b32",
        "redux.sync.min.abs.NaN.f32",
        "tex.level.cube.v4.f32.f32",
        "suld.b.a2d.v4.b32.trap",
        "spcompress.b8.b4.sp::2:4.x1",
        "fabric.try_put.async.counted::bytes.shared::cta.mbarrier::complete_tx::16B.mbarrier::report::fabric.relaxed"
        ".sys.b128",
        "vset4.u32.s32.lt.add",
        "createpolicy.fractional.L2::evict_last.L2::evict_unchanged.b64",
        "clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128",
    ],
)
def test_forms_of_the_manual_are_known(text: str) -> None:
    op = mnemonic(text)
    assert lookup(op) is not None
    assert unknown_modifiers(op) == ()


@pytest.mark.parametrize(
    ("text", "unknown"),
    [
        ("ld.global.later.u32", ("later",)),
        ("add.s33", ("s33",)),
        ("add.cc.f32", ("cc",)),
        ("add.sat.rn.s32", ("rn",)),
        ("fma.rn.sometimes.f32.f7", ("sometimes", "f7")),
        ("atom.global.nand.b32", ("nand",)),
        ("mma.sync.aligned.m16n8k99.row.col.f32.f16.f16.f32", ("m16n8k99",)),
        ("wgmma.mma_async.sync.aligned.m64n12k16.f32.f16.f16", ("m64n12k16",)),
        ("mov.f16", ("f16",)),
        ("bar.sync.all", ("all",)),
        ("cp.async.bulk.commit_group.write", ("write",)),
    ],
)
def test_invented_modifiers_are_reported(text: str, unknown: tuple[str, ...]) -> None:
    assert lookup(mnemonic(text)) is not None
    assert unknown_modifiers(mnemonic(text)) == unknown


@pytest.mark.parametrize("text", ["frobnicate.b32", "bar", "mbarrier.b64", "wmma", "", "ld2.global.u32"])
def test_unknown_opcodes_are_unknown(text: str) -> None:
    opcode, *modifiers = text.split(".")
    op = Mnemonic(text, opcode, tuple(modifiers))
    assert lookup(op) is None
    assert unknown_modifiers(op) == op.modifiers
    assert is_device_variant(op) and is_nondeterministic(op)
    assert operation_count(op) == ("none", 0.0)
    assert accessed_bytes(op) == 0


def test_the_type_chooses_the_family() -> None:
    families = {t: lookup(mnemonic(t)).family for t in ("add.s32", "add.f32", "add.f16x2", "add.f32.f16")}  # type: ignore[union-attr]
    assert families == {"add.s32": "integer", "add.f32": "floating", "add.f16x2": "half", "add.f32.f16": "mixed"}


def test_rows_are_well_formed() -> None:
    assert len({(row.name, row.family) for row in OPCODES}) == len(OPCODES)
    for row in OPCODES:
        assert re.fullmatch(r"[a-z][a-z0-9_]*(\.[a-z0-9_:]+)*", row.name), row.name
        assert 0 <= row.destinations <= 3
        assert (row.kind is Kind.NONE) == (row.operations == 0)
        assert all(re.fullmatch(r"\w+(::?\w+)*", word) for word in row.modifiers), row.name
        if row.effect in (Effect.PURE, Effect.LOAD, Effect.WARP, Effect.TENSOR, Effect.MATRIX_LOAD):
            assert row.destinations >= 1, row.name
        if row.effect in (Effect.STORE, Effect.CONTROL, Effect.FENCE, Effect.PREFETCH, Effect.DISCARD, Effect.COPY):
            assert row.destinations == 0, row.name
        if row.kind is not Kind.NONE:
            assert row.effect in (Effect.PURE, Effect.TENSOR, Effect.WGMMA, Effect.TCGEN05), row.name


def test_no_name_hides_a_modifier_of_a_shorter_name() -> None:
    """``cp.async.bulk`` wins over ``cp.async`` with a modifier ``bulk``: no such modifier may exist."""
    names = {row.name for row in OPCODES}
    for row in OPCODES:
        for word in row.modifiers:
            assert f"{row.name}.{word}" not in names or row.name in ("tcgen05.ld",), f"{row.name}.{word}"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("fma.rn.f32", ("fp32", 2)),
        ("fma.rn.f64", ("fp64", 2)),
        ("fma.rn.f16", ("fp16", 2)),
        ("fma.rn.bf16x2", ("fp16", 4)),
        ("mul.f32", ("fp32", 1)),
        ("add.f32x2", ("fp32", 2)),
        ("add.f32.bf16", ("fp32", 1)),
        ("max.f16x2", ("fp16", 2)),
        ("add.s32", ("integer", 1)),
        ("add.u16x2", ("integer", 2)),
        ("mad.lo.s32", ("integer", 2)),
        ("mad.wide.u32", ("integer", 2)),
        ("shf.l.wrap.b32", ("integer", 1)),
        ("dp4a.s32.u32", ("integer", 8)),
        ("vadd4.u32.u32.u32", ("integer", 4)),
        ("setp.lt.s32", ("integer", 1)),
        ("setp.lt.f32", ("fp32", 1)),
        ("set.lt.u32.f16x2", ("fp16", 2)),
        ("ex2.approx.ftz.f32", ("special", 1)),
        ("tanh.approx.bf16x2", ("special", 2)),
        ("div.rn.f32", ("special", 1)),
        ("div.s32", ("integer", 1)),
        ("cvt.rn.f16.f32", ("conversion", 1)),
        ("cvt.rn.f16x2.f32", ("conversion", 2)),
        ("cvt.rs.relu.satfinite.e2m1x4.f32", ("conversion", 4)),
        ("mov.b32", ("none", 0)),
        ("selp.f32", ("none", 0)),
        ("ld.global.f32", ("none", 0)),
        ("atom.add.f32", ("none", 0)),
        (FMA_TENSOR, ("tensor", 2 * 16 * 8 * 16 / 32)),
        ("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", ("tensor", 2 * 16 * 8 * 8 / 32)),
        ("wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32", ("tensor", 2 * 16**3 / 32)),
        ("wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16", ("tensor", 2 * 64 * 128 * 16 / 128)),
        ("tcgen05.mma.cta_group::1.kind::f16", ("tensor", 0)),
    ],
)
def test_operation_counts(text: str, expected: tuple[str, float]) -> None:
    assert operation_count(mnemonic(text)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ld.global.f32", 4),
        ("ld.global.v4.f32", 16),
        ("ld.global.v8.b32", 32),
        ("ld.global.b128", 16),
        ("ld.u8", 1),
        ("ldu.global.v2.f64", 16),
        ("st.shared.v2.b16", 4),
        ("st.volatile.global.u64", 8),
        ("atom.global.add.f32", 4),
        ("atom.cas.b128", 16),
        ("atom.global.v4.f32.add", 16),
        ("atom.global.v8.bf16.add.noftz", 16),
        ("red.global.add.noftz.f16x2", 4),
        ("multimem.ld_reduce.add.acc::f32.v2.f16x2", 8),
        ("cp.async.cg.shared.global", 16),
        ("cp.async.ca.shared.global", 0),
        ("st.bulk.weak.shared::cta", 0),
        ("wmma.load.a.sync.aligned.row.m16n16k16.global.f16", 0),
        ("add.s32", 0),
        ("bar.sync", 0),
    ],
)
def test_accessed_bytes(text: str, expected: int) -> None:
    assert accessed_bytes(mnemonic(text)) == expected


def test_the_operand_that_holds_the_size() -> None:
    assert size_operand(mnemonic("cp.async.ca.shared.global")) == 2
    assert size_operand(mnemonic("cp.async.bulk.global.shared::cta.bulk_group")) == 2
    assert size_operand(mnemonic("discard.global.L2")) == 1
    assert size_operand(mnemonic("ld.global.f32")) is None
    assert size_operand(mnemonic("unheard.of")) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("wmma.load.a.sync.aligned.row.m16n16k16.global.f16", Fragment(16, 16, 16)),
        ("wmma.load.a.sync.aligned.col.m32n8k16.global.f16", Fragment(16, 32, 16)),
        ("wmma.load.b.sync.aligned.row.m32n8k16.f16", Fragment(16, 8, 16)),
        ("wmma.load.b.sync.aligned.col.m32n8k16.f16", Fragment(8, 16, 16)),
        ("wmma.load.c.sync.aligned.row.m8n32k16.global.f32", Fragment(8, 32, 32)),
        ("wmma.store.d.sync.aligned.col.m8n32k16.global.f32", Fragment(32, 8, 32)),
        ("wmma.load.a.sync.aligned.row.m8n8k32.global.s4", Fragment(8, 32, 4)),
        ("wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32", None),
        ("ld.global.f32", None),
    ],
)
def test_fragments(text: str, expected: Fragment | None) -> None:
    assert fragment(mnemonic(text)) == expected


def test_line_bytes_of_a_fragment() -> None:
    found = fragment(mnemonic("wmma.load.a.sync.aligned.row.m8n8k128.global.b1"))
    assert found is not None and (found.lines, found.line_bytes) == (8, 16)


def test_matrix_shape() -> None:
    assert matrix_shape(mnemonic(FMA_TENSOR)) == (16, 8, 16, 32)
    assert matrix_shape(mnemonic("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16")) == (64, 8, 16, 128)
    assert matrix_shape(mnemonic("fma.rn.f32")) is None


VARIANT = [
    "ex2.approx.f32", "sin.approx.f32", "lg2.approx.ftz.f32", "rsqrt.approx.f64", "rcp.approx.ftz.f64",
    "sqrt.approx.f32", "div.full.f32", "div.approx.f32", "tanh.approx.f16x2", "ex2.approx.ftz.bf16", FMA_TENSOR,
    "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32", "wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32",
    "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16", "tcgen05.ld.sync.aligned.32x32b.x1.b32",
    "tex.2d.v4.f32.f32", "suld.b.1d.b32.trap", "cvt.rs.f16x2.f32", "multimem.red.global.add.f32", "elect.sync",
    "add.later.f32",
]  # fmt: skip
INVARIANT = [
    "fma.rn.f32", "add.f32", "mul.rz.f64", "div.rn.f32", "rcp.rn.f32", "sqrt.rn.f64", "sqrt.rz.ftz.f32", "div.s32",
    "cvt.rn.f16.f32", "cvt.rna.tf32.f32", "mov.b32", "ld.global.f32", "st.global.f32", "atom.global.add.u32",
    "shfl.sync.bfly.b32", "bar.sync", "min.NaN.f16x2", "cp.async.cg.shared.global", "dp4a.s32.s32",
    "ldmatrix.sync.aligned.m8n8.x4.shared.b16", "prmt.b32",
]  # fmt: skip


def test_device_variant_instructions() -> None:
    assert [t for t in VARIANT if not is_device_variant(mnemonic(t))] == []
    assert [t for t in INVARIANT if is_device_variant(mnemonic(t))] == []


def test_contractible_instructions() -> None:
    yes = ["add.f32", "sub.f32", "mul.f32", "mul.ftz.f32", "add.f64", "mul.f16", "mul.bf16x2", "add.f32.f16"]
    no = ["add.rn.f32", "mul.rz.f32", "fma.rn.f32", "add.s32", "mul.lo.s32", "div.rn.f32", "neg.f32", "min.f32"]
    assert [t for t in yes if not is_contractible(mnemonic(t))] == []
    assert [t for t in no if is_contractible(mnemonic(t))] == []


def test_nondeterministic_instructions() -> None:
    yes = ["activemask.b32", "vote.ballot.b32", "shfl.down.b32", "mbarrier.try_wait.parity.shared::cta.b64"]
    no = ["vote.sync.ballot.b32", "shfl.sync.down.b32", "atom.global.add.u32", "match.any.sync.b32", "add.f32"]
    assert [t for t in yes if not is_nondeterministic(mnemonic(t))] == []
    assert [t for t in no if is_nondeterministic(mnemonic(t))] == []


def test_order_dependent_atomics() -> None:
    yes = ["atom.global.add.f32", "red.global.add.noftz.f16x2", "atom.exch.b32", "atom.cas.b64", "atom.inc.u32",
           "atom.global.sideways.u32"]  # fmt: skip
    no = ["atom.global.add.u32", "red.global.max.s32", "atom.or.b32", "atom.shared.min.u64", "ld.global.f32"]
    assert [t for t in yes if not is_order_dependent(mnemonic(t))] == []
    assert [t for t in no if is_order_dependent(mnemonic(t))] == []


def test_special_registers() -> None:
    assert SPECIAL_REGISTERS["%tid.x"] == (Source.THREAD, 32, 0, 1023)
    assert SPECIAL_REGISTERS["%tid.z"].upper == 63
    assert SPECIAL_REGISTERS["%ntid.x"] == (Source.LAUNCH, 32, 1, 1024)
    assert SPECIAL_REGISTERS["%nctaid.y"].upper == 65535
    assert SPECIAL_REGISTERS["%laneid"] == (Source.WARP, 32, 0, 31)
    assert SPECIAL_REGISTERS["%clock64"].kind is Source.TIME
    assert SPECIAL_REGISTERS["%smid"].kind is Source.DEVICE
    assert SPECIAL_REGISTERS["%envreg31"].kind is Source.ENVIRONMENT
    assert is_special("%lanemask_lt") and not is_special("%r1")
    for name, register in SPECIAL_REGISTERS.items():
        assert 0 <= register.lower <= register.upper < 2**register.bits, name


def test_special_registers_of_real_modules_are_known() -> None:
    used = set()
    for file in fixture_files() + corpus_files():
        used |= set(re.findall(r"%(?:tid|ntid|ctaid|nctaid|envreg|lane|clock|warp|grid|global|dyn|total)[\w.]*",
                               file.read_text()))
    assert "%tid.x" in used
    assert {name for name in used if not is_special(name)} == set()
