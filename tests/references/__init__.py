"""Numpy references of the kernels, by registry name; importing this package fills :data:`REFERENCES`."""

from tests.references import arithmetic, corpus, elementwise, memory, rows, tables, together
from tests.references.core import REFERENCES, Inputs, Reference, compare

__all__ = [
    "REFERENCES", "Inputs", "Reference", "arithmetic", "compare", "corpus", "elementwise", "memory", "rows", "tables",
    "together",
]
