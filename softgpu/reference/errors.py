"""What can go wrong while a kernel is interpreted. Errors name the PTX line and, where there is one, the thread."""

from __future__ import annotations

from tessera.errors import TesseraError


class InterpreterError(TesseraError):
    """Root of the interpreter's errors, and the error itself for a launch that cannot be made (grid, parameters)."""


class UnsupportedInstruction(InterpreterError):
    """An instruction, modifier or operand form outside the whitelist.

    ``mnemonic`` is the full mnemonic, ``line`` its line in the PTX text, ``reason`` what exactly is not known.
    """

    def __init__(self, mnemonic: str, line: int, reason: str = "") -> None:
        self.mnemonic = mnemonic
        self.line = line
        self.reason = reason
        detail = f": {reason}" if reason else ""
        super().__init__(f"line {line}: the interpreter does not execute {mnemonic}{detail}")


class MemoryFault(InterpreterError):
    """An access outside every buffer of its state space, a misaligned one, or a write to read-only memory."""

    def __init__(self, address: int, width: int, line: int, thread: str, reason: str, space: str = "global") -> None:
        self.address = address
        self.width = width
        self.line = line
        self.thread = thread
        self.reason = reason
        self.space = space
        super().__init__(f"line {line}, {thread}: {space} access of {width} bytes at {address:#x}: {reason}")


class KernelTrap(InterpreterError):
    """The kernel stopped itself: ``trap``, ``brkpt``, a failed assertion. ``output`` is what it had printed."""

    def __init__(self, reason: str, line: int, thread: str) -> None:
        self.reason = reason
        self.line = line
        self.thread = thread
        self.output = b""
        super().__init__(f"line {line}, {thread}: {reason}")


class DeadlockError(InterpreterError):
    """No thread of a block can go on: all that are left wait for threads that will never come."""


class UndefinedBehaviour(InterpreterError):
    """The program did what the PTX manual leaves undefined and what no result of ours could stand for."""

    def __init__(self, reason: str, line: int, thread: str) -> None:
        self.line = line
        self.thread = thread
        super().__init__(f"line {line}, {thread}: {reason}")


class StepLimit(InterpreterError):
    """The launch issued more instructions than its ``step_limit``: an endless loop, or a limit set too low."""
