"""The PTX opcodes as data: what each does to memory and registers, which modifiers it may carry, what it counts as.

One table per family (``integer.py``, ``floating.py``, ...), after the PTX ISA manual 9.4. Questions about an
instruction are asked through the functions here; all of them answer from a cache keyed by the mnemonic's text.
"""

from __future__ import annotations

from ptxparse.opcodes.counting import MatrixShape, matrix_shape, multiplicand, operation_count
from ptxparse.opcodes.lookup import OPCODES, lookup, unknown_modifiers
from ptxparse.opcodes.properties import (
    is_contractible,
    is_device_variant,
    is_nondeterministic,
    is_order_dependent,
)
from ptxparse.opcodes.record import Effect, Kind, Opcode
from ptxparse.opcodes.sizes import Fragment, accessed_bytes, fragment, size_operand
from ptxparse.opcodes.special_registers import SPECIAL_REGISTERS, Source, SpecialRegister, is_special

__all__ = [
    "OPCODES",
    "SPECIAL_REGISTERS",
    "Effect",
    "Fragment",
    "Kind",
    "MatrixShape",
    "Opcode",
    "Source",
    "SpecialRegister",
    "accessed_bytes",
    "fragment",
    "is_contractible",
    "is_device_variant",
    "is_nondeterministic",
    "is_order_dependent",
    "is_special",
    "lookup",
    "matrix_shape",
    "multiplicand",
    "operation_count",
    "size_operand",
    "unknown_modifiers",
]
