"""Whole random modules: parameters, index idioms, statements, device functions, module variables."""

from __future__ import annotations

import random
from collections.abc import Callable

from tests.random_kernels import control
from tests.random_kernels.addresses import access, pointer_statement, store
from tests.random_kernels.arithmetic import define
from tests.random_kernels.builder import Builder
from tests.random_kernels.conversion import compare, value_statement
from tests.random_kernels.functions import function
from tests.random_kernels.idioms import IDIOMS
from tests.random_kernels.idioms_nested import NESTED
from tests.random_kernels.loops import loop
from tests.random_kernels.odd_flow import odd_flow
from tests.random_kernels.odd_statements import odd_statement, with_neighbours
from tests.random_kernels.parameters import GLOBAL_BYTES, PARAMETERS, indexed_parameters, kernel_parameters, pointers

HEADER = ".version 8.0\n.target sm_80\n.address_size 64\n\n"


def generate(seed: int) -> str:
    """The PTX text of the module of that seed; its kernel is called ``k``."""
    choose = random.Random(seed)
    traits = {name for name, chance in (("generic", 0.1), ("straight", 0.3)) if choose.random() < chance}
    parts = [HEADER]
    functions: list[Callable[[Builder], None]] = []
    uses_global = choose.random() < 0.12
    if uses_global:
        parts.append(f".global .align 16 .b8 G[{GLOBAL_BYTES}];\n")
    for number in range(choose.choice((0, 0, 0, 1, 2))):
        text, call = function(choose, number, functions, statements)
        parts.append(text)
        functions.append(call)
    order = list(PARAMETERS)
    choose.shuffle(order)
    b = Builder(choose)
    b.traits = traits
    b.functions = functions
    kernel_parameters(b)
    pointers(b, uses_global)
    _indices(b)
    while choose.random() < 0.4:
        choose.choice(IDIOMS + NESTED)(b)
    statements(b, choose.choice((3, 6, 10, 16)), top=True)
    store(b)
    parts.append(f".visible .entry k({', '.join(f'.param {PARAMETERS[name]}' for name in order)})\n{{\n")
    if "shared" in b.traits:
        parts.append("\t.shared .align 16 .b8 smem[256];\n")
    parts += [line + "\n" for line in b.body()]
    parts.append("$END:\n\tret;\n}\n")
    return "".join(parts)


def statements(b: Builder, count: int, top: bool = False) -> None:
    """A run of random statements."""
    for _ in range(count):
        chance = b.choose.random()
        if chance < 0.5:
            value_statement(b)
        elif chance < 0.72:
            access(b)
        elif chance < 0.77 and b.pointers:
            pointer_statement(b)
        elif chance < 0.83 and b.breaks:
            control.leave_loop(b)
        elif chance < 0.86 and (top or b.maybe(0.15)):
            control.early_exit(b)
        elif chance < 0.88 and b.functions:
            b.choose.choice(b.functions)(b)
        elif chance < 0.9:
            odd_statement(b)
        elif "straight" in b.traits or b.nesting > 3:
            value_statement(b)
        elif chance < 0.94:
            control.branch(b, _body)
        elif chance < 0.985:
            loop(b, _body)
        else:
            odd_flow(b, _body)


def _body(b: Builder) -> None:
    statements(b, b.choose.choice((1, 1, 2, 3, 5)))


def _indices(b: Builder) -> None:
    """The launch's coordinates, and indices made of them in the usual ways."""
    axes = b.choose.choice(("x", "x", "xy", "xy", "xyz"))
    for axis in axes:
        names = {k: b.parameters[f"{k}.{axis}"]().name for k in ("tid", "ntid", "ctaid")}
        i = b.fresh("r", 9)
        if b.maybe(0.6):
            b.emit(f"mad.lo.s32 {i.name}, {names['ctaid']}, {names['ntid']}, {names['tid']}")
        elif b.maybe(0.5):
            t = b.fresh("r")
            b.emit(f"shl.b32 {t.name}, {names['ctaid']}, {b.choose.choice((3, 5, 6))}")
            b.emit(f"{b.choose.choice(('or.b32', 'add.s32'))} {i.name}, {t.name}, {names['tid']}")
        else:
            t = b.fresh("r")
            b.emit(f"mul.lo.s32 {t.name}, {names['ctaid']}, {names['ntid']}")
            b.emit(f"add.s32 {i.name}, {t.name}, {names['tid']}")
        b.declare(i)
    for name in b.choose.sample(["n", "m", "len", "w", "u", "q", "h", "x", "y", "z", "laneid", "nctaid.x", "ntid.y"],
                                b.choose.choice((1, 2, 4))):
        b.parameters[name]()
    if b.maybe(0.15):
        indexed_parameters(b)
    if len(axes) > 1:
        row, column = b.pick("r", 9), b.pick("r", 9)
        d = b.fresh("r", 16)
        pitch = b.parameters[b.choose.choice(("n", "m", "len", "ntid.x"))]().name
        b.emit(f"mad.lo.s32 {d.name}, {row.name}, {pitch}, {column.name}")
        b.declare(d)
    compare(b)
    define(b, "r")
    if b.maybe(0.08):
        with_neighbours(b)
