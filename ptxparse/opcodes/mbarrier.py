"""Barrier objects in shared memory (PTX manual 9.7.15.16).

``test_wait`` and ``try_wait`` may write a second operand, the report value, before the address.
"""

from __future__ import annotations

from ptxparse.opcodes.record import Effect, Opcode, Row, table

_COMMON = (
    "relaxed acquire release cta cluster shared shared::cta shared::cluster b64 layout::v0 layout::v1 "
    "multicast::cluster::32b"
)
_WAIT = f"{_COMMON} parity phase_type::primary phase_type::conditional"

ROWS: tuple[Opcode, ...] = table(
    "mbarrier",
    Row("mbarrier.init mbarrier.inval mbarrier.expect_tx mbarrier.complete_tx", Effect.MBARRIER, 0, _COMMON),
    Row("mbarrier.arrive mbarrier.arrive_drop", Effect.MBARRIER, 1, f"{_COMMON} expect_tx noComplete"),
    Row("mbarrier.test_wait mbarrier.try_wait", Effect.MBARRIER, 1, _WAIT),
    Row("mbarrier.pending_count", Effect.PURE, 1, "layout::v0 layout::v1 b64"),
    Row("mbarrier.check_layout", Effect.MBARRIER, 1, _COMMON),
)
