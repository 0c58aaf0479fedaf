"""The names of the numbers in a trace, for its views."""

from __future__ import annotations

from collections.abc import Iterator

from shim.layout import lib
from shim.wire import Kind, NodeKind

TOPICS = {
    "image": ("WIRE_IMAGE_UNKNOWN", "WIRE_IMAGE_PTX", "WIRE_IMAGE_CUBIN", "WIRE_IMAGE_FATBIN"),
    "memory": (
        "WIRE_ALLOCATED", "WIRE_PITCHED", "WIRE_MANAGED", "WIRE_POOLED", "WIRE_HOST", "WIRE_REGISTERED", "WIRE_MAPPED",
        "WIRE_IMPORTED", "WIRE_VARIABLE",
    ),
    "side": ("WIRE_SIDE_HOST", "WIRE_SIDE_DEVICE", "WIRE_SIDE_ARRAY", "WIRE_SIDE_MANAGED"),
    "how": ("WIRE_BY_DLSYM", "WIRE_BY_PROC_ADDRESS"),
    "waited": ("WIRE_WAITED_CONTEXT", "WIRE_WAITED_STREAM", "WIRE_WAITED_EVENT"),
}  # fmt: skip
"""Of ``wire.h``, by what the columns are called; the last word of each is its name."""


def words() -> Iterator[tuple[str, int, str]]:
    """Rows of the table ``word``."""
    for topic, names in TOPICS.items():
        yield from ((topic, getattr(lib, name), name.rpartition("_")[2].lower()) for name in names)
    yield from (("kind", int(kind), kind.name.lower()) for kind in Kind)
    yield from (("node", int(kind), kind.name.lower()) for kind in NodeKind)
