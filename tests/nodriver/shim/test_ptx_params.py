"""What the shim reads of kernels' parameters in PTX, against ptxparse, in a program with sanitizers."""

from __future__ import annotations

import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ptxparse.errors import PtxError
from ptxparse.model import Function, parameter_layout
from ptxparse.parser import parse
from tests.material import ROOT, require_material
from tests.nodriver.shim.programs import sanitized
from tests.ptxtext import HEADER

FIXTURES = sorted((ROOT / "tests" / "fixtures" / "ptx").glob("*.ptx"))
MOST = 64
FOUND, NO_ENTRY, UNKNOWN = range(3)
SECONDS = 60


class Reader:
    """The program, which answers one question after another."""

    def __init__(self, program: Path) -> None:
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, text: bytes, entry: str, most: int = MOST) -> tuple[int, int, list[tuple[int, int]]]:
        """The answer, the number of parameters, (offset, size) of those that were stored. The program ends itself when
        an answer takes too long."""
        assert self.process.stdin is not None and self.process.stdout is not None
        name = entry.encode()
        self.process.stdin.write(struct.pack("=III", len(text), len(name), most) + text + name)
        self.process.stdin.flush()
        line = self.process.stdout.readline().split()
        assert line, f"the program ended: {self.process.wait(SECONDS)}"
        stored = [tuple(map(int, pair.split(b":"))) for pair in line[2:]]
        return int(line[0]), int(line[1]), [(offset, size) for offset, size in stored]

    def parameters(self, text: str | bytes, entry: str = "k") -> list[tuple[int, int]] | int:
        """(offset, size) of all parameters, or the answer when it is another one."""
        answer, count, stored = self.ask(text if isinstance(text, bytes) else text.encode(), entry)
        assert count == len(stored)
        return stored if answer == FOUND else answer


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    made = Reader(sanitized("ptx_answers", ["ptx_params.c"], tmp_path_factory.mktemp("ptx")))
    yield made
    assert made.process.stdin is not None
    made.process.stdin.close()
    assert made.process.wait(SECONDS) == 0


def expected(kernel: Function) -> list[tuple[int, int]]:
    return [(slot.offset, slot.size) for slot in parameter_layout(kernel)[0]]


def kernel(parameters: str, before: str = "", after: str = "{ ret; }") -> str:
    return f"{HEADER}{before}\n.visible .entry k({parameters})\n{after}\n"


def check_file(reader: Reader, path: Path) -> int:
    """How many parameters of its kernels agree."""
    text = path.read_bytes()
    entries = parse(text.decode()).entries
    assert entries
    for entry in entries:
        assert reader.parameters(text, entry.name) == expected(entry), (path, entry.name)
    return sum(len(entry.parameters) for entry in entries)


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.stem)
def test_fixtures(reader: Reader, path: Path) -> None:
    assert check_file(reader, path) > 0


def test_reference_corpus(reader: Reader) -> None:
    paths = sorted((require_material() / "corpus" / "ptx").glob("*.ptx"))
    assert sum(check_file(reader, path) for path in paths) > len(paths)


@pytest.mark.parametrize(("parameters", "layout"), [
    ("", []),
    (".param .u8 a, .param .u64 b, .param .f16 c, .param .s32 d", [(0, 1), (8, 8), (16, 2), (20, 4)]),
    (".param .u8 a, .param .b128 b, .param .f16x2 c", [(0, 1), (16, 16), (32, 4)]),
    (".param .u32 a, .param .align 8 .b8 b[24], .param .u8 c", [(0, 4), (8, 24), (32, 1)]),
    (".param .b8 a[3], .param .align 64 .b8 b[128]", [(0, 3), (64, 128)]),
    (".param .align 16 .f32 a, .param .b16 b[2][3]", [(0, 4), (4, 12)]),
    (".param .u64 .ptr .global .align 16 a, .param .u64 .ptr b, .param .u32 .ptr .shared c", [(0, 8), (8, 8), (16, 4)]),
    (".param .u64 .ptr .align 4 %a$, .param .u8 $b, .param .u8 _c1", [(0, 8), (8, 1), (9, 1)]),
    ("/* , */ .param // ) {\n\t.u32\r\n a /* .u64 ** / */ , .param.u64\fb[ 2 ]", [(0, 4), (8, 16)]),
])
def test_layouts(reader: Reader, parameters: str, layout: list[tuple[int, int]]) -> None:
    text = kernel(parameters)
    assert reader.parameters(text) == layout
    assert expected(parse(text).entries[0]) == layout


