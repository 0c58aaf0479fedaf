"""What the interpreter takes is what NVIDIA's assembler takes, over all combinations of modifiers and types.

Needs ptxas on PATH. The lists of differences are complete: each entry is something the manual does not have.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from itertools import product
from pathlib import Path

import pytest

from ptxparse.parser import parse
from softgpu.reference import unsupported

pytestmark = pytest.mark.skipif(shutil.which("ptxas") is None, reason="no ptxas on this machine")

HEADER = """.version 9.0
.target sm_100a
.address_size 64
.global .align 32 .b8 g[4096];
.const .align 32 .b8 c[256];
.visible .entry k(.param .align 32 .b8 p[256])
{ .reg .pred %p<9>; .reg .b16 %h<9>; .reg .b32 %r<40>; .reg .b64 %d<40>; .reg .b128 %q<9>;
.shared .align 32 .b8 s[4096]; .local .align 32 .b8 l[64];
"""


def words(text: str) -> list[str]:
    return text.split()


TYPES = words("b8 u8 s8 b16 u16 s16 b32 u32 s32 b64 u64 s64 u16x2 s16x2 f16 f16x2 bf16 bf16x2 f32 f32x2 f64 pred b128")
NUMBERS = words("u8 u16 u32 u64 s8 s16 s32 s64 f16 bf16 f32 f64")
ROUNDINGS = ("rn", "rz", "rm", "rp")
INTEGRAL = ("rni", "rzi", "rmi", "rpi")
WIDER = {"u16": "u32", "s16": "s32", "u32": "u64", "s32": "s64", "u64": "b128", "s64": "b128"}


def register(kind: str) -> str:
    """Stem of the registers that hold a type."""
    if kind == "pred":
        return "%p"
    bits = 2 * int(kind[:-2].strip("bfsu")) if kind.endswith("x2") else int(kind.strip("bfsu"))
    return {8: "%h", 16: "%h", 32: "%r", 64: "%d", 128: "%q"}[bits]


def line(parts: Iterable[str], *operands: str) -> str:
    return f"{'.'.join(part for part in parts if part)} {', '.join(operands)};"


def maybe(*names: str) -> tuple[str, ...]:
    return ("", *names)


def integers() -> Iterator[str]:
    for t in TYPES:
        r = [f"{register(t)}{i}" for i in range(4)]
        for f, s in product(("add", "sub"), maybe("sat", "cc")):
            yield line((f, s, t), *r[:3])
        for f, s in product(("addc", "subc"), maybe("cc")):
            yield line((f, s, t), *r[:3])
        for f, part, s in product(("mad", "madc", "mad24", "mul", "mul24"), ("lo", "hi"), maybe("cc", "sat")):
            yield line((f, part, s, t), *r[:3 if f[1] == "u" else 4])
        if t in WIDER:
            wide = register(WIDER[t])
            yield line(("mul", "wide", t), f"{wide}0", *r[1:3])
            for s in maybe("cc"):
                yield line(("mad", "wide", s, t), f"{wide}0", *r[1:3], f"{wide}1")
        yield line(("sad", t), *r)
        for f in ("div", "rem", "and", "or", "xor"):
            yield line((f, t), *r[:3])
        for f in ("shl", "shr"):
            yield line((f, t), *r[:2], "%r2")
        for f in ("abs", "neg", "not", "cnot", "mov", "brev"):
            yield line((f, t), *r[:2])
        for f in ("popc", "clz"):
            yield line((f, t), "%r0", r[1])
        for f, s in product(("min", "max"), maybe("relu")):
            yield line((f, s, t), *r[:3])
        for s in maybe("shiftamt"):
            yield line(("bfind", s, t), "%r0", r[1])
        yield line(("bfe", t), *r[:2], "%r1", "%r2")
        yield line(("bfi", t), *r[:3], "%r1", "%r2")
        for f, mode in product(("szext", "bmsk"), ("clamp", "wrap")):
            yield line((f, mode, t), *r[:2], "%r2")
        for side, mode in product("lr", ("clamp", "wrap")):
            yield line(("shf", side, mode, t), *r[:3], "%r3")
        yield line(("lop3", t), *r, "0x1a")
        yield line(("prmt", t), *r)
        for other, part in product(("u32", "s32"), ("dp4a", "dp2a.lo", "dp2a.hi")):
            yield line((part, t, other), "%r0", "%r1", "%r2", "%r3")


def selection() -> Iterator[str]:
    for t in TYPES:
        r = [f"{register(t)}{i}" for i in range(3)]
        yield line(("selp", t), *r, "%p0")
        for ftz, by in product(maybe("ftz"), ("s32", "f32", "u32")):
            yield line(("slct", ftz, t, by), *r, "%r3")
        for test in words("eq ne lt le gt ge lo ls hi hs equ neu ltu leu gtu geu num nan"):
            for boolean, ftz, both in product(maybe("and"), maybe("ftz"), (True, False)):
                last = ["%p2"] if boolean else []
                yield line(("setp", test, boolean, ftz, t), "%p0|%p1" if both else "%p0", *r[1:], *last)
                if not both:
                    for to in ("u16", "s16", "u32", "s32", "f16", "f16x2", "bf16", "f32", "u64", "f64"):
                        yield line(("set", test, boolean, ftz, to, t), f"{register(to)}0", *r[1:], *last)


def vector(kind: str, count: int) -> str:
    stem = register(kind)
    return f"{stem}0" if count == 1 else "{" + ", ".join(f"{stem}{i}" for i in range(count)) + "}"


def memory() -> Iterator[str]:
    places = {"global": "[g]", "shared": "[s]", "local": "[l]", "const": "[c]", "param": "[p]", "": "[%d7]"}
    vectors = (("", 1), ("v2", 2), ("v4", 4), ("v8", 8))
    for t, (space, place), (name, count) in product(TYPES, places.items(), vectors):
        yield line(("ld", space, name, t), vector(t, count), place)
        if space in ("global", "shared", "local", ""):
            yield line(("st", space, name, t), place, vector(t, count))
    operations = words("and or xor exch add inc dec min max cas")
    for t, space, operation, noftz in product(TYPES, ("global", "shared", ""), operations, maybe("noftz")):
        stem = register(t)
        third = [f"{stem}2"] if operation == "cas" else []
        yield line(("atom", space, operation, noftz, t), f"{stem}0", places[space], f"{stem}1", *third)
        if operation not in ("cas", "exch"):
            yield line(("red", space, operation, noftz, t), places[space], f"{stem}1")
    for t, space, operation, noftz, (name, count) in product(TYPES, ("global", "shared"), ("add", "min", "max"),
                                                             maybe("noftz"), vectors[1:]):
        many = vector(t, count)
        yield line(("atom", space, operation, noftz, name, t), many, places[space], many)
        yield line(("red", space, operation, noftz, name, t), places[space], many)


def warp() -> Iterator[str]:
    for t in TYPES:
        a, b = f"{register(t)}0", f"{register(t)}1"
        for mode in ("up", "down", "bfly", "idx"):
            yield line(("shfl", "sync", mode, t), f"{a}|%p0", b, "1", "31", "-1")
        for mode in ("all", "any", "uni", "ballot"):
            yield line(("vote", "sync", mode, t), a, "%p1", "-1")
        for mode in ("any", "all"):
            yield line(("match", mode, "sync", t), "%r0", b, "-1")
        for operation, size, nan in product(words("add min max and or xor"), maybe("abs"), maybe("NaN")):
            yield line(("redux", "sync", operation, size, nan, t), a, b, "-1")


def arithmetic() -> Iterator[str]:
    arity = {"add": 2, "sub": 2, "mul": 2, "fma": 3, "mad": 3, "div": 2, "copysign": 2} | dict.fromkeys(
        ("rcp", "sqrt", "rsqrt", "sin", "cos", "lg2", "ex2", "tanh", "abs", "neg"), 1)
    floats = ("f16", "f16x2", "bf16", "bf16x2", "f32", "f32x2", "f64")
    for (name, count), quick, rounding, ftz, sat, relu, t in product(
            arity.items(), maybe("approx", "full"), maybe(*ROUNDINGS), maybe("ftz"), maybe("sat"), maybe("relu"),
            floats):
        yield line((name, quick, rounding, ftz, sat, relu, t), *(f"{register(t)}{i}" for i in range(count + 1)))
    for name, ftz, nan, size, t, count in product(("min", "max"), maybe("ftz"), maybe("NaN"),
                                                  maybe("xorsign.abs", "abs"), floats, (3, 4)):
        yield line((name, ftz, nan, size, t), *(f"{register(t)}{i}" for i in range(count)))


def conversions() -> Iterator[str]:
    def wide(kind: str) -> str:
        return "%r" if kind in ("u8", "s8") else register(kind)

    for to, source, rounding, ftz, sat in product(NUMBERS, NUMBERS, maybe(*ROUNDINGS, *INTEGRAL), maybe("ftz"),
                                                  maybe("sat")):
        yield line(("cvt", rounding, ftz, sat, to, source), f"{wide(to)}1", f"{wide(source)}2")


def assembled(lines: list[str], folder: Path) -> set[str]:
    """The lines that ptxas takes. It reports all errors of the text before it goes on to compile."""
    first = HEADER.count("\n") + 1
    source = folder / "all.ptx"
    left = lines
    while True:
        source.write_text(HEADER + "\n".join([*left, "ret;", "}", ""]))
        command = ["ptxas", "-arch=sm_100a", "-O0", "-o", str(folder / "all.cubin"), str(source)]
        run = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        wrong = {int(number) - first for number in re.findall(r"line (\d+); error", run.stderr)}
        if not wrong:
            return set(left)
        left = [text for position, text in enumerate(left) if position not in wrong]


def taken(lines: list[str]) -> set[str]:
    module = parse(HEADER + "\n".join([*lines, "ret;", "}", ""]))
    first = HEADER.count("\n") + 1
    refused = {number - first for _, number in unsupported(module.entries[0], module)}
    return {text for position, text in enumerate(lines) if position not in refused}


UNDOCUMENTED = re.compile(
    r"(addc|subc|madc\.(lo|hi))\.[us]16 |madc\.hi\.sat|fma\.r[zmp](\.relu)?\.bf16|rcp\.r[nzmp]\.ftz\.f64"
    r"|cvt\.(f16\.bf16|bf16\.f16) "
)
"""What the assembler takes although the manual does not have it."""

BYTES_OF_BF16 = re.compile(r"cvt\.\w+\.(bf16\.[us]8|[us]8\.bf16) ")
"""In the manual and its examples, but not taken by the assembler for 32-bit registers."""


@pytest.mark.long
@pytest.mark.parametrize("family", [integers, selection, memory, warp, arithmetic, conversions])
def test_all_combinations(family: object, tmp_path: Path) -> None:
    assert callable(family)
    lines = list(dict.fromkeys(family()))
    theirs, ours = assembled(lines, tmp_path), taken(lines)
    assert len(ours) > 20
    assert {text for text in theirs - ours if not UNDOCUMENTED.match(text)} == set()
    assert {text for text in ours - theirs if not BYTES_OF_BF16.match(text)} == set()
