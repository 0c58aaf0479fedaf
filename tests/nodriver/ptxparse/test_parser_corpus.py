"""Real modules: all of them parse, every statement keeps its line, every register is declared."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ptxparse.model import Address, Function, Module, Negated, Operand, Pair, Register, Symbol, Vector
from ptxparse.opcodes import is_special
from ptxparse.parser import parse
from tests.material import require_material
from tests.ptxtext import corpus_files, fixture_files

FILES = fixture_files() + corpus_files()
COMMENT = re.compile(r'"[^"\n]*"|//[^\n]*|/\*.*?\*/', re.DOTALL)


def without_comments(text: str) -> str:
    return COMMENT.sub(lambda m: m.group() if m.group()[0] == '"' else " ", text)


def registers(operand: Operand) -> list[str]:
    if isinstance(operand, Register):
        return [operand.name]
    if isinstance(operand, Vector):
        return [name for item in operand.items for name in registers(item)]
    if isinstance(operand, Pair):
        return registers(operand.first) + registers(operand.second)
    if isinstance(operand, Negated):
        return registers(operand.operand)
    if isinstance(operand, Address):
        return registers(operand.base) + [name for item in operand.extra for name in registers(item)]
    return []


def bodies(parsed: Module) -> list[Function]:
    return [f for f in parsed.functions if f.instructions is not None]


def test_the_corpus_has_its_files_and_entries() -> None:
    require_material()
    modules = [parse(file.read_text(), file.name) for file in corpus_files()]
    assert len(modules) == 97
    assert sum(len(parsed.entries) for parsed in modules) == 115
    assert [note for parsed in modules for note in parsed.notes] == []


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_real_module(file: Path) -> None:
    text = file.read_text()
    parsed = parse(text, file.name)
    plain = without_comments(text)
    lines = text.split("\n")
    assert len(parsed.entries) == len(re.findall(r"\.entry\b", plain)) > 0
    assert len(parsed.functions) == len(re.findall(r"\.(?:entry|func)\b", plain))
    assert len(re.findall(r"\bret\s*;", plain)) == sum(
        1 for f in bodies(parsed) for i in f.instructions or () if i.opcode == "ret"
    )
    for function in bodies(parsed):
        assert function.name in lines[function.line - 1]
        assert "}" in lines[function.end_line - 1]
        previous = function.line
        for instruction in function.instructions or ():
            assert instruction.mnemonic in lines[instruction.line - 1]
            assert previous <= instruction.line <= function.end_line
            previous = instruction.line
        for label, index in function.labels.items():
            assert 0 <= index <= len(function.instructions or ())
            written = label if label in plain else re.sub(r"\$+\d+$", "", label)
            assert re.search(rf"(?<![\w$]){re.escape(written)}\s*:", plain)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_register_is_declared_and_every_branch_has_its_target(file: Path) -> None:
    for function in bodies(parse(file.read_text(), file.name)):
        for instruction in function.instructions or ():
            for operand in instruction.operands:
                for name in registers(operand):
                    plain = name if is_special(name) else name.partition(".")[0]
                    assert name == "_" or is_special(name) or function.register_type(plain), (instruction, name)
            if instruction.predicate is not None:
                assert function.register_type(instruction.predicate.name) == "pred"
            if instruction.opcode == "bra":
                (target,) = instruction.operands
                assert isinstance(target, Symbol) and target.name in function.labels


PLAIN = [file for file in fixture_files() if not re.search(r"\.(loc|file|section|pragma)\b", file.read_text())]
BLANKS = ["", "", "", " ", "\t", "\n", "\r\n", "/* ; } */", "// { ; \"\n", "/*\n*/", " /**/ "]


def parts(parsed: Module) -> list[object]:
    """What a module holds, without the lines."""
    return [
        parsed.version, parsed.targets,
        [(v.name, v.space, v.type, v.size, v.align, v.initial) for v in parsed.variables],
        [
            (
                f.name, f.labels, f.directives, f.register_ranges, f.register_types, f.branch_targets,
                [(v.name, v.size, v.align) for v in f.parameters + f.variables],
                [(i.op, i.operands, i.predicate, i.negated) for i in f.instructions or ()],
            )
            for f in parsed.functions
        ],
    ]  # fmt: skip


@pytest.mark.parametrize("file", PLAIN, ids=lambda file: file.stem)
def test_blanks_and_comments_between_tokens_change_nothing(file: Path) -> None:
    text = without_comments(file.read_text())
    tokens = re.split(r"(?<=[,;{}()])(?!\.unified)", text)
    expected = parts(parse(text))

    @settings(max_examples=5)
    @given(st.randoms(use_true_random=False))
    def check(random) -> None:  # type: ignore[no-untyped-def]
        noisy = "".join(token + random.choice(BLANKS) for token in tokens)
        assert parts(parse(noisy)) == expected

    check()
