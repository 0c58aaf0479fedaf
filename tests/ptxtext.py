"""Small PTX modules for tests, and the PTX files that the repository and the reference material hold."""

from __future__ import annotations

from pathlib import Path

from ptxparse.model import Function, Instruction, Module
from ptxparse.parser import parse
from tests.material import ROOT, material

HEADER = ".version 8.0\n.target sm_80\n.address_size 64\n"
"""Three lines, so that what follows begins on line 4."""

REGISTERS = """.reg .pred %p<10>;
.reg .b16 %rs<10>;
.reg .b32 %r<10>;
.reg .b64 %rd<10>;
.reg .f32 %f<10>;
.reg .f64 %fd<10>;
"""


def module(text: str) -> Module:
    """A module of the given directives, after a header of three lines."""
    return parse(HEADER + text)


def kernel(body: str, parameters: str = ".param .u64 a", before: str = "") -> Function:
    """A kernel with ``%p %rs %r %rd %f %fd`` declared and the given statements."""
    parsed = module(f"{before}\n.visible .entry k({parameters})\n{{\n{REGISTERS}{body}\n}}\n")
    return next(f for f in parsed.functions if f.name == "k")


def instructions(body: str, before: str = "") -> list[Instruction]:
    """The instructions of a kernel with the given statements."""
    found = kernel(body, before=before).instructions
    assert found is not None
    return found


def instruction(text: str, before: str = "") -> Instruction:
    """The one instruction that the text holds."""
    (found,) = instructions(text, before)
    return found


def fixture_files() -> list[Path]:
    """The PTX files committed in the repository."""
    files = sorted((ROOT / "tests" / "fixtures" / "ptx").glob("*.ptx"))
    assert files, "tests/fixtures/ptx is empty"
    return files


def corpus_files() -> list[Path]:
    """The PTX files of the reference material; none where it is not found."""
    folder = material()
    return sorted((folder / "corpus" / "ptx").glob("*.ptx")) if folder else []
