"""Hand-derived test vectors of the PTX manual: a third witness beside the interpreter and the engine."""

from tests.vectors import atomics, comparisons, conversions, floats, halves, integers, matrices, singles, warp
from tests.vectors.kernel import Kernel, kernel_of, kernels, uniform_kernels
from tests.vectors.vector import Vector

VECTORS: list[Vector] = [
    *floats.VECTORS, *halves.VECTORS, *singles.VECTORS, *conversions.VECTORS, *integers.VECTORS,
    *comparisons.VECTORS, *warp.VECTORS, *atomics.VECTORS, *matrices.VECTORS,
]

__all__ = ["VECTORS", "Kernel", "Vector", "kernel_of", "kernels", "uniform_kernels"]
