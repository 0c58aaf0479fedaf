"""What the engine's analysis claims of registers, against the values that they really have."""

from __future__ import annotations

import random

import numpy as np
import numpy.typing as npt

from ptxparse.flow import Flow
from ptxparse.model import Function, Module, Register
from ptxparse.parser import parse
from softgpu.engine.analysis import Analysis, width_of
from softgpu.engine.flatten import flatten
from softgpu.engine.layout import Layout
from softgpu.engine.options import Options
from softgpu.engine.promote import promote
from softgpu.engine.shapes import WARP, Shape
from softgpu.engine.waiting import CARRY, prepare
from softgpu.engine.webs import Webs
from softgpu.reference import LoadedModule, Memory, StepLimit, launch
from tests.random_kernels import control
from tests.random_kernels.builder import PREFIX
from tests.random_kernels.conversion import value_statement
from tests.random_kernels.engine_builder import EngineBuilder
from tests.random_kernels.engine_flow import alone, uniform_branch, uniform_loop
from tests.random_kernels.engine_kernel import HEADER, PARAMETERS
from tests.random_kernels.engine_memory import small_index
from tests.random_kernels.engine_run import STEP_LIMIT, EngineCase, parameters
from tests.random_kernels.parameters import kernel_parameters

MOST_KEPT = 60
SOURCES = ("n", "w", "u", "q", "h", "x", "laneid", "tid.x", "tid.y", "tid.z", "ctaid.x", "ctaid.y", "ntid.x", "ntid.y")


def generate(seed: int) -> str:
    """A kernel of arithmetic that stores all its values, thread by thread, in columns of 8 bytes."""
    b = EngineBuilder(random.Random(seed))
    b.mask, b.together = "-1", True
    kernel_parameters(b)
    for name in b.choose.sample(SOURCES, b.choose.choice((3, 5, 7))):
        b.parameters[name]()
    for value in (b.linear(), b.thread()):
        b.values.append(value)
    _statements(b, b.choose.choice((10, 25, 50)))
    kept = [v for v in b.values if v.kind != "p"][-MOST_KEPT:]
    total, column = b.total(), b.column()
    step = b.named("step", "rd", f"mul.wide.u32 {{d}}, {total.name}, 8")
    for number, value in enumerate(kept):
        at = b.fresh("rd")
        b.emit(f"mad.lo.s64 {at.name}, {step.name}, {number}, {column.name}")
        b.emit(f"st.global{PREFIX[value.kind]} [{at.name}], {value.name}")
    text = HEADER + f".visible .entry k({', '.join(f'.param {p}' for p in PARAMETERS.values())})\n{{\n"
    return text + "".join(line + "\n" for line in b.body()) + "\tret;\n}\n"


def _statements(b: EngineBuilder, count: int) -> None:
    for _ in range(count):
        chance = b.choose.random()
        if chance < 0.3:
            edge(b)
        elif chance < 0.8 or b.nesting > 2:
            value_statement(b)
        elif chance < 0.88:
            b.declare(small_index(b, 1 << b.choose.randrange(1, 9)))
        elif chance < 0.92:
            uniform_branch(b, _body)
        elif chance < 0.96:
            uniform_loop(b, _body)
        else:
            control.branch(b, alone(_body))


EDGES = (1, -1, -31, 3, 100, 120, 127, 240, 255, 0x7FE0, 0x7FF0, 0xFFF0, 0x7FFFFFF0, -16, -32, 0x80, 0x8000, 64, 32, 16)


