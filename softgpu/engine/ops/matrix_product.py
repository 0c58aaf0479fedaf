"""mma.sync and wmma.mma: matrix products of a warp.

Element of D at (row, column) = C plus the sum over k of A at (row, k) times B at (k, column). Every lane sums the
elements of D that it holds: for each k the elements of A and B are brought to the lanes that need them by shuffles,
each of which serves all registers of D that need the same.

Order and precision, which the manual leaves open for floating-point types ("at least single precision"):

* f32 and f16 accumulators: sums in f32. ``rounding`` 0: fused multiply-adds from C on, k ascending; 1: sums of four
  products each, added to C one after the other. f16 results are rounded once, at the end.
* f64: fused multiply-adds, k ascending, in the rounding mode asked for.
* Integers: exact, then wrapped to s32, or clamped with ``.satfinite``. Sums of products of 8 and 4 bits are exact in
  f32.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from softgpu.engine.ir import WARP, Builder, Value
from softgpu.engine.ops.fragments import Fragment, Position
from softgpu.engine.ops.matrix_elements import elements, pack_halves
from softgpu.engine.ops.matrix_gather import Elements
from softgpu.engine.ops.operation import TYPES, Operation

Step = Callable[[Builder, Value, Value, Value], Value]
"""(builder, a, b, sum) -> sum + a b."""

_GROUP = 4
"""Products that are summed before they are added to the accumulator, of a card with ``grouped`` sums."""


def _convention(builder: Builder) -> str:
    """Calling convention: registers of the matrices in vector registers, where there are enough of these."""
    return "x86_regcallcc" if builder.wide_registers else "fastcc"


def _fma(builder: Builder, a: Value, b: Value, total: Value) -> Value:
    return builder.fma(a, b, total)


@dataclass(frozen=True)
class Product:
    """A matrix instruction. ``steps``: how many k there are; ``grouped``: sums of several products at a time."""

    mnemonic: str
    a: Fragment
    b: Fragment
    c: Fragment
    d: Fragment
    steps: int
    step: Step = _fma
    satfinite: bool = False
    grouped: bool = False

    def operation(self) -> Operation:
        sources = tuple(part.register_type for part in (self.a, self.b, self.c) for _ in part.positions)
        results = (self.d.register_type,) * self.d.registers
        canonical = self.d.kind not in ("f32", "f64")
        return Operation(self.mnemonic, sources, results, self.emit, warp=True, canonical=canonical)

    def emit(self, builder: Builder, *registers: Value) -> tuple[Value, ...]:
        """A call of the function that has the product, which is made once in a module.

        Written out at each place, products of the same A would share its shuffles, 64 registers of 512 bits, and LLVM
        would spend its time, and the machine its own, on keeping them in memory.
        """
        name = f"softgpu_{self.mnemonic.replace('.', '_').replace(':', '_')}"
        types = [register.type for register in registers]
        result = f"{{{', '.join([f'<{WARP} x {TYPES[self.d.register_type]}>'] * self.d.registers)}}}"
        if name not in builder.helpers:
            self._define(builder, name, types, result)
        given = ", ".join([f"{register.type} {register.ref}" for register in registers])
        call = builder.emit(f"call {_convention(builder)} {result} @{name}({given})", result)
        element = f"<{WARP} x {TYPES[self.d.register_type]}>"
        return tuple(builder.emit(f"extractvalue {result} {call.ref}, {index}", element)
                     for index in range(self.d.registers))

    def _define(self, builder: Builder, name: str, types: Sequence[str], result: str) -> None:
        inner = Builder(builder.wide_registers)
        registers = [Value(f"%register{index}", type_) for index, type_ in enumerate(types)]
        value = Value("poison", result)
        for index, register in enumerate(self._product(inner, *registers)):
            value = inner.emit(f"insertvalue {result} {value.ref}, {register.type} {register.ref}, {index}", result)
        parameters = ", ".join([f"{register.type} {register.ref}" for register in registers])
        builder.declarations.update(inner.declarations)
        builder.helpers.update(inner.helpers)
        head = f"define internal {_convention(builder)} {result} @{name}({parameters}) noinline {{"
        builder.helpers[name] = "\n".join([head, *inner.lines, f"  ret {result} {value.ref}", "}"])

    def _product(self, builder: Builder, *registers: Value) -> tuple[Value, ...]:
        """Registers of A, B and C to those of D."""
        first, second = self.a.registers, self.a.registers + self.b.registers
        a = elements(builder, self.a, registers[:first])
        b = elements(builder, self.b, registers[first:second])
        c = elements(builder, self.c, registers[second:])
        targets = [positions for register in self.d.positions for positions in register]
        start = [c.at(positions) for positions in targets]
        if self.d.kind == "s32" and a.element_type == "float":
            sums = self._sums(builder, a, b, targets, [builder.zero(f"<{WARP} x float>")] * len(targets))
            return tuple(self._integer(builder, *pair) for pair in zip(sums, start, strict=True))
        sums = self._sums(builder, a, b, targets, start)
        if self.d.kind == "f16":
            return tuple(pack_halves(builder, *sums[index:index + 2]) for index in range(0, len(sums), 2))
        return tuple(sums)

    def _sums(self, builder: Builder, a: Elements, b: Elements, targets: Sequence[tuple[Position, ...]],
              start: Sequence[Value]) -> list[Value]:
        """One sum for each list of positions of D in ``targets``."""
        sums, group = list(start), list(start)
        for k in range(self.steps):
            for index, positions in enumerate(targets):
                left = a.at(tuple((row, k) for row, _ in positions))
                right = b.at(tuple((k, column) for _, column in positions))
                if not self.grouped:
                    sums[index] = self.step(builder, left, right, sums[index])
                elif k % _GROUP == 0:
                    group[index] = builder.binary("fmul", left, right)
                else:
                    group[index] = builder.fma(left, right, group[index])
                if self.grouped and k % _GROUP == _GROUP - 1:
                    sums[index] = builder.binary("fadd", sums[index], group[index])
        return sums

    def _integer(self, builder: Builder, total: Value, c: Value) -> Value:
        exact = builder.cast("fptosi", total, "i32")
        return builder.intrinsic("llvm.sadd.sat", "i32", c, exact) if self.satfinite else builder.add(c, exact)
