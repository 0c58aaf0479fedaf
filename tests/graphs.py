"""Random control flow as instructions, for tests of what is found out about it."""

from __future__ import annotations

from hypothesis import strategies as st

from ptxparse.flow import Flow
from ptxparse.model import Immediate, Instruction, Register, Symbol
from ptxparse.parser import mnemonic

Ways = list[tuple[str, int, int]]
"""For each block how it ends: (kind, target, what it writes). Kinds are fall, bra, branch (conditional), not
(conditional, negated), indexed, return, leave (conditional return). It writes register 0, 1 or 2; from 3 on only under
a guard."""

KINDS = ("fall", "bra", "branch", "not", "branch", "indexed", "return", "leave")


def ways(most: int = 9) -> st.SearchStrategy[Ways]:
    """Control flow of up to ``most`` blocks."""
    block = st.tuples(st.sampled_from(KINDS), st.integers(0, most), st.integers(0, 5))
    return st.lists(block, min_size=1, max_size=most)


def code(shape: Ways) -> tuple[list[Instruction], dict[str, int], dict[str, tuple[str, ...]]]:
    """Instructions, labels and target lists; block i begins with an instruction that writes its register."""
    instructions: list[Instruction] = []
    labels: dict[str, int] = {}
    targets: dict[str, tuple[str, ...]] = {}
    for number, (kind, target, written) in enumerate(shape):
        labels[f"L{number}"] = len(instructions)
        goal = Symbol(f"L{target % len(shape)}")
        guard = Register("%p1")
        operands = (Register(f"%r{written % 3}"), Immediate(number))
        instructions.append(Instruction(mnemonic("mov.u32"), operands, number, guard if written > 2 else None))
        if kind == "bra":
            instructions.append(Instruction(mnemonic("bra"), (goal,), number))
        elif kind in ("branch", "not"):
            instructions.append(Instruction(mnemonic("bra"), (goal,), number, guard, kind == "not"))
        elif kind == "indexed":
            targets[f"T{number}"] = (goal.name, f"L{(target + written) % len(shape)}")
            instructions.append(Instruction(mnemonic("brx.idx"), (Register("%r0"), Symbol(f"T{number}")), number))
        elif kind == "return":
            instructions.append(Instruction(mnemonic("ret"), (), number))
        elif kind == "leave":
            instructions.append(Instruction(mnemonic("exit"), (), number, guard))
    return instructions, labels, targets


def flow_of(shape: Ways) -> Flow:
    return Flow(*code(shape))


def successors_of(shape: Ways) -> dict[int, list[int]]:
    """Where each block can go, by the meaning of its last instruction; ``len(shape)`` is the end of the function."""
    end = len(shape)
    found: dict[int, list[int]] = {}
    for number, (kind, target, written) in enumerate(shape):
        goal = target % end
        following = number + 1
        found[number] = {
            "fall": [following], "bra": [goal], "branch": [goal, following], "not": [goal, following],
            "indexed": [goal, (target + written) % end], "return": [end], "leave": [end, following],
        }[kind]  # fmt: skip
    found[end] = []
    return found


def reachable(successors: dict[int, list[int]], start: int, without: int = -1) -> set[int]:
    """Everything that paths from ``start`` reach that do not pass ``without``."""
    if start == without:
        return set()
    seen, work = {start}, [start]
    while work:
        for target in successors[work.pop()]:
            if target not in seen and target != without:
                seen.add(target)
                work.append(target)
    return seen
