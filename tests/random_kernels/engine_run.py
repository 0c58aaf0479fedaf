"""One launch of a text in the interpreter and in the engine, and in which words the two differ."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache

import numpy as np
import numpy.typing as npt

from ptxparse.model import Module, parameter_layout
from ptxparse.parser import parse
from softgpu import engine
from softgpu.reference import InterpreterError, LoadedModule, Memory, StepLimit
from softgpu.reference import LaunchResult as ReferenceResult
from softgpu.reference import launch as reference_launch
from tests.engine_compare import Mirror, differences, mirror
from tests.random_kernels.engine_warp import WAITING
from tests.random_kernels.placed import Dimensions

STEP_LIMIT = 12_000
DEADLINE = 20.0
ROW_BYTES = 64
"""Bytes of every thread's own row in OUT; so many columns of 8 bytes for each thread follow the rows."""
COLUMNS = 48
INPUT_WORDS = 8192
"""32-bit words of the read-only buffer; the pointer IN points into its middle."""
ATOMIC_BYTES = 4096


@dataclass(frozen=True)
class EngineCase:
    """A launch of a kernel with the parameters of :mod:`tests.random_kernels.engine_kernel`; ``any_block``,
    ``counts`` and ``log`` are options of the engine."""

    grid: Dimensions
    block: Dimensions
    numbers: dict[str, int] = field(default_factory=dict)
    seed: int = 0
    any_block: bool = False
    counts: bool = False
    log: bool = False

    @property
    def threads(self) -> int:
        """Threads of the whole grid."""
        return int(np.prod(self.grid, dtype=np.int64) * np.prod(self.block, dtype=np.int64))


@dataclass
class Outcome:
    """``discarded``: the interpreter's reason not to finish, in which case nothing was compared. ``sentence``: what
    differs; empty if nothing does."""

    discarded: str = ""
    sentence: str = ""


@cache
def one_worker() -> engine.Pool:
    """The pool of all these launches: the order of blocks is that of the interpreter."""
    return engine.Pool(1)


def contents(seed: int) -> npt.NDArray[np.uint32]:
    """Words of the read-only buffer: small and large numbers, and floating-point numbers of all kinds."""
    choose = np.random.default_rng(seed)
    words = choose.integers(-100, 1000, INPUT_WORDS).astype(np.int64).astype(np.uint32)
    style = choose.random(INPUT_WORDS)
    words[style < 0.3] = choose.integers(0, 1 << 32, int((style < 0.3).sum()), np.uint32)
    floats = choose.normal(0, 50, INPUT_WORDS).astype(np.float32).view(np.uint32)
    words[style > 0.7] = floats[style > 0.7]
    special = np.array([0x7FC00001, 0xFF800000, 0x7F800000, 0x80000000, 0xFFC12345, 0x7F800001, 1, 0x7F7FFFFF],
                       np.uint32)
    words[style > 0.95] = choose.choice(special, int((style > 0.95).sum()))
    return words


def parameters(module: Module, case: EngineCase, addresses: dict[str, int]) -> bytes:
    """The parameter block: pointers by name, the struct S of numbers, numbers by name (0 if not given)."""
    slots, size = parameter_layout(module.entries[0])
    block = bytearray(size)
    numbers = case.numbers

    def packed(value: int, width: int) -> bytes:
        return (value & ((1 << 8 * width) - 1)).to_bytes(width, "little")

    for slot in slots:
        if slot.name == "S":
            data = b"\0" * 8 + b"".join(packed(numbers.get(n, 0), w) for n, w in (("x", 4), ("y", 4), ("z", 8)))
            data = data.ljust(slot.size, b"\0")
        else:
            data = packed(addresses.get(slot.name, numbers.get(slot.name, 0)), slot.size)
        block[slot.offset:slot.offset + slot.size] = data
    return bytes(block)


