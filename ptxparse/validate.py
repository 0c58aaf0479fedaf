"""Whether stored access programs are what they claim: every field of the kind and size that the evaluation relies on.

Programs come from disk, and evaluation turns them into code; so nothing in them is taken on trust.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ptxparse.program import AccessProgram, Limit
from ptxparse.values import INFINITY

_LARGEST = INFINITY * INFINITY
_MOST_BITS = 256
_AXES = ("x", "y", "z")
_RELATIONS = ("le", "ne")
_KINDS = ("R", "W", "A")


class Invalid(ValueError):
    """A field that cannot be right; the text says which."""


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise Invalid(what)


def _integer(value: Any, low: int = -_LARGEST, high: int = _LARGEST) -> None:
    _require(type(value) is int and low <= value <= high, f"an integer from {low} to {high}, not {value!r:.40}")


def _flag(value: Any) -> None:
    _require(type(value) is bool, f"true or false, not {value!r:.40}")


def _text(value: Any) -> None:
    _require(type(value) is str, f"a text, not {value!r:.40}")


def _sum(value: Any, atoms: int) -> None:
    """A sum over the first ``atoms`` atoms."""
    _require(type(value) is tuple, "a sum")
    for term in value:
        _require(type(term) is tuple and len(term) == 2 and type(term[0]) is tuple, "a product and its coefficient")
        _integer(term[1])
        for atom in term[0]:
            _integer(atom, 0, atoms - 1)


def _condition(value: Any, atoms: int) -> None:
    _require(type(value) is tuple and len(value) == 2, "a condition and its truth")
    _sum(value[0], atoms)
    _flag(value[1])


def _alternatives(fields: tuple[Any, ...], atoms: int) -> None:
    _require(len(fields) == 1 and type(fields[0]) is tuple and bool(fields[0]), "options")
    for option in fields[0]:
        _require(type(option) is tuple and len(option) == 2 and type(option[1]) is tuple, "an option and its guards")
        _sum(option[0], atoms)
        for guard in option[1]:
            _condition(guard, atoms)


_Field = Callable[[Any, int], None]


def _number(low: int = -_LARGEST, high: int = _LARGEST) -> _Field:
    return lambda value, atoms: _integer(value, low, high)


_ANY: _Field = _number()
_BITS: _Field = _number(0, _MOST_BITS)
_FLAG: _Field = lambda value, atoms: _flag(value)  # noqa: E731 - the table below is easier to read so
_TEXT: _Field = lambda value, atoms: _text(value)  # noqa: E731
_AXIS: _Field = lambda value, atoms: _require(value in _AXES, "an axis x, y or z")  # noqa: E731

_FIELDS: dict[str, tuple[_Field, ...]] = {
    "tid": (_AXIS,), "ctaid": (_AXIS,), "ntid": (_AXIS,), "nctaid": (_AXIS,), "shared_size": (), "symbol": (_TEXT,),
    "param": (_number(0, 1 << 20), _number(1, 8), _FLAG), "loop": (_ANY,), "unknown": (_ANY, _ANY, _ANY, _TEXT),
    "each": (_ANY, _ANY), "load": (_ANY, _sum, _number(1, 8), _FLAG), "wrap": (_sum, _number(1, _MOST_BITS), _FLAG),
    "shift_right": (_sum, _BITS), "low_bits": (_sum, _BITS), "power": (_sum,),
} | dict.fromkeys(
    ("divide", "remainder", "minimum", "multiply", "and", "or", "xor", "lt", "eq", "shift"), (_sum, _sum)
)


def _node(node: Any, position: int) -> None:
    _require(type(node) is tuple and bool(node) and type(node[0]) is str, "a node with its kind")
    kind, *fields = node
    if kind == "alternatives":
        _alternatives(tuple(fields), position)
        return
    wanted = _FIELDS.get(kind)
    if wanted is None:
        raise Invalid(f"a kind of node, not {kind!r:.40}")
    _require(len(fields) == len(wanted), f"{len(wanted)} fields of a node {kind}")
    for field, check in zip(fields, wanted, strict=True):
        check(field, position)


def _limit(limit: Limit, atoms: int) -> None:
    _sum(limit.value, atoms)
    _require(limit.relation in _RELATIONS, "a relation le or ne")
    for check in limit.checks:
        _sum(check.value, atoms)
        _integer(check.low)
        _integer(check.high)


def validate(program: AccessProgram) -> None:
    """Raises :class:`Invalid` unless the program can be evaluated safely."""
    atoms = len(program.nodes)
    for position, node in enumerate(program.nodes):
        _node(node, position)
    _require(len(program.low) == len(program.high) == len(program.uniform) == atoms, "bounds for every node")
    for low, high, uniform in zip(program.low, program.high, program.uniform, strict=True):
        _integer(low)
        _integer(high)
        _flag(uniform)
    _integer(program.parameter_bytes, 0, 1 << 20)
    _text(program.kernel)
    for loop in program.loops:
        _integer(loop.counter, 0, atoms - 1)
        _flag(loop.exact)
        for limit in (*loop.limits, *loop.guards):
            _limit(limit, atoms)
    for access in program.accesses:
        _require(access.kind in _KINDS and bool(access.spans), "a kind R, W or A, and spans")
        _sum(access.offset, atoms)
        for base in access.bases:
            _integer(base.word, -1, 1 << 20)
            _text(base.name)
        for span in access.spans:
            _require(type(span) is tuple and len(span) == 2, "a span with two ends")
            _integer(span[0])
            _integer(span[1])
        for limit in access.guards:
            _limit(limit, atoms)
        for condition in access.uniform:
            _condition(condition, atoms)
        for check in access.checks:
            _limit(Limit(check.value, "le", (check,)), atoms)
        for number in access.loops:
            _integer(number, 0, len(program.loops) - 1)
    for work in program.work:
        for limit in work.guards:
            _limit(limit, atoms)
        for number in work.loops:
            _integer(number, 0, len(program.loops) - 1)
        for name, amount in work.amounts:
            _text(name)
            _require(type(amount) in (int, float), "an amount")
    for word, line in (*program.escapes, *((0, line) for _, line in program.problems)):
        _integer(word, 0, 1 << 20)
        _integer(line)
    for name, size in program.global_sizes.items():
        _text(name)
        _integer(size, 0)
