"""Operations of programs that never were, on a few bytes: for hypothesis, and carried out."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence

from hypothesis import strategies as st

from orchestrator.session.operations import Effect, Operation, StreamKey, What
from orchestrator.session.touched import ANYTHING
from tessera.reasons import Reason

SIZE = 24
KINDS = ("R", "MAYW", "MUSTW", "A")
STREAMS = tuple([StreamKey(1, number) for number in range(3, 6)])

extents = st.tuples(st.integers(0, SIZE - 1), st.integers(1, SIZE)).map(lambda e: (e[0], min(e[0] + e[1], SIZE)))
effects = st.builds(lambda kind, extent: Effect(kind, *extent), st.sampled_from(KINDS), extents)
whats = st.sampled_from([What.LAUNCH] * 8 + [What.FREE, What.OTHER])


def operation(sequence: int, effects: tuple[Effect, ...] = (), stream: StreamKey = STREAMS[0],
              what: What = What.LAUNCH) -> Operation:
    opaque = Reason.UNKNOWN_WORK if what is What.OTHER else None
    return Operation(sequence, -1, what, stream, 0, ANYTHING if opaque else effects, opaque)


@st.composite
def programs(draw: st.DrawFn, most: int = 14) -> list[Operation]:
    """Operations of a few streams; one in ten may touch anything, one in ten is the end of memory."""
    shapes = draw(st.lists(
        st.tuples(st.lists(effects, min_size=1, max_size=3), st.sampled_from(STREAMS), whats), max_size=most))
    return [operation(number, tuple(done), stream, what) for number, (done, stream, what) in enumerate(shapes)]


def carry_out(operation: Operation, memory: bytearray) -> bytes:
    """Do it; what it has read. What it writes depends on that and on itself; of what it may write, it writes half."""
    if operation.opaque is not None:
        reads = maybe = set(range(SIZE))
        surely: set[int] = set()
    else:
        free = operation.what is What.FREE
        reads = touched(operation, () if free else ("R", "A"))
        maybe = touched(operation, ("MAYW", "A"))
        surely = touched(operation, KINDS if free else ("MUSTW",))
    seen = bytes([memory[byte] for byte in sorted(reads)])
    for byte in sorted(maybe | surely):
        made = hashlib.blake2b(seen + bytes([operation.sequence, byte]), digest_size=2).digest()
        if byte in surely or made[1] & 1:
            memory[byte] = made[0]
    return seen


def touched(operation: Operation, kinds: tuple[str, ...]) -> set[int]:
    return {byte for effect in operation.effects if effect.kind in kinds for byte in range(effect.lo, effect.hi)}


def random_operations(rng: random.Random, kinds: Sequence[str] = KINDS, most: int = 14) -> list[Operation]:
    """As :func:`programs`, without hypothesis."""
    made = []
    for number in range(rng.randrange(most + 1)):
        starts = [rng.randrange(SIZE) for _ in range(rng.randrange(1, 4))]
        done = [Effect(rng.choice(kinds), lo, min(lo + rng.randrange(1, SIZE), SIZE)) for lo in starts]
        what = rng.choices([What.LAUNCH, What.FREE, What.OTHER], [8, 1, 1])[0]
        made.append(operation(number, tuple(done), rng.choice(STREAMS), what))
    return made
