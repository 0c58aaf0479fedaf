"""A whole kernel as a module of LLVM IR: its function, its tables, the description that the run-time reads."""

from __future__ import annotations

import gc
import json
from dataclasses import dataclass

from ptxparse.flow import Flow
from ptxparse.model import Function, Module
from softgpu.engine.analysis import Analysis
from softgpu.engine.emit.access import SHARED_ROOT
from softgpu.engine.emit.dispatch import emit_instruction, operations
from softgpu.engine.emit.forms import check_forms
from softgpu.engine.emit.function import FunctionEmitter
from softgpu.engine.emit.lower import Lower
from softgpu.engine.flatten import flatten
from softgpu.engine.layout import Layout
from softgpu.engine.options import Options
from softgpu.engine.promote import promote
from softgpu.engine.target import Target
from softgpu.engine.waiting import CARRY, prepare
from softgpu.engine.webs import Webs
from softgpu.engine.work import row_of

MAGIC = 0x55504753
ABI_VERSION = 2
FLAG_WAITS, FLAG_COUNTS, FLAG_LOGS, FLAG_PRINTS = 1, 2, 4, 8
ANYWHERE, PARAMETER, VARIABLE, SHARED_MEMORY = 0, 1, 2, 3
"""``enum sg_origin``."""


@dataclass
class Translation:
    """The IR text of a kernel, and what was found out on the way (for tests and for people)."""

    text: str
    lower: Lower
    emitter: FunctionEmitter


def translate(module: Module, kernel: Function, options: Options, target: Target) -> Translation:
    """LLVM IR of a kernel. Raises UnsupportedKernel, naming the first instruction that cannot be compiled."""
    collecting = gc.isenabled()
    gc.disable()  # many small objects and no garbage in cycles: looking for it costs a tenth of the time
    try:
        return _translate(module, kernel, options, target)
    finally:
        if collecting:
            gc.enable()


def _translate(module: Module, kernel: Function, options: Options, target: Target) -> Translation:
    flat = flatten(module, kernel)
    check_forms(flat, operations(options.rounding))
    promote(flat)
    prepare(flat)
    flow = Flow(flat.instructions, flat.labels, flat.targets)
    layout = Layout(module, flat)
    webs = Webs(flow, {**flat.types, CARRY: "pred"})
    analysis = Analysis(flat, flow, webs, layout, options)
    lower = Lower(flat, flow, layout, analysis, options, operations(options.rounding), target)
    emitter = FunctionEmitter(lower, emit_instruction)
    emitter.emit()
    lower.drop_unread_slots()
    return Translation(_module_text(lower, emitter, kernel, options, target), lower, emitter)


def _module_text(lower: Lower, emitter: FunctionEmitter, kernel: Function, options: Options, target: Target) -> str:
    signature = "ptr noalias %env, ptr noalias %frame" if emitter.waits else "ptr noalias %env, i64 %first, i64 %last"
    b = lower.builder
    parts = [
        target.header,
        *_tables(lower, emitter, kernel, options),
        f"define internal i32 @softgpu_run({signature}) #0 {{",
        "entry:",
        *lower.entry,
        *b.lines,
        "}",
        *[_with_attributes(text) for text in b.helpers.values()],
        *b.declarations.values(),
        f"attributes #0 = {{ {target.attributes} }}",
        '!0 = !{!"branch_weights", i32 2000, i32 1}',
        '!1 = !{!"branch_weights", i32 1, i32 2000}',
    ]
    return "\n".join(parts) + "\n"


def _with_attributes(text: str) -> str:
    """A helper function with the attributes of the module's functions."""
    return text.replace(" noinline nounwind {", " noinline #0 {").replace(" noinline {", " noinline #0 {")


_CACHE = "{ i64, i64, i32, i32, i32, i32 }"


def _origin(lower: Lower, root: object) -> tuple[int, int]:
    """``enum sg_origin`` and number of what a cache's addresses come from."""
    if root == SHARED_ROOT:
        return SHARED_MEMORY, 0
    if isinstance(root, int):
        return PARAMETER, root
    return (VARIABLE, lower.layout.globals.index(root)) if root in lower.layout.globals else (ANYWHERE, 0)


class _Strings:
    """Constant strings of the module, each once."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}

    def name(self, text: str) -> str:
        return self.names.setdefault(text, f"@softgpu_text{len(self.names)}")

    def lines(self) -> list[str]:
        found = []
        for text, name in self.names.items():
            data = text.encode() + b"\0"
            escaped = "".join([f"\\{byte:02X}" for byte in data])
            found.append(f'{name} = private unnamed_addr constant [{len(data)} x i8] c"{escaped}"')
        return found


def _tables(lower: Lower, emitter: FunctionEmitter, kernel: Function, options: Options) -> list[str]:
    strings = _Strings()
    sites = ", ".join([
        f"{{ ptr, i32, i32, i32, i8, i8, i16 }} {{ ptr {strings.name(s.mnemonic)}, i32 {s.line}, i32 {s.width}, "
        f"i32 {s.align}, i8 {s.space}, i8 {s.access}, i16 {s.word} }}" for s in lower.sites])
    points = ", ".join([f"{{ i32, i32 }} {{ i32 {p.kind}, i32 {p.line} }}" for p in emitter.points])
    names = ", ".join([f"ptr {strings.name(name)}" for name in lower.layout.globals])
    caches = ", ".join([f"{_CACHE} {{ i64 0, i64 0, i32 {extent}, i32 {shift}, i32 {kind}, i32 {number} }}"
                        for (root, extent, shift) in lower.caches for kind, number in [_origin(lower, root)]])
    rows = [row_of(counter) for counter in lower.counters]
    numbers = ", ".join([f"i32 {number}" for row in rows for number in row])
    about = json.dumps({"kernel": kernel.name, "counters": lower.counters})
    layout = lower.layout
    flags = (FLAG_WAITS * emitter.waits + FLAG_COUNTS * options.counts + FLAG_LOGS * options.logs
             + FLAG_PRINTS * lower.uses_prints)
    block = options.block or (0, 0, 0)
    words = [MAGIC, ABI_VERSION, flags, *block, layout.param_bytes, layout.static_shared, layout.dynamic_base,
             layout.local_bytes, emitter.frame_bytes, len(emitter.points), len(lower.sites), len(lower.caches),
             len(lower.counters), len(layout.globals)]
    pointers = ["@softgpu_run", "@softgpu_points", "@softgpu_sites", "@softgpu_globals", "@softgpu_work",
                "@softgpu_caches", strings.name(kernel.name), strings.name(about)]
    site_type, point_type = "{ ptr, i32, i32, i32, i8, i8, i16 }", "{ i32, i32 }"
    types = ", ".join(["i32"] * len(words) + ["ptr"] * len(pointers))
    values = ", ".join([*[f"i32 {word}" for word in words], *[f"ptr {pointer}" for pointer in pointers]])
    return [
        f"@softgpu_sites = internal constant [{len(lower.sites)} x {site_type}] [{sites}]",
        f"@softgpu_points = internal constant [{len(emitter.points)} x {point_type}] [{points}]",
        f"@softgpu_caches = internal constant [{len(lower.caches)} x {_CACHE}] [{caches}]",
        f"@softgpu_globals = internal constant [{len(layout.globals)} x ptr] [{names}]",
        f"@softgpu_work = internal constant [{len(rows) * len(rows[0]) if rows else 0} x i32] [{numbers}]",
        *strings.lines(),
        f"@softgpu_kernel = constant {{ {types} }} {{ {values} }}",
    ]
