"""The log of global accesses: one entry per access that a thread really made."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

ENTRY = np.dtype([("address", "<u8"), ("width", "<i4"), ("kind", "S1"), ("line", "<i4"), ("block", "<i4"),
                  ("thread", "<i4")])
"""Fields of an entry: address and width in bytes, kind (``R``, ``W``, ``A``), PTX line, linear block, linear thread."""

_Chunk = tuple[npt.NDArray[np.uint64], int, bytes, int, npt.NDArray[np.int32], npt.NDArray[np.int32]]


class AccessLog:
    """Accesses to global memory, in the order in which the interpreter made them.

    A vector access is one entry of its whole width; an atomic one entry of kind ``A``; ``red`` likewise; the global
    side of ``cp.async`` an entry of kind ``R`` of the bytes really read. Prefetches and constant memory do not count.
    """

    def __init__(self, enabled: bool = True) -> None:
        self.enabled = enabled
        self._chunks: list[_Chunk] = []
        self._entries: npt.NDArray[np.void] | None = None

    def add(self, addresses: npt.NDArray[np.uint64], width: int, kind: bytes, line: int,
            blocks: npt.NDArray[np.int32], threads: npt.NDArray[np.int32]) -> None:
        """One access per element; all arrays have the same length and are kept, not copied."""
        self._chunks.append((addresses, width, kind, line, blocks, threads))
        self._entries = None

    @property
    def entries(self) -> npt.NDArray[np.void]:
        """All accesses as one structured array of dtype :data:`ENTRY`."""
        if self._entries is None:
            entries = np.empty(len(self), ENTRY)
            start = 0
            for addresses, width, kind, line, blocks, threads in self._chunks:
                part = entries[start:start + len(addresses)]
                part["address"], part["width"], part["kind"] = addresses, width, kind
                part["line"], part["block"], part["thread"] = line, blocks, threads
                start += len(addresses)
            self._entries = entries
        return self._entries

    def __len__(self) -> int:
        return sum(len(chunk[0]) for chunk in self._chunks)

    def __getitem__(self, field: str) -> npt.NDArray[np.generic]:
        """One field of all entries."""
        column: npt.NDArray[np.generic] = self.entries[field]
        return column

    def chunks(self) -> Iterator[tuple[npt.NDArray[np.uint64], int, bytes, int]]:
        """(addresses, width, kind, line) of each logged instruction issue, without building the whole array."""
        for addresses, width, kind, line, _, _ in self._chunks:
            yield addresses, width, kind, line
