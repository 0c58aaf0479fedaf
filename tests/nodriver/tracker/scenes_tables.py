"""Tables whose bytes are known, and who makes them unknown."""

from __future__ import annotations

from shim.wire import Kind, lib
from tessera.content import content
from tessera.reasons import Reason
from tests.nodriver.tracker.by_hand import set_node, side, words
from tests.nodriver.tracker.scenes import ADD, BYTES, CONTEXT, PICK, SCATTER, A, B, C, D, E, Scene, scene
from tests.program_records import side as any_side

FIRST, SECOND = 0, 64
"""Elements of D, which has 128: a table sends a scatter to these or to those."""


def _table(p: Scene, start: int = FIRST) -> int:
    return p.to_device(C, words(range(start, start + 64)))


def _begin(p: Scene) -> None:
    """GPU 1 holds all of D, and C is a table."""
    p.memory(D, 2 * BYTES)
    p.memory(E, BYTES)
    p.set(D, 1)
    p.set(D + BYTES, 2)
    p.put(A)
    p.put(E, SECOND)
    _table(p)


def _hold(p: Scene) -> None:
    """GPU 1 reads both halves of D. Two launches."""
    p.run(ADD, A, D, 1)
    p.run(ADD, B, D + BYTES, 1)
    p.get(B)


def _scattered(p: Scene) -> None:
    p.run(SCATTER, D, C, 7)
    p.get(D)
    p.get(D + BYTES)


@scene("1", 1)
def a_table_is_followed(p: Scene) -> None:
    _begin(p)
    _scattered(p)


@scene("1", 1)
def the_rest_of_a_table(p: Scene) -> None:
    _begin(p)
    _table(p, SECOND)
    p.set(C, 0)
    _table(p)
    p.to_device(C, words(range(100, 108)))
    p.run(SCATTER, D, C + 32, 7, block=56)
    p.get(D)
    p.get(D + BYTES)


@scene("1", 1, mismatches=1)
def a_table_is_another(p: Scene) -> None:
    """What is really there nobody has told."""
    _begin(p)
    number = _table(p, SECOND)
    told = words(range(64))
    p.instead(number, Kind.COPY, width=BYTES, height=1, depth=1, to=side(C), from_=any_side(0x5000, lib.WIRE_SIDE_HOST),
              content_kind=lib.WIRE_INLINE_CONTENT, inline_bytes=BYTES, content=content(told), tail=told,
              flags=lib.WIRE_SYNCHRONOUS)
    _scattered(p)


@scene("1 1", 2, mismatches=2)
def a_table_that_is_gathered_for_its_own_sake(p: Scene) -> None:
    """It is compared then, and not when it is followed, as it is there already."""
    _begin(p)
    number = _table(p, SECOND)
    told = words(range(64))
    p.instead(number, Kind.COPY, width=BYTES, height=1, depth=1, to=side(C), from_=any_side(0x5000, lib.WIRE_SIDE_HOST),
              content_kind=lib.WIRE_INLINE_CONTENT, inline_bytes=BYTES, content=content(told), tail=told,
              flags=lib.WIRE_SYNCHRONOUS)
    p.run(ADD, B, C, 1)
    p.get(B)
    _scattered(p)


@scene("1 1 1", 3, mismatches=1)
def nothing_is_valid_behind_a_mismatch(p: Scene) -> None:
    _begin(p)
    p.run(ADD, A, D, 1)
    p.get(A)
    number = _table(p, SECOND)
    told = words(range(64))
    p.instead(number, Kind.COPY, width=BYTES, height=1, depth=1, to=side(C), from_=any_side(0x5000, lib.WIRE_SIDE_HOST),
              content_kind=lib.WIRE_INLINE_CONTENT, inline_bytes=BYTES, content=content(told), tail=told,
              flags=lib.WIRE_SYNCHRONOUS)
    _scattered(p)
    p.run(ADD, B, D, 1)
    p.get(B)


# Each of these gives the table the numbers of E, which send a scatter to the second half of D. It runs at home, and
# GPU 1 then reads D again, of which it must not think that the first half alone is stale.


def _stale(p: Scene) -> None:
    p.run(SCATTER, D, C, 7)
    p.run(ADD, A, D, 1)
    p.run(ADD, B, D + BYTES, 1)
    p.get(A)
    p.get(B)


