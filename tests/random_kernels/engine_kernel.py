"""Whole random modules for the engine: what they leave in memory is defined to the last bit."""

from __future__ import annotations

import random
from collections.abc import Callable

from tests.random_kernels import control
from tests.random_kernels.builder import Builder
from tests.random_kernels.conversion import compare, value_statement
from tests.random_kernels.engine_builder import SHARED_SLOT, EngineBuilder
from tests.random_kernels.engine_calls import function
from tests.random_kernels.engine_flow import flow
from tests.random_kernels.engine_memory import (
    CONST_WORDS,
    LOCAL_BYTES,
    exchange,
    load_const,
    load_input,
    load_parameter,
    local_access,
    shared_own,
    store_row,
)
from tests.random_kernels.engine_numbers import carry, float_statement, halves_statement, sum_loop
from tests.random_kernels.engine_spaces import (
    GLOBAL_WORDS,
    copy_async,
    generic_shared,
    mixed_generic,
    module_variable,
)
from tests.random_kernels.engine_waiting import chain_of_flags, late_meeting
from tests.random_kernels.engine_warp import (
    atomic,
    count_over_block,
    producer,
    scattered_barrier,
    swap_loop,
    swap_own,
    ticket,
    warp_statement,
)
from tests.random_kernels.parameters import kernel_parameters

HEADER = ".version 8.0\n.target sm_80\n.address_size 64\n\n"
PARAMETERS = {
    "OUT": ".u64 OUT", "COL": ".u64 COL", "IN": ".u64 IN", "ATOM": ".u64 ATOM", "n": ".u32 n", "m": ".u32 m",
    "w": ".u32 w", "u": ".u32 u", "len": ".u32 len", "q": ".u64 q", "h": ".u16 h", "S": ".align 8 .b8 S[32]",
}
MOST_KEPT = 20
Statement = Callable[[EngineBuilder], None]
STATEMENTS: list[tuple[Statement, int]] = [
    (load_input, 8), (store_row, 6), (local_access, 3), (shared_own, 3), (load_const, 2), (load_parameter, 2),
    (exchange, 6), (warp_statement, 16), (atomic, 3), (ticket, 1), (swap_own, 1), (swap_loop, 1), (count_over_block, 2),
    (producer, 2), (scattered_barrier, 1), (late_meeting, 1), (chain_of_flags, 1),
    (float_statement, 10), (sum_loop, 2), (carry, 1), (halves_statement, 1),
    (generic_shared, 1), (mixed_generic, 1), (copy_async, 1), (module_variable, 1),
]
IN_FUNCTIONS: list[tuple[Statement, int]] = [
    (float_statement, 6), (carry, 1), (halves_statement, 1), (warp_statement, 4),
]


def generate(seed: int) -> str:
    """The PTX text of the module of that seed; its kernel is called ``k``."""
    choose = random.Random(seed)
    parts = [HEADER]
    functions: list[Callable[[Builder], None]] = []
    for number in range(choose.choice((0, 0, 1, 2))):
        text, call = function(choose, number, functions, statements)
        parts.append(text)
        functions.append(call)
    b = EngineBuilder(choose)
    b.traits = {"generic"} if choose.random() < 0.15 else set()
    b.functions = functions
    b.mask, b.together = "-1", True
    kernel_parameters(b)
    _start(b)
    while b.maybe(0.85) and len(b.lines) < choose.choice((30, 60, 100, 160)):
        statements(b, choose.choice((2, 4, 8)), top=True)
    for value in ([v for v in b.values if v.kind != "p"][-MOST_KEPT:]):
        b.store_column(value)
    for value in b.of("p")[-4:]:
        d = b.fresh("r", 1)
        b.emit(f"selp.u32 {d.name}, 1, 0, {value.name}")
        b.store_column(d)
    for space, name, count in (("const", "ctab", CONST_WORDS), ("global", "gtab", GLOBAL_WORDS)):
        if space in b.traits:
            words = ", ".join(str(choose.randrange(1 << 32)) if choose.random() < 0.5 else str(choose.randrange(100))
                              for _ in range(count))
            parts.append(f".{space} .align 16 .b32 {name}[{count}] = {{{words}}};\n")
    order = list(PARAMETERS)
    choose.shuffle(order)
    parts.append(f".visible .entry k({', '.join(f'.param {PARAMETERS[name]}' for name in order)})\n{{\n")
    if "shared" in b.traits:
        parts.append(f"\t.shared .align 16 .b8 smem[{16 * 1024}];\n")
        parts.append(f"\t.shared .align 16 .b8 own[{SHARED_SLOT * 1024}];\n")
    if "shared atomics" in b.traits:
        parts.append("\t.shared .align 16 .b8 satom[1024];\n")
    if "local" in b.traits:
        parts.append(f"\t.local .align 16 .b8 loc[{LOCAL_BYTES}];\n")
    parts += [line + "\n" for line in b.body()]
    parts.append("$END:\n\tret;\n}\n")
    return "".join(parts)


def _start(b: EngineBuilder) -> None:
    """Values to begin with: the coordinates, parameters, floating-point numbers, predicates."""
    for name in b.choose.sample(["n", "m", "len", "w", "u", "q", "h", "x", "y", "z", "laneid", "tid.x", "tid.y",
                                 "tid.z", "ctaid.x", "ctaid.y", "nctaid.x", "ntid.x", "ntid.y"],
                                b.choose.choice((4, 6, 8))):
        b.parameters[name]()
    for value in (b.linear(), b.thread()):
        copy = b.fresh("r", 10)
        b.emit(f"mov.u32 {copy.name}, {value.name}")
        b.declare(copy)
    start = b.parameter("IN").name
    for shift in (0, 400, 804):
        x = b.declare(b.fresh("f"))
        at = b.fresh("rd")
        b.emit(f"mad.wide.s32 {at.name}, {b.linear().name}, 4, {start}")
        b.emit(f"ld{b.space}.f32 {x.name}, [{at.name}+{shift}]")
    compare(b, "r")
    compare(b, "r")


def statements(b: Builder, count: int, top: bool = False) -> None:
    """A run of random statements."""
    assert isinstance(b, EngineBuilder)
    chosen, weights = zip(*(IN_FUNCTIONS if b.suffix else STATEMENTS), strict=True)
    for _ in range(count):
        chance = b.choose.random()
        if chance < 0.27:
            value_statement(b)
        elif chance < 0.76:
            statement: Statement = b.choose.choices(chosen, weights)[0]
            statement(b)
        elif chance < 0.8 and b.breaks:
            control.leave_loop(b)
        elif chance < 0.83 and (top or b.maybe(0.2)):
            if not b.together or b.maybe(0.2):
                control.early_exit(b)
        elif chance < 0.86 and b.functions:
            b.choose.choice(b.functions)(b)
        elif b.nesting < 4:
            flow(b, _body)


def _body(b: EngineBuilder) -> None:
    statements(b, b.choose.choice((1, 2, 3, 5)))
