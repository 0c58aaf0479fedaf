"""How the structures of ``wire.h`` become named tuples: by the layouts that the C compiler gave them."""

from __future__ import annotations

import struct
from collections import namedtuple
from collections.abc import Callable, Sequence
from functools import cache
from operator import itemgetter
from typing import Any

from shim.errors import ShimMissing

try:
    from shim._wire import ffi, lib
except ImportError as error:
    raise ShimMissing(f"the shim's extension is not built, or cffi is missing ({error}): run python3 build.py build"
                      ) from error

__all__ = ["Layout", "ffi", "layout", "lib"]

_named: Callable[..., Any] = namedtuple  # mypy wants names that are written down
_CODES = {"uint8_t": "B", "uint16_t": "H", "int32_t": "i", "uint32_t": "I", "uint64_t": "Q"}


class Layout:
    """One structure. ``make`` turns the numbers that ``code`` (of the module struct, without byte order) reads into a
    tuple whose fields are named as in C, ``from`` as ``from_``; ``flat`` is the opposite. Arrays of bytes are bytes,
    other arrays tuples, structures in it tuples of their own. Members named ``unused`` are left out."""

    def __init__(self, name: str, leave_out: Sequence[str] = ()) -> None:
        kind = ffi.typeof(f"struct {name}")
        self.size: int = ffi.sizeof(kind)
        parts: list[int | slice] = []
        names: list[str] = []
        self._inner: list[tuple[int, Layout]] = []
        code, end, count = "", 0, 0
        for member, field in kind.fields:
            if member.startswith("unused") or member in leave_out:
                continue
            part, length = self._part(field.type, len(names))
            code += f"{field.offset - end}x{part}" if field.offset > end else part
            end = field.offset + ffi.sizeof(field.type)
            parts.append(count if length is None else slice(count, count + length))
            names.append("from_" if member == "from" else member)
            count += length or 1
        self.code = code + (f"{self.size - end}x" if self.size > end else "")
        self.count = count
        self._parts = parts
        self.type = _named("".join([word.capitalize() for word in name.split("_")[1:]]), names)
        self.make = self.maker(0)

    def maker(self, start: int) -> Callable[[tuple[Any, ...]], Any]:
        """A function that makes the tuple of values whose first ``start`` belong to something else."""
        moved = [slice(p.start + start, p.stop + start) if isinstance(p, slice) else p + start for p in self._parts]
        plain = self.count == len(moved)
        choose = itemgetter(slice(start, None)) if plain or len(moved) < 2 else itemgetter(*moved)
        named, tuple_new = self.type, tuple.__new__  # a tuple's own function: _make would check the length each time
        if not self._inner:
            return lambda values: tuple_new(named, choose(values))

        def nested(values: tuple[Any, ...]) -> Any:
            found = list(choose(values))
            for number, inner in self._inner:
                found[number] = inner.make(found[number])
            return tuple_new(named, found)

        return nested

    def _part(self, kind: Any, number: int) -> tuple[str, int | None]:
        """The code of a member, and how many values it reads if these are to be one value."""
        if kind.kind == "struct":
            inner = layout(kind.cname.removeprefix("struct "))
            self._inner.append((number, inner))
            return inner.code, inner.count
        if kind.kind == "array":
            if ffi.sizeof(kind.item) == 1:
                return f"{kind.length}s", None
            return f"{kind.length}{_CODES[kind.item.cname]}", kind.length
        return _CODES[kind.cname], None

    def flat(self, value: Any) -> list[Any]:
        """The numbers of a tuple in the order of ``code``."""
        inner = dict(self._inner)
        found: list[Any] = []
        for number, part in enumerate(self._parts):
            if number in inner:
                found += inner[number].flat(value[number])
            elif isinstance(part, slice):
                found += value[number]
            else:
                found.append(value[number])
        return found

    def read(self, data: Any, offset: int = 0) -> Any:
        """The structure at an offset of bytes, which must hold it."""
        return self.make(struct.unpack_from(f"<{self.code}", data, offset))

    def pack(self, value: Any) -> bytes:
        """The structure's bytes."""
        return struct.pack(f"<{self.code}", *self.flat(value))

    def zero(self) -> Any:
        """The tuple with zeros everywhere."""
        return self.read(bytes(self.size))


@cache
def layout(name: str) -> Layout:
    """The layout of a structure by its name in C, without the word ``struct``."""
    return Layout(name)
