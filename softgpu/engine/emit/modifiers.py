"""Reading the modifiers of an instruction that is no pure operation: each is taken by name, any left is an error."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from softgpu.engine.emit.lower import Lower


class Modifiers:
    """The modifiers of the present instruction, consumed from the left."""

    def __init__(self, lower: Lower) -> None:
        self.lower = lower
        self.left = list(lower.instruction.modifiers)

    def take(self, *names: str) -> str:
        """The next modifier if it is one of these, else ""."""
        if self.left and self.left[0] in names:
            return self.left.pop(0)
        return ""

    def anywhere(self, *names: str) -> str:
        """One of these wherever it stands, else ""."""
        for name in self.left:
            if name in names:
                self.left.remove(name)
                return name
        return ""

    def need(self, *names: str) -> str:
        """The next modifier, which must be one of these."""
        found = self.take(*names)
        if not found:
            self.lower.fail(f"expected one of {', '.join('.' + n for n in names)}")
        return found

    def done(self, *counts: int) -> None:
        """Nothing may be left, and the number of operands must be one of ``counts``."""
        if self.left:
            self.lower.fail(f"modifier .{self.left[0]}")
        if counts and len(self.lower.instruction.operands) not in counts:
            self.lower.fail(f"{len(self.lower.instruction.operands)} operands")
