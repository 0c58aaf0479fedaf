"""What every emitter works with: registers as values, the active mask, sites, scratch memory, the environment.

A web whose shape is scalar is kept as the value of lane 0, any other as a vector; both live in allocas that LLVM turns
into SSA values. Emitters of instructions get the :class:`Lower` of the kernel, and read and write operands through it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

from ptxparse.flow import Flow
from ptxparse.model import FloatImmediate, Immediate, Instruction, Negated, Operand, Register, Symbol
from softgpu.engine.analysis import Analysis
from softgpu.engine.emit.families import Family
from softgpu.engine.emit.lazy import lazy_webs
from softgpu.engine.emit.present import Present
from softgpu.engine.errors import UnsupportedKernel
from softgpu.engine.flatten import Flat
from softgpu.engine.ir import WARP, Builder, Value, bits, element, lanes, shaped
from softgpu.engine.layout import Layout
from softgpu.engine.ops.operation import TYPES, Operation
from softgpu.engine.options import Options
from softgpu.engine.shapes import Shape
from softgpu.engine.special import special_type
from softgpu.engine.target import Target
from softgpu.engine.webs import Web

if TYPE_CHECKING:
    from softgpu.engine.emit.bands import Band

FULL = -1
SCRATCH_BYTES = 32 * WARP
"""Largest value of one access in all lanes: 32 bytes each."""

ENV = {
    "params": (0, "ptr"), "shared": (8, "ptr"), "local": (16, "ptr"), "globals": (24, "ptr"), "caches": (32, "ptr"),
    "counters": (40, "ptr"), "helpers": (48, "ptr"), "stop": (56, "ptr"), "thread_ids": (64, "ptr"),
    "workspace": (72, "i64"), "grid_id": (80, "i64"), "grid.x": (88, "i32"), "grid.y": (92, "i32"),
    "grid.z": (96, "i32"), "block.x": (100, "i32"), "block.y": (104, "i32"), "block.z": (108, "i32"),
    "ctaid.x": (112, "i32"), "ctaid.y": (116, "i32"), "ctaid.z": (120, "i32"), "warp": (124, "i32"),
    "threads": (128, "i32"), "warps": (132, "i32"), "shared_bytes": (136, "i32"), "dynamic_shared": (140, "i32"),
    "local_stride": (144, "i32"),
}
"""Field of ``struct sg_env`` -> offset in bytes and type."""

CANONICAL_NAN = 0x7FFFFFFF
"""The NaN that f32 instructions give. Those of f64 keep the operand's payload, as the CPU does."""


@dataclass(frozen=True)
class Mask:
    """Active lanes: ``bits`` is an i32; ``full`` says that it is all ones, known when compiling."""

    bits: Value
    full: bool = False


@dataclass
class Site:
    """An instruction that can fault, as in ``struct sg_site``."""

    mnemonic: str
    line: int
    width: int = 0
    align: int = 1
    space: int = 0
    access: int = 0
    word: int = 0


