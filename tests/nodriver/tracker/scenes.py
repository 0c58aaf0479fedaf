"""Small programs made by hand, each about one rule of the tracker, and how they are placed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from shim.wire import Head, Kind, encode
from tessera.reasons import Reason
from tests.nodriver.tracker.by_hand import ADD, BYTES, COUNT, ENTRY, GROW, KERNELS, ODD, PTX, A, B, C, Program
from tests.nodriver.tracker.proof import ROOM, Listed, Way, bare, overfull, placed
from tests.program_records import CONTEXT, LEGACY
from tests.shadow import Outcome
from tests.shadow.script import Given

BUMP, SWAP, POWER, SCATTER, PICK, FOLLOW, STIR, TELL = (0xF005 + k for k in range(8))
D, E = 0x10_0000_4000, 0x10_0000_8000
"""Addresses for more memory."""
ONE, TWO = 0x51, 0x52
"""Streams that do not wait for the default one."""
_MORE = {
    # bump: y += k by an atomic operation; swap: y = k + i, by atomic exchanges; power: y = 2^(x mod 8), approximately
    BUMP: ("bump", "red.global.add.u32 [%rd4], %r1; ret; }\n"),
    SWAP: ("swap", "add.u32 %r3, %r1, %r2; atom.global.exch.b32 %r4, [%rd4], %r3; ret; }\n"),
    POWER: ("power", ".reg .f32 %f; ld.global.u32 %r3, [%rd5]; and.b32 %r3, %r3, 7; cvt.rn.f32.u32 %f, %r3;"
            "ex2.approx.f32 %f, %f; cvt.rzi.u32.f32 %r3, %f; add.u32 %r3, %r3, %r1;"
            "st.global.u32 [%rd4], %r3; ret; }\n"),
    # scatter: y[x[i]] = k + i; pick: y[i] = x[y[i]] + k
    SCATTER: ("scatter", "ld.global.u32 %r3, [%rd5]; mul.wide.u32 %rd6, %r3, 4; add.u64 %rd6, %rd1, %rd6;"
              "add.u32 %r4, %r1, %r2; st.global.u32 [%rd6], %r4; ret; }\n"),
    PICK: ("pick", "ld.global.u32 %r3, [%rd4]; mul.wide.u32 %rd6, %r3, 4; add.u64 %rd6, %rd2, %rd6;"
           "ld.global.u32 %r4, [%rd6]; add.u32 %r4, %r4, %r1; st.global.u32 [%rd4], %r4; ret; }\n"),
    # follow: p = *y, p[i] += k, where nothing says that p is x; stir: the same, and total += k; tell: *y = x
    FOLLOW: ("follow", "ld.global.u64 %rd6, [%rd1]; add.u64 %rd6, %rd6, %rd3; ld.global.u32 %r3, [%rd6];"
             "add.u32 %r3, %r3, %r1; st.global.u32 [%rd6], %r3; ret; }\n"),
    STIR: ("stir", "ld.global.u64 %rd6, [%rd1]; add.u64 %rd6, %rd6, %rd3; ld.global.u32 %r3, [%rd6];"
           "add.u32 %r3, %r3, %r1; st.global.u32 [%rd6], %r3; ld.global.u32 %r3, [total]; add.u32 %r3, %r3, %r1;"
           "st.global.u32 [total], %r3; ret; }\n"),
    TELL: ("tell", "st.global.u64 [%rd1], %rd2; ret; }\n"),
}
TEXT = PTX + "".join([ENTRY.format(name) + body for name, body in _MORE.values()])
NAMES = KERNELS | {handle: name for handle, (name, _) in _MORE.items()}

__all__ = ["ADD", "BUMP", "BYTES", "CONTEXT", "COUNT", "FOLLOW", "GROW", "LEGACY", "NAMES", "ODD", "ONE", "PICK",
           "POWER", "SCATTER", "SCENES", "STIR", "SWAP", "TELL", "TEXT", "TWO", "A", "B", "C", "D", "E", "Scene", "Stage",
           "scene"]


class Scene(Program):
    """``told``: what the tracker is told instead of records."""

    def __init__(self) -> None:
        super().__init__(TEXT, NAMES)
        self.told: dict[int, bytes] = {}
        self.lost: set[int] = set()

    @property
    def given(self) -> list[Given]:
        """The records, and whether they are lost."""
        return [(data, number in self.lost) for number, data in enumerate(self.data)]

    def instead(self, number: int, kind: Kind, /, tail: bytes = b"", **fields: Any) -> None:
        """The tracker is told another thing than the one that was done."""
        self.told[number] = encode(kind, head=Head(0, number, 100 * number, 7, 0), place=(LEGACY, CONTEXT), tail=tail,
                                   **fields)

    def hide(self, number: int) -> None:
        """Nobody tells the tracker: of what the program's processor does in its memory, say."""
        self.instead(number, Kind.DEVICE, ordinal=0, capability=80, memory=1 << 30, name_bytes=3, tail=b"GPU")


class Stage(NamedTuple):
    """A scene and its placement. ``refused``: for these reasons, so many segments; ``jobs``: as many come to be;
    ``mismatches``: jobs that find other bytes than they assume. ``orders``: seeds of delays, one run each."""

    write: Callable[[Scene], None]
    places: tuple[tuple[int, ...], ...]
    jobs: int
    refused: tuple[Reason, ...]
    mismatches: int
    rooms: tuple[int, ...]
    orders: tuple[int | None, ...]
    home: int
    promised: bool
    capability: int

    def wrong(self, tracker: Any, known: dict[str, Any]) -> list[str]:
        """What shows that something is wrong with a tracker. ``known`` keeps the scene, for other trackers."""
        made: tuple[Scene, Outcome] | None = known.get(self.write.__name__)
        if made is None:
            program = Scene()
            self.write(program)
            made = known[self.write.__name__] = program, bare(program.given, self.way(None))
        program, reference = made
        for order in self.orders:
            way = self.way(order)
            run = placed(program.given, way, program.told, tracker)
            wrong = run.outcome.differences(reference) + overfull(run, way)
            if len(run.outcome.mismatches) != self.mismatches:
                wrong.append(f"{len(run.outcome.mismatches)} mismatches, not {self.mismatches}")
            if run.refused != Counter(self.refused):
                wrong.append(f"refused {dict(run.refused)}, not {self.refused}")
            if run.jobs != self.jobs:
                wrong.append(f"{run.jobs} jobs, not {self.jobs}")
            if wrong:
                return wrong
        return []

    def way(self, order: int | None) -> Way:
        return Way(self.rooms, lambda: Listed(self.places), order, self.home, self.promised, self.capability)


SCENES: dict[str, Stage] = {}


def scene(places: str, jobs: int, refused: Sequence[Reason] = (), *, mismatches: int = 0,
          rooms: Sequence[int] = (ROOM,) * 4, orders: Sequence[int | None] = (None,), home: int = 0,
          promised: bool = False, capability: int = 0) -> Callable[[Callable[[Scene], None]], Callable[[Scene], None]]:
    """Adds a scene. ``places``: a word for each launch: ``.`` it stays, ``2`` it is sent, ``0+2`` it is mirrored."""
    devices = tuple([tuple([int(gpu) for gpu in word.split("+")]) if word != "." else () for word in places.split()])

    def add(write: Callable[[Scene], None]) -> Callable[[Scene], None]:
        assert write.__name__ not in SCENES
        SCENES[write.__name__] = Stage(write, devices, jobs, tuple(refused), mismatches, tuple(rooms), tuple(orders),
                                       home, promised, capability)
        return write
    return add
