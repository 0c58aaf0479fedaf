"""Malformed text: the error names the line, the column and what would have been accepted there."""

from __future__ import annotations

import pytest

from ptxparse.errors import PtxError
from ptxparse.parser import parse
from tessera.errors import ExitCode, TesseraError

BODY = (
    ".version 8.0\n.target sm_80\n.address_size 64\n.entry k(.param .u64 a)\n{\n.reg .b32 %r<9>;\n.reg .pred %p<3>;\n"
)
"""Seven lines; a statement that follows is on line 8."""
TOP = ".version 8.0\n.target sm_80\n"
"""Two lines; a directive that follows is on line 3."""


def error(text: str) -> PtxError:
    with pytest.raises(PtxError) as found:
        parse(text, "some/file.ptx")
    return found.value


@pytest.mark.parametrize(
    ("statement", "line", "column", "expected"),
    [
        ("add.s32 %r1, %r2, %r3\nret;\n}", 8, 19, "';' ending the instruction"),
        ("add.s32 %r1, %r2, %r3\n}", 8, 8, "';' ending this instruction"),
        ("  add.s32 %r1,, %r3;\n}", 8, 15, "operand after each comma"),
        ("add.s32 %r1, %r2,;\n}", 8, 18, "an operand after each comma"),
        ("ld.global.u32 %r1, [%r2;\n}", 8, 20, "']' closing this bracket"),
        ("ld.global.u32 %r1, [];\n}", 8, 20, "an address"),
        ("ld.global.u32 %r1, [%r2+];\n}", 8, 0, "a constant"),
        ("mov.u32 %r1, 12q;\n}", 8, 14, "a constant of at most 64 bits"),
        ("mov.u32 %r1, 18446744073709551616;\n}", 8, 14, "at most 64 bits"),
        ("mov.u32 %r1, 5 5;\n}", 8, 14, "a comma or ';'"),
        ("mov.u32 %r1, 1/0;\n}", 8, 14, "a divisor other than 0"),
        ("mov.u32 %r1 [%r2;\n}", 8, 13, "']' closing this bracket"),
        ("mov.u32 %r1 ) %r2;\n}", 8, 13, "no ')' without"),
        ("mov.u32 %r1, {%r1, %r2;\n}", 8, 14, "'}' closing this bracket"),
        ("mov.u32 %r1, %r2 %r3;\n}", 8, 14, "an operand"),
        ("@ ret;\n}", 8, 1, "an instruction, a label"),
        ("@k ret;\n}", 8, 0, "predicate register after @"),
        ("call;\n}", 8, 5, "the function to call"),
        ("call (%r1, f;\n}", 8, 6, "')' closing this bracket"),
        ("call f, %r1);\n}", 8, 12, "no ')' without"),
        ("call f, (%r1), p, q;\n}", 8, 19, "';' after a call"),
        ("L: L: ret;\n}", 8, 4, "a label that is not yet in this scope"),
        (";\n}", 8, 1, "an instruction, a label, a directive or '}'"),
        ("!\n}", 8, 1, "an instruction, a label"),
        ("\x00ret;\n}", 8, 1, "an instruction, a label"),
        ("ret;\n", 9, 1, "an instruction, a label, a directive or '}'"),
        (".reg .b32 %x\nret;\n}", 9, 1, "';' after .reg"),
        (".reg .b33 %x;\n}", 8, 6, "a type such as .b32"),
        (".reg .b32 5;\n}", 8, 11, "the name of a register"),
        (".reg .b32 %x<a>;\n}", 8, 14, "the number of registers"),
        (".shared .b32 x[-1];\n}", 8, 16, "a non-negative array size"),
        (".shared .b32 x[4;\n}", 8, 17, "']'"),
        (".pragma nounroll;\n}", 8, 9, "a string after .pragma"),
        ("T: .branchtargets A B;\n}", 8, 21, "';'"),
        (".section .debug\n}", 8, 10, "contents in { }"),
    ],
)
def test_errors_in_bodies(statement: str, line: int, column: int, expected: str) -> None:
    found = error(BODY + statement)
    assert found.line == line, str(found)
    assert not column or found.column == column, str(found)
    assert expected in found.expected, str(found)


