"""The table of mnemonics: what is in it, that an assembler accepts all of it, and that kernels need nothing else."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from softgpu.reference.numerics import FAMILIES, OPERATIONS, THREE_INPUTS
from softgpu.reference.numerics.formats import container
from tests.material import ROOT, require_material

FLOAT = re.compile(r"\.(f16|bf16|f32|f64|tf32)(x2)?(\.|$)")
INSTRUCTION = re.compile(r"^[ \t{]*(?:@!?%[\w.]+\s+)?([a-z][a-z0-9]*(?:\.[\w:]+)+)\s", re.M)


def used(folder: Path) -> set[str]:
    """Mnemonics of the families in the PTX files of a folder, boolean operators of setp and set removed."""
    names: set[str] = set()
    for path in sorted(folder.glob("*.ptx")):
        for name in INSTRUCTION.findall(path.read_text()):
            family = name.split(".")[0]
            if family in FAMILIES and (family == "cvt" or FLOAT.search(name)):
                names.add(re.sub(r"^(setp?\.\w+)\.(?:and|or|xor)\.", r"\1.", name))
    return names


def test_kernels_of_the_fixtures_are_covered() -> None:
    names = used(ROOT / "tests" / "fixtures" / "ptx")
    assert len(names) > 40
    assert names <= OPERATIONS.keys(), sorted(names - OPERATIONS.keys())


def test_kernels_of_the_corpus_are_covered() -> None:
    names = used(require_material() / "corpus" / "ptx")
    assert len(names) > 30
    assert names <= OPERATIONS.keys(), sorted(names - OPERATIONS.keys())


def test_unknown_modifiers_are_not_there() -> None:
    absent = """add.rna.f32 fma.f32 mul.ftz.f64 cvt.f16.f32 cvt.rn.f64.f32 cvt.sat.u32.u16 min.ftz.bf16 add.ftz.bf16
        ex2.f32 tanh.approx.ftz.f32 setp.lo.f32 fma.rn.oob.f16"""
    for name in absent.split():
        assert name not in OPERATIONS


def test_every_operation_runs_and_returns_its_type() -> None:
    random = np.random.default_rng(3)
    for name, operation in (*OPERATIONS.items(), *THREE_INPUTS.items()):
        operands = [random.integers(0, 256, (2, 3)).astype(container(kind)) for kind in operation.sources]
        result = operation(*operands)
        if operation.result == "pred2":
            assert len(result) == 2 and all(part.dtype == bool and part.shape == (2, 3) for part in result), name
        else:
            assert result.dtype == container(operation.result) and result.shape == (2, 3), name


def test_wrong_operand_count_is_refused() -> None:
    with pytest.raises(TypeError, match=r"add\.f32 takes 2 source operands, got 3"):
        OPERATIONS["add.f32"](1, 2, 3)


NOT_IN_PTX_9_0 = re.compile(r"cvt\.rn\..*e[45]m[23]x2\.bf16x2")  # 9.1


@pytest.mark.skipif(shutil.which("ptxas") is None, reason="no ptxas on this machine")
def test_the_assembler_accepts_every_mnemonic(tmp_path: Path) -> None:
    def register(kind: str, number: int) -> str:
        letters = {"u8": "b", "s8": "b", "b8": "b", "pred": "p", "u64": "d", "s64": "d", "f64": "d", "f32x2": "d"}
        default = "h" if kind in ("f16", "bf16", "u16", "s16", "b16", "e4m3x2", "e5m2x2") else "r"
        return f"%{letters.get(kind, default)}{number}"

    lines = [".version 9.0", ".target sm_100a", ".address_size 64", ".visible .entry k() {", ".reg .pred %p<4>;"]
    lines += [f".reg .b{width} %{letter}<4>;" for letter, width in (("b", 8), ("h", 16), ("r", 32), ("d", 64))]
    for name, operation in (*OPERATIONS.items(), *THREE_INPUTS.items()):
        if NOT_IN_PTX_9_0.match(name):
            continue
        target = "%p1|%p2" if operation.result == "pred2" else register(operation.result, 0)
        sources = ", ".join(register(kind, number + 1) for number, kind in enumerate(operation.sources))
        lines.append(f"{name} {target}, {sources};")
    source = tmp_path / "all.ptx"
    source.write_text("\n".join([*lines, "ret;", "}", ""]))
    command = ["ptxas", "-arch=sm_100a", "-O0", "-o", str(tmp_path / "all.cubin"), str(source)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    wrong = [lines[int(number) - 1] for number in re.findall(r"line (\d+); error", run.stderr)]
    assert run.returncode == 0, (wrong, run.stderr[:500])
