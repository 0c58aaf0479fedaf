"""Which instructions the engine compiles: what the pages of ``docs`` say and what tests compile one by one.

Pure operations are in tables by full mnemonic. Of the others, the forms are listed here, each with operands.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import product

from ptxparse.opcodes import OPCODES as ROWS
from softgpu.engine.emit.dispatch import operations, three_inputs
from softgpu.engine.emit.matrix import wmma_accesses

Form = tuple[str, str]
"""A full mnemonic and operands for it."""

BEFORE = """.shared .align 128 .b8 s[2048];
.global .align 16 .b8 g[16];
.const .align 16 .b8 c[16];
"""
START = ".reg .b128 %q<4>; .local .align 16 .b8 l[64]; .param .align 16 .b8 q[64]; t: .branchtargets e, e;"
END = " e:"

_REGISTERS = {"pred": "p", "8": "rs", "16": "rs", "32": "r", "64": "rd", "128": "q", "f32": "f", "f64": "fd",
              "f16x2": "r", "bf16x2": "r"}
TYPES = ("b8", "b16", "b32", "b64", "u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64", "f32", "f64")
_PLACES = {"": "[%a]", "global": "[%a]", "shared": "[s]", "shared::cta": "[s]", "local": "[l]", "const": "[c]",
           "param": "[q]", "param::entry": "[a]", "param::func": "[q]"}
_SCOPES = ("cta", "cluster", "gpu", "sys")
_EVICTIONS = ("evict_normal", "evict_unchanged", "evict_first", "evict_last")


def register(kind: str, number: int = 1) -> str:
    """A register for values of a type."""
    return f"%{_REGISTERS.get(kind) or _REGISTERS[kind.lstrip('busf')]}{number}"


def _value(kind: str, vector: str) -> str:
    count = int(vector[1:]) if vector else 1
    names = [register(kind, n + 1) for n in range(count)]
    return f"{{{', '.join(names)}}}" if vector else names[0]


def _joined(*parts: str) -> str:
    return ".".join([part for part in parts if part])


def _fits(kind: str, vector: str, most: int = 16) -> bool:
    return int(kind[1:]) // 8 * (int(vector[1:]) if vector else 1) <= most


def _loads() -> Iterator[Form]:
    orders = ["", "weak", "volatile", *(f"{order}.{scope}" for order in ("relaxed", "acquire") for scope in _SCOPES),
              "mmio.relaxed.sys"]
    for order, space in product(orders, ("", "global", "shared", "shared::cta")):
        yield _joined("ld", order, space, "u32"), f"%r1, {_PLACES[space]}"
    for space, vector, kind in product(_PLACES, ("", "v2", "v4", "v8"), TYPES):
        most = 32 if space == "global" else 16 if space in ("", "shared") else 8
        if _fits(kind, vector, most) and (most > 8 or not vector) and space != "param::entry":
            yield _joined("ld", space, vector, kind), f"{_value(kind, vector)}, {_PLACES[space]}"
    yield "ld.param::entry.u64", "%rd1, [a]"
    hints = ["ca", "cg", "cs", "lu", "cv", *(f"{level}::{kind}" for level in ("L1", "L2") for kind in _EVICTIONS),
             "L1::no_allocate", "L2::64B", "L2::128B", "L2::256B", "L1::evict_last.L2::evict_first.L2::128B",
             "L1::no_allocate.L2::256B"]
    for hint in hints:
        yield f"ld.global.{hint}.b32", "%r1, [%a]"
        yield (f"ld.global.{hint}.nc.b32" if hint in ("ca", "cg", "cs") else f"ld.global.nc.{hint}.b32"), "%r1, [%a]"
    yield "ld.global.nc.v4.f32", "{%f1, %f2, %f3, %f4}, [%a]"
    yield "ld.global.nc.L2::cache_hint.b64", "%rd1, [%a], %rd2"
    yield "ld.global.L1::evict_last.L2::cache_hint.L2::128B.v2.b64", "{%rd1, %rd2}, [%a], %rd3"
    for name in ("ld.b128", "ld.global.b128", "ld.acquire.gpu.global.b128", "ldu.global.b128"):
        yield name, "%q1, [%a]"
    yield "ld.global.v2.b128", "{%q1, %q2}, [%a]"
    for vector, kind in product(("", "v2", "v4"), TYPES):
        if _fits(kind, vector):
            yield _joined("ldu.global", vector, kind), f"{_value(kind, vector)}, [%a]"


def _stores() -> Iterator[Form]:
    orders = ["", "weak", "volatile", *(f"{order}.{scope}" for order in ("relaxed", "release") for scope in _SCOPES),
              "mmio.relaxed.sys"]
    for order, space in product(orders, ("", "global", "shared", "shared::cta")):
        yield _joined("st", order, space, "u32"), f"{_PLACES[space]}, %r1"
    spaces = ("", "global", "shared", "local", "param", "param::func")
    for space, vector, kind in product(spaces, ("", "v2", "v4", "v8"), TYPES):
        most = 32 if space == "global" else 16 if space in ("", "shared") else 8
        if _fits(kind, vector, most) and (most > 8 or not vector):
            yield _joined("st", space, vector, kind), f"{_PLACES[space]}, {_value(kind, vector)}"
    yield "st.global.b128", "[%a], %q1"
    yield "st.release.sys.global.b128", "[%a], %q1"
    for hint in ("wb", "cg", "cs", "wt", *(f"{level}::{kind}" for level in ("L1", "L2") for kind in _EVICTIONS),
                 "L1::no_allocate", "L1::evict_normal.L2::evict_last"):
        yield f"st.global.{hint}.b32", "[%a], %r1"
    yield "st.global.L2::cache_hint.v2.f32", "[%a], {%f1, %f2}, %rd1"


def _atomics() -> Iterator[Form]:
    scalar = {"and": ("b32", "b64"), "or": ("b32", "b64"), "xor": ("b32", "b64"), "exch": ("b32", "b64"),
              "cas": ("b16", "b32", "b64"), "add": ("u32", "s32", "u64", "f32", "f64"), "inc": ("u32",),
              "dec": ("u32",),
              "min": ("u32", "s32", "u64", "s64"), "max": ("u32", "s32", "u64", "s64")}
    halves = ("f16", "f16x2", "bf16", "bf16x2")
    both = ("", "global", "shared", "shared::cta")
    for space, (operation, kinds) in product(both, scalar.items()):
        for kind in kinds:
            values = f"{register(kind, 2)}, {register(kind, 3)}" if operation == "cas" else register(kind, 2)
            yield _joined("atom", space, operation, kind), f"{register(kind)}, {_PLACES[space]}, {values}"
            if operation not in ("cas", "exch"):
                yield _joined("red", space, operation, kind), f"{_PLACES[space]}, {values}"
    for space, kind in product(both, halves):
        yield _joined("atom", space, "add.noftz", kind), f"{register(kind)}, {_PLACES[space]}, {register(kind, 2)}"
        yield _joined("red", space, "add.noftz", kind), f"{_PLACES[space]}, {register(kind, 2)}"
    for order, scope in product(("", "relaxed", "acquire", "release", "acq_rel"), ("", *_SCOPES)):
        yield _joined("atom", order, scope, "global.add.u32"), "%r1, [%a], %r2"
    for order, scope in product(("", "relaxed", "release"), ("", *_SCOPES)):
        yield _joined("red", order, scope, "global.add.u32"), "[%a], %r2"
    yield "atom.global.add.L2::cache_hint.u32", "%r1, [%a], %r2, %rd1"
    yield "red.global.add.L2::cache_hint.f32", "[%a], %f2, %rd1"
    for space in both:
        yield _joined("atom", space, "exch.b128"), f"%q1, {_PLACES[space]}, %q2"
        yield _joined("atom", space, "cas.b128"), f"%q1, {_PLACES[space]}, %q2, %q3"
    vectors = [("f32", v) for v in ("v2", "v4")] + [(k, v) for k in ("f16x2", "bf16x2") for v in ("v2", "v4")]
    vectors += [(k, v) for k in ("f16", "bf16") for v in ("v2", "v4", "v8")]
    for kind, vector in vectors:
        for operation in ("add",) if kind == "f32" else ("add", "min", "max"):
            name = _joined("global", operation, "" if kind == "f32" else "noftz", vector, kind)
            yield f"atom.{name}", f"{_value(kind, vector)}, [%a], {_value(kind, vector)}"
            yield f"red.{name}", f"[%a], {_value(kind, vector)}"


def _exchange() -> Iterator[Form]:
    for mode in ("up", "down", "bfly", "idx"):
        yield f"shfl.sync.{mode}.b32", "%r1|%p1, %r2, %r3, %r4, %r5"
        yield f"shfl.sync.{mode}.b32", "%r1, %r2, 1, 31, -1"
    for mode in ("all", "any", "uni"):
        yield f"vote.sync.{mode}.pred", "%p1, !%p2, -1"
    yield "vote.sync.ballot.b32", "%r1, %p1, %r2"
    for kind in ("b32", "b64"):
        yield f"match.any.sync.{kind}", f"%r1, {register(kind, 2)}, -1"
        yield f"match.all.sync.{kind}", f"%r1|%p1, {register(kind, 2)}, %r3"
    for operation, kind in [*product(("add", "min", "max"), ("u32", "s32")), *product(("and", "or", "xor"), ("b32",))]:
        yield f"redux.sync.{operation}.{kind}", "%r1, %r2, %r3"
    for operation, absolute, nan in product(("min", "max"), ("", "abs"), ("", "NaN")):
        yield _joined("redux.sync", operation, absolute, nan, "f32"), "%f1, %f2, -1"
    yield "activemask.b32", "%r1"
    yield "elect.sync", "%r1|%p1, -1"
    yield "bar.warp.sync", "-1"
    yield "bar.warp.sync", "%r1"


def _barriers() -> Iterator[Form]:
    for opcode, cta, aligned in [*product(("bar",), ("", "cta"), ("",)),
                                 *product(("barrier",), ("", "cta"), ("", "aligned"))]:
        yield _joined(opcode, cta, "sync", aligned), "0"
        yield _joined(opcode, cta, "sync", aligned), "%r1, 64"
        yield _joined(opcode, cta, "arrive", aligned), "1, 64"
        yield _joined(opcode, cta, "red.popc", aligned, "u32"), "%r1, 0, 64, !%p1"
        for operation in ("and", "or"):
            yield _joined(opcode, cta, "red", operation, aligned, "pred"), "%p1, 0, %p2"
    for scope in ("cta", "gl", "sys"):
        yield f"membar.{scope}", ""
    for order, scope in product(("", "sc", "acq_rel", "acquire", "release"), _SCOPES):
        yield _joined("fence", order, scope), ""


def _copies() -> Iterator[Form]:
    for space, hint in product(("shared", "shared::cta"), ("", "L2::64B", "L2::128B", "L2::256B")):
        for size in (4, 8, 16):
            yield _joined("cp.async.ca", space, "global", hint), f"[s], [%a], {size}"
        yield _joined("cp.async.cg", space, "global", hint), "[s], [%a], 16"
        yield _joined("cp.async.cg", space, "global", hint), "[s], [%a], 16, %r1"
        yield _joined("cp.async.ca", space, "global", hint), "[s], [%a], 4, %p1"
    yield "cp.async.cg.shared.global.L2::cache_hint", "[s], [%a], 16, %rd1"
    yield "cp.async.commit_group", ""
    yield "cp.async.wait_group", "1"
    yield "cp.async.wait_all", ""


def _moves() -> Iterator[Form]:
    kinds = ("pred", "b16", "b32", "b64", "u16", "u32", "u64", "s16", "s32", "s64", "f32", "f64")
    for kind in kinds:
        yield f"mov.{kind}", f"{register(kind)}, {register(kind, 2)}"
    for operands in ("%r1, {%rs1, %rs2}", "{%rs1, %rs2}, %r1"):
        yield "mov.b32", operands
    for operands in ("%rd1, {%r1, %r2}", "{%r1, _}, %rd1", "%rd1, {%rs1, %rs2, %rs3, %rs4}",
                     "{%rs1, %rs2, %rs3, %rs4}, %rd1"):
        yield "mov.b64", operands
    for operands in ("%q1, %q2", "%q1, {%rd1, %rd2}", "{%rd1, %rd2}, %q1"):
        yield "mov.b128", operands
    yield "mov.u64", "%rd1, g+4"
    yield "mov.u32", "%r1, s"
    yield "mov.u64", "%rd1, l"
    yield "mov.u32", "%r1, %tid.x"
    spaces = ("global", "shared", "shared::cta", "local", "const", "param", "param::entry")
    for space, to in product(spaces, ("", "to")):
        yield _joined("cvta", to, space, "u64"), "%rd1, %rd2"
    yield "cvta.param::func.u64", "%rd1, %rd2"
    for space in (*spaces, "param::func"):
        yield f"isspacep.{space}", "%p1, %rd1"


def _hints() -> Iterator[Form]:
    for space, level in product(("", "global", "local", "const", "param"), ("L1", "L2")):
        yield _joined("prefetch", space, level), "[%rd1]"
    yield "prefetch.global.L2::evict_last", "[%a]"
    yield "prefetch.global.L2::evict_normal", "[%a]"
    yield "prefetchu.L1", "[%a]"
    yield "applypriority.global.L2::evict_normal", "[%a], 128"
    yield "discard.global.L2", "[%a], 128"
    for kind in _EVICTIONS:
        yield f"createpolicy.fractional.L2::{kind}.b64", "%rd1, 0.5"
        for other in ("evict_first", "evict_unchanged"):
            yield f"createpolicy.fractional.L2::{kind}.L2::{other}.b64", "%rd1, 1.0"
            yield f"createpolicy.range.global.L2::{kind}.L2::{other}.b64", "%rd1, [%a], %r1, %r2"
    yield "createpolicy.cvt.L2.b64", "%rd1, %rd2"
    yield "nanosleep.u32", "%r1"
    yield "nanosleep.u32", "100"
    yield "pmevent", "7"
    yield "pmevent.mask", "7"
    yield "griddepcontrol.launch_dependents", ""
    yield "griddepcontrol.wait", ""
    yield "setmaxnreg.inc.sync.aligned.u32", "64"
    yield "setmaxnreg.dec.sync.aligned.u32", "24"


def _matrices() -> Iterator[Form]:
    for count, trans, space in product((1, 2, 4), ("", "trans"), ("", "shared", "shared::cta")):
        place = "[%a]" if not space else "[s]"
        registers = f"{{{', '.join(f'%r{n + 1}' for n in range(count))}}}"
        yield _joined(f"ldmatrix.sync.aligned.m8n8.x{count}", trans, space, "b16"), f"{registers}, {place}"
        yield _joined(f"stmatrix.sync.aligned.m8n8.x{count}", trans, space, "b16"), f"{place}, {registers}"
    yield "movmatrix.sync.aligned.m8n8.trans.b16", "%r1, %r2"
    for mnemonic, access in wmma_accesses().items():
        kind = access.fragment.kind
        letter = "fd" if kind == "f64" else "f" if kind == "f32" else "r"
        registers = f"{{{', '.join(f'%{letter}{n + 1}' for n in range(access.fragment.registers))}}}"
        for space in ("", "global", "shared", "shared::cta"):
            *words, layout_and = mnemonic.rsplit(".", 1)
            name = _joined(*words, space, layout_and)
            place = _PLACES[space]
            yield name, f"{place}, {registers}" if access.is_store else f"{registers}, {place}, 64"


def _control() -> Iterator[Form]:
    yield from (("bra", "e"), ("bra.uni", "e"), ("brx.idx", "%r1, t"), ("brx.idx.uni", "%r1, t"), ("exit", ""),
                           ("ret", ""), ("ret.uni", ""), ("trap", ""), ("brkpt", ""), ("call", "f"), ("call.uni", "f"))


def forms() -> Iterator[Form]:
    """All listed forms of instructions that are no pure operations."""
    for family in (_loads, _stores, _atomics, _exchange, _barriers, _copies, _moves, _hints, _matrices, _control):
        yield from family()


REFUSED: Mapping[str, str] = {
    "alloca": "the stack grows only by calls", "stacksave": "the stack grows only by calls",
    "stackrestore": "the stack grows only by calls",
    "applypriority.async": "asynchronous bulk copies", "cp.async.bulk": "asynchronous bulk copies",
    "cp.reduce": "asynchronous bulk copies", "cp.async.mbarrier": "barrier objects in memory",
    "st.async": "asynchronous stores, completed by barrier objects", "st.bulk": "asynchronous bulk stores",
    "red.async": "asynchronous stores, completed by barrier objects", "mbarrier": "barrier objects in memory",
    "barrier.cluster": "clusters of blocks", "mapa": "clusters of blocks", "getctarank": "clusters of blocks",
    "clusterlaunchcontrol": "clusters of blocks", "multimem": "memory of several GPUs at one address",
    "fabric": "memory of other machines", "wgmma": "matrix units of compute capability 9.0",
    "tcgen05": "tensor memory of compute capability 10.0", "tensormap": "tensor maps", "tex": "textures",
    "tld4": "textures", "txq": "textures", "istypep": "textures", "suld": "surfaces", "sust": "surfaces",
    "sured": "surfaces", "suq": "surfaces", "mma.sp": "sparse matrices", "spcompress": "sparse matrices",
    "spdecompress": "sparse matrices", "clmad": "carry-less products, which no compiler emits yet",
    "v": "video instructions, which no compiler emits",
}
"""Why instructions are refused, by what their names begin with; the longest beginning counts."""


def row_names() -> dict[str, frozenset[str]]:
    """All instructions of the manual, and every modifier that they may carry."""
    found: dict[str, frozenset[str]] = {}
    for row in ROWS:
        found[row.name] = found.get(row.name, frozenset()) | row.modifiers
    return dict(sorted(found.items()))


def by_row(mnemonics: Iterable[str]) -> dict[str, list[str]]:
    """Full mnemonics by the instruction of the manual that they belong to."""
    names = row_names()
    found: dict[str, list[str]] = defaultdict(list)
    for mnemonic in mnemonics:
        parts = mnemonic.split(".")
        name = next((".".join(parts[:n]) for n in range(len(parts), 0, -1) if ".".join(parts[:n]) in names), "")
        if not name and parts[0] == "cp":
            name = "cp.async"
        found[name].append(mnemonic)
    return found


def tables() -> list[str]:
    """Full mnemonics of all pure operations."""
    return sorted({*operations(0), *three_inputs()})


def reason(name: str) -> str:
    """Why an instruction is refused."""
    fitting = [beginning for beginning in REFUSED if name.startswith(beginning)]
    return REFUSED[max(fitting, key=len)] if fitting else ""


def _words(words: Iterable[str]) -> str:
    return " ".join([f"`.{word}`" for word in sorted(words)])


def _row(name: str, mnemonics: list[str], known: frozenset[str]) -> list[str]:
    taken = {word for m in mnemonics for word in m[len(name):].split(".") if word}
    return [f"`{name}`", str(len(set(mnemonics))), _words(taken), _words(known - taken)]


def compiled_rows() -> list[list[str]]:
    """The table of what is compiled: instruction, number of full mnemonics, modifiers taken, modifiers refused."""
    names = row_names()
    pure, others = by_row(tables()), by_row([mnemonic for mnemonic, _ in forms()])
    rows = []
    for name, known in names.items():
        if name in pure or name in others:
            rows.append(_row(name, [*pure.get(name, ()), *others.get(name, ())], known))
    return rows


def refused_rows() -> list[list[str]]:
    """The table of what is refused: instruction, why."""
    compiled = {row[0] for row in compiled_rows()}
    return [[f"`{name}`", reason(name)] for name in row_names() if f"`{name}`" not in compiled]
