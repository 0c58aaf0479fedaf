"""How many registers a kernel needs, by its text: what is live at once.

No registers are given out here, and a real compiler orders, merges and splits values as it likes: for the compilers
that were looked at, what ptxas takes is within three times of it, either way. The number stands where programs ask a
driver for one, and where they divide by it.
"""

from __future__ import annotations

from ptxparse.flow import Flow
from ptxparse.model import TYPE_BYTES, Function, Module, Symbol
from softgpu.engine.waiting import read, written
from softgpu.engine.webs import kills, live_registers

DEEPEST = 100  # calls in calls that are looked at
LEAST, MOST = 8, 255
"""Bounds of what is said; the most is what a thread can have (CUDA C++ Programming Guide, technical specifications)."""


def registers(module: Module, kernel: Function) -> int:
    """32-bit registers per thread of a kernel: the most that are live at once in it, and in what it calls beside it."""
    most = min([MOST, *kernel.directives.get("maxnreg", ())])
    return max(min(_needed(module, kernel, {}, 0), most), min(LEAST, most))


def _needed(module: Module, function: Function, known: dict[str, int], depth: int) -> int:
    """``known``: of functions that have been looked at, or are being so (recursion counts once)."""
    known[function.name] = 0
    below = 0
    for instruction in function.instructions or ():
        if instruction.opcode == "call" and isinstance(target := instruction.operands[1], Symbol):
            called = module.function(target.name)
            if called is not None and called.name not in known and depth < DEEPEST:
                _needed(module, called, known, depth + 1)
            below = max(below, known.get(target.name, 0))
    known[function.name] = _live(function) + below
    return known[function.name]


def _live(function: Function) -> int:
    flow = Flow(function.instructions or [], function.labels, function.branch_targets)
    words: dict[str, int] = {}
    reads = [_general(function, read(i), words) for i in flow.instructions]
    writes = [_general(function, written(i), words) for i in flow.instructions]
    entries = live_registers(flow, reads, writes)
    most = 0
    for block in flow.blocks:
        live: set[str] = set()
        for edge in block.successors:
            live |= entries[edge.target]
        count = sum(words[name] for name in live)
        for index in range(block.end - 1, block.start - 1, -1):
            for name in writes[index]:
                if name in live and kills(flow, index):
                    live.remove(name)
                    count -= words[name]
            for name in reads[index]:
                if name not in live:
                    live.add(name)
                    count += words[name]
            most = max(most, count)
    return most


def _general(function: Function, names: list[str], words: dict[str, int]) -> list[str]:
    """Those that are general registers, no predicates or special ones; their words are noted."""
    found = []
    for name in names:
        if name not in words:
            type_ = function.register_type(name)
            words[name] = (TYPE_BYTES.get(type_, 4) + 3) // 4 if type_ and type_ != "pred" else 0
        if words[name]:
            found.append(name)
    return found
