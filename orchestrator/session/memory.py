"""A program's memory: what lies at an address, and which GPU may have a replica of it.

- An **allocation** is what a replica is made of. Memory that is mapped into a reservation belongs to the reservation's
  allocation, so that a replica has all its mappings in one piece; for kernels each run of adjacent mappings is one
  *region*, which they do not leave.
- The same bytes may have several addresses: physical memory that is mapped twice, host memory that the GPU sees
  elsewhere. :meth:`Memory.everywhere` gives them all.
- Module variables whose address nobody has asked for get one above 2⁶⁴, until a record says it.

An announcement means what it says: what lay there before has ended, whether a record told so or not.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from orchestrator.session.errors import RecordError
from orchestrator.session.operations import Effect
from ptxparse.evaluation.allocations import LiveAllocations
from shim.layout import lib
from shim.wire import Record
from tessera.reasons import Reason

NOWHERE = 1 << 64
"""Addresses from here on are names for what has no address that is known."""
_STEP = 1 << 48
MOST_ALLOCATIONS = 1 << 20
_PINS = {
    lib.WIRE_MANAGED: Reason.MANAGED_MEMORY, lib.WIRE_HOST: Reason.HOST_MEMORY,
    lib.WIRE_REGISTERED: Reason.HOST_MEMORY, lib.WIRE_IMPORTED: Reason.SHARED_MEMORY,
}  # fmt: skip
_ON_HOST = frozenset({lib.WIRE_HOST, lib.WIRE_REGISTERED})


@dataclass(eq=False)
class Mapping:
    """A part of a reservation: ``bytes`` at ``address`` are those from ``offset`` on of ``physical``."""

    address: int
    bytes: int
    physical: int
    offset: int


@dataclass(eq=False)
class Allocation:
    """``bytes`` at ``address``. ``kind``: ``enum wire_memory_kind``. ``device``: the ordinal of its GPU, -1 for host
    memory or unknown. ``pin``: why kernels that touch it stay at home. ``regions``: beginnings and ends of what is
    mapped, of a reservation. ``variable``: its name, in module ``module``."""

    number: int
    address: int
    bytes: int
    kind: int
    device: int
    context: int
    pin: Reason | None = None
    variable: str = ""
    module: int = -1
    regions: dict[int, int] = field(default_factory=dict)
    mappings: dict[int, Mapping] = field(default_factory=dict)

    @property
    def end(self) -> int:
        return self.address + self.bytes

    def is_as(self, size: int, kind: int, module: int, variable: str) -> bool:
        """Whether it is what an announcement says that is at its address."""
        return (self.bytes, self.kind, self.module, self.variable) == (size, kind, module, variable)

    @property
    def on_host(self) -> bool:
        return self.kind in _ON_HOST


class Memory:
    """Of one program. ``ended`` is called with the bytes [lo, hi) of everything that goes, and its allocation's number
    if that goes too; ``version`` grows whenever an address may mean something else."""

    def __init__(self, ended: Callable[[int, int, Allocation], None]) -> None:
        self.regions = LiveAllocations()
        self.version = 0
        self._ended = ended
        self._numbers = 0
        self._starts: list[int] = []
        self._by_start: dict[int, Allocation] = {}
        self._by_number: dict[int, Allocation] = {}
        self._physical: dict[int, list[Mapping]] = {}
        self._aliases: list[tuple[int, int, int]] = []
        self._devices: dict[int, int] = {}
        self._shared_physical: set[int] = set()
        self._doubtful: set[int] = set()
        self.doubtful = False
        self._arrays: dict[int, int] = {}

    # contexts

    def context(self, handle: int, device: int) -> None:
        """A context is one of this ordinal."""
        self._devices[handle] = device

    def device_of(self, context: int) -> int:
        """The ordinal of a context's GPU; 0 for one that nothing has announced."""
        return self._devices.get(context, 0)

    # look-up

    def find(self, address: int) -> Allocation | None:
        """What holds the byte at an address."""
        place = bisect_right(self._starts, address) - 1
        if place < 0:
            return None
        found = self._by_start[self._starts[place]]
        return found if address < found.address + found.bytes else None

    def pointed(self, address: int) -> Allocation | None:
        """What a pointer is to: the allocation that holds the byte, or else the one that ends there."""
        return self.find(address) or self.find(address - 1)

    def number(self, number: int) -> Allocation | None:
        """The living allocation of that number."""
        return self._by_number.get(number)

    def living(self) -> Iterator[Allocation]:
        """All of them, by address."""
        for start in self._starts:
            yield self._by_start[start]

    def overlapping(self, lo: int, hi: int) -> list[Allocation]:
        """Those with a byte in [lo, hi)."""
        first = max(bisect_right(self._starts, lo) - 1, 0)
        last = bisect_left(self._starts, hi)
        return [a for start in self._starts[first:last] if (a := self._by_start[start]).end > lo]

    def everywhere(self, lo: int, hi: int) -> list[tuple[int, int]]:
        """The ranges at which the bytes [lo, hi) lie: that one first, and others if they have more addresses."""
        found = [(lo, hi)]
        for first, last, other in self._aliases:
            if first < hi and lo < last:
                a, b = max(first, lo), min(last, hi)
                found.append((a - first + other, b - first + other))
        return found

    def is_aliased(self, lo: int, hi: int) -> bool:
        """Whether any of these bytes have."""
        return any(first < hi and lo < last for first, last, _ in self._aliases)

    # announcements

    def announce(self, record: Record, module: int, name: str) -> Allocation:
        """A record of MEMORY; ``module`` is the number of a variable's module. Raises RecordError for what no memory
        can be."""
        body = record.body
        address, size = body.address, max(body.bytes, 1)
        if not address or address + size >= NOWHERE:
            raise RecordError(record.sequence, "MEMORY", f"{size} bytes at {address:#x} cannot be")
        if len(self._starts) >= MOST_ALLOCATIONS:
            raise RecordError(record.sequence, "MEMORY", f"more than {MOST_ALLOCATIONS} allocations at the same time")
        known = self._by_start.get(address)
        again = record.flags & lib.WIRE_RESTATED or body.kind == lib.WIRE_VARIABLE
        if known is not None and again and known.is_as(size, body.kind, module, name):
            self._doubtful.discard(address)
            return known
        if body.kind == lib.WIRE_MAPPED:
            return self._map(Mapping(address, size, body.owner, body.offset), self._device(body), body.context)
        pin = _PINS.get(body.kind)
        made = self._add(address, size, body.kind, self._device(body), body.context, pin, name, module)
        if body.device_address and body.device_address != address:
            self._alias(address, body.device_address, size)
            self._add(body.device_address, size, body.kind, made.device, body.context, pin)
        return made

    def allocate(self, sequence: int, body: Any, context: int) -> None:
        """A node of a graph that allocates (``struct wire_allocation``): the memory is there, as it is each time."""
        known = self._by_start.get(body.address)
        if known is not None and known.bytes == body.bytes:
            return
        if not body.address or not body.bytes or body.address + body.bytes >= NOWHERE:
            raise RecordError(sequence, "GRAPH_LAUNCH", f"{body.bytes} bytes at {body.address:#x} cannot be")
        device = body.device if body.device >= 0 else self.device_of(context)
        self._add(body.address, body.bytes, lib.WIRE_POOLED, device, 0)

    def variable(self, module: int, name: str, size: int, context: int) -> Allocation:
        """A module's variable that has no address yet: the same each time it is asked for."""
        self._numbers += 1
        return self._add(NOWHERE + self._numbers * _STEP, size, lib.WIRE_VARIABLE, self.device_of(context), context,
                         None, name, module)

    def array(self, handle: int, fresh: bool = False) -> int:
        """The address that stands for an array; ``fresh``: one that is new under this handle."""
        if fresh or handle not in self._arrays:
            self._numbers += 1
            self._arrays[handle] = NOWHERE + self._numbers * _STEP
        return self._arrays[handle]

    def end_array(self, handle: int) -> None:
        """Its handle may be another array's from now on."""
        self._arrays.pop(handle, None)

    def _device(self, body: Any) -> int:
        if body.kind in _ON_HOST:
            return -1
        return int(body.device) if body.device >= 0 or not body.context else self.device_of(body.context)

    def reserve(self, record: Record) -> None:
        """A record of RESERVATION."""
        body = record.body
        if not body.address or body.address + body.bytes >= NOWHERE:
            raise RecordError(record.sequence, "RESERVATION", f"{body.bytes} bytes at {body.address:#x} cannot be")
        known = self._by_start.get(body.address)
        if known is not None and known.bytes == body.bytes and known.kind == lib.WIRE_MAPPED:
            self._doubtful.discard(body.address)
            return
        self._add(body.address, body.bytes, lib.WIRE_MAPPED, -1, 0, region=False)

    def share(self, address: int) -> list[Allocation]:
        """Memory at an address, or physical memory of that handle, may be used by other processes from now on: where it
        lies."""
        found = self.find(address)
        if found is not None:
            shared = [found]
        else:
            self._shared_physical.add(address)
            shared = [held for m in self._physical.get(address, ()) if (held := self.find(m.address)) is not None]
        for held in shared:
            held.pin = Reason.SHARED_MEMORY
        self.version += 1
        return shared

    def drop(self, allocation: Allocation) -> None:
        """It has ended."""
        self._remove(allocation)

    def _add(self, address: int, size: int, kind: int, device: int, context: int, pin: Reason | None = None,
             variable: str = "", module: int = -1, region: bool = True) -> Allocation:
        for old in self.overlapping(address, address + max(size, 1)):
            self._remove(old)
        self._numbers += 1
        made = Allocation(self._numbers, address, size, kind, device, context, pin, variable, module)
        self._starts.insert(bisect_left(self._starts, address), address)
        self._by_start[address] = self._by_number[made.number] = made
        if region:
            self.regions.add(address, address, max(size, 1))
        self.version += 1
        return made

    # mappings

    def _map(self, mapping: Mapping, device: int, context: int) -> Allocation:
        end = mapping.address + mapping.bytes
        held = self.find(mapping.address)
        if held is None or held.kind != lib.WIRE_MAPPED or end > held.end:
            held = self._add(mapping.address, mapping.bytes, lib.WIRE_MAPPED, device, context, region=False)
        self._unmap(held, mapping.address, end)
        if held.device < 0:
            held.device = device
        if held.device != device:
            held.pin = Reason.PEER_MEMORY
        if mapping.physical in self._shared_physical:
            held.pin = Reason.SHARED_MEMORY
        others = self._physical.setdefault(mapping.physical, [])
        for other in others:
            lo = max(other.offset, mapping.offset)
            hi = min(other.offset + other.bytes, mapping.offset + mapping.bytes)
            if lo < hi:
                self._alias(mapping.address + lo - mapping.offset, other.address + lo - other.offset, hi - lo)
        others.append(mapping)
        held.mappings[mapping.address] = mapping
        self._merge(held)
        self._doubtful.discard(held.address)
        return held

    def _unmap(self, held: Allocation, lo: int, hi: int) -> None:
        """Take the mappings away that have a byte in [lo, hi)."""
        gone = [m for m in held.mappings.values() if m.address < hi and lo < m.address + m.bytes]
        for mapping in gone:
            del held.mappings[mapping.address]
            others = self._physical[mapping.physical]
            others.remove(mapping)
            if not others:
                del self._physical[mapping.physical]
            self._forget_aliases(mapping.address, mapping.address + mapping.bytes)
            self._ended(mapping.address, mapping.address + mapping.bytes, held)
        if gone:
            self._merge(held)

    def _merge(self, held: Allocation) -> None:
        """Regions of an allocation are its runs of adjacent mappings."""
        for start in held.regions:
            self.regions.remove(start)
        held.regions.clear()
        start = end = -1
        for address in sorted(held.mappings):
            if address != end:
                start = address
            end = held.regions[start] = address + held.mappings[address].bytes
        for start, end in held.regions.items():
            self.regions.add(start, start, end - start)
        self.version += 1

    def _alias(self, one: int, other: int, size: int) -> None:
        self._aliases += [(one, one + size, other), (other, other + size, one)]
        self.version += 1

    def _forget_aliases(self, lo: int, hi: int) -> None:
        if self._aliases:
            self._aliases = [(first, last, other) for first, last, other in self._aliases
                             if not (first < hi and lo < last)
                             and not (other < hi and lo < other + last - first)]

    # ends

    def end(self, address: int, size: int, whole: bool) -> None:
        """A record of END for MEMORY, with the ``size`` of the range if it is unmapped, or (``whole``) for a
        RESERVATION."""
        if size and not whole:
            for held in self.overlapping(address, address + size):
                if held.kind == lib.WIRE_MAPPED:
                    self._unmap(held, address, address + size)
            return
        found = self._by_start.get(address)
        if found is not None:
            self._remove(found)

    def of_context(self, context: int) -> list[Allocation]:
        """What ends with a context."""
        outlives = (lib.WIRE_POOLED, lib.WIRE_MAPPED)
        return [a for a in self.living() if a.context == context and context and a.kind not in outlives]

    def end_context(self, context: int) -> None:
        """All that ends with a context."""
        for allocation in self.of_context(context):
            self._remove(allocation)
        self._devices.pop(context, None)

    def spread(self, effects: tuple[Effect, ...]) -> tuple[Effect, ...]:
        """These effects at all addresses that their bytes have."""
        if not self._aliases:
            return effects
        return tuple([effect._replace(lo=lo, hi=hi) for effect in effects
                      for lo, hi in self.everywhere(effect.lo, effect.hi)])

    def end_variables(self, modules: set[int]) -> None:
        """The variables of modules that were unloaded."""
        for allocation in [a for a in self.living() if a.module in modules]:
            self._remove(allocation)

    def _remove(self, old: Allocation) -> None:
        if self._by_start.get(old.address) is not old:
            return
        del self._by_start[old.address]
        del self._starts[bisect_left(self._starts, old.address)]
        self._by_number.pop(old.number, None)
        aliases = [other for first, last, other in self._aliases if first == old.address and last == old.end]
        if old.kind == lib.WIRE_MAPPED:
            self._unmap(old, old.address, old.end)
        else:
            self.regions.remove(old.address)
        self._forget_aliases(old.address, old.end)
        self.version += 1
        self._ended(old.address, old.end, old)
        if old.on_host:
            for other in aliases:
                twin = self._by_start.get(other)
                if twin is not None and twin.on_host:
                    self._remove(twin)

    # gaps

    def doubt(self) -> None:
        """Records were lost: what is not announced again before :meth:`settle` has ended."""
        for held in [*self.living()]:
            if held.mappings:
                self._unmap(held, held.address, held.end)
        self._doubtful = {a.address for a in self.living() if a.address < NOWHERE}
        self.doubtful = True

    def settle(self) -> None:
        """All that is there has been announced again."""
        gone, self._doubtful = self._doubtful, set()
        self.doubtful = False
        for address in gone:
            found = self._by_start.get(address)
            if found is not None:
                self._remove(found)
