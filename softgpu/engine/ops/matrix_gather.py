"""Elements of a matrix brought to the lanes that need them."""

from __future__ import annotations

from collections.abc import Sequence

from softgpu.engine.ir import Builder, Value, element
from softgpu.engine.ops.fragments import WARP, Position

Place = tuple[int, int]
"""Number of a vector and lane of it."""


def choose(builder: Builder, vectors: Sequence[Value], places: Sequence[Place]) -> Value:
    """The vector whose lane l is ``places[l]`` of vectors of one type."""
    used = sorted({vector for vector, _ in places})
    first = vectors[used[0]]
    if len(used) == 1 and [lane for _, lane in places] == list(range(WARP)):
        return first
    second = vectors[used[1]] if len(used) > 1 else None
    known = {used[0]: 0, **({used[1]: WARP} if second else {})}
    result = builder.shuffle(first, second, [known[v] + lane if v in known else -1 for v, lane in places])
    for more in used[2:]:
        part = builder.shuffle(vectors[more], None, [lane if v == more else -1 for v, lane in places])
        result = builder.shuffle(result, part, [WARP + at if v == more else at for at, (v, _) in enumerate(places)])
    return result


class Elements:
    """The elements of one operand: vectors of numbers, and where in them each element of the matrix is."""

    def __init__(self, builder: Builder, vectors: Sequence[Value], places: dict[Position, Place]) -> None:
        self._builder = builder
        self._vectors = vectors
        self._places = places
        self._chosen: dict[tuple[Position, ...], Value] = {}

    @property
    def element_type(self) -> str:
        return element(self._vectors[0].type)

    def at(self, positions: tuple[Position, ...]) -> Value:
        """The vector with the element at ``positions[l]`` in lane l; one for each list of positions is made."""
        found = self._chosen.get(positions)
        if found is None:
            found = choose(self._builder, self._vectors, [self._places[position] for position in positions])
            self._chosen[positions] = found
        return found
