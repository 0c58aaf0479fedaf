"""Symbolic integers: sums of products of atoms, hash-consed.

A *sum* (:data:`Sum`) is a polynomial with integer coefficients over *atoms*; an atom is a leaf (a thread index, a
launch parameter, a loop counter, something unknown with known bounds) or an operation that is not polynomial (a shift
right, a remainder, a minimum, a selection). Sums are mathematical integers. A register of w bits holds a sum modulo
2^w; where an instruction looks at the signed or unsigned number in it, the atom ``wrap`` stands for that number, and
``flatten`` later replaces ``wrap`` by its argument together with a *check* that the argument lies in range.
"""

from __future__ import annotations

from typing import Any, NamedTuple

Product = tuple[int, ...]
Sum = tuple[tuple[Product, int], ...]
Node = tuple[object, ...]

INFINITY = 1 << 200
"""Stands for "no bound"; larger than anything 64-bit arithmetic yields, small enough to calculate with."""

MOST_TERMS = 48
MOST_FACTORS = 4
DEEPEST = 100
"""Operations nested more deeply become unknowns with the bounds that are known of them."""

ZERO: Sum = ()
ONE: Sum = (((), 1),)

UNIFORM_LEAVES = frozenset({"ntid", "nctaid", "param", "shared_size"})


class Check(NamedTuple):
    """``value`` must lie in [low, high] for what was derived from it to hold."""

    value: Sum
    low: int
    high: int


def constant(value: int) -> Sum:
    return (((), value),) if value else ZERO


def constant_of(value: Sum) -> int | None:
    """The number if the sum is one, else None."""
    if not value:
        return 0
    if len(value) == 1 and not value[0][0]:
        return value[0][1]
    return None


def constant_term(value: Sum) -> int:
    return value[0][1] if value and not value[0][0] else 0


def without_constant(value: Sum) -> Sum:
    return value[1:] if value and not value[0][0] else value


def add(a: Sum, b: Sum, factor: int = 1) -> Sum:
    """a + factor * b."""
    if not b or not factor:
        return a
    if not a and factor == 1:
        return b
    terms = dict(a)
    for product, coefficient in b:
        total = terms.get(product, 0) + coefficient * factor
        if total:
            terms[product] = total
        else:
            terms.pop(product, None)
    return tuple(sorted(terms.items()))


def scale(a: Sum, factor: int) -> Sum:
    if not factor:
        return ZERO
    return a if factor == 1 else tuple([(product, c * factor) for product, c in a])


def reduce(a: Sum, bits: int) -> Sum:
    """Coefficients brought to the representative of smallest size modulo 2^bits; the sum stays the same modulo it."""
    half, whole = 1 << (bits - 1), 1 << bits
    if all(-half <= c < half for _, c in a):
        return a
    return tuple([(p, r) for p, c in a if (r := (c + half) % whole - half)])