@pytest.mark.parametrize(
    ("directive", "line", "column", "expected"),
    [
        (".entry (.param .u64 a) { ret; }", 3, 24, "the name of a function"),
        (".entry k(.param .u64 a .param .u64 b) { ret; }", 3, 24, "or ')' after a parameter"),
        (".entry k(.parm .u64 a) { ret; }", 3, 10, ".param or .reg"),
        (".entry k(.param .u65 a) { ret; }", 3, 17, "a type such as .b32"),
        (".entry k(.param .align x .u64 a) { ret; }", 3, 24, "an alignment"),
        (".entry k(.param .u64 a)\nret;", 4, 1, "'{' opening a function body"),
        (".visible .visible", 3, 18, ".entry, .func or a state space"),
        (".visible 5", 3, 10, ".entry, .func or a state space"),
        (".global .u32;", 3, 13, "the name of a variable"),
        (".global .u32 x = ;", 3, 18, "a constant"),
        (".global .u32 x[2] = {1, 2, 3};", 3, 19, "at most 2 initial values"),
        (".global .u32 x[2] = {1 2};", 3, 24, "',' or '}'"),
        (".global .u32 x[2] = {1, generic 5};", 3, 33, "'('"),
        (".global .u32 x", 3, 15, "';' after a variable"),
        (".alias f g;", 3, 10, "','"),
        (".address_size wide", 3, 15, "32 or 64"),
        ("ret;", 3, 1, "a directive such as"),
        ("}", 3, 1, "a directive such as"),
        (".entry k() { ret; } }", 3, 21, "a directive such as"),
        (".section .debug_str { \"{\" ", 3, 21, "'}' closing this"),
        ("/* no end", 3, 1, "the end of this comment"),
        (".global .u32 x[2] = {{1, 2}", 3, 28, "a constant"),
        (".unheard { of", 3, 10, "'}' closing this"),
    ],
)
def test_errors_in_modules(directive: str, line: int, column: int, expected: str) -> None:
    found = error(TOP + directive)
    assert (found.line, found.column) == (line, column), str(found)
    assert expected in found.expected, str(found)


def test_errors_in_headers() -> None:
    found = error(".version eight\n")
    assert (found.line, found.column, found.expected, found.found) == (1, 10, "a version such as 8.0", "eight")
    found = error(".version 8.0\n.target 80\n")
    assert (found.line, found.column, found.expected) == (2, 9, "the name of a target")


def test_the_message_and_its_parts() -> None:
    found = error(TOP + "  .entry 5() { ret; }")
    assert str(found) == "some/file.ptx:3:10: expected the name of a function, found '5'"
    assert (found.found, found.path) == ("5", "some/file.ptx")
    assert isinstance(found, TesseraError) and found.exit_code is ExitCode.BAD_INPUT
    assert found.in_file("other.ptx").path == "other.ptx" and found.in_file("x").line == 3


def test_columns_count_past_comments_and_strings() -> None:
    found = error(BODY + "/* a\n b */ mov.u32 %r1, /* c */ 1q; // d\n}")
    assert (found.line, found.column) == (9, 28)


def test_the_end_of_the_text_is_named() -> None:
    assert error(TOP + ".global .u32 x").found == "end of text"


def test_deep_expressions_are_refused_not_followed() -> None:
    for text in ("(" * 5000 + "1" + ")" * 5000, "-" * 5000 + "1", "1?" * 5000 + "1" + ":1" * 5000, "~(" * 999):
        error(f"{TOP}.global .u32 x = {text};")
        error(f"{TOP}.global .u32 x[{text}];")
    for text in ("{" * 5000 + "%r1" + "}" * 5000, "!" * 5000 + "%p1", "[" * 5000 + "]" * 5000, "-" * 5000 + "1",
                 "%r1|" * 5000 + "%r1", "[%rd1(,)]", "[" * 5000 + ",1]" * 5000, "[(,), {%r1}]"):
        error(f"{BODY}mov.u32 %r1, {text};\n}}")
