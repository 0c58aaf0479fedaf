"""Values carried around a loop beside its index: sums, walking and swapped pointers, lagging values."""

from __future__ import annotations

from tests.random_kernels.arithmetic import operand
from tests.random_kernels.builder import Builder


def carried_values(b: Builder) -> list[tuple[str, str]]:
    """Registers carried around the loop beside its index: (before the loop, at the end of each iteration)."""
    found = []
    for _ in range(b.choose.choice((0, 0, 1, 1, 2))):
        style = b.choose.randrange(6)
        kind = b.choose.choice(("r", "r", "rd"))
        width = 32 if kind == "r" else 64
        v = b.fresh(kind, 14, fixed=True)
        start, bits = operand(b, kind, 12)
        b.emit(f"mov.u{width} {v.name}, {start}")
        v.bits = max(bits, 12) + 6
        step = b.choose.choice(("1", "2", "3", "-1", "-4", "8", "12"))
        if style == 0 and b.pointers:
            # A pointer that walks.
            p = b.choose.choice(b.pointers)
            q = b.fresh("rd", max(p.bits, 16), fixed=True)
            q.align = min(p.align, 4)
            b.emit(f"mov.u64 {q.name}, {p.name}")
            b.declare_pointer(q, p.writable)
            found.append(("", f"add.s64 {q.name}, {q.name}, {4 * int(step)}"))
        elif style == 1 and len(b.pointers) > 1:
            # Two pointers that change places.
            p, q = b.choose.sample(b.pointers, 2)
            x, y, t = b.fresh("rd", p.bits), b.fresh("rd", q.bits), b.fresh("rd")
            for d, s in ((x, p), (y, q)):
                d.align, d.bits = min(p.align, q.align), max(p.bits, q.bits)
                b.emit(f"mov.u64 {d.name}, {s.name}")
                b.declare_pointer(d, p.writable and q.writable)
            found.append(("", f"mov.u64 {t.name}, {x.name};\n\tmov.u64 {x.name}, {y.name};\n"
                          f"\tmov.u64 {y.name}, {t.name}"))
        elif style == 2:
            # The value of the iteration before.
            source = b.pick(kind, 20)
            b.declare(v)
            v.bits = 20
            found.append(("", f"mov.u{width} {v.name}, {source.name}"))
        elif style == 3:
            runtime = b.pick(kind, 6)
            b.declare(v)
            found.append(("", f"add.s{width} {v.name}, {v.name}, {runtime.name}"))
        elif style == 4 and kind == "r":
            text = b.choose.choice((f"xor.b32 {v.name}, {v.name}, 1", f"shr.u32 {v.name}, {v.name}, 1",
                                    f"shr.s32 {v.name}, {v.name}, 1", f"shl.b32 {v.name}, {v.name}, 1",
                                    f"mul.lo.s32 {v.name}, {v.name}, 3", f"and.b32 {v.name}, {v.name}, 6",
                                    f"sub.s32 {v.name}, 5, {v.name}", f"rem.s32 {v.name}, {v.name}, 5"))
            v.bits = 32
            b.declare(v)
            found.append(("", text))
        else:
            b.declare(v)
            found.append(("", f"add.s{width} {v.name}, {v.name}, {step}"))
    return found