class Lower:
    """State of one kernel's translation. ``mask`` and ``index`` are those of the instruction being emitted."""

    def __init__(self, flat: Flat, flow: Flow, layout: Layout, analysis: Analysis, options: Options,
                 operations: dict[str, Operation], target: Target) -> None:
        self.target = target
        self.flat = flat
        self.flow = flow
        self.layout = layout
        self.analysis = analysis
        self.webs = analysis.webs
        self.options = options
        self.operations = operations
        self.builder = Builder(wide_registers=target.has("avx512f"))
        self.entry: list[str] = []
        self.sites: list[Site] = []
        self.caches: dict[tuple[object, int, int], int] = {}
        self.tables: dict[tuple[int, ...], str] = {}
        self.families: dict[tuple[int, str], Family] = {}
        self.bands: list[Band] = []
        self.counters: list[dict[str, int]] = []
        self.specials: dict[str, Value] = {}
        self.environment: dict[str, Value] = {}
        self.mask = Mask(Value("-1", "i32"), True)
        self.index = 0
        self.instruction = Instruction(None, (), 0)  # type: ignore[arg-type]
        self.present = Present()
        self.slots: dict[int, str] = {}
        self.slot_stores: dict[int, list[int]] = {}
        self.slots_loaded: set[int] = set()
        self.scratch: dict[str, Value] = {}
        self.uses_prints = False
        self.has_frame = False
        self._scalar = [shape.scalar for shape in analysis.shape]
        self._types: dict[int, str] = {}
        self.lazy = lazy_webs(flow, self.webs, operations)
        self.homes: dict[int, int] = {}
        self.crossed: dict[int, set[int]] = {}

    # Errors.

    def fail(self, reason: str) -> NoReturn:
        """Refuse the kernel because of the present instruction."""
        raise UnsupportedKernel(self.instruction.mnemonic, self.instruction.line, reason)

    # Environment.

    def env(self, name: str) -> Value:
        """A field of the environment, loaded once at the function's entry."""
        found = self.environment.get(name)
        if found is None:
            offset, type_ = ENV[name]
            stem = name.replace(".", "_")
            found = self.environment[name] = Value(f"%env_{stem}", type_)
            self.entry.append(f"  %env_{stem}_at = getelementptr i8, ptr %env, i64 {offset}")
            self.entry.append(f"  {found.ref} = load {type_}, ptr %env_{stem}_at")
        return found

    def helper(self, number: int, result: str, *operands: Value) -> Value:
        """A call of one of the run-time's helpers; the environment is passed first."""
        b = self.builder
        at = b.emit(f"getelementptr i8, ptr {self.env('helpers').ref}, i64 {8 * number}", "ptr")
        function = b.emit(f"load ptr, ptr {at.ref}", "ptr")
        given = ", ".join(["ptr %env", *[f"{v.type} {v.ref}" for v in operands]])
        if result == "void":
            b.line(f"  call void {function.ref}({given})")
            return Value("", "void")
        return b.emit(f"call {result} {function.ref}({given})", result)

    def checked_helper(self, number: int, *operands: Value) -> None:
        """A helper that may stop the launch."""
        self.stop_if(self.helper(number, "i32", *operands))

    def stop_if(self, status: Value) -> None:
        """Leave the kernel when a status is not 0."""
        b = self.builder
        bad = b.icmp("ne", status, Value("0", "i32"))
        on = b.fresh("on")[1:]
        b.line(f"  br i1 {bad.ref}, label %stopped, label %{on}, !prof !1")
        self.place(on)

    def site(self, width: int = 0, align: int = 1, space: int = 0, access: int = 0, word: int = 0) -> Value:
        """The number of a new site for the present instruction."""
        self.sites.append(Site(self.instruction.mnemonic, self.instruction.line, width, align, space, access, word))
        return Value(str(len(self.sites) - 1), "i32")

    def room(self, name: str, size: int = SCRATCH_BYTES) -> Value:
        """Scratch memory of the function, by name."""
        found = self.scratch.get(name)
        if found is None:
            found = self.scratch[name] = Value(f"%room_{name}", "ptr")
            self.entry.append(f"  {found.ref} = alloca [{size} x i8], align 64")
        return found

    def at(self, base: Value, offset: int | Value) -> Value:
        """A pointer so many bytes behind another."""
        where = f"i64 {offset}" if isinstance(offset, int) else f"{offset.type} {offset.ref}"
        return self.builder.emit(f"getelementptr i8, ptr {base.ref}, {where}", "ptr")

    def load(self, type_: str, pointer: Value, align: int = 0) -> Value:
        return self.builder.emit(f"load {type_}, ptr {pointer.ref}" + (f", align {align}" if align else ""), type_)

    def store(self, value: Value, pointer: Value, align: int = 0) -> None:
        aligned = f", align {align}" if align else ""
        self.builder.line(f"  store {value.type} {value.ref}, ptr {pointer.ref}{aligned}")

    def label(self, stem: str) -> str:
        """A new label name, without its ``%``."""
        return self.builder.fresh(stem)[1:]

    def place(self, label: str) -> None:
        self.builder.line(f"{label}:")
        self.present.label = label

    def branch(self, condition: Value, yes: str, no: str, likely: bool | None = None) -> None:
        weights = "" if likely is None else ", !prof !0" if likely else ", !prof !1"
        self.builder.line(f"  br i1 {condition.ref}, label %{yes}, label %{no}{weights}")

    def jump(self, label: str) -> None:
        self.builder.line(f"  br label %{label}")

    def in_loop(self) -> bool:
        """Whether the present instruction may be executed more than once by a thread, calls aside."""
        return self.flow.loop_of[self.analysis.block_of[self.index]] != -1

    # Masks.

    def mask_lanes(self, mask: Mask | None = None) -> Value:
        """The active lanes as ``<32 x i1>``."""
        mask = mask or self.mask
        if mask.full:
            return self.builder.constant(1, "i1", WARP)
        return self.builder.mask_lanes(mask.bits)

    def bits_of(self, predicate: Value) -> Value:
        """A predicate as an i32 mask; lanes that hold garbage give garbage, but no poison.

        Where all lanes are active none holds garbage: operations make no poison, and registers that some lane has not
        written hold zero. (LLVM takes long over ``freeze``: it climbs the tree of dominators for each.)
        """
        b = self.builder
        if not lanes(predicate.type):
            return b.emit(f"sext i1 {predicate.ref} to i32", "i32")
        if not self.mask.full:
            predicate = b.emit(f"freeze {predicate.type} {predicate.ref}", predicate.type)
        return b.mask_bits(predicate)

    def both(self, mask: Mask, more: Value) -> Mask:
        """Lanes of a mask for which the i32 ``more`` has bits too."""
        return Mask(more if mask.full else self.builder.and_(mask.bits, more))

    def guarded(self) -> Mask:
        """The active lanes of the present instruction whose guard holds."""
        if self.instruction.predicate is None:
            return self.mask
        return self.both(self.mask, self.bits_of(self.guard()))

    def guard(self) -> Value:
        """The guard's value, negation applied: an i1 or ``<32 x i1>``."""
        assert self.instruction.predicate is not None
        value = self.read(self.instruction.predicate, "pred")
        return self.builder.invert(value) if self.instruction.negated else value

    # Registers.

    def shape(self, web: Web) -> Shape:
        return self.analysis.shape[web.number]

    def scalar_web(self, web: Web) -> bool:
        """Whether a web is kept as the value of lane 0."""
        return self._scalar[web.number]

    def web_type(self, web: Web) -> str:
        """LLVM type in which a web is kept."""
        known = self._types.get(web.number)
        if known is None:
            if web.type not in TYPES:
                self.fail(f"registers of type .{web.type}")
            known = self._types[web.number] = shaped(self._element(web), 0 if self.scalar_web(web) else WARP)
        return known

    def _element(self, web: Web) -> str:
        """Element type in which a web is kept. f32 whose NaNs have been made canonical are kept as bits: as numbers,
        LLVM would take any NaN for as good as another."""
        return "i32" if web.type == "f32" and web.number not in self.lazy else TYPES[web.type]

    def _slot(self, web: Web) -> Value:
        """The alloca of a web."""
        name = self.slots.get(web.number)
        if name is None:
            name = self.slots[web.number] = f"%w{web.number}"
            self.entry.append(f"  {name} = alloca {self.web_type(web)}")
        return Value(name, "ptr")

    def load_slot(self, web: Web) -> Value:
        """What the web's variable holds, as it is kept."""
        self.slots_loaded.add(web.number)
        return self.load(self.web_type(web), self._slot(web))

    def store_slot(self, web: Web, value: Value) -> None:
        slot = self._slot(web)
        self.slot_stores.setdefault(web.number, []).append(len(self.builder.lines))
        self.store(value, slot)

    def drop_unread_slots(self) -> None:
        """At the end: variables that nothing reads are not there."""
        unread = self.slots.keys() - self.slots_loaded
        for web in unread:
            for line in self.slot_stores.get(web, ()):
                self.builder.lines[line] = ""
        allocas = tuple(f"  {self.slots[web]} = alloca " for web in unread)
        if allocas:
            self.entry = [line for line in self.entry if not line.startswith(allocas)]

    def used_web(self, name: str) -> Web | None:
        return self.webs.used[self.index].get(name)

    def operand_shape(self, operand: Operand, type_: str = "b32") -> Shape:
        """Shape of an operand of the present instruction."""
        found = self.analysis.of(self.index, operand, type_)
        assert found is not None
        return found

    def is_scalar(self, operand: Operand, type_: str = "b32") -> bool:
        return self.operand_shape(operand, type_).scalar

    def read(self, operand: Operand, type_: str, vector: bool = False, wide: bool = False,
             observe: bool = True) -> Value:
        """An operand as a PTX type: scalar (the value of lane 0) if its shape is, and ``vector`` is not asked for.

        ``wide``: the register may be wider than the type, its low bits are meant. ``observe`` False: the reader treats
        all NaNs alike.
        """
        b = self.builder
        want = TYPES.get(type_)
        if want is None:
            self.fail(f"operands of type .{type_}")
        if isinstance(operand, Register):
            return self._read_register(operand.name, type_, want, vector, wide, observe)
        if isinstance(operand, Negated):
            return b.invert(self.read(operand.operand, type_, vector))
        if isinstance(operand, Immediate):
            value = self._number(operand.value, want)
        elif isinstance(operand, FloatImmediate):
            value = self._float(operand, type_, want)
        elif isinstance(operand, Symbol):
            value = b.resize(self.address_of(operand), want) if want != "i64" else self.address_of(operand)
        else:
            self.fail(f"operand {operand!r}")
        return b.splat(value) if vector else value

    def _number(self, value: int, want: str) -> Value:
        if want == "float":
            return self.builder.constant(float(value), want)
        if want == "double":
            return self.builder.constant(float(value), want)
        return self.builder.constant(value, want)

    def _float(self, operand: FloatImmediate, type_: str, want: str) -> Value:
        b = self.builder
        pattern, width = operand.bits, operand.width
        if bits(want) != width:
            pattern = _converted(pattern, width, bits(want))
        if want in ("float", "double"):
            return b.float_bits(pattern, want)
        return b.constant(pattern, want)

    def _read_register(self, name: str, type_: str, want: str, vector: bool, wide: bool, observe: bool) -> Value:
        b = self.builder
        web = self.used_web(name)
        if web is None:
            kind = special_type(name)
            if kind is None:
                self.fail(f"{name} is not a register the engine knows")
            value = self.special(name)
            if kind == "u32" and want == "i64":
                self.fail(f"{name} has 32 bits")
            value = b.resize(value, want) if bits(value.type) != bits(want) else value
            shape = self.operand_shape(Register(name))
        else:
            have = self.web_type(web)
            shape = self.shape(web)
            form = (shaped(want, WARP) if vector else want if self.scalar_web(web) else shaped(want, WARP),
                    observe and web.number in self.lazy)
            known = self.present.find(web.number, form)
            if known is not None and (web.type == "pred") == (type_ in ("pred", "cc")) and (
                    wide or bits(have) == bits(want)):
                return known
            if shape.constant is not None and have in ("i16", "i32", "i64"):
                value = b.constant(shape.constant, have)
            else:
                value = self.value_of(web)
            if (web.type == "pred") != (type_ in ("pred", "cc")):
                self.fail(f"a .{web.type} register where a .{type_} operand is expected")
            if observe and web.number in self.lazy:
                value = self.canonical(value)
            if bits(have) > bits(want):
                if not wide:
                    self.fail(f"a .{web.type} register where a .{type_} operand is expected")
                if have.endswith(("float", "float>", "double", "double>")):
                    value = b.bitcast(value, f"i{bits(have)}")
                value = b.trunc(value, f"i{bits(want)}")
            elif bits(have) < bits(want):
                self.fail(f"a .{web.type} register where a .{type_} operand is expected")
        if vector and not lanes(value.type):
            value = self.spread(b.bitcast(value, f"i{bits(value.type)}"), shape)  # the lanes' offsets are integers
        value = b.bitcast(value, want)
        if web is not None:
            self.present.note(web.number, form, value)
        return value

    def spread(self, value: Value, shape: Shape) -> Value:
        """Lane 0's value of a scalar shape in all lanes, its pattern added."""
        b = self.builder
        whole = b.splat(value)
        if any(shape.offsets) and shape.group == WARP:
            whole = b.add(whole, b.vector(shape.offsets, value.type))
        return whole

    def canonical(self, value: Value) -> Value:
        """f32 numbers with any NaN replaced by PTX's canonical one."""
        b = self.builder
        # As integers: of floating-point numbers LLVM takes any NaN for as good as any other.
        pattern = b.bitcast(value, "i32")
        magnitude = b.and_(pattern, b.like(0x7FFFFFFF, pattern))
        nan = b.icmp("ugt", magnitude, b.like(0x7F800000, pattern))
        chosen = b.select(nan, b.like(CANONICAL_NAN, pattern), pattern)
        return b.bitcast(chosen, element(value.type))

    def write(self, operand: Operand, type_: str, value: Value, wide: bool = False) -> None:
        """Give a destination a value; scalar values go to all lanes. Guard, and lanes that must keep what they have,
        are seen to. ``wide``: the register may be wider; signed types extend by their sign."""
        if not isinstance(operand, Register):
            self.fail(f"destination {operand!r} is not a register")
        if operand.name == "_":
            return
        web = self.webs.defined[self.index].get(operand.name)
        if web is None:
            self.fail(f"{operand.name} is not a declared register")
        self.write_web(web, type_, value, wide)

    def write_web(self, web: Web, type_: str, value: Value, wide: bool = False) -> None:
        b = self.builder
        have = self.web_type(web)
        if (web.type == "pred") != (type_ in ("pred", "cc")):
            self.fail(f"a .{web.type} register where a .{type_} result goes")
        if bits(have) != bits(value.type):
            if bits(have) < bits(value.type) or not wide:
                self.fail(f"a .{web.type} register where a .{type_} result goes")
            if web.type in ("f32", "f64") or value.type.endswith(("float", "float>")):
                self.fail(f"a .{web.type} register where a .{type_} result goes")
            value = b.resize(value, f"i{bits(have)}", type_[0] == "s")
        given = value
        value = b.bitcast(value, self._element(web))
        if self.scalar_web(web):
            if lanes(value.type):
                value = b.extract(value, 0)
        else:
            value = b.splat(value)
        keep = self._keeps(web)
        if keep is not None:
            value = b.select(keep, value, self.value_of(web))
        self.store_slot(web, value)
        self.present.forget(web.number)
        self.present.note(web.number, (have, False), value)
        if keep is None and lanes(given.type) == lanes(have):
            self.present.note(web.number, (given.type, False), given)
        if web.number in self.homes:
            self.save(value, self.homes[web.number])

    # Values in the frame of a warp that can be suspended. A web with one definition that is live at a wait point is
    # stored there when it is defined, and read from there by uses behind the point: nothing is to do at the point.

    def value_of(self, web: Web) -> Value:
        """The present value of a web as it is kept."""
        home = self.homes.get(web.number)
        if home is not None and self._behind_a_point(web):
            return self.restored(self.web_type(web), home)
        form = (self.web_type(web), False)
        value = self.present.find(web.number, form)
        if value is None:
            value = self.load_slot(web)
            self.present.note(web.number, form, value)
        return value

    def _behind_a_point(self, web: Web) -> bool:
        block = self.analysis.block_of[self.index]
        definition = web.definitions[0]
        if self.analysis.block_of[definition] == block and definition < self.index:
            return False
        return block in self.crossed[web.number]

    def save(self, value: Value, offset: int) -> None:
        """Store a value in the frame."""
        if value.type == f"<{WARP} x i1>":
            value = self.bits_of(value)
        elif value.type == "i1":
            value = self.builder.zext(value, "i8")
        self.store(value, self.at(Value("%frame", "ptr"), offset), 64 if lanes(value.type) else 0)

    def restored(self, type_: str, offset: int) -> Value:
        """A value that :meth:`save` stored."""
        at = self.at(Value("%frame", "ptr"), offset)
        if type_ == f"<{WARP} x i1>":
            return self.builder.mask_lanes(self.load("i32", at))
        if type_ == "i1":
            return self.builder.trunc(self.load("i8", at), "i1")
        return self.load(type_, at, 64 if lanes(type_) else 0)

    def _keeps(self, web: Web) -> Value | None:
        """Where the new value goes; None: everywhere."""
        guard = self.guard() if self.instruction.predicate is not None else None
        blended = (self.index, web.number) in self.analysis.blended and not self.mask.full
        if self.scalar_web(web):
            if guard is not None and lanes(guard.type):
                self.fail("a guard that differs between lanes over a value that does not")
            return guard
        if guard is None and not blended:
            return None
        b = self.builder
        if guard is None:
            return self.mask_lanes()
        if not blended:
            return guard
        return b.mask_lanes(self.both(self.mask, self.bits_of(guard)).bits)

    # Addresses of variables, special registers.

    def address_of(self, symbol: Symbol) -> Value:
        """Address of a variable or function in its own state space, an i64."""
        b = self.builder
        known = self.layout.constant_address(symbol)
        if known is not None:
            return b.constant(known, "i64")
        if symbol.name not in self.layout.globals:
            self.fail(f"{symbol.name} is not defined in this module")
        number = self.layout.globals.index(symbol.name)
        base = self.load("i64", self.at(self.env("globals"), 8 * number))
        return b.add(base, b.constant(symbol.offset, "i64")) if symbol.offset else base

    def special(self, name: str) -> Value:
        """Value of a special register: those of the warp are set when it starts, clocks are read now."""
        from softgpu.engine.emit.specials import read_clock
        from softgpu.engine.special import CLOCKS, canonical

        name = canonical(name)
        if name in CLOCKS:
            return read_clock(self, name)
        return self.specials[name]

    def local_bases(self) -> Value:
        """Host address of each lane's local memory, as ``<32 x i64>``."""
        return Value("%local_bases", f"<{WARP} x i64>")


def _converted(pattern: int, width: int, want: int) -> int:
    """A floating-point constant in another width (decimal constants are 64 bits wide)."""
    import struct

    if width == 64 and want == 32:
        number = struct.unpack("<d", pattern.to_bytes(8, "little"))[0]
        return int(struct.unpack("<I", struct.pack("<f", number))[0])
    if width == 32 and want == 64:
        number = struct.unpack("<f", pattern.to_bytes(4, "little"))[0]
        return int(struct.unpack("<Q", struct.pack("<d", number))[0])
    return pattern & ((1 << want) - 1)