@pytest.mark.parametrize("parameters", [
    ".param .pred a", ".param .texref a", ".param .samplerref a", ".param .surfref a", ".param .u64 .texref a",
    ".param .v2 .f32 a", ".param .bf16 a", ".param .b8 a[]", ".param .b8 a[0]", ".param .b8 a[010]",
    ".param .b8 a[0x4]",
    ".param .b8 a[4U]", ".param .b8 a[2+2]", ".param .b8 a[4", ".param .b8 a]", ".param .b8 a[32765]",
    ".param .b8 a[99999999999999999999999]", ".param .b64 a[4096]", ".param .b8 a[32764], .param .b8 b",
    ".param .b8 a[16384][16384][16384][16384][256]",
    ".param .b64 a[32764][32764][32764][32764][32764]", ".param .align 3 .b8 a[4]", ".param .align 0 .b8 a[4]",
    ".param .align 4 .b64 a", ".param .align .b8 a", ".param .b8 .align 4 a", ".param .u16 .ptr a",
    ".param .u64 .ptr .generic a", ".param .u64 .ptr .align 5 a", ".param .u64 .ptr .global .shared a", ".param .u64",
    ".param .u64 1a", ".param .u64 a b", ".param .u64 a,", ", .param .u64 a", ".param u64 a", ".u64 a", ".reg .u64 a",
    ".param::entry .u64 a", ".param .u64 a::b", ".param .u64 a; .param .u64 b", '.param .u64 "a"', "( .param .u64 a )",
    ".param .u64 a = 5", ".param .u64 a /* ", ".param .u64 ä", "\0",
])
def test_no_guesses(reader: Reader, parameters: str) -> None:
    assert reader.parameters(kernel(parameters)) == UNKNOWN
    assert reader.parameters(kernel(parameters), "other") in (NO_ENTRY, UNKNOWN)


@pytest.mark.parametrize("before", [
    "// .entry k(.param .u8 x) {\n", "/* .entry k(.param .u8 x) { // */", "/*/ .entry k(.param .u8 x) { /**/",
    '.file 1 "/* .entry k(.param .u8 x) {"\n', '.file 1 "a // b"', ".entry kk(.param .u8 x) { ret; }",
    ".entry k$(.param .u8 x) { ret; }", ".entry no_list .maxntid 32 { ret; }", ".entry no_list{ ret; }",
    ".extern .entry other(.param .texref t);", ".func (.param .b32 r) f(.param .b8 k[3]) { { ret; } }",
    ".visible .func k_entry() { ret; }", ".global .align 4 .b8 k[4] = {1, 2, 3, 4};",
    ".section .debug_str { .b8 46, 101 }", ".extern .entry k(.param .u16 a);",
])
def test_what_stands_before(reader: Reader, before: str) -> None:
    assert reader.parameters(kernel(".param .u16 a", before)) == [(0, 2)]


@pytest.mark.parametrize("before", [
    "#define u16 u64\n", "}", "{", '"', '.file 1 "a\n', '.file 1 "a\n"', '.file 1 "a\\"', '.file 1 "a\\"b"', "/*",
    ".entry (", ".entry .weak", "\0.entry {",
])
def test_what_is_in_the_way(reader: Reader, before: str) -> None:
    answer = reader.parameters(kernel(".param .u16 a", before))
    assert answer == (NO_ENTRY if "\0" in before else UNKNOWN)


