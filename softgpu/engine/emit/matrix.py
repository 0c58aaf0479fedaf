"""Matrix instructions that touch memory: ldmatrix, stmatrix, wmma.load, wmma.store; and movmatrix.

All lanes take part. The rows of ldmatrix and stmatrix are checked at the lanes that give their addresses.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

from ptxparse.model import Operand
from softgpu.engine.emit import loads, rows
from softgpu.engine.emit.access import LIMIT_AT, READ, SHARED, WRITE, Access, Place, cache_of, interleaved
from softgpu.engine.emit.lower import Mask
from softgpu.engine.emit.memory import address, items
from softgpu.engine.emit.warp import whole_warp
from softgpu.engine.ir import WARP, Builder, Value, joined, shaped
from softgpu.engine.ops import fragments
from softgpu.engine.shapes import Shape

if TYPE_CHECKING:
    from softgpu.engine.emit.lower import Lower

_SPACES = {"global": "global", "shared": "shared", "shared::cta": "shared"}
_LANES = range(WARP)


@cache
def wmma_accesses() -> dict[str, fragments.Access]:
    return {access.mnemonic: access for access in fragments.wmma_accesses()}


def _split(lower: Lower) -> tuple[str, str]:
    """The mnemonic without its state space, and the space ("": generic)."""
    modifiers = list(lower.instruction.modifiers)
    found = next((m for m in modifiers if m in _SPACES), "")
    if found:
        modifiers.remove(found)
    return ".".join((lower.instruction.opcode, *modifiers)), _SPACES.get(found, "")


def ldmatrix(lower: Lower) -> None:
    name, space = _split(lower)
    parts = name.split(".")
    count, trans = _move_form(lower, parts, "ldmatrix")
    whole_warp(lower)
    b = lower.builder
    target, source = lower.instruction.operands
    access = _rows(lower, address(lower, source, space), count, READ)

    def columns(b: Builder, whole: Value) -> list[Value]:
        # The eight rows of a matrix are 16 bytes each, at the addresses that lanes 8 m to 8 m + 7 give.
        halves = b.reinterpret(whole, f"<{8 * WARP} x i16>")
        found = []
        for source_of in fragments.ldmatrix_source(count, trans)[:count]:
            order = [8 * lane + byte // 2 for pair in source_of for lane, byte in pair]
            found.append(b.reinterpret(b.shuffle(halves, None, order), f"<{WARP} x i32>"))
        return found

    if access.rowwise:
        words = rows.load(access, f"matrix_x{count}{'_trans' * trans}", [f"<{WARP} x i32>"] * count, columns)
    else:
        words = columns(b, interleaved(b, [b.splat(word) for word in loads.load(access)]))
    for word, item in zip(words, items(lower, target, count), strict=True):
        lower.write(item, "b32", word)


def _move_form(lower: Lower, parts: list[str], opcode: str) -> tuple[int, bool]:
    expected = [opcode, "sync", "aligned", "m8n8"]
    rest = parts[4:]
    if parts[:4] != expected or not rest or rest[0] not in ("x1", "x2", "x4") or rest[-1] != "b16" or (
            rest[1:-1] not in ([], ["trans"])):
        lower.fail("not in the table of supported mnemonics")
    if len(lower.instruction.operands) != 2:
        lower.fail(f"{len(lower.instruction.operands)} operands")
    return int(rest[0][1:]), "trans" in rest


def _rows(lower: Lower, place: Place, count: int, kind: int) -> Access:
    """An access of 16 bytes by the lanes that give row addresses."""
    givers = (1 << (8 * count)) - 1
    mask = Mask(lower.builder.constant(givers, "i32"), count == 4)
    return Access(lower, place, 64, 2, kind, mask)


def stmatrix(lower: Lower) -> None:
    name, space = _split(lower)
    count, trans = _move_form(lower, name.split("."), "stmatrix")
    whole_warp(lower)
    b = lower.builder
    target, source = lower.instruction.operands
    access = _rows(lower, address(lower, target, space), count, WRITE)
    registers = [lower.read(item, "b32", vector=True) for item in items(lower, source, count)]
    if access.rowwise:
        rows.store(access, f"matrix_x{count}{'_trans' * trans}", registers,
                   lambda b, given: interleaved(b, _words(b, given, trans)))
    else:
        loads.store(access, _words(b, registers, trans))


def _words(b: Builder, registers: Sequence[Value], trans: bool) -> list[Value]:
    """Two 64-bit words for each lane that gives an address: the row that is to be stored there."""
    count = len(registers)
    where = fragments.ldmatrix_source(count, trans)
    origin: dict[tuple[int, int], int] = {}
    for register in range(count):
        for lane in _LANES:
            for half in range(2):
                giver, byte = where[register][lane][half]
                origin[giver, byte // 2] = 2 * WARP * register + 2 * lane + half
    halves = b.reinterpret(joined(b, list(registers)), f"<{2 * WARP * count} x i16>")
    words = []
    for word in range(2):
        order = [origin.get((lane, 4 * word + k), -1) for lane in _LANES for k in range(4)]
        words.append(b.reinterpret(b.shuffle(halves, None, order), f"<{WARP} x i64>"))
    return words


def movmatrix(lower: Lower) -> None:
    if lower.instruction.mnemonic != "movmatrix.sync.aligned.m8n8.trans.b16" or len(lower.instruction.operands) != 2:
        lower.fail("not in the table of supported mnemonics")
    whole_warp(lower)
    b = lower.builder
    target, source = lower.instruction.operands
    halves = b.reinterpret(lower.read(source, "b32", vector=True), f"<{2 * WARP} x i16>")
    order = [2 * lane + half for pair in fragments.movmatrix_source() for lane, half in pair]
    lower.write(target, "b32", b.reinterpret(b.shuffle(halves, None, order), f"<{WARP} x i32>"))


def wmma(lower: Lower) -> None:
    """wmma.load and wmma.store: each lane's elements, at row and column of its fragment.

    The whole matrix is checked at once. If the check fails the run-time looks at every element, which leaves the
    distance between addresses and host addresses; then all elements are accessed without further checks.
    """
    name, space = _split(lower)
    form = wmma_accesses().get(name)
    if form is None:
        lower.fail("not in the table of supported mnemonics")
    operands = lower.instruction.operands
    if len(operands) not in (2, 3):
        lower.fail(f"{len(operands)} operands")
    mask = whole_warp(lower)
    at, registers = (0, 1) if form.is_store else (1, 0)
    place = address(lower, operands[at], space)
    names = items(lower, operands[registers], form.fragment.registers)
    whole = Access(lower, place, 8 * form.element_bytes, 1, WRITE if form.is_store else READ, mask)
    elements = _Elements(lower, form, whole.addresses(), _stride(lower, operands, form))
    origin = elements.host_origin(whole)
    move = elements.store if form.is_store else elements.load
    for register, item in enumerate(names):
        move(item, register, origin)


def _stride(lower: Lower, operands: tuple[Operand, ...], form: fragments.Access) -> Value:
    """Distance of rows (columns) in bytes, as ``<32 x i64>``."""
    b = lower.builder
    if len(operands) == 3:
        elements = b.zext(lower.read(operands[2], "u32", vector=True), "i64")
    else:
        elements = b.constant(form.default_stride, "i64", WARP)
    return b.mul(elements, b.like(form.element_bytes, elements))


class _Elements:
    """The elements of one wmma.load or wmma.store. ``base``: each lane's matrix address."""

    def __init__(self, lower: Lower, form: fragments.Access, base: Value, stride: Value) -> None:
        self.lower = lower
        self.form = form
        self.base = base
        self.stride = stride
        self.element = 8 * form.element_bytes
        self.register_bits = 64 if form.fragment.kind == "f64" else 32
        self.kind = shaped(f"i{self.element}", WARP)

    def spots(self, register: int, part: int) -> tuple[list[int], list[int]]:
        """Along and across the rows (or columns) that are ``stride`` apart: numbers of elements, by lane."""
        positions = [self.form.fragment.position(register, part, lane) for lane in _LANES]
        row = self.form.layout == "row"
        return [p[0] if row else p[1] for p in positions], [p[1] if row else p[0] for p in positions]

    def offsets(self, register: int, part: int) -> Value:
        """Bytes from the matrix's address, by lane."""
        b = self.lower.builder
        major, minor = self.spots(register, part)
        far = b.mul(self.stride, b.vector(major, "i64"))
        return b.add(far, b.vector([m * self.form.element_bytes for m in minor], "i64"))

    def host_origin(self, whole: Access) -> Value:
        """Host address of each lane's matrix."""
        lower, b = self.lower, self.lower.builder
        fragment = self.form.fragment
        spots = [self.spots(r, p) for r in range(fragment.registers) for p in range(fragment.per_register)]
        rows = max(max(major) for major, _ in spots)
        across = max(max(minor) for _, minor in spots) + 1
        slow, fast, done = lower.label("slow"), lower.label("fast"), lower.label("matrix")
        good = self._inside(whole, rows, across)
        lower.branch(good, fast, slow, likely=True)
        lower.place(fast)
        quick = self.base if whole.place.space != SHARED else b.add(self.base, b.splat(
            b.emit(f"ptrtoint ptr {lower.env('shared').ref} to i64", "i64")))
        lower.jump(done)
        lower.place(slow)
        careful = self._looked_at(whole, spots)
        end = lower.label("end")
        lower.jump(end)
        lower.place(end)
        lower.jump(done)
        lower.place(done)
        return b.emit(f"phi {quick.type} [ {quick.ref}, %{fast} ], [ {careful.ref}, %{end} ]", quick.type)

    def _inside(self, whole: Access, rows: int, across: int) -> Value:
        """Whether all bytes of the matrix are in one allocation, or in shared memory; an i1."""
        lower, b = self.lower, self.lower.builder
        first, step = b.extract(self.base, 0), b.extract(self.stride, 0)
        # One matrix for the whole warp, which must be so, and a stride that cannot make the sum wrap around.
        same = lower.bits_of(b.and_(b.icmp("eq", self.base, b.splat(first)),
                                    b.icmp("eq", self.stride, b.splat(step))))
        small = b.icmp("ult", step, b.constant(1 << 32, "i64"))
        extent = b.add(b.mul(step, b.constant(rows, "i64")), b.constant(across * self.form.element_bytes, "i64"))
        space = whole.place.space
        if lower.options.logs and space != SHARED:
            return Value("false", "i1")
        cache = cache_of(lower, whole.place, 1, 0)  # its limit is the size
        start, size = lower.load("i64", cache), lower.load("i64", lower.at(cache, LIMIT_AT))
        distance = b.sub(first, start)
        inside = b.and_(b.icmp("ule", extent, size), b.icmp("ule", distance, b.sub(size, extent)))
        together = b.or_(b.sub(first, start), step)
        aligned = b.icmp("eq", b.and_(together, b.constant(self.form.element_bytes - 1, "i64")), Value("0", "i64"))
        every = b.icmp("eq", same, Value("-1", "i32"))
        return b.and_(b.and_(every, small), b.and_(inside, aligned))

    def _looked_at(self, whole: Access, spots: list[tuple[list[int], list[int]]]) -> Value:
        """Every element looked at by the run-time; the host address of the matrix by that of the last one."""
        lower, b = self.lower, self.lower.builder
        table = "\n".join([
            f"  [{WARP} x i64] [{', '.join(f'i64 {n}' for n in numbers)}]," for pair in spots for numbers in pair])
        name = f"softgpu_spots{len(b.helpers)}"
        b.helpers[name] = (f"@{name} = internal constant [{2 * len(spots)} x [{WARP} x i64]] [\n"
                           f"{table.rstrip(',')}\n]\n")
        head, on = lower.label("element"), lower.label("elements_done")
        before = lower.label("before")
        lower.jump(before)
        lower.place(before)
        lower.jump(head)
        lower.place(head)
        number, following, latch = b.fresh("n"), b.fresh("n"), lower.label("looked_at")
        b.line(f"  {number} = phi i64 [ 0, %{before} ], [ {following}, %{latch} ]")
        row = b.emit(f"getelementptr [{2 * WARP} x i64], ptr @{name}, i64 0, i64 0", "ptr")
        row = b.emit(f"getelementptr [{2 * WARP} x i64], ptr {row.ref}, i64 {number}", "ptr")
        major = lower.load(f"<{WARP} x i64>", row, 8)
        minor = lower.load(f"<{WARP} x i64>", lower.at(row, 8 * WARP), 8)
        distance = b.add(b.mul(self.stride, major), b.mul(minor, b.like(self.form.element_bytes, minor)))
        spot = Place(whole.place.space, b.add(self.base, distance), Shape(1), whole.place.root)
        access = Access(lower, spot, self.element, 1, WRITE if self.form.is_store else READ, whole.mask)
        room = access.resolved()
        host = b.sub(lower.load(f"<{WARP} x i64>", room, 64), distance)
        lower.jump(latch)
        lower.place(latch)
        b.line(f"  {following} = add i64 {number}, 1")
        more = b.icmp("ult", Value(following, "i64"), b.constant(len(spots), "i64"))
        lower.branch(more, head, on)
        lower.place(on)
        return host

    def _pointers(self, origin: Value, register: int, part: int) -> Value:
        b = self.lower.builder
        whole = b.add(origin, self.offsets(register, part))
        return b.emit(f"inttoptr {whole.type} {whole.ref} to <{WARP} x ptr>", f"<{WARP} x ptr>")

    def _adjacent(self, register: int) -> bool:
        """Whether the elements of each register are neighbours in memory, so that it is accessed as one word."""
        first = self.spots(register, 0)
        for part in range(1, self.form.fragment.per_register):
            major, minor = self.spots(register, part)
            if major != first[0] or minor != [m + part for m in first[1]]:
                return False
        return True

    def load(self, item: Operand, register: int, origin: Value) -> None:
        lower, b = self.lower, self.lower.builder
        bits = self.register_bits
        if self.form.fragment.per_register == 1 or self._adjacent(register):
            pointers = self._pointers(origin, register, 0)
            lower.write(item, f"b{bits}", loads.gathered(lower, pointers, bits, self.form.element_bytes, lower.mask))
            return
        whole: Value | None = None
        for part in range(self.form.fragment.per_register):
            value = loads.gathered(lower, self._pointers(origin, register, part), self.element,
                                   self.form.element_bytes, lower.mask)
            value = b.zext(value, f"i{bits}")
            if part:
                value = b.shl(value, b.like(part * self.element, value))
            whole = value if whole is None else b.or_(whole, value)
        assert whole is not None
        lower.write(item, f"b{bits}", whole)

    def store(self, item: Operand, register: int, origin: Value) -> None:
        lower, b = self.lower, self.lower.builder
        bits = self.register_bits
        word = lower.read(item, f"b{bits}", vector=True)
        if self.form.fragment.per_register == 1 or self._adjacent(register):
            loads.scattered(lower, self._pointers(origin, register, 0), word, bits, self.form.element_bytes, lower.mask)
            return
        for part in range(self.form.fragment.per_register):
            value = b.lshr(word, b.like(part * self.element, word)) if part else word
            loads.scattered(lower, self._pointers(origin, register, part), b.trunc(value, f"i{self.element}"),
                            self.element, self.form.element_bytes, lower.mask)
