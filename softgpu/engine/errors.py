"""What can go wrong between a PTX module and the machine code of a kernel."""

from __future__ import annotations

from tessera.errors import ExitCode, TesseraError


class EngineError(TesseraError):
    """Root of the engine's errors, and the error itself for a machine that the engine does not run on."""


class UnsupportedKernel(EngineError):
    """An instruction, modifier or operand form that the engine does not compile.

    ``mnemonic`` is the full mnemonic, ``line`` its line in the PTX text, ``reason`` what exactly is not known.
    """

    def __init__(self, mnemonic: str, line: int, reason: str = "") -> None:
        self.mnemonic = mnemonic
        self.line = line
        self.reason = reason
        detail = f": {reason}" if reason else ""
        super().__init__(f"line {line}: the engine does not compile {mnemonic}{detail}")


class CompileError(EngineError):
    """A kernel that the engine takes but cannot turn into machine code: a defect of the engine, never of the PTX."""


class ServiceError(EngineError):
    """The compile service cannot be reached or started, does not answer in time, or answers nonsense."""

    exit_code = ExitCode.NO_DRIVER


class LaunchError(EngineError):
    """A launch that cannot be made (extents, parameters), and the root of what can end one.

    ``line`` of the PTX text, 0 when there is none; ``output`` is what the kernel had printed.
    """

    def __init__(self, message: str, line: int = 0, output: bytes = b"") -> None:
        self.line = line
        self.output = output
        super().__init__(message)


class MemoryFault(LaunchError):
    """An access outside every allocation of its state space, a misaligned one, or a write to constant memory."""

    def __init__(self, message: str, line: int, address: int, width: int) -> None:
        self.address = address
        self.width = width
        super().__init__(message, line)


class KernelTrap(LaunchError):
    """The kernel stopped itself: ``trap``, ``brkpt``, a failed assertion."""


class DeadlockError(LaunchError):
    """No thread of a block can go on: all that are left wait for threads that will never come."""


class DeadlineError(LaunchError):
    """The launch was not done in time."""

    exit_code = ExitCode.DEADLINE


class UndefinedBehaviour(LaunchError):
    """The program did what the PTX manual leaves undefined and what no result could stand for."""
