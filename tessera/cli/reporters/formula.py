"""The symbolic offsets and conditions of an access program as text, in PTX's own names (``tid.x``, ``ntid.x``)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ptxparse.program import Access, AccessProgram, Base, Limit
from ptxparse.values import Sum

DEEPEST = 12
"""Operations nested deeper than this are shown as an ellipsis."""
LONGEST = 4000
"""Characters of one operation's text before it is cut: shared parts would let it grow without bound."""

INFIX = {"divide": "/", "remainder": "%", "multiply": "*", "and": "&", "or": "|", "xor": "^", "lt": "<", "eq": "=="}


class Formulas:
    """Wording of one program's sums. Parameters go by their names, less the kernel's own name before them unless
    ``full_names``."""

    def __init__(self, program: AccessProgram, full_names: bool = False) -> None:
        self.program = program
        self.texts: dict[tuple[int, int], str] = {}
        self.prefix = "" if full_names else f"{program.kernel}_"
        self.nodes: dict[str, Callable[[tuple[Any, ...], int], str]] = {
            "param": lambda node, depth: self.word(node[1]),
            "symbol": lambda node, depth: str(node[1]),
            "shared_size": lambda node, depth: "shared",
            "loop": lambda node, depth: f"k{node[1]}",
            "unknown": lambda node, depth: "?",
            "load": lambda node, depth: f"[{self.sum(node[2], depth)}]",
            "each": lambda node, depth: f"(0…{node[2] - 1})",
            "wrap": lambda node, depth: self.operand(node[1], depth),
            "shift_right": lambda node, depth: f"({self.operand(node[1], depth)} >> {node[2]})",
            "low_bits": lambda node, depth: f"({self.operand(node[1], depth)} % {1 << node[2]})",
            "minimum": lambda node, depth: f"min({self.sum(node[1], depth)}, {self.sum(node[2], depth)})",
            "power": lambda node, depth: f"2^{self.operand(node[1], depth)}",
            "shift": lambda node, depth: f"({self.operand(node[1], depth)} >> {self.operand(node[2], depth)})",
            "alternatives": lambda node, depth: f"({' or '.join(self.sum(value, depth) for value, _ in node[1])})",
        }

    def short(self, name: str) -> str:
        """A parameter's name without the kernel's in front: ``saxpy_param_0`` is ``param_0``."""
        return name.removeprefix(self.prefix)

    def word(self, offset: int) -> str:
        """The parameter that holds byte ``offset`` of the parameter block; ``name+8`` inside a struct."""
        for parameter in self.program.parameters:
            if parameter.offset <= offset < parameter.offset + parameter.size:
                inside = offset - parameter.offset
                return self.short(parameter.name) + (f"+{inside}" if inside else "")
        return f"parameter byte {offset}"

    def base(self, base: Base) -> str:
        """The parameter or module variable that an address starts from."""
        return base.name or self.word(base.word)

    def bases(self, bases: tuple[Base, ...]) -> str:
        return " or ".join(self.base(base) for base in bases)

    def offset(self, access: Access) -> str:
        """The offset of an access from its base: its address less the base itself."""
        return self.sum(tuple(term for term in access.offset if not self._is_base(term, access)))

    def _is_base(self, term: tuple[tuple[int, ...], int], access: Access) -> bool:
        product, coefficient = term
        if len(access.bases) != 1 or coefficient != 1 or len(product) != 1:
            return False
        node = self.program.nodes[product[0]]
        base = access.bases[0]
        return node[:2] == ("symbol", base.name) if base.name else node[:3] == ("param", base.word, 8)

    def sum(self, value: Sum, depth: int = 0) -> str:
        """A sum, constants last: ``4*ctaid.x*ntid.x + 4*tid.x + 16``."""
        if depth > DEEPEST:
            return "…"
        ordered = sorted(value, key=lambda term: not term[0])
        text = ""
        for product, coefficient in ordered:
            factors = [self.atom(atom, depth + 1) for atom in product]
            if abs(coefficient) != 1 or not factors:
                factors.insert(0, str(abs(coefficient)))
            sign = ("-" if coefficient < 0 else "") if not text else " - " if coefficient < 0 else " + "
            text += sign + "*".join(factors)
        return text or "0"

    def operand(self, value: Sum, depth: int) -> str:
        """A sum as an operand: in parentheses unless it is a single number or atom."""
        single = not value or (len(value) == 1 and (not value[0][0] or (value[0][1] == 1 and len(value[0][0]) == 1)))
        text = self.sum(value, depth)
        return text if single else f"({text})"

    def atom(self, atom: int, depth: int) -> str:
        text = self.texts.get((atom, depth))
        if text is None:
            text = self._atom(atom, depth)
            text = self.texts[atom, depth] = text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
        return text

    def _atom(self, atom: int, depth: int) -> str:
        node = self.program.nodes[atom]
        kind = str(node[0])
        if kind in self.nodes:
            return self.nodes[kind](node, depth)
        if kind in INFIX:
            return f"({self.operand(node[1], depth)} {INFIX[kind]} {self.operand(node[2], depth)})"
        return ".".join(map(str, node))

    def conditions(self, limits: Iterable[Limit]) -> list[str]:
        """The limits in words, without those that hold whatever the launch is."""
        return [self.limit(limit) for limit in limits if not self._always(limit)]

    def _always(self, limit: Limit) -> bool:
        """Whether ``value <= 0`` follows from the static bounds of the atoms in it."""
        highest = 0
        for product, coefficient in limit.value:
            low = high = coefficient
            for atom in product:
                corners = [a * b for a in (low, high) for b in (self.program.low[atom], self.program.high[atom])]
                low, high = min(corners), max(corners)
            highest += high
        return limit.relation == "le" and highest <= 0

    def limit(self, limit: Limit) -> str:
        """``value <= 0`` with what is subtracted on the right: ``i < n``, ``i != 0``."""
        left = tuple(term for term in limit.value if term[1] > 0)
        right = tuple((product, -coefficient) for product, coefficient in limit.value if coefficient < 0)
        relation = "!=" if limit.relation == "ne" else "<="
        if relation == "<=" and left and left[0] == ((), 1):
            left, relation = left[1:], "<"
        return f"{self.sum(left)} {relation} {self.sum(right)}"
