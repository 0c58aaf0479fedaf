"""What streams are given, as plain data: its record or its node of a graph, and the bytes that it touches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from shim import tails
from shim.wire import Kind, NodeKind, lib
from tessera.content import content
from tests.generated.kernels import KERNELS, Addresses, Given, Touch, parameters
from tests.program_records import side


@dataclass(eq=False)
class Table:
    """Numbers in memory by which kernels find elements, ``width`` bytes each; if they are pointers, to ``reach`` words.
    ``valid``: they are still there."""

    address: int
    entries: Addresses
    width: int = 4
    reach: int = 0
    valid: bool = True

    @property
    def data(self) -> bytes:
        return self.entries.astype(f"<i{self.width}").tobytes()

    @property
    def size(self) -> int:
        return len(self.entries) * self.width


@dataclass(eq=False)
class Module:
    """A module in the program: its kernels' handles, and where its variables are, whether anybody asked or not."""

    handle: int
    functions: dict[str, int]
    variables: dict[str, int]
    alive: bool = True


class Operation(Protocol):
    """Work."""

    @property
    def kind(self) -> Kind: ...

    @property
    def node(self) -> NodeKind: ...

    @property
    def tables(self) -> tuple[Table, ...]: ...

    @property
    def possible(self) -> bool:
        """Whether all that it names by a handle is there."""

    def touch(self) -> Touch: ...

    def fields(self) -> dict[str, Any]:
        """Of the record's body, or the node's."""

    def tail(self) -> bytes: ...

    def salted(self, salt: int) -> Operation:
        """The same with another running number."""


