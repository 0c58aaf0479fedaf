"""The tables of matrix instructions: an assembler accepts them and their register counts; kernels need nothing else."""

from __future__ import annotations

import re
import shutil
import subprocess
from itertools import chain
from pathlib import Path

import pytest

from softgpu.reference.tensor import FAMILIES, LDMATRIX, MMA, STMATRIX, WMMA, WMMA_ACCESS
from tests.material import ROOT, require_material

KNOWN = set(chain(*FAMILIES.values()))


def used(folder: Path) -> set[str]:
    """Matrix instructions in the PTX files of a folder, without their state space."""
    names = set()
    for path in sorted(folder.glob("*.ptx")):
        for name in re.findall(r"\b((?:ldmatrix|stmatrix|wmma|mma)\.[\w.:]+)\s", path.read_text()):
            names.add(re.sub(r"\.(global|shared)(::cta)?(?=\.)", "", name))
    return names


def test_kernels_of_the_fixtures_are_covered() -> None:
    names = used(ROOT / "tests" / "fixtures" / "ptx")
    assert names and names <= KNOWN, sorted(names - KNOWN)


def test_kernels_of_the_corpus_are_covered() -> None:
    names = used(require_material() / "corpus" / "ptx")
    assert len(names) > 5 and names <= KNOWN, sorted(names - KNOWN)


@pytest.mark.skipif(shutil.which("ptxas") is None, reason="no ptxas on this machine")
@pytest.mark.parametrize("target", ["sm_90", "sm_120a"])
def test_the_assembler_accepts_every_mnemonic(tmp_path: Path, target: str) -> None:
    def vector(bits: int, count: int, first: int) -> str:
        return "{" + ", ".join(f"%{'d' if bits == 64 else 'r'}{first + i}" for i in range(count)) + "}"

    lines = [".version 9.0", f".target {target}", ".address_size 64", ".visible .entry k() {"]
    lines += [".reg .b32 %r<99>;", ".reg .b64 %d<99>;"]
    for operation in chain(MMA.values(), WMMA.values()):
        if ("kind::" in operation.mnemonic) != (target == "sm_120a"):
            continue
        parts = (operation.d_registers, operation.a_registers, operation.b_registers, operation.c_registers)
        operands = (vector(operation.bits, count, 10 * i) for i, count in enumerate(parts))
        lines.append(f"{operation.mnemonic} {', '.join(operands)};")
    for access in WMMA_ACCESS.values():
        fragment = vector(access.bits, access.registers, 0)
        both = f"[%d90], {fragment}" if access.is_store else f"{fragment}, [%d90]"
        lines.append(f"{access.mnemonic} {both}, %r90;")
    for move in chain(LDMATRIX.values(), STMATRIX.values()):
        fragment = vector(32, move.matrices, 0)
        lines.append(f"{move.mnemonic} " + (f"[%d90], {fragment};" if move.is_store else f"{fragment}, [%d90];"))
    source = tmp_path / "all.ptx"
    source.write_text("\n".join([*lines, "ret;", "}", ""]))
    command = ["ptxas", f"-arch={target}", "-O0", "-o", str(tmp_path / "all.cubin"), str(source)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    wrong = [lines[int(number) - 1] for number in re.findall(r"line (\d+); error", run.stderr)]
    assert run.returncode == 0, (wrong, run.stderr[:500])
