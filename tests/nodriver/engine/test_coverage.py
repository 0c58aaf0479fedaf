"""Every form that the page of coverage counts is compiled, every other instruction is refused."""

from __future__ import annotations

from itertools import groupby

import pytest

from ptxparse.parser import parse
from softgpu.engine.errors import UnsupportedKernel
from softgpu.engine.kernel import translate
from softgpu.engine.objects import compile_object
from softgpu.engine.options import Options
from softgpu.engine.target import host_target
from tests.documents import TABLES, table_rows
from tests.engine_coverage import BEFORE, END, START, Form, forms, reason, refused_rows, row_names
from tests.material import ROOT
from tests.small_kernels import text_of

FORMS = list(forms())
APART = ("bra", "brx", "exit", "ret", "trap", "brkpt", "call")
"""Opcodes behind which nothing is reached."""
GROUPS = {opcode: list(found) for opcode, found in groupby(sorted(FORMS), lambda form: form[0].partition(".")[0])}


def translated(*chosen: Form) -> str:
    """LLVM IR of a kernel with these instructions."""
    body = " ".join([f"{mnemonic} {operands};" for mnemonic, operands in chosen])
    module = parse(text_of(START + body + END, before=BEFORE + ".func f() { ret; }\n"))
    kernel = module.function("k")
    assert kernel is not None
    return translate(module, kernel, Options((64, 1, 1)), host_target()).text


@pytest.mark.parametrize("opcode", GROUPS)
def test_every_form_is_translated(opcode: str) -> None:
    if opcode in APART:
        for form in GROUPS[opcode]:
            translated(form)
    else:
        translated(*GROUPS[opcode])


@pytest.mark.long
@pytest.mark.parametrize("opcode", GROUPS)
def test_every_form_is_compiled(opcode: str) -> None:
    for form in GROUPS[opcode]:
        compile_object(translated(form), target=host_target(), verify=True)


def test_every_instruction_is_compiled_or_refused_for_a_reason() -> None:
    refused = [name.strip("`") for name, _ in refused_rows()]
    assert all(reason(name) for name in refused)
    assert 0 < len(refused) < len(row_names())
    for name in refused:
        with pytest.raises(UnsupportedKernel) as caught:
            translated((name, "%r1"))
        assert caught.value.mnemonic == name


@pytest.mark.parametrize(("page", "heading"), [(page, heading) for page, heading, _ in TABLES if "engine" in page])
def test_the_page_says_what_the_code_does(page: str, heading: str) -> None:
    (rows,) = [rows for p, h, rows in TABLES if (p, h) == (page, heading)]
    document = ROOT / "docs" / page
    expected = [[cell.strip() for cell in row] for row in rows()]
    assert table_rows(document, heading) == expected, "run python -m tests.documents"