def edge(b: EngineBuilder) -> None:
    """A pattern of thread indices near the end of a width, and what compilers do with it next."""
    x, y, z = b.fresh("r", 32), b.fresh("rd", 64), b.fresh("rs", 16)
    source = b.choose.choice((b.linear(), b.parameters["laneid"](), b.thread(), b.parameters["tid.x"]())).name
    style = b.choose.randrange(5)
    if style == 0:
        b.emit(f"add.s32 {x.name}, {source}, {b.choose.choice(EDGES)}")
    elif style == 1:
        b.emit(f"mad.lo.s32 {x.name}, {source}, {b.choose.choice((1, 2, 3, 4, 5, 8, 31, -1, -4, 1 << 26))}, "
               f"{b.choose.choice(EDGES)}")
    elif style == 2:
        b.emit(f"sub.s32 {x.name}, {b.choose.choice(EDGES)}, {source}")
    elif style == 3:
        b.emit(f"shl.b32 {x.name}, {source}, {b.choose.choice((1, 2, 3, 5, 20, 27))}")
    else:
        b.emit(f"add.s32 {x.name}, {source}, {b.pick('r').name}")
    b.declare(x)
    for _ in range(b.choose.choice((1, 2, 3))):
        bits = b.choose.choice((1, 2, 3, 4, 5, 7))
        mask = b.choose.choice((1, 3, 7, 15, 31, 127, 255, 0xFFFF, -2, -8, -32, -64))
        b.emit(b.choose.choice((
            f"cvt.{b.choose.choice('us')}64.{b.choose.choice('us')}{b.choose.choice((8, 16, 32, 32))} "
            f"{y.name}, {x.name}",
            f"cvt.{b.choose.choice('us')}32.{b.choose.choice('us')}{b.choose.choice((8, 16))} {x.name}, {x.name}",
            f"shr.{b.choose.choice('us')}32 {x.name}, {x.name}, {bits}", f"and.b32 {x.name}, {x.name}, {mask}",
            f"or.b32 {x.name}, {x.name}, {b.choose.choice((1, 16, 32, 64, 0x100))}",
            f"mul.wide.{b.choose.choice('us')}32 {y.name}, {x.name}, {b.choose.choice((1, 2, 4, 12, -4))}",
            f"cvt.u16.u32 {z.name}, {x.name};\n\t"
            f"cvt.{b.choose.choice('us')}32.{b.choose.choice('us')}16 {x.name}, {z.name}",
            f"cvt.u16.u32 {z.name}, {x.name};\n\tshr.{b.choose.choice('us')}16 {z.name}, {z.name}, {bits}",
            f"cvt.u16.u32 {z.name}, {x.name};\n\tmul.wide.{b.choose.choice('us')}16 {x.name}, {z.name}, {mask & 0x7F}",
            f"cvt.s64.s32 {y.name}, {x.name};\n\tshr.{b.choose.choice('us')}64 {y.name}, {y.name}, {bits}",
            f"cvt.u64.u32 {y.name}, {x.name};\n\tand.b64 {y.name}, {y.name}, {mask}",
            f"shl.b32 {x.name}, {x.name}, {bits}", f"selp.b32 {x.name}, {x.name}, {source}, {b.pick('p').name}",
            f"add.s32 {x.name}, {x.name}, {b.choose.choice(EDGES)}",
        )))
    written = "\n".join(b.lines[-12:])
    for value in (y, z):
        if f" {value.name}," in written:
            b.declare(value)


def _body(b: EngineBuilder) -> None:
    _statements(b, b.choose.choice((1, 2, 4)))


def analysis_of(module: Module, entry: Function, options: Options) -> Analysis:
    flat = flatten(module, entry)
    promote(flat)
    prepare(flat)
    flow = Flow(flat.instructions, flat.labels, flat.targets)
    return Analysis(flat, flow, Webs(flow, {**flat.types, CARRY: "pred"}), Layout(module, flat), options)


def violations(text: str, case: EngineCase) -> list[str]:
    """Claims that a launch does not bear out."""
    module = parse(text)
    entry = module.entries[0]
    memory = Memory()
    loaded = LoadedModule(module, memory)
    out = memory.allocate(case.threads * 8 * MOST_KEPT)
    block = parameters(module, case, {"COL": out})
    try:
        launch(loaded, "k", case.grid, case.block, block, step_limit=STEP_LIMIT, log=False)
    except StepLimit:
        return []
    threads = case.block[0] * case.block[1] * case.block[2]
    columns = np.frombuffer(memory.read(out, case.threads * 8 * MOST_KEPT), np.uint64).reshape(MOST_KEPT, -1, threads)
    analysis = analysis_of(module, entry, Options(None if case.any_block else case.block))
    stores = [i for i, instruction in enumerate(analysis.flow.instructions) if instruction.opcode == "st"]
    found = []
    for column, index in zip(columns, stores, strict=False):
        value = analysis.flow.instructions[index].operands[1]
        assert isinstance(value, Register)
        web = analysis.webs.used[index][value.name]
        width = width_of(web.type)
        for values in column:
            for start in range(0, threads, WARP):
                wrong = disagrees(analysis.shape[web.number], values[start:start + WARP], width)
                if wrong:
                    found.append(f"{value.name}: {wrong}, {analysis.shape[web.number]}")
                    break
    return found


def disagrees(shape: Shape, values: npt.NDArray[np.uint64], width: int) -> str:
    """What a shape says wrongly of the values of a warp."""
    numbers = [int(v) & ((1 << width) - 1) for v in values]
    if shape.low is not None and shape.high is not None and not all(shape.low <= v <= shape.high for v in numbers):
        return f"{min(numbers)} to {max(numbers)} are not between {shape.low} and {shape.high}"
    for start in range(0, len(numbers), shape.group):
        if numbers[start] % shape.align != shape.residue:
            return f"{numbers[start]} is not {shape.residue} modulo {shape.align}"
        if not shape.sure:
            continue
        for lane in range(start, min(start + shape.group, len(numbers))):
            if numbers[lane] != (numbers[start] + shape.offsets[lane]) % (1 << width):
                return f"lane {lane} is not {shape.offsets[lane]} from {numbers[start]} but {numbers[lane]}"
    return ""