def compare(text: str | Module, case: EngineCase) -> Outcome:
    """Run one launch in both. Errors of the engine are mismatches, unless the interpreter stops too."""
    module = parse(text) if isinstance(text, str) else text
    memory = Memory()
    loaded = LoadedModule(module, memory)
    out = memory.allocate(case.threads * (ROW_BYTES + 8 * COLUMNS))
    given = memory.allocate(4 * INPUT_WORDS)
    memory.write(given, contents(case.seed))
    atomic = memory.allocate(ATOMIC_BYTES)
    addresses = {"OUT": out, "COL": out + case.threads * ROW_BYTES, "IN": given + 2 * INPUT_WORDS, "ATOM": atomic}
    block = parameters(module, case, addresses)
    name = module.entries[0].name
    with mirror(memory, loaded, module) as copy:
        expected: ReferenceResult | None = None
        stopped = ""
        try:
            expected = reference_launch(loaded, name, case.grid, case.block, block, step_limit=STEP_LIMIT, log=case.log)
        except StepLimit:
            return Outcome("too many steps")
        except InterpreterError as error:
            stopped = f"{type(error).__name__}: {error}"
        try:
            found = engine.launch(copy.module, name, case.grid, case.block, block, any_block=case.any_block,
                                  counts=case.counts, log=case.log, pool=one_worker(), deadline=DEADLINE)
        except engine.EngineError as error:
            sentence = f"{type(error).__name__}: {error}"
            if stopped:
                return Outcome(f"both stop: {stopped} / {sentence}")
            return Outcome(sentence="only the engine stops, " + sentence)
        if stopped:
            return Outcome(sentence=f"only the interpreter stops, {stopped}")
        assert expected is not None
        for check in CHECKS:
            sentence = check(case, memory, copy, expected, found)
            if sentence:
                return Outcome(sentence=sentence)
    return Outcome()


Check = Callable[[EngineCase, Memory, Mirror, ReferenceResult, engine.LaunchResult], str]


def _memory(case: EngineCase, memory: Memory, copy: Mirror, expected: ReferenceResult,
            found: engine.LaunchResult) -> str:
    different = differences(memory, copy.memory)
    if not different:
        return ""
    start, mine, theirs = different[0]
    words, others = (bytes_[:len(bytes_) // 4 * 4].view(np.uint32) for bytes_ in (mine, theirs))
    places = np.flatnonzero(words != others)
    rows = case.threads * ROW_BYTES // 4
    shown = [f"{_place(int(p), rows, case)}: {int(words[p]):#x}, not {int(others[p]):#x}" for p in places[:4]]
    return f"{len(places)} words of the buffer at {start:#x} differ: " + "; ".join(shown)


def _place(word: int, rows: int, case: EngineCase) -> str:
    """Which thread's word of OUT that is."""
    if word < rows:
        return f"thread {word * 4 // ROW_BYTES} row byte {word * 4 % ROW_BYTES}"
    column, rest = divmod(word - rows, 2 * case.threads)
    return f"thread {rest // 2} column {column} half {rest % 2}"


def _output(case: EngineCase, memory: Memory, copy: Mirror, expected: ReferenceResult,
            found: engine.LaunchResult) -> str:
    return "" if expected.output == found.output else f"printed {found.output!r}, not {expected.output!r}"


UNCOUNTED = ("call", "ld.param", "st.param")
"""Starts of mnemonics that are not the same instructions once calls are inlined."""


def _counts(case: EngineCase, memory: Memory, copy: Mirror, expected: ReferenceResult,
            found: engine.LaunchResult) -> str:
    entry = copy.module.module.entries[0]
    if not case.counts or any(label.startswith(WAITING) for label in entry.labels):
        return ""
    names = {n for n in (*expected.instructions, *found.instructions) if not n.startswith(UNCOUNTED)}
    if entry.prototypes:
        names.discard("setp.ne.u64")  # an address is compared with those of functions
    wrong = sorted(n for n in names if expected.instructions.get(n, 0) != found.instructions.get(n, 0))
    return "; ".join(f"{n} counted {found.instructions.get(n, 0)} times, not {expected.instructions.get(n, 0)}"
                     for n in wrong[:3])


def merged(addresses: npt.NDArray[np.uint64], widths: npt.NDArray[np.int32]) -> list[tuple[int, int]]:
    """Sorted disjoint ranges (start, end); those that touch are one."""
    out: list[tuple[int, int]] = []
    for start, width in sorted(zip(addresses.tolist(), widths.tolist(), strict=True)):
        if out and start <= out[-1][1]:
            out[-1] = (out[-1][0], max(out[-1][1], start + width))
        else:
            out.append((start, start + width))
    return out


def _log(case: EngineCase, memory: Memory, copy: Mirror, expected: ReferenceResult, found: engine.LaunchResult) -> str:
    if not case.log:
        return ""
    entries = expected.log.entries
    for kind, ranges in ((b"R", found.read), (b"W", found.written), (b"A", found.atomic)):
        chosen = entries[entries["kind"] == kind]
        want = merged(chosen["address"], chosen["width"])
        have = merged(ranges[:, 0], (ranges[:, 1] - ranges[:, 0]).astype(np.int32))
        if want != have:
            return f"log of kind {kind.decode()}: {have[:3]} of {len(have)}, not {want[:3]} of {len(want)}"
    return ""


CHECKS: tuple[Check, ...] = (_output, _memory, _counts, _log)
