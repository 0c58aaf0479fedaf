"""What a kernel starts from: its parameters and special registers, loaded when somebody asks for them; pointers."""

from __future__ import annotations

from collections.abc import Callable

from tests.random_kernels.builder import Builder, Value

PARAMETERS = {
    "A": ".u64 A", "B": ".u64 B", "C": ".u64 C", "T": ".u64 T", "n": ".u32 n", "m": ".u32 m", "w": ".u32 w",
    "u": ".u32 u", "len": ".u32 len", "q": ".u64 q", "h": ".u16 h", "S": ".align 8 .b8 S[32]",
    "PA": ".align 8 .b8 PA[32]", "IA": ".align 4 .b8 IA[32]",
}  # fmt: skip
"""A, C: written and read; B: only read; T: a table of small numbers, only read. n, m: small counts, also 0 and
negative; len: up to about the number of threads; w, u: anything; q: a small 64-bit number; S: a struct {pointer into
C, two ints, a 64-bit number, pointer B}; PA: four pointers into A and C; IA: eight ints."""

GLOBAL_BYTES = 1 << 22
_BITS = {"rs": "b16", "r": "b32", "rd": "b64"}


def kernel_parameters(b: Builder) -> None:
    """Fills ``b.parameters``: each loads its value in the prologue when first asked for."""

    def scalar(text: str, kind: str, bits: int) -> Callable[[], Value]:
        made: list[Value] = []

        def get() -> Value:
            if not made:
                value = b.fresh(kind, bits, fixed=b.maybe(0.6))
                value.depth = 0
                b.prologue.append(f"\t{text.format(d=value.name)};")
                made.append(value)
                if not value.fixed:
                    # Its own register for those who need the parameter as it is.
                    kept = b.fresh(kind, bits, fixed=True)
                    b.prologue.append(f"\tmov.{_BITS[kind]} {kept.name}, {value.name};")
                    made[0] = kept
                    b.values.append(value)
                b.values.append(made[0])
            return made[0]

        return get

    for name, bits in (("n", 6), ("m", 6), ("len", 8), ("w", 32), ("u", 32)):
        b.parameters[name] = scalar(f"ld.param.{b.choose.choice('usb')}32 {{d}}, [{name}]", "r", bits)
    b.parameters["q"] = scalar(f"ld.param.{b.choose.choice('us')}64 {{d}}, [q]", "rd", 8)
    b.parameters["h"] = scalar(f"ld.param.{b.choose.choice('us')}16 {{d}}, [h]", "rs", 8)
    b.parameters["x"] = scalar("ld.param.u32 {d}, [S+8]", "r", 6)
    b.parameters["y"] = scalar("ld.param.s32 {d}, [S+12]", "r", 6)
    b.parameters["z"] = scalar("ld.param.u64 {d}, [S+16]", "rd", 8)
    for axis in "xyz":
        for name, bits in (("tid", 6), ("ntid", 7), ("ctaid", 4), ("nctaid", 4)):
            b.parameters[f"{name}.{axis}"] = scalar(f"mov.u32 {{d}}, %{name}.{axis}", "r", bits)
    b.parameters["laneid"] = scalar("mov.u32 {d}, %laneid", "r", 5)


def _pointer(b: Builder, where: str, writable: bool) -> Value:
    p = b.fresh("rd", 4)
    b.prologue.append(f"\tld.param.{b.choose.choice(('u64', 'u64', 'b64', 's64'))} {p.name}, [{where}];")
    if "generic" not in b.traits and b.maybe(0.85):
        q = b.fresh("rd", 4)
        b.prologue.append(f"\tcvta.to.global.u64 {q.name}, {p.name};")
        p = q
    p.align = 256
    return b.declare_pointer(p, writable)


def pointers(b: Builder, uses_global: bool) -> None:
    """Some of the pointers that a kernel may have."""
    found = b.choose.sample(["A", "B", "C", "T", "S", "S+24"], b.choose.choice((2, 3, 4)))
    if not {"A", "C", "S"} & set(found):
        found.append("A")
    for name in found:
        _pointer(b, name, name in ("A", "C", "S"))
    if uses_global:
        p = b.fresh("rd", 4)
        b.prologue.append(f"\tmov.u64 {p.name}, G;")
        b.prologue.append(f"\tadd.s64 {p.name}, {p.name}, {GLOBAL_BYTES // 2};")
        p.align = 16
        b.declare_pointer(p, True)


def indexed_parameters(b: Builder) -> None:
    """A parameter array indexed by a value."""
    x = b.pick("r", 8)
    i, wide, base = b.fresh("r", 3), b.fresh("rd"), b.fresh("rd")
    pointer = b.maybe(0.5)
    b.emit(f"and.b32 {i.name}, {x.name}, {3 if pointer else 7}")
    b.emit(f"mul.wide.u32 {wide.name}, {i.name}, {8 if pointer else 4}")
    b.emit(f"mov.u64 {base.name}, {'PA' if pointer else 'IA'}")
    b.emit(f"add.s64 {base.name}, {base.name}, {wide.name}")
    if pointer:
        p = b.fresh("rd", 4)
        p.align = 64
        b.emit(f"ld.param.u64 {p.name}, [{base.name}]")
        b.declare_pointer(p, True)
    else:
        d = b.fresh("r", 6)
        b.emit(f"ld.param.u32 {d.name}, [{base.name}]")
        b.declare(d)