@scene("1 1 . . 1 1", 2)
def a_table_written_by_a_launch(p: Scene) -> None:
    _begin(p)
    _hold(p)
    p.run(ADD, C, E)
    _stale(p)


@scene("1 1 2 . 1 1", 3)
def a_table_written_by_a_segment(p: Scene) -> None:
    _begin(p)
    _hold(p)
    p.run(ADD, C, E)
    _stale(p)


@scene("1 1 0+2 . 1 1", 3)
def a_table_written_by_a_mirrored_segment(p: Scene) -> None:
    _begin(p)
    _hold(p)
    p.run(ADD, C, E)
    _stale(p)


def _copied(p: Scene) -> int:
    return p.record(Kind.COPY, place=(1, CONTEXT), width=BYTES, height=1, depth=1, to=side(C), from_=side(E))


@scene("1 1 . 1 1", 2)
def a_table_written_by_a_copy(p: Scene) -> None:
    _begin(p)
    _hold(p)
    _copied(p)
    _stale(p)


@scene("1 1 . 1 1", 2)
def a_table_written_by_an_unknown_copy(p: Scene) -> None:
    """From pinned memory that is read later."""
    _begin(p)
    _hold(p)
    data = words(range(SECOND, SECOND + 64))
    number = p.record(Kind.COPY, place=(1, CONTEXT), width=BYTES, height=1, depth=1, to=side(C), flags=lib.WIRE_PINNED,
                      from_=any_side(0x5000, lib.WIRE_SIDE_HOST), content_kind=lib.WIRE_INLINE_CONTENT,
                      inline_bytes=BYTES, content=content(data), tail=data)
    told = words(range(64))
    p.instead(number, Kind.COPY, width=BYTES, height=1, depth=1, to=side(C), flags=lib.WIRE_PINNED,
              from_=any_side(0x5000, lib.WIRE_SIDE_HOST), content_kind=lib.WIRE_INLINE_CONTENT, inline_bytes=BYTES,
              content=content(told), tail=told)
    _stale(p)


@scene("1 1 . 1 1", 2)
def a_table_written_by_a_set(p: Scene) -> None:
    """All its numbers are one."""
    _begin(p)
    _hold(p)
    p.set(C, 100)
    _stale(p)


@scene("1 1 . 1 1", 2)
def a_table_written_in_a_graph(p: Scene) -> None:
    p.graph([set_node(0x40, C, 100)], [])
    _begin(p)
    _hold(p)
    p.launch_graph()
    _stale(p)


@scene("1 1 . 1 1", 2)
def a_table_in_memory_that_is_new(p: Scene) -> None:
    """As its place was before, it has numbers: others, which came by its other address."""
    page, place = 4096, 0x20_0000_0000
    for address in (place, place + 2 * page):
        p.record(Kind.RESERVATION, address=address, bytes=page)
    for k, address in enumerate((place, place + 2 * page)):
        p.record(Kind.PHYSICAL, handle=0x70 + k, bytes=page, type=1, location_type=1)
        p.record(Kind.MEMORY, address=address, bytes=page, kind=lib.WIRE_MAPPED, owner=0x70 + k)
    _begin(p)
    _hold(p)
    p.to_device(place, words(range(64)))
    p.put(place + 2 * page, SECOND)
    p.synchronize()
    for address in (place, place + 2 * page):
        p.hide(p.ended(Kind.MEMORY, address, memory=lib.WIRE_MAPPED, bytes=page))
    p.record(Kind.MEMORY, address=place, bytes=page, kind=lib.WIRE_MAPPED, owner=0x71)
    p.run(SCATTER, D, place, 7)
    p.run(ADD, A, D, 1)
    p.run(ADD, B, D + BYTES, 1)
    p.get(A)
    p.get(B)


@scene("1 1 . 1 1", 2)
def a_table_that_was_not_copied(p: Scene) -> None:
    """The copy has failed: the table is as it was."""
    _begin(p)
    _table(p, SECOND)
    _hold(p)
    p.outcome(_table(p, FIRST), result=1)
    _stale(p)