@dataclass(frozen=True, eq=False)
class Launch:
    """``values``: parameters by name, ``used`` tables by the name of the parameter that points to them."""

    module: Module
    kernel: str
    values: Mapping[str, int]
    used: Mapping[str, Table] = field(default_factory=dict)
    block: int = 32
    spare: int = 0
    kind = Kind.LAUNCH
    node = NodeKind.LAUNCH

    @property
    def tables(self) -> tuple[Table, ...]:
        return tuple(self.used.values())

    @property
    def possible(self) -> bool:
        return self.module.alive

    @property
    def threads(self) -> int:
        """For as many as there are elements, and whole blocks."""
        kernel = KERNELS[self.kernel]
        return 1 if kernel.one or self.kernel == "escape" else max(self.values["n"], 1) + self.spare

    def grid(self) -> tuple[int, int]:
        """Blocks and threads of one."""
        block = min(self.block, self.threads)
        return -(-self.threads // block), block

    def touch(self) -> Touch:
        tables = {name: table.entries for name, table in self.used.items()}
        return KERNELS[self.kernel].touch(Given(self.values, tables, self.module.variables))

    def parameters(self) -> bytes:
        v = self.values
        if self.kernel == "through":
            words = [(v["out"], 8), (v["in"], 8), (v["n"], 4), (v["salt"], 4)]
            return b"".join(value.to_bytes(width, "little") for value, width in words)
        return parameters(self.kernel, self.values)

    def fields(self) -> dict[str, Any]:
        blocks, threads = self.grid()
        return {"function": self.module.functions[self.kernel], "grid": (blocks, 1, 1), "block": (threads, 1, 1),
                "parameter_bytes": len(self.parameters())}

    def tail(self) -> bytes:
        return tails.launch_tail(self.parameters())

    def salted(self, salt: int) -> Launch:
        return replace(self, values={**self.values, "salt": salt}) if "salt" in self.values else self


def rows(address: int, width: int, height: int, pitch: int) -> Addresses:
    """The bytes of rows."""
    return (address + np.arange(height, dtype=np.int64)[:, None] * pitch + np.arange(width)).reshape(-1)


@dataclass(frozen=True, eq=False)
class Place:
    """One side of a copy; ``kind`` of ``enum wire_side_kind``. ``skip``: as many bytes and rows of it are said apart
    from the address. ``known``: it is memory whose bytes matter."""

    address: int
    kind: int
    pitch: int = 0
    skip: tuple[int, int] = (0, 0)
    known: bool = True

    def bytes(self, width: int, height: int) -> Addresses:
        return rows(self.address, width, height, self.pitch) if self.known else np.zeros(0, np.int64)

    def side(self) -> Any:
        x, y = self.skip
        return side(self.address - x - y * self.pitch, self.kind, x=x, y=y, pitch=self.pitch)


@dataclass(frozen=True, eq=False)
class Copy:
    """``data``: what comes from pageable memory, None if it comes from elsewhere."""

    to: Place
    source: Place
    width: int
    height: int = 1
    data: bytes | None = None
    flags: int = 0
    kind = Kind.COPY
    node = NodeKind.COPY
    tables: tuple[Table, ...] = ()
    possible = True

    def touch(self) -> Touch:
        return Touch(self.source.bytes(self.width, self.height), self.to.bytes(self.width, self.height))

    def fields(self) -> dict[str, Any]:
        fields = {"width": self.width, "height": self.height, "depth": 1, "to": self.to.side(),
                  "from_": self.source.side(), "flags": self.flags}
        if self.data is not None:
            small = len(self.data) <= lib.WIRE_INLINE_BYTES
            fields |= {"content": content(self.data), "inline_bytes": len(self.data) if small else 0,
                       "content_kind": lib.WIRE_INLINE_CONTENT if small else lib.WIRE_HASHED_CONTENT}
        return fields

    def tail(self) -> bytes:
        return self.data if self.data is not None and len(self.data) <= lib.WIRE_INLINE_BYTES else b""

    def salted(self, salt: int) -> Copy:
        return self if self.data is None else replace(self, data=mixed(len(self.data), salt))


@dataclass(frozen=True, eq=False)
class Set:
    """``width`` elements of ``element`` bytes in each row."""

    address: int
    width: int
    element: int
    value: int
    height: int = 1
    pitch: int = 0
    kind = Kind.SET
    node = NodeKind.SET
    tables: tuple[Table, ...] = ()
    possible = True

    def touch(self) -> Touch:
        return Touch(writes=rows(self.address, self.width * self.element, self.height, self.pitch))

    def fields(self) -> dict[str, Any]:
        return {"address": self.address, "width": self.width, "height": self.height, "pitch": self.pitch,
                "element_bytes": self.element, "value": self.value}

    def tail(self) -> bytes:
        return b""

    def salted(self, salt: int) -> Set:
        return replace(self, value=salt * 0x9E3779B1 & (1 << 8 * self.element) - 1)


@dataclass(frozen=True, eq=False)
class Host:
    """A host function, which does nothing that anybody may see."""

    kind = Kind.HOST_FUNCTION
    node = NodeKind.HOST_FUNCTION
    tables: tuple[Table, ...] = ()
    possible = True

    def touch(self) -> Touch:
        return Touch()

    def fields(self) -> dict[str, Any]:
        return {"function": 0x400100, "data": 0x500200}

    def tail(self) -> bytes:
        return b""

    def salted(self, salt: int) -> Host:
        return self


@dataclass(frozen=True, eq=False)
class Write:
    """A memory operation: a 32-bit word is written."""

    address: int
    value: int
    kind = Kind.MEMORY_OPERATIONS
    node = NodeKind.MEMORY_OPERATIONS
    tables: tuple[Table, ...] = ()
    possible = True

    def touch(self) -> Touch:
        return Touch(writes=rows(self.address, 4, 1, 0))

    def fields(self) -> dict[str, Any]:
        return {"count": 1}

    def tail(self) -> bytes:
        return tails.memory_operations_tail([(WRITE_VALUE_32, 0, self.address, self.value)])

    def salted(self, salt: int) -> Write:
        return replace(self, value=salt * 0x9E3779B1 & 0xFFFFFFFF)


WRITE_VALUE_32 = 2
"""CU_STREAM_MEM_OP_WRITE_VALUE_32"""


def mixed(size: int, salt: int) -> bytes:
    """Bytes of which each word tells its position and the running number."""
    words = np.arange(-(-size // 4), dtype=np.uint64) * 2654435761 + salt * 40503 + 1
    return (words & 0xFFFFFFFF).astype("<u4").tobytes()[:size]


def pageable(address: int = 0x5000) -> Place:
    """Host memory that nobody keeps an eye on."""
    return Place(address, lib.WIRE_SIDE_HOST, known=False)


def device(address: int) -> Place:
    return Place(address, lib.WIRE_SIDE_DEVICE)
