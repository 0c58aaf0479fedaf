"""Operands for floating-point instructions, and the comparison of whole tables with the interpreter's numbers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from softgpu.engine.elf import Relocatable
from softgpu.engine.objects import QUICK, compile_object
from softgpu.engine.ops import Operation
from softgpu.engine.target import target_named
from softgpu.reference.numerics import FORMATS, INTEGERS, OPERATIONS, PACKED, Format
from tests.nodriver.engine.evaluate import Form, compiled, module_text, runs_here, stored

Array = npt.NDArray[Any]
_NARROW = {"e5m2": 2, "e4m3": 3, "bf16": 7, "f16": 10, "tf32": 10, "f32": 23}
"""Digits of the formats that numbers are converted to."""


def _edges(form: Format) -> Array:
    """Zeros, subnormal numbers and both sides of the borders, largest numbers, infinities, NaNs with payloads."""
    digits = form.mantissa_bits + form.padding
    one, infinity, least = form.one_bits, form.infinity_bits, form.smallest_normal
    patterns = [0, 1, 2, least - 1, least, least + 1, one - 1, one, one + 1, one + least, one + least // 2,
                form.largest_bits - 1, form.largest_bits, infinity, infinity | 1, infinity | 5 | least >> 1,
                form.canonical_nan & form.magnitude_mask, (form.bias + digits) * least + 1]
    return _patterns(form, np.array(patterns + [p | form.sign_mask for p in patterns], np.uint64))


def _patterns(form: Format, values: Array) -> Array:
    return values.astype(form.container)


def _assembled(form: Format, random: np.random.Generator, exponents: Array) -> Array:
    """Numbers with these exponents of 2; half of the mantissas have few digits, which gives ties and exact results."""
    digits = form.mantissa_bits + form.padding
    fields = np.clip(exponents + form.bias, 0, 2 * form.bias).astype(np.uint64)
    mantissas = random.integers(0, 1 << digits, len(fields), np.uint64)
    short = mantissas >> np.uint64(digits // 2) << np.uint64(digits // 2)
    mantissas = np.where(random.integers(0, 2, len(fields)) == 0, short, mantissas)
    signs = random.integers(0, 2, len(fields)).astype(np.uint64) * np.uint64(form.sign_mask)
    return _patterns(form, fields << np.uint64(digits) | mantissas | signs)


def _random(form: Format, random: np.random.Generator, count: int) -> Array:
    return _patterns(form, random.integers(0, 1 << (8 * form.container.itemsize), count, np.uint64))  \
        if form.container.itemsize < 8 else random.integers(0, 1 << 64, count, np.uint64)


def _related(form: Format, random: np.random.Generator, arity: int, count: int) -> list[Array]:
    """Operands whose product or quotient comes near 1, near the smallest numbers, or near the largest; a third one
    lies within reach of the product."""
    span, digits = form.bias, form.mantissa_bits
    targets = random.choice([0, -span - digits // 2, -span, -span - digits, span], count)
    first = random.integers(-span - 2, span + 1, count)
    first = np.where(random.integers(0, 2, count) == 0, random.integers(-3, 4, count), first)
    sign = random.choice([-1, 1], count)
    second = sign * (targets - first) + random.integers(-2, 3, count)
    third = targets + random.integers(-3 * digits - 8, 3 * digits + 9, count)
    return [_assembled(form, random, e) for e in (first, second, third)[:arity]]


def _around_narrow(form: Format, random: np.random.Generator, count: int) -> Array:
    """f32 or f64 numbers on and next to the numbers, and the middles between them, of narrower formats; the same for
    integers."""
    step = 2.0**-form.mantissa_bits
    parts = []
    for name, digits in _NARROW.items():
        lowest, highest = FORMATS[name].minimum_exponent - digits - 2, FORMATS[name].bias + 2
        wide = np.ldexp((random.integers(0, 4 << digits, count) + (4 << digits)).astype(np.float64), -digits - 2)
        wide *= 1 + random.integers(-1, 2, count) * step
        parts.append(np.ldexp(wide, random.integers(lowest, highest, count).astype(np.int32)))
    parts.append(random.integers(-70000, 70000, count) / 2.0)
    powers = np.ldexp(1.0, random.integers(5, 66, count).astype(np.int32))
    parts += [powers * (1 + random.integers(-2, 3, count) * step), powers + random.integers(-3, 4, count) / 2]
    numbers = np.concatenate(parts)
    numbers *= random.choice([-1.0, 1.0], len(numbers))
    with np.errstate(over="ignore", under="ignore"):
        return numbers.astype(np.float32).view(np.uint32) if form.name == "f32" else numbers.view(np.uint64)


def _integers(kind: str, random: np.random.Generator, count: int) -> Array:
    """Powers of 2 and their neighbours, ties of every floating-point format, random numbers of every length."""
    width = int(kind[1:])
    values = [0, 1, 2, 3, 65503, 65504, 65505, 65519, 65520, 65521]
    for power in range(1, width):
        values += [(1 << power) + d for d in (-1, 0, 1)]
        for digits in (7, 10, 23, 52):
            if power > digits + 1:
                half = 1 << (power - digits - 1)
                values += [(1 << power) + odd * half + d for odd in (1, 3) for d in (-1, 0, 1)]
    values += [-v for v in values]
    edges = np.array([v & ((1 << width) - 1) for v in values], np.uint64)
    anything = random.integers(0, 1 << 64, count, np.uint64) >> random.integers(64 - width, 64, count).astype(np.uint64)
    return np.concatenate([edges, anything]).astype(f"u{width // 8}")


def operands(kinds: Sequence[str], count: int, seed: int) -> list[Array]:
    """Bit patterns for the sources of an instruction; ``count``: of each way to choose them."""
    random = np.random.default_rng(seed)
    first = kinds[0]
    if first in INTEGERS:
        return [_integers(kind, random, count) for kind in kinds]
    if first in ("b8", "b16"):
        return [np.arange(1 << int(first[1:]), dtype=stored(first))]
    if first == "f32x2":
        return _both_halves(("f32",) * len(kinds), count, seed)
    if first in PACKED:
        return _packed(kinds, count, seed)
    forms = [FORMATS[kind] for kind in kinds]
    if len(kinds) == 1 and forms[0].container.itemsize == 2:
        return [np.arange(1 << 16, dtype=np.uint16)]
    edges = [_edges(form) for form in forms]
    if len(kinds) == 1:
        return [np.concatenate([edges[0], _random(forms[0], random, count), _around_narrow(forms[0], random, count)])]
    grid = [axis.ravel() for axis in np.meshgrid(*(e if len(kinds) == 2 else e[::2] for e in edges))]
    sets = [grid, [_random(form, random, count) for form in forms]]
    sets.append([_assembled(form, random, random.integers(-3, 4, count)) for form in forms])
    for odd in (0, 1):
        sets.append([random.choice(edges[i], count) if i % 2 == odd else _random(form, random, count)
                     for i, form in enumerate(forms)])
    if len(set(kinds)) == 1:
        sets.append(_related(forms[0], random, len(kinds), count))
    if kinds == ("f32",) * 2:
        around = [_around_narrow(forms[0], random, count) for _ in kinds]
        sets.append([around[0], random.permutation(around[1])])
    return [np.concatenate(column) for column in zip(*sets, strict=True)]


def _packed(kinds: Sequence[str], count: int, seed: int) -> list[Array]:
    half, width = PACKED[kinds[0]]
    if width == 8:
        return [np.arange(1 << 16, dtype=np.uint16)]
    return _both_halves((half,) * len(kinds), count, seed)


def _both_halves(kinds: Sequence[str], count: int, seed: int) -> list[Array]:
    halves = operands(kinds, count, seed)
    order = np.random.default_rng(seed).permutation(len(halves[0]))
    width = 8 * halves[0].itemsize
    return [x.astype(f"u{width // 4}") << width | x[order] for x in halves]


@cache
def _expected(mnemonic: str, count: int, seed: int) -> tuple[list[Array], Array]:
    reference = OPERATIONS[mnemonic]
    given = operands(reference.sources, count, seed)
    return given, np.asarray(reference(*given))


def _same_nan(array: Array, kind: str) -> Array:
    """With one pattern for all NaNs."""
    form = FORMATS[kind]
    nan = form.container.type(form.magnitude_mask)
    return np.where((array & nan) > form.infinity_bits, nan, array)


def disagreements(table: Sequence[Operation], count: int, seed: int, cpu: str, optimize: bool) -> list[str]:
    """A line for each operation that differs from the interpreter, with the first operands where it does."""
    if not runs_here(cpu):
        return []
    found = []
    for operation, function in zip(table, compiled(table, cpu, optimize), strict=True):
        reference = OPERATIONS[operation.mnemonic]
        assert (reference.sources, (reference.result,)) == (operation.sources, operation.results), operation.mnemonic
        given, want = _expected(operation.mnemonic, count, seed)
        have = function(*given)[0]
        if not operation.canonical:
            have, want = _same_nan(have, reference.result), _same_nan(want, reference.result)
        where = np.flatnonzero(have != want)
        if len(where):
            at = int(where[0])
            shown = ", ".join(hex(int(x[at])) for x in given)
            found.append(f"{operation.mnemonic}({shown}): {int(have[at]):#x}, not {int(want[at]):#x}; "
                         f"{len(where)} such, for {cpu}")
    return found


def undefined_symbols(table: Sequence[Operation]) -> set[str]:
    """Names that the compiled operations would need from elsewhere, on the smallest CPU."""
    text = module_text([Form(operation) for operation in table], "x86-64-v3")
    symbols = Relocatable(compile_object(text, QUICK, target_named("x86-64-v3"))).symbols
    return {symbol.name for symbol in symbols if symbol.section == 0 and symbol.name}


def whitelist(families: Sequence[str]) -> set[str]:
    """The interpreter's mnemonics of these families, without approximate functions."""
    return {name for name, operation in OPERATIONS.items() if operation.family in families
            and not {"approx", "full"} & set(name.split("."))}
