"""Barriers, fences and grid or cluster control (PTX manual 9.7.15.1 to 9.7.15.4, 9.7.15.14, 9.7.15.18)."""

from __future__ import annotations

from ptxparse.opcodes.record import Effect, Opcode, Row, table
from ptxparse.opcodes.words import SCOPES, SHARED

_FENCE = (
    f"sc acq_rel acquire release {SCOPES} mbarrier_init proxy alias async global {SHARED} "
    "tensormap::generic async::generic generic::fabric fabric::generic fabric::fabric "
    "sync_restrict::shared::cta sync_restrict::shared::cluster sync_restrict::shared::cluster::read "
    "sync_restrict::read"
)

ROWS: tuple[Opcode, ...] = table(
    "synchronization",
    Row("bar.sync bar.arrive bar.cta.sync bar.cta.arrive", Effect.BARRIER, 0, ""),
    Row("barrier.sync barrier.arrive barrier.cta.sync barrier.cta.arrive", Effect.BARRIER, 0, "aligned"),
    Row("bar.red bar.cta.red", Effect.BARRIER, 1, "popc and or u32 pred"),
    Row("barrier.red barrier.cta.red", Effect.BARRIER, 1, "popc and or aligned u32 pred"),
    Row("bar.warp.sync", Effect.BARRIER, 0, ""),
    Row("barrier.cluster.arrive", Effect.BARRIER, 0, "release relaxed aligned"),
    Row("barrier.cluster.wait", Effect.BARRIER, 0, "acquire aligned"),
    Row("fence", Effect.FENCE, 0, _FENCE),
    Row("membar", Effect.FENCE, 0, f"cta gl sys proxy alias async global {SHARED}"),
    Row("griddepcontrol", Effect.MISC, 0, "launch_dependents wait"),
    Row(
        "clusterlaunchcontrol.try_cancel",
        Effect.BULK,
        0,
        "async shared::cta mbarrier::complete_tx::bytes multicast::cluster::all b128",
    ),
    Row("clusterlaunchcontrol.query_cancel", Effect.MISC, 1, (
        "is_canceled get_first_ctaid get_first_ctaid::x get_first_ctaid::y get_first_ctaid::z v4 b32 b128 pred"
    )),
)