@pytest.mark.parametrize("after", ["{", ";", ".maxntid 32 {", '.pragma "nounroll"; {', "// remark\n{"])
def test_what_may_follow(reader: Reader, after: str) -> None:
    assert reader.parameters(kernel(".param .u16 a", after=after)) == [(0, 2)]


@pytest.mark.parametrize("after", ["", "x {", ")", "(.param .u32 b) {", ". {", "/* {"])
def test_what_may_not_follow(reader: Reader, after: str) -> None:
    assert reader.parameters(kernel(".param .u16 a", after=after)) == UNKNOWN


def test_kernels_without_parameters_and_names_that_are_none(reader: Reader) -> None:
    text = f"{HEADER}.entry plain() {{ ret; }} .entry %p$(.param .u8 a) {{ ret; }} .entry old {{ .param .u8 a; ret; }}"
    assert reader.parameters(text, "plain") == []
    assert reader.parameters(text, "old") == UNKNOWN
    assert reader.parameters(text, "%p$") == [(0, 1)]
    for name in ("", "%p", "p$", "plain ", "ret", "(", ".entry"):
        assert reader.parameters(text, name) == NO_ENTRY
    assert reader.parameters("", "plain") == NO_ENTRY


@pytest.mark.parametrize("most", [0, 1, 3, 4])
def test_no_more_is_stored_than_there_is_room(reader: Reader, most: int) -> None:
    text = kernel(", ".join(f".param .u16 p{which}" for which in range(3)))
    assert reader.ask(text.encode(), "k", most) == (FOUND, 3, [(0, 2), (2, 2), (4, 2)][:most])


KERNEL = kernel(".param .u32 a, // b\n.param .align 8 .b8 c[24], .param .u64 .ptr .global .align 16 d, .param .f16 e",
                '.file 1 "name"\n.entry other(.param .u8 a) { ret; }\n', ".maxntid 32, 1, 1 { { .reg .b32 %r; } ret; }")
PIECES = [".param", ".entry", "k", "(", ")", "[", "]", "{", "}", ",", ";", ".u64", ".b8", ".align", ".ptr", ".global",
          "8", "0", "99999999", "/*", "*/", "//", "\n", '"', "\\", "#", "$", "%", "_", "::", "\0", " ", "ä", ".texref",
          ".v2"]
EDITS = st.lists(st.tuples(st.integers(0, len(KERNEL)), st.integers(0, 12), st.sampled_from(["", *PIECES])), max_size=4)


def edited(edits: list[tuple[int, int, str]], cut: int) -> str:
    text = KERNEL
    for start, removed, inserted in edits:
        text = text[:start] + inserted + text[start + removed :]
    return text[:cut]


@given(edits=EDITS, cut=st.one_of(st.just(2 * len(KERNEL)), st.integers(0, len(KERNEL))))
def test_changed_texts(reader: Reader, edits: list[tuple[int, int, str]], cut: int) -> None:
    """A layout is the one that ptxparse reads; for everything else there is none."""
    text = edited(edits, cut)
    answer = reader.parameters(text)
    if isinstance(answer, int):
        return
    try:
        found = [entry for entry in parse(text.partition("\0")[0]).functions if entry.name == "k" and entry.is_entry]
    except PtxError:  # of something else: only the kernel's own text is read here
        return
    assert not found or answer == expected(found[0])  # it may stand where another function should have its body


@given(pieces=st.lists(st.one_of(st.sampled_from(PIECES), st.binary(max_size=3)), max_size=60))
def test_any_bytes(reader: Reader, pieces: list[str | bytes]) -> None:
    data = b".entry k(.param " + b"".join(piece if isinstance(piece, bytes) else piece.encode() for piece in pieces)
    answer, count, _ = reader.ask(data, "k")
    assert answer == FOUND or count == 0
