"""The table of scenes, filled."""

from tests.nodriver.tracker import (
    scenes_ends,
    scenes_graphs,
    scenes_memory,
    scenes_order,
    scenes_stale,
    scenes_tables,
)  # fmt: skip
from tests.nodriver.tracker.scenes import SCENES

__all__ = ["SCENES", "scenes_ends", "scenes_graphs", "scenes_memory", "scenes_order", "scenes_stale", "scenes_tables"]
