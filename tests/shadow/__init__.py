"""Carries out decisions of a tracker on separate memories, so that whatever the tracker forgot shows in the bytes.

    bare = Shadow(gpus=1, seed=None).run(records, None)
    placed = Shadow(gpus=3, seed=7).run(records, tracker)
    assert placed.differences(bare) == []

It reads the records itself and knows nothing of ``orchestrator.session`` but the words of its decisions. Memory of the
program lies at the program's own addresses; each GPU that jobs are sent to has a memory apart, where those addresses
mean nothing, and whose new bytes are 0xA5.
"""

from tests.shadow.errors import ShadowError
from tests.shadow.executor import Shadow
from tests.shadow.outcome import Arrived, Logged, Outcome

__all__ = ["Arrived", "Logged", "Outcome", "Shadow", "ShadowError"]
