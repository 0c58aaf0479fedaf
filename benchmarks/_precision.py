"""What the precision benchmark counts: kernels by producer, run in the interpreter and evaluated."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from softgpu.reference import UnsupportedInstruction
from tests.launches.registry import KernelLaunches
from tests.soundness import Extent, examine, resolution

REASONS = {
    "control:loop_double": "the counter doubles, so its values are no arithmetic sequence",
    "division:hash_gather": "a hash may fall on any element, a launch meets some of them",
    "division:hash_remainder": "a hash may fall on any element, a launch meets some of them",
    "hand_forms:generic_spaces": "only odd threads read the buffer",
    "nvcc_kernels:conv2d_3x3": "the skipped taps above and left of a one-pixel image are not seen to be skipped",
    "nvrtc_kernels:conv2d_3x3": "the skipped taps above and left of a one-pixel image are not seen to be skipped",
    "rope:ping_pong": "two pointers change places in a loop whose length is a parameter",
}
"""Why ranges are wider than what is touched, for kernels where that is understood and stays so."""


@dataclass
class Group:
    """Figures of one producer's kernels from one source (corpus, fixtures, compiled)."""

    title: str
    kernels: int = 0
    launches: int = 0
    resolved: int = 0
    loaded: int = 0
    unresolved: int = 0
    data_dependent: int = 0
    opaque: dict[str, str] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    violations: list[str] = field(default_factory=list)
    evaluated: dict[str, int] = field(default_factory=lambda: {"R": 0, "W": 0})
    hulls: dict[str, int] = field(default_factory=lambda: {"R": 0, "W": 0})
    touched: dict[str, int] = field(default_factory=lambda: {"R": 0, "W": 0})
    measured: set[str] = field(default_factory=set)
    wider: dict[str, Extent] = field(default_factory=dict)

    def base_share(self) -> float:
        """Accesses with a base, in percent of those whose pointer was not loaded from memory."""
        of = self.resolved + self.unresolved - self.loaded
        return 100.0 * self.resolved / of if of else 100.0

    def ratio(self, kind: str) -> float:
        """Evaluated bytes over bytes of the hulls really accessed."""
        return self.evaluated[kind] / self.hulls[kind] if self.hulls[kind] else 1.0

    def tightness(self, kind: str) -> float:
        """Evaluated bytes over bytes really accessed, gaps left out of both."""
        return self.evaluated[kind] / self.touched[kind] if self.touched[kind] else 1.0

    def add(self, kernel: KernelLaunches, launches: int) -> None:
        """Counts a kernel and runs so many of its launches."""
        self.kernels += 1
        static = resolution(kernel)
        self.resolved += static.resolved
        self.unresolved += static.unresolved
        self.loaded += static.loaded
        for case in kernel.first(launches, seed=1):
            try:
                outcome = examine(kernel, case)
            except UnsupportedInstruction as refusal:
                self.refused[kernel.name] = kernel.refused or str(refusal)
                return
            self.launches += 1
            self.violations += outcome.violations
            if outcome.opaque is not None:
                self.opaque[kernel.name] = outcome.opaque.meaning
                return
            if not kernel.data_dependent:
                self.measured.add(kernel.name)
                self._measure(kernel.name, outcome.extents)
        self.data_dependent += bool(kernel.data_dependent)

    def _measure(self, name: str, extents: Iterable[Extent]) -> None:
        for extent in extents:
            self.evaluated[extent.kind] += extent.evaluated_bytes
            self.hulls[extent.kind] += extent.hull_bytes
            self.touched[extent.kind] += extent.touched_bytes
            if not extent.equal:
                self.wider.setdefault(name, extent)

    @property
    def equal(self) -> int:
        """Kernels whose ranges begin and end with the bytes touched, in every launch."""
        return len(self.measured) - len(self.wider)


def total(groups: Iterable[Group]) -> Group:
    """All groups as one."""
    whole = Group("all")
    for group in groups:
        for name in ("kernels", "launches", "resolved", "loaded", "unresolved", "data_dependent"):
            setattr(whole, name, getattr(whole, name) + getattr(group, name))
        for kind in "RW":
            whole.evaluated[kind] += group.evaluated[kind]
            whole.hulls[kind] += group.hulls[kind]
            whole.touched[kind] += group.touched[kind]
        whole.violations += group.violations
        whole.measured |= {f"{group.title} {name}" for name in group.measured}
        whole.wider |= {f"{group.title} {name}": extent for name, extent in group.wider.items()}
    return whole