class Graph:
    """The atoms of one kernel. ``low`` and ``high`` hold static bounds of each atom, ``uniform`` whether it is the same
    for all threads of a launch and known from the launch alone."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.index: dict[Node, int] = {}
        self.low: list[int] = []
        self.high: list[int] = []
        self.uniform: list[bool] = []
        self.depth: list[int] = []

    def atom(self, node: Node, low: int, high: int, uniform: bool) -> int:
        """The id of an atom, made if new."""
        found = self.index.get(node)
        if found is None:
            found = self.index[node] = len(self.nodes)
            self.nodes.append(node)
            self.low.append(low)
            self.high.append(high)
            self.uniform.append(uniform)
            self.depth.append(0)
        return found

    def load(self, serial: int, address: Sum, size: int, signed: bool, low: int, high: int) -> Sum:
        """What a load of ``size`` bytes at ``address`` yields: a leaf, unless the bytes there are known."""
        depth = 1 + max([self.depth[a] for product, _ in address for a in product], default=0)
        if depth > DEEPEST:
            return self.leaf(("unknown", serial, low, high, "memory"), low, high)
        found = self.atom(("load", serial, address, size, signed), low, high, False)
        self.depth[found] = depth
        return (((found,), 1),)

    def leaf(self, node: Node, low: int, high: int) -> Sum:
        return (((self.atom(node, low, high, node[0] in UNIFORM_LEAVES),), 1),)

    def unknown(self, low: int, high: int) -> Sum:
        """A fresh value of which only bounds are known."""
        if low == high:
            return constant(low)
        return self.leaf(("unknown", len(self.nodes), low, high, "value"), low, high)

    def derived(self, node: Node, low: int, high: int, *arguments: Sum) -> Sum:
        if low == high:
            return constant(low)
        depth = 1 + max([self.depth[a] for value in arguments for product, _ in value for a in product], default=0)
        if depth > DEEPEST:
            return self.unknown(low, high)
        found = self.atom(node, low, high, all(map(self.is_uniform, arguments)))
        self.depth[found] = depth
        return (((found,), 1),)

    def single(self, value: Sum) -> tuple[Any, ...] | None:
        """The node of a sum that is one atom by itself, else None."""
        if len(value) == 1 and value[0][1] == 1 and len(value[0][0]) == 1:
            return self.nodes[value[0][0][0]]
        return None

    def is_uniform(self, value: Sum) -> bool:
        uniform = self.uniform
        return all(uniform[atom] for product, _ in value for atom in product)

    def bounds(self, value: Sum) -> tuple[int, int]:
        """Static bounds of a sum (interval arithmetic over its atoms)."""
        low = high = 0
        for product, coefficient in value:
            least = most = 1
            for atom in product:
                a, b = self.low[atom], self.high[atom]
                corners = (least * a, least * b, most * a, most * b)
                least, most = min(corners), max(corners)
            if coefficient > 0:
                low += coefficient * least
                high += coefficient * most
            else:
                low += coefficient * most
                high += coefficient * least
        return max(low, -INFINITY), min(high, INFINITY)

    def possible_bits(self, value: Sum) -> int:
        """A mask of the bits that can be 1; negative masks have all high bits set. -1 when nothing is known."""
        mask = 0
        for product, coefficient in value:
            low, high = self.bounds(((product, coefficient),))
            zeros = coefficient & -coefficient
            part = -zeros if low < 0 or high >= INFINITY else ((1 << high.bit_length()) - 1) & -zeros
            if mask & part:
                # The parts may carry into each other; only the common trailing zeros remain known.
                lowest = (mask & -mask) if mask & -mask < zeros else zeros
                mask = -lowest
            else:
                mask |= part
        return mask

    def multiply(self, a: Sum, b: Sum) -> Sum:
        if (number := constant_of(a)) is not None:
            return scale(b, number)
        if (number := constant_of(b)) is not None:
            return scale(a, number)
        if len(a) * len(b) > MOST_TERMS:
            return self._product(a, b)
        terms: dict[Product, int] = {}
        for pa, ca in a:
            for pb, cb in b:
                product = tuple(sorted(pa + pb)) if pa and pb else pa or pb
                if len(product) > MOST_FACTORS:
                    return self._product(a, b)
                terms[product] = terms.get(product, 0) + ca * cb
        return tuple(sorted([item for item in terms.items() if item[1]]))

    def _product(self, a: Sum, b: Sum) -> Sum:
        (al, ah), (bl, bh) = self.bounds(a), self.bounds(b)
        corners = (al * bl, al * bh, ah * bl, ah * bh)
        low, high = min(corners), max(corners)
        if low <= -INFINITY or high >= INFINITY:
            # Products of products of numbers that nobody bounds grow past all use.
            return self.unknown(-INFINITY, INFINITY)
        return self.derived(("multiply", *sorted((a, b))), low, high, a, b)

    def wrap(self, value: Sum, bits: int, signed: bool) -> Sum:
        """The signed or unsigned number that ``value`` modulo 2^bits stands for."""
        if bits == 1 and not signed:
            low, high = self.bounds(value)
            if low >= 0 and high <= 1:
                return value
        value = reduce(value, bits)
        number = constant_of(value)
        low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
        if number is not None:
            number &= (1 << bits) - 1
            return constant(number - (1 << bits) if number > high else number)
        least, most = self.bounds(value)
        if low <= least and most <= high:
            return value
        node = self.single(value)
        if node is not None and node[0] == "wrap" and node[2] == bits:
            return self.wrap(node[1], bits, signed)
        return self.derived(("wrap", value, bits, signed), low, high, value)

    def shift_right(self, value: Sum, count: int) -> Sum:
        """floor(value / 2^count)."""
        if not count:
            return value
        unit = 1 << count
        whole = tuple([(p, c // unit) for p, c in value if c % unit == 0])
        rest = tuple([(p, c) for p, c in value if c % unit])
        if count >= 32 and len(rest) == 1 and -unit < 2 * rest[0][1] < 0:
            # A multiplier with its sign bit set, as in signed division by 7: floor(c x / u) = floor((c + u) x / u) - x.
            whole = add(whole, ((rest[0][0], 1),), -1)
            rest = ((rest[0][0], rest[0][1] + unit),)
        if rest and not rest[0][0]:
            fixed = rest[0][1]
            whole = add(whole, constant(fixed // unit))
            rest = add(rest, constant(fixed // unit * unit), -1)
        low, high = self.bounds(rest)
        if low >= 0 and high < unit:
            return whole
        quotient = self._exact_division(rest, count)
        if quotient is not None:
            return add(whole, quotient)
        common = 0
        for _, c in rest:
            common |= c
        zeros = (common & -common).bit_length() - 1
        if zeros:
            rest = tuple([(p, c >> zeros) for p, c in rest])
            count -= zeros
            low >>= zeros
            high >>= zeros
        low = low >> count if low > -INFINITY else low
        high = high >> count if high < INFINITY else high
        node = self.single(rest)
        if node is not None and node[0] == "shift_right":
            return add(whole, self.shift_right(node[1], node[2] + count))
        return add(whole, self.derived(("shift_right", rest, count), low, high, rest))

    def _exact_division(self, value: Sum, count: int) -> Sum | None:
        """``(m * x) >> count`` as compilers write x / d: recognised when it equals floor(x / d) for all 0 <= x < 2^N
        (Granlund and Montgomery 1994, theorem 4.2: 2^count <= m d <= 2^count + 2^(count - N))."""
        if len(value) != 1 or count < 32 or value[0][1] < 3:
            return None
        product, m = value[0]
        low, high = self.bounds(((product, 1),))
        if low < 0 or high.bit_length() > count:
            return None
        d = -(-(1 << count) // m)
        if not (1 << count) <= m * d <= (1 << count) + (1 << (count - high.bit_length())):
            return None
        return self.divide(((product, 1),), constant(d))

    def low_bits(self, value: Sum, count: int) -> Sum:
        """value modulo 2^count, from 0."""
        unit = 1 << count
        value = self._without_inner_wraps(tuple([(p, r) for p, c in value if (r := c % unit)]), count)
        low, high = self.bounds(value)
        if low >= 0 and high < unit:
            return value
        negative = tuple([(p, c - unit if c > unit >> 1 else c) for p, c in value])
        low, high = self.bounds(negative)
        if low >= 0 and high < unit:
            return negative
        value = negative
        common = 0
        for _, c in value:
            common |= c
        zeros = (common & -common).bit_length() - 1
        if zeros:
            return scale(self.low_bits(tuple([(p, c >> zeros) for p, c in value]), count - zeros), 1 << zeros)
        return self.derived(("low_bits", value, count), 0, unit - 1, value)

    def _without_inner_wraps(self, value: Sum, count: int) -> Sum:
        """The same modulo 2^count, with atoms that only took a number modulo 2^count or more replaced by it."""
        for product, coefficient in value:
            if len(product) == 1:
                node = self.nodes[product[0]]
                if node[0] in ("low_bits", "wrap") and node[2] >= count:  # type: ignore[operator]
                    rest = add(value, ((product, coefficient),), -1)
                    rest = add(rest, node[1], coefficient)  # type: ignore[arg-type]
                    unit = 1 << count
                    return self._without_inner_wraps(tuple([(p, r) for p, c in rest if (r := c % unit)]), count)
        return value

    def divide(self, a: Sum, b: Sum) -> Sum:
        """Quotient truncated toward zero (PTX ``div``); a divisor of zero gives an unspecified value."""
        divisor = constant_of(b)
        low, high = self.bounds(a)
        if divisor is not None and divisor > 0 and low >= 0 and divisor & (divisor - 1) == 0:
            return self.shift_right(a, divisor.bit_length() - 1)
        if divisor == 1:
            return a
        if divisor is not None and divisor > 0 and low >= 0:
            least, most = low // divisor, high // divisor if high < INFINITY else INFINITY
        else:
            most = max(abs(low), abs(high))
            divisor_low, divisor_high = self.bounds(b)
            least = 0 if low >= 0 and divisor_low >= 0 else -most
            if divisor_low <= 0 <= divisor_high:
                # PTX leaves open what a division by zero gives.
                least, most = -INFINITY, INFINITY
        return self.derived(("divide", a, b), least, most, a, b)

    def remainder(self, a: Sum, b: Sum) -> Sum:
        """Remainder with the sign of the dividend (PTX ``rem``)."""
        divisor = constant_of(b)
        low, high = self.bounds(a)
        if divisor is not None and divisor > 0 and low >= 0:
            if high < divisor:
                return a
            if divisor & (divisor - 1) == 0:
                return self.low_bits(a, divisor.bit_length() - 1)
        divisor_low, divisor_high = self.bounds(b)
        most = min(max(abs(divisor_low), abs(divisor_high)) - 1, max(abs(low), abs(high)))
        most = max(most, 0)
        if divisor_low <= 0 <= divisor_high:
            return self.derived(("remainder", a, b), -INFINITY, INFINITY, a, b)
        return self.derived(("remainder", a, b), 0 if low >= 0 else -most, most if high > 0 else 0, a, b)

    def minimum(self, a: Sum, b: Sum) -> Sum:
        (al, ah), (bl, bh) = self.bounds(a), self.bounds(b)
        if ah <= bl:
            return a
        if bh <= al:
            return b
        return self.derived(("minimum", *sorted((a, b))), min(al, bl), min(ah, bh), a, b)

    def maximum(self, a: Sum, b: Sum) -> Sum:
        return scale(self.minimum(scale(a, -1), scale(b, -1)), -1)

    def bitwise(self, operation: str, a: Sum, b: Sum, bits: int) -> Sum:
        """``and``, ``or`` or ``xor`` of two sums taken modulo 2^bits."""
        if bits == 1:
            return self._logical(operation, self.wrap(a, 1, False), self.wrap(b, 1, False))
        a, b = reduce(a, bits), reduce(b, bits)
        if constant_of(a) is not None:
            a, b = b, a
        number = constant_of(b)
        if number is not None:
            found = self._with_number(operation, a, number & (1 << bits) - 1, bits)
            if found is not None:
                return found
        if operation != "and" and not self.possible_bits(a) & self.possible_bits(b):
            return add(a, b)
        a, b = sorted((self.wrap(a, bits, False), self.wrap(b, bits, False)))
        (_, ah), (_, bh) = self.bounds(a), self.bounds(b)
        most = min(ah, bh) if operation == "and" else (1 << max(ah, bh).bit_length()) - 1
        return self.derived((operation, a, b), 0, most, a, b)

    def _logical(self, operation: str, a: Sum, b: Sum) -> Sum:
        """The operation on two predicates, sums that are 0 or 1."""
        if constant_of(a) is not None:
            a, b = b, a
        known = constant_of(b)
        if known is not None:
            if operation == "xor":
                return add(ONE, a, -1) if known else a
            return (a if known else ZERO) if operation == "and" else (ONE if known else a)
        if a == b:
            return ZERO if operation == "xor" else a
        a, b = sorted((a, b))
        return self.derived((operation, a, b), 0, 1, a, b)

    def _with_number(self, operation: str, a: Sum, mask: int, bits: int) -> Sum | None:
        full = (1 << bits) - 1
        if (number := constant_of(a)) is not None:
            number &= full
            return constant({"and": number & mask, "or": number | mask, "xor": number ^ mask}[operation])
        if operation == "xor":
            return add(constant(-1), a, -1) if mask == full else a if not mask else None
        if operation == "or":
            return a if not mask else constant(-1) if mask == full else None
        if mask == full:
            return a
        if not mask:
            return ZERO
        zeros = (mask & -mask).bit_length() - 1
        ones = mask >> zeros
        if ones & (ones + 1):
            return None
        top = zeros + ones.bit_length()
        if top == bits:
            return add(a, self.low_bits(a, zeros), -1)
        return add(self.low_bits(a, top), self.low_bits(a, zeros), -1)
