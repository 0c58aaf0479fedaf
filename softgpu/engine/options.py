"""What a kernel is compiled for, beside its text."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Options:
    """``block``: the block's extents, or None for code that takes any. ``counts``: count what is executed.
    ``logs``: log every global access. ``rounding``: the family of cards whose approximate functions and matrix
    products are followed (0 or 1)."""

    block: tuple[int, int, int] | None = None
    counts: bool = False
    logs: bool = False
    rounding: int = 0

    @property
    def threads(self) -> int:
        """Threads of a block; 0 when any block is taken."""
        return 0 if self.block is None else self.block[0] * self.block[1] * self.block[2]

    def text(self) -> str:
        """The options as the part of a cache key that stands for them."""
        block = "x".join(str(n) for n in self.block) if self.block else "any"
        return f"block={block} counts={int(self.counts)} logs={int(self.logs)} rounding={self.rounding}"
