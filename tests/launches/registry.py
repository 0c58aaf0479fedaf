"""The list of kernels with launches: which file they are in, who produced it, and the generator of their cases."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from tests.launches.case import LaunchCase

Cases = Callable[[np.random.Generator, bool], Iterator[LaunchCase]]
"""``cases(rng, large)`` yields launches without end, edge values first; ``large`` allows many threads."""


@dataclass(frozen=True, eq=False)
class KernelLaunches:
    """One kernel and its launches.

    ``producer`` is nvcc, nvrtc, tinygrad, triton, numba or hand; ``file`` is relative to ``tests/fixtures`` for our
    own fixtures (``origin`` "fixtures"), to the reference material for its corpus ("corpus"), or the name of a
    module compiled at test time ("compiled",
        with its text in ``text``). ``data_dependent`` says why an address of the kernel depends
    on what memory holds ("" when none does). ``refused`` says why the reference interpreter refuses the kernel.
    """

    origin: str
    producer: str
    file: str
    kernel: str
    cases: Cases
    data_dependent: str = ""
    refused: str = ""
    text: str | None = field(default=None, repr=False)

    @property
    def name(self) -> str:
        """``file stem:kernel``, cut to a readable length, unique in the registry."""
        stem = self.file.rsplit("/", 1)[-1].removesuffix(".ptx")
        return stem if stem.endswith(self.kernel) else f"{stem}:{self.kernel[:40]}"

    def first(self, count: int, seed: int = 0, large: bool = False) -> list[LaunchCase]:
        """The first ``count`` cases of this seed."""
        return list(itertools.islice(self.cases(np.random.default_rng(seed), large), count))


@dataclass
class Registry:
    """Collects the kernels of one file of launches; used as a decorator on generators."""

    origin: str
    producer: str
    entries: list[KernelLaunches] = field(default_factory=list)

    def __call__(
        self, file: str, kernel: str = "", *, data_dependent: str = "", refused: str = "", text: str | None = None
    ) -> Callable[[Cases], Cases]:
        """Registers a generator for ``kernel`` (default: the generator's own name) of ``file``."""

        def register(cases: Cases) -> Cases:
            self.add(file, kernel or cases.__name__, cases, data_dependent=data_dependent, refused=refused, text=text)
            return cases

        return register

    def add(
        self, file: str, kernel: str, cases: Cases, *, data_dependent: str = "", refused: str = "",
        text: str | None = None,
    ) -> None:
        self.entries.append(
            KernelLaunches(self.origin, self.producer, file, kernel, cases, data_dependent, refused, text)
        )
