"""Kernels that compilers made, changed a little: other numbers, relations, signs, guards; statements left out.

Their structure stays that of real kernels, while what they compute becomes unusual. They run with the launches of
``tests/launches``, every buffer in the middle of a very large one.
"""

from __future__ import annotations

import random
import re

from ptxparse.api import analyze_kernel, parse
from ptxparse.errors import PtxError
from ptxparse.model import Function, Module
from softgpu.reference import LoadedModule, Memory
from tests.launches.case import LaunchCase
from tests.launches.place import encode, entry_of, parameter_block, text_of
from tests.launches.registry import KernelLaunches
from tests.random_kernels.examine import Report, examine_launch
from tests.random_kernels.memory import BYTES, GAP, MIDDLE, sparse
from tests.random_kernels.placed import Placed

_NUMBER = re.compile(r"(?<=[ ,])-?\d+(?=[,;])")
_RELATION = re.compile(r"(?<=setp\.)(eq|ne|lt|le|gt|ge)\b")
_SIGN = re.compile(r"(?<=\.)[su](?=(16|32|64)\b)")
_ARITHMETIC = ("add", "sub", "mul", "mad", "and", "or", "xor", "shl", "shr", "setp", "min", "max", "selp", "cvt", "div",
               "rem", "not", "neg", "bfe", "bfi", "mov")
_EXCHANGES = (("add.", "sub."), ("min.", "max."), ("and.b", "or.b"), ("shl.b", "shr.u"), ("and.pred", "or.pred"),
              ("div.", "rem."), ("shr.s", "shr.u"), ("xor.b", "and.b"))  # fmt: skip


def mutate(text: str, choose: random.Random, numbers: list[int]) -> str:
    """One to three of the lines (by number, from 1) changed."""
    lines = text.splitlines()
    for _ in range(choose.choice((1, 1, 2, 3))):
        at = choose.choice(numbers) - 1
        lines[at] = _changed(lines[at], choose)
    return "\n".join(lines) + "\n"


def _changed(line: str, choose: random.Random) -> str:
    opcode = re.sub(r"^\s*(@!?\S+\s+)?", "", line).split(".")[0]
    style = choose.randrange(6)
    if line.lstrip().startswith("@") and choose.random() < 0.4:
        return line.replace("@!", "@", 1) if "@!" in line else line.replace("@", "@!", 1)
    if opcode not in _ARITHMETIC:
        return line
    if style == 0 and _RELATION.search(line):
        return _RELATION.sub(choose.choice(("eq", "ne", "lt", "le", "gt", "ge")), line)
    if style == 1 and _SIGN.search(line) and opcode not in ("mov", "selp"):
        signs = _SIGN.search(line)
        assert signs is not None
        return _SIGN.sub("u" if signs.group() == "s" else "s", line)
    if style == 2:
        for one, other in choose.sample(_EXCHANGES, len(_EXCHANGES)):
            if one in line and ".f" not in line:
                return line.replace(one, other, 1)
            if other in line and ".f" not in line:
                return line.replace(other, one, 1)
    if style == 3 and choose.random() < 0.3:
        return "\t// " + line.strip()
    matches = list(_NUMBER.finditer(line))
    if matches:
        match = choose.choice(matches)
        old = int(match.group())
        new = choose.choice((old + 1, old - 1, -old, 0, 1, 2 * old, old // 2, old + 4, old - 4, 31, -1))
        return line[:match.start()] + str(new) + line[match.end():]
    return line


def examine_mutant(kernel: KernelLaunches, cases: list[LaunchCase], seed: int, checks: str = "abcdef") -> Report:
    """A mutant of a kernel examined in the given launches; seed 0 is the kernel itself. What is no PTX any more, or no
    kernel that the interpreter runs, is discarded."""
    choose = random.Random(seed)
    report = Report()
    text = text_of(kernel)
    if seed:
        text = mutate(text, choose, _lines(entry_of(kernel)))
    try:
        module = parse(text)
    except PtxError:
        report.discarded.append("PtxError")
        return report
    entry = module.function(entry_of(kernel).name)
    assert entry is not None
    program = analyze_kernel(module, entry)
    report.opaque += program.opaque is not None
    for case in cases:
        examine_launch(program, place_widely(module, entry, case), report, checks)
    return report


def _lines(function: Function) -> list[int]:
    return [i.line for i in function.instructions or () if i.op.opcode in _ARITHMETIC or i.predicate is not None]


def place_widely(module: Module, entry: Function, case: LaunchCase, spacing: int = 0) -> Placed:
    """A case with every buffer in the middle of a very large one."""
    memory = Memory()
    if spacing:
        memory.allocate(spacing)
    loaded = LoadedModule(module, memory)
    buffers = case.buffers()
    starts = [sparse(memory, gap=min(GAP, (1 << 45) // (len(buffers) + 1) - BYTES)) for _ in buffers]
    addresses = {id(buffer): start + MIDDLE for buffer, start in zip(buffers, starts, strict=True)}
    known: list[tuple[object, int, bytes]] = []
    places: list[tuple[object, int, int]] = []
    for buffer, start in zip(buffers, starts, strict=True):
        data = encode(buffer.data, addresses)[:buffer.size]
        memory.write(start + MIDDLE, data)
        known.append((buffer.name, MIDDLE, data))
        places.append((buffer.name, start, BYTES))
    for name, value in case.globals.items():
        memory.write(loaded.globals[name][0], encode(value, addresses))
    return Placed(memory, loaded, case.grid, case.block, parameter_block(entry, case, addresses), places, known,
                  frozenset(), f"grid {case.grid} block {case.block}",
                  lambda more: place_widely(module, entry, case, more), case.shared, case.cooperative)
