"""Whatever the text, the parser ends in a module or a :class:`PtxError`, in a time in proportion to its length."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ptxparse.errors import PtxError
from ptxparse.model import Module
from ptxparse.parser import parse
from tests.ptxtext import HEADER, corpus_files, fixture_files

TIMES_ORDINARY = 10  # how much longer a character of any text may take than one of an ordinary text
START_UP = 200_000  # ordinary characters' time on top: a small text may meet a collection of garbage
FILES = fixture_files() + corpus_files()
KINDS = ("delete", "insert", "replace", "repeat", "swap", "splice", "cut")
PIECES = [
    "\0", "é", "\ud800", "\u2028", "\r\n", "\x1a", "{", "}", "(", ")", "[", "]", ";", ",", ":", "::", "@", "!", "|",
    "+", "-", ".", "%", "$", '"', "'", "/*", "*/", "//", "#", "\\", "<", ">", "=", "?", "~", "_", "\n\n\n", "\t",
    " " * 500, "%r<999999999999>", "%r99999999999999999999", "%p<>", "0x" + "f" * 40, "9" * 5000, "1e9999", "0f",
    "0d12", "0b2", "a" * 3000, "%" * 3000, "$" * 3000, "{" * 100, "(" * 100, "[" * 100, "-" * 100, "!" * 100,
    "1?" * 50, "1<<", "1/0", ".reg", ".reg .b32 ", ".entry", ".func", ".param", ".section", ".global .u32 x[",
    "= {", "generic(", ".version 1", ".branchtargets", ".callprototype", ".pragma", ".loc 1", ".shared", ".align",
    ".visible", ".alias", "call (", "bra ", "ld.global.u32 %r1, [", "mov.u32 %r1, {", "L: L: ", "%tid.", "%r1.x",
    "WARP_SZ", "sp::2:4", "ret", "ret;", "}\n.entry e(){",
]  # fmt: skip


def outcome(text: str) -> Module | PtxError:
    """Parse within the time allowed; check what an error says about itself. A slow text is slow every time: what took
    too long is tried again, so that a collection of garbage that others made does not count."""
    allowed = ordinary_time() * (START_UP + TIMES_ORDINARY * len(text))
    found, took = timed(text)
    for _ in range(2):
        if took > allowed:
            took = min(took, timed(text)[1])
    assert took <= allowed, f"{took:.2f} s for {len(text)} characters"
    if isinstance(found, PtxError):
        error = found
        assert 1 <= error.line <= text.count("\n") + 1
        assert error.column >= 1
        assert error.expected and str(error).startswith("mutant.ptx:")
        str(error).encode("utf-8")
    return found


@cache
def ordinary_time() -> float:
    """Seconds that this machine takes for one character of straight code."""
    text = kernel("".join(f"add.s32 %r{i}, %r{i + 1}, {i};\n" for i in range(5000)))
    return min(timed(text)[1] for _ in range(3)) / len(text)


def timed(text: str) -> tuple[Module | PtxError, float]:
    """The outcome of parsing and the processor time it took, in seconds."""
    begin = time.process_time()
    try:
        found: Module | PtxError = parse(text, "mutant.ptx")
    except PtxError as error:
        found = error
    return found, time.process_time() - begin


Mutation = tuple[str, int, int, int, str]
mutations = st.lists(
    st.tuples(
        st.sampled_from(KINDS), st.integers(0, 1 << 30), st.integers(0, 1 << 30), st.integers(0, 60),
        st.sampled_from(PIECES) | st.text(max_size=3),
    ),
    min_size=1, max_size=6,
)  # fmt: skip


def mutate(text: str, other: str, changes: list[Mutation]) -> str:
    for kind, first, second, length, piece in changes:
        i, j = first % (len(text) + 1), second % (len(text) + 1)
        if kind == "delete":
            text = text[:i] + text[i + length:]
        elif kind == "insert":
            text = text[:i] + piece + text[i:]
        elif kind == "replace":
            text = text[:i] + piece + text[i + length:]
        elif kind == "repeat":
            text = text[:i] + text[i:i + length * 4] * 3 + text[i:]
        elif kind == "swap":
            i, j = min(i, j), max(i, j)
            text = text[:i] + text[j:j + length] + text[i + length:j] + text[i:i + length] + text[j + length:]
        elif kind == "splice":
            text = text[:i] + other[second % (len(other) + 1):][:20_000]
        else:
            text = text[:i]
    return text


@pytest.mark.parametrize("number", range(len(FILES)), ids=[file.stem for file in FILES])
def test_mutations_of_real_modules(number: int, long_run: bool) -> None:
    text, other = FILES[number].read_text(), FILES[(number * 7 + 3) % len(FILES)].read_text()

    @settings(max_examples=400 if long_run else 12)
    @given(mutations)
    def check(changes: list[Mutation]) -> None:
        outcome(mutate(text, other, changes))

    check()


@pytest.mark.parametrize("number", range(len(FILES)), ids=[file.stem for file in FILES])
def test_truncations_and_changed_bytes_of_real_modules(number: int, long_run: bool) -> None:
    """Cut at every place that a seeded choice finds, and with bytes changed at random, as a broken disk would."""
    data = FILES[number].read_bytes()
    choice = random.Random(number)
    for _ in range(200 if long_run else 8):
        outcome(data[:choice.randrange(len(data))].decode())
        damaged = bytearray(data)
        for _ in range(choice.randrange(1, 20)):
            damaged[choice.randrange(len(data))] = choice.randrange(256)
        outcome(damaged.decode("utf-8", "surrogateescape"))
        outcome(damaged.decode("latin-1"))


def test_a_module_cut_anywhere_but_after_its_last_brace_is_an_error() -> None:
    text = HEADER + ".visible .entry k(.param .u64 a)\n{\n.reg .b32 %r<2>;\n{ mov.u32 %r1, 1; }\nL: bra L;\n}"
    for end in range(len(HEADER + ".visible"), len(text)):
        assert isinstance(outcome(text[:end]), PtxError), text[:end]
    assert isinstance(outcome(text), Module)


def kernel(body: str) -> str:
    return f"{HEADER}.visible .entry k(.param .u64 a)\n{{\n.reg .b32 %r<10>;\n{body}\n}}\n"


def test_five_thousand_kernels() -> None:
    one = ".visible .entry k{0}(.param .u64 k{0}_param_0)\n{{\n.reg .b32 %r<4>;\n.reg .b64 %rd<4>;\n"
    one += "ld.param.u64 %rd1, [k{0}_param_0];\nmov.u32 %r1, %tid.x;\n{{ .reg .b32 t; mov.u32 t, %r1; }}\n"
    one += "$L{0}:\nst.global.u32 [%rd1+{0}], %r1;\nbra $L{0};\nret;\n}}\n"
    variables = "".join(f".global .u32 %v{i};\n" for i in range(500))
    found = outcome(HEADER + variables + "".join(one.format(i) for i in range(5000)))
    assert isinstance(found, Module)
    assert len(found.entries) == 5000
    assert found.function("k4999") is found.functions[-1]
    assert found.functions[-1].labels == {"$L4999": 3}


def test_a_kernel_of_a_megabyte() -> None:
    pair = "add.s32 %r{0}, %r{1}, {2};\nld.shared.v2.u32 {{%r1, %r2}}, [%r{0}+{2}];\n"
    text = kernel("".join(pair.format(i % 9, i % 7, i) for i in range(20_000)))
    assert len(text) > 1e6
    found = outcome(text)
    assert isinstance(found, Module)
    assert len(found.entries[0].instructions or ()) == 40_000


N = 50_000
HOSTILE: dict[str, Callable[[], str]] = {
    "nothing": lambda: "",
    "blanks": lambda: " " * 10 * N,
    "newlines after an unknown directive": lambda: HEADER + ".unheard of" + "\n" * 10 * N,
    "newlines before an instruction": lambda: kernel("\n" * 10 * N + "ret;"),
    "newlines without a statement": lambda: kernel("\n" * 10 * N + "?"),
    "a name without end": lambda: kernel("a" * 10 * N),
    "a mnemonic without end": lambda: kernel("ret" + ".a" * 5 * N),
    "a register without end": lambda: kernel(f"mov.u32 %{'r' * 5 * N}, %{'1' * 5 * N};"),
    "a declaration without end": lambda: kernel(".reg .b32 " + "a" * 10 * N),
    "a declaration and blanks": lambda: kernel(".reg .b32 a" + " " * 10 * N + "!"),
    "a number without end": lambda: kernel(f"mov.u32 %r1, {'9' * 10 * N};"),
    "a float without end": lambda: kernel(f"mov.f32 %r1, 1.{'9' * 10 * N}e5;"),
    "a sum without end": lambda: kernel(f"mov.u32 %r1, 1{'+1' * 5 * N};"),
    "a product without end": lambda: kernel(f"mov.u32 %r1, 3{'*9999999999' * N};"),
    "a choice without end": lambda: kernel(f"mov.u32 %r1, {'1?' * 5 * N};"),
    "shifts without end": lambda: kernel(f"mov.u32 %r1, 1{'<<63' * 2 * N};"),
    "commas": lambda: kernel(f"mov.u32 {',' * 10 * N};"),
    "pairs": lambda: kernel(f"mov.u32 {'a|' * 5 * N}a;"),
    "negations": lambda: kernel(f"mov.u32 {'!' * 10 * N}a;"),
    "minus signs": lambda: kernel(f"mov.u32 {'-' * 10 * N}a;"),
    "guards": lambda: kernel("@" * 10 * N),
    "guards of guards": lambda: kernel("@p " * 3 * N),
    "open braces": lambda: kernel("{" * 10 * N),
    "open vectors": lambda: kernel(f"mov.u32 {'{a,' * 3 * N};"),
    "open parentheses": lambda: kernel(f"mov.u32 {'(a,' * 3 * N};"),
    "open calls": lambda: kernel(f"call {'(a,' * 3 * N};"),
    "closed parentheses in an open one": lambda: kernel(f"call ({'()' * 5 * N};"),
    "open brackets": lambda: kernel(f"ld.u32 {'[a,' * 3 * N};"),
    "nested vectors": lambda: kernel(f"mov.u32 {'{' * 5 * N}a{'}' * 5 * N};"),
    "nested addresses": lambda: kernel(f"ld.u32 {'[' * 5 * N}a{']' * 5 * N};"),
    "nested parentheses": lambda: kernel(f"mov.u32 %r1, {'(' * 5 * N}1{')' * 5 * N};"),
    "nested expressions in an address": lambda: kernel(f"ld.u32 %r1, [a+{'(' * 5 * N}1{')' * 5 * N}];"),
    "a long vector": lambda: kernel(f"mov.u32 {{{'%r1,' * 2 * N}%r1}};"),
    "a long call": lambda: kernel(f"call f, ({'%r1,' * 2 * N}%r1);"),
    "labels": lambda: kernel("".join(f"L{i}:" for i in range(N)) + "ret;"),
    "labels of one name": lambda: kernel("L:" * 5 * N),
    "declarations": lambda: kernel("".join(f".reg .b32 x{i};mov.u32 x{i},%r1;" for i in range(N // 4))),
    "lists of declarations": lambda: kernel(f".reg .b32 {','.join(f'x{i}' for i in range(N))};ret;"),
    "variables": lambda: kernel("".join(f".shared .b8 x{i}[{i}];" for i in range(N // 2))),
    "scopes": lambda: kernel("{ .reg .b32 t; mov.u32 t, %r1; }" * (N // 4)),
    "scopes with labels": lambda: kernel("{ bra L; L: }" * (N // 2)),
    "deep scopes with labels": lambda: kernel("{ L: " * 450 + "bra L; bra M;" * (N // 4) + "}" * 450 + "M:"),
    "deep scopes with labels of their own": lambda: kernel(
        "".join(f"{{ L{i}: " for i in range(450)) + "".join(f"bra L{i % 450};" for i in range(N)) + "}" * 450
    ),
    "deep scopes with lists": lambda: kernel(
        "{ L: " * 450 + f"T: .branchtargets L{', L' * (N // 10)};" + "brx.idx %r1, T; }" + "}" * 449
    ),
    "dollars": lambda: kernel("{ mov.u32 " + "$" * 10 * N + "; }"),
    "dollars and digits": lambda: kernel("{ mov.u32 " + "$1" * 5 * N + "; }"),
    "unknown directives": lambda: HEADER + ".x;\n" * (2 * N),
    "unknown directives of bodies": lambda: kernel(".x\n" * 3 * N),
    "unknown directives of functions": lambda: HEADER + ".entry k() " + ".x " * 3 * N,
    "pragmas": lambda: kernel('.pragma "x";' * N),
    "a long pragma": lambda: kernel(".pragma " + '"x",' * N + '"x";'),
    "lines": lambda: kernel(".loc 1 2 3\n" * N),
    "open comments": lambda: HEADER + "/*" * 5 * N,
    "short comments": lambda: HEADER + "/**/" * 2 * N,
    "line comments": lambda: HEADER + "//\n" * 3 * N,
    "quotes": lambda: HEADER + '"' * 10 * N,
    "open quotes": lambda: HEADER + '"a\n' * 3 * N,
    "a section of braces": lambda: HEADER + ".section .debug {" + "{}" * 5 * N,
    "open sections": lambda: HEADER + ".section .debug {" * N,
    "zeros": lambda: f"{HEADER}.global .u8 x[{3 * N}] = {{{'0, ' * (3 * N - 1)}0}};",
    "symbols": lambda: f"{HEADER}.global .u64 x[{N}] = {{{'y+4, ' * (N - 1)}y}};",
    "rows": lambda: f"{HEADER}.global .u8 x[{N}][2] = {{{'{1}, ' * (N - 1)}{{1}}}};",
    "missing rows": lambda: f"{HEADER}.global .u8 x[2][4294967295][4294967295] = {{{{1}}, {{2}}}};",
    "open initialisers": lambda: f"{HEADER}.global .u8 x[9] = {'{' * 10 * N}",
    "dimensions": lambda: f"{HEADER}.global .u8 x{'[1]' * 3 * N};",
    "huge dimensions": lambda: f"{HEADER}.global .u8 x{'[4294967295]' * N};",
    "parameters": lambda: f"{HEADER}.entry k({','.join(f'.param .u32 p{i}' for i in range(N // 2))}) {{ ret; }}",
    "linkages": lambda: HEADER + ".visible " * N,
    "attributes": lambda: HEADER + ".global " + ".attribute(.managed) " * (N // 2) + ".u32 x;",
    "targets": lambda: f".version 8.0\n.target {','.join(['sm_80'] * N)}\n",
    "numbers of a directive": lambda: f"{HEADER}.entry k() .maxntid {','.join(['1'] * N)} {{ ret; }}",
    "mnemonics": lambda: kernel("".join(f"op{i}.m{i};" for i in range(N // 2))),
    "aliases": lambda: HEADER + "".join(f".alias a{i}, b;\n" for i in range(N // 2)),
    "surrogates": lambda: kernel("\udc80" * 10 * N),
    "digits of other scripts": lambda: kernel(f"mov.u32 %r1, {'٣' * N}; mov.u32 %r1, ²;"),
    "nul bytes": lambda: HEADER + "\0" * 10 * N + "x",
}


WELL_FORMED = {
    "labels", "scopes", "scopes with labels", "deep scopes with labels", "deep scopes with labels of their own",
    "deep scopes with lists", "zeros", "symbols", "rows", "a long vector", "a long call", "declarations", "variables",
    "lists of declarations", "unknown directives", "unknown directives of bodies", "lines", "pragmas", "a long pragma",
    "short comments", "line comments", "parameters", "mnemonics", "aliases", "attributes", "targets",
    "numbers of a directive", "a sum without end", "a product without end", "shifts without end",
    "newlines after an unknown directive", "newlines before an instruction", "dollars", "dollars and digits",
    "a register without end", "dimensions",
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_texts(name: str) -> None:
    found = outcome(HOSTILE[name]())
    assert isinstance(found, Module) == (name in WELL_FORMED), found


def test_huge_register_numbers_and_ranges() -> None:
    found = outcome(kernel(".reg .b32 %x<999999999999>;\nmov.u32 %x999999999998, %x99999999999999999999;"))
    assert isinstance(found, Module)
    assert found.functions[0].register_type("%x" + "9" * 5000) is None
    assert found.functions[0].register_type("%x12345") == "b32"


