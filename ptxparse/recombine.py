"""Sums that hold both x and a quotient of x: ``x - d * (x / d)`` is the remainder of x."""

from __future__ import annotations

from typing import Any

from ptxparse.values import Graph, Sum, add, constant

_MOST_ROUNDS = 8


def recombine(graph: Graph, value: Sum) -> Sum:
    """The same sum, with multiples of quotients traded for remainders wherever that leaves fewer terms.

    Interval arithmetic loses the connection between x and x / d; a remainder has it built in.
    """
    for _ in range(_MOST_ROUNDS):
        better = _once(graph, value)
        if better is None:
            return value
        value = better
    return value


def _once(graph: Graph, value: Sum) -> Sum | None:
    terms = dict(value)
    for product, coefficient in value:
        for position, atom in enumerate(product):
            node: tuple[Any, ...] = graph.nodes[atom]
            if node[0] == "shift_right":
                divisor = constant(1 << node[2])
                rest = graph.low_bits(node[1], node[2])
            elif node[0] == "divide":
                divisor = node[2]
                rest = graph.remainder(node[1], divisor)
            else:
                continue
            if not divisor:
                continue
            others = product[:position] + product[position + 1:]
            found = _trade(graph, value, terms, coefficient, others, atom, divisor, add(node[1], rest, -1))
            if found is not None and _weight(graph, found) < _weight(graph, value):
                return found
    return None


def _weight(graph: Graph, value: Sum) -> int:
    return sum(1 for product, _ in value if not all(graph.uniform[a] for a in product))


def _trade(
    graph: Graph, value: Sum, terms: dict[tuple[int, ...], int], coefficient: int, others: tuple[int, ...], atom: int,
    divisor: Sum, multiple: Sum
) -> Sum | None:
    """Replace ``t * divisor * quotient`` by ``t * (x - remainder)`` for the t that the term at hand calls for."""
    lead_product, lead = divisor[-1]
    remaining = list(others)
    for factor in lead_product:
        if factor not in remaining:
            return None
        remaining.remove(factor)
    if coefficient % lead:
        return None
    factor_sum: Sum = ((tuple(remaining), coefficient // lead),)
    whole = graph.multiply(graph.multiply(divisor, factor_sum), (((atom,), 1),))
    if any(product not in terms for product, _ in whole):
        return None
    return add(add(value, whole, -1), graph.multiply(multiple, factor_sum))