@scene("1 1 . 1 1", 2)
def a_table_that_comes_later(p: Scene) -> None:
    """A record says what was read when it has been read."""
    _begin(p)
    _hold(p)
    number = _later(p, range(SECOND, SECOND + 64))
    p.outcome(number, words(range(SECOND, SECOND + 64)))
    _stale(p)


def _later(p: Scene, numbers: range) -> int:
    """A copy from pinned memory, which is not a table before somebody says what was there."""
    data = words(numbers)
    p.payload(data)
    return p.record(Kind.COPY, place=(1, CONTEXT), width=BYTES, height=1, depth=1, to=side(C), flags=lib.WIRE_PINNED,
                    from_=any_side(0x5000, lib.WIRE_SIDE_HOST), content_kind=lib.WIRE_LATER_CONTENT)


@scene("1 1 1 1", 2, [Reason.UNBOUNDED_WRITE])
def a_table_that_was_gathered_before_it_is_told(p: Scene) -> None:
    """Then it can no longer be compared, and stays unknown: what is told could be wrong."""
    _begin(p)
    _hold(p)
    number = _later(p, range(SECOND, SECOND + 64))
    p.run(ADD, B, C, 1)
    p.get(B)
    told = p.payload(words(range(64)))
    p.outcome(number, words(range(SECOND, SECOND + 64)))
    p.instead(p.sequence - 1, Kind.OUTCOME, of=number, has_content=1, bytes=BYTES, content=told)
    _scattered(p)


# Known tables and the segment that is open.


@scene("1 1", 0, [Reason.UNBOUNDED_WRITE])
def a_table_that_its_segment_has_written(p: Scene) -> None:
    _begin(p)
    p.run(ADD, C, E)
    p.run(SCATTER, D, C, 7)
    p.get(D)
    p.get(D + BYTES)


@scene("1 1", 1, mismatches=1)
def a_table_that_its_segment_writes_afterwards(p: Scene) -> None:
    """It has to be compared all the same."""
    _begin(p)
    number = _table(p, SECOND)
    told = words(range(64))
    p.instead(number, Kind.COPY, width=BYTES, height=1, depth=1, to=side(C), from_=any_side(0x5000, lib.WIRE_SIDE_HOST),
              content_kind=lib.WIRE_INLINE_CONTENT, inline_bytes=BYTES, content=content(told), tail=told,
              flags=lib.WIRE_SYNCHRONOUS)
    p.run(SCATTER, D, C, 7)
    p.run(ADD, C, A)
    p.get(D)
    p.get(D + BYTES)


@scene("1 1 . 1 1 . 1 1", 3)
def the_same_launch_with_another_table(p: Scene) -> None:
    _begin(p)
    _hold(p)
    p.run(SCATTER, D, C, 7)
    _hold(p)
    _table(p, SECOND)
    _stale(p)


@scene("1 1 . 1 1 . 1 1", 3)
def the_same_launch_with_its_table_forgotten(p: Scene) -> None:
    _begin(p)
    _hold(p)
    p.run(SCATTER, D, C, 7)
    _hold(p)
    _copied(p)
    _stale(p)


@scene(". 1 1", 1)
def a_table_that_its_launch_writes(p: Scene) -> None:
    """Through a pointer to itself."""
    _begin(p)
    p.run(PICK, C, C, 7)
    p.run(ADD, A, C, 1)
    p.run(ADD, B, A, 1)
    p.get(B)


@scene("1 1 1 1 1", 5, mismatches=1, rooms=[0, 2 * BYTES, 0], orders=range(1, 25))
def jobs_that_are_run_at_home_give_memory_back(p: Scene) -> None:
    """The second job finds another table. The third, by which others give way, is perhaps on its way then."""
    _begin(p)
    number = _table(p, SECOND)
    told = words(range(64))
    p.instead(number, Kind.COPY, width=BYTES, height=1, depth=1, to=side(C), from_=any_side(0x5000, lib.WIRE_SIDE_HOST),
              content_kind=lib.WIRE_INLINE_CONTENT, inline_bytes=BYTES, content=content(told), tail=told,
              flags=lib.WIRE_SYNCHRONOUS)
    for y, x in ((B, A), (E, C), (A, A), (B, A), (A, B)):
        p.run(ADD, y, x, 1)
        p.set(D, 0)
    p.get(A)
    p.get(B)
    p.get(E)
