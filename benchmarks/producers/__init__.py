"""Kernels that are compiled when they are needed, by every producer of PTX that is installed, with their launches.

None of their sources is among the fixtures or in the corpus: they show how the analysis does on programs it was not
built on. Each module has ``kernels() -> list[KernelLaunches]`` and raises :class:`Missing` without its compiler.
"""


class Missing(Exception):
    """The producer's compiler is not installed; the message names what to install."""
