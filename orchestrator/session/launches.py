"""What a launch touches: its kernel's access program, evaluated with its parameters and the memory there is."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, Protocol

from orchestrator.session.contents import Contents
from orchestrator.session.intervals import Intervals
from orchestrator.session.journal import Journal
from orchestrator.session.memory import Allocation, Memory
from orchestrator.session.operations import Effect, Kernel, Known, Launch, Pointer
from orchestrator.session.steps import LaunchKey, launch_text
from orchestrator.session.touched import ANYTHING
from ptxparse.api import Evaluation, evaluate, relevant_bytes
from ptxparse.program import AccessProgram
from shim import tails
from shim.layout import lib
from shim.tails import Node
from shim.wire import Record
from tessera.errors import UsageError
from tessera.reasons import Reason

MOST_PREPARED = 1 << 14
_UNSIZED = 1 << 40
"""Bytes that a module variable of unknown size may have."""
_COOPERATIVE, _CLUSTER = 2, 4
_HARMLESS = frozenset({0, 1, 3, 5, 8, 9, 10, 14})
"""``CUlaunchAttributeID``: those that change neither what a launch computes nor when it begins."""


class Kernels(Protocol):
    """Who knows what function handles mean."""

    def kernel(self, handle: int, context: int = 0) -> Kernel: ...


class Prepared(NamedTuple):
    """A launch and the bytes that it touches; ``opaque``: these are not told by its program, and why. ``key`` and
    ``text`` are what it is in its step."""

    launch: Launch
    effects: tuple[Effect, ...]
    opaque: Reason | None
    key: LaunchKey
    text: bytes


class _Needs(NamedTuple):
    """What the bytes that a kernel touches depend on: ``tables``, and these parts of its parameters; None: all."""

    tables: bool
    parameters: tuple[slice, ...] | None

    def free(self, size: int) -> tuple[slice, ...]:
        """The other parts of so many bytes of parameters."""
        if self.parameters is None:
            return ()
        needed = Intervals([(part.start, part.stop) for part in self.parameters])
        return tuple([slice(*part) for part in needed.missing(0, size)])


_NOTHING, _EVERYTHING = _Needs(False, ()), _Needs(False, None)


class Launches:
    """Of one program. ``promised``: opaque kernels touch only allocations whose addresses are in their parameters.
    ``met`` is called with each module variable that a kernel is the first to name; ``journal`` is told what a launch
    depends on."""

    def __init__(self, memory: Memory, contents: Contents, kernels: Kernels, promised: bool,
                 met: Callable[[Allocation], None], journal: Journal) -> None:
        self._memory, self._contents, self._kernels, self._promised = memory, contents, kernels, promised
        self._met, self._journal = met, journal
        self._prepared: dict[object, Prepared] = {}
        self._variables: dict[tuple[int, str], Allocation] = {}
        self._needs: dict[Kernel, _Needs] = {}

    def prepare(self, work: Record | Node, context: int, exactly: Callable[[Prepared], bool]) -> Prepared:
        """A record of LAUNCH, or a node of that kind, which runs in a context. A kernel that reads tables is first
        looked at as if none were known, which costs less; ``exactly`` says whether that will do."""
        body = work.body
        kernel = self._kernels.kernel(body.function, context)
        needs = self._needs_of(kernel)
        tail, size = bytes(work.tail), body.parameter_bytes
        found = self._found(kernel, work, context, needs, tail, -1)
        if needs.tables and found.opaque is None and exactly(found):
            if self._journal.on and kernel.program is not None:
                self._journal.read(kernel.program, tail[:size], self.tables(kernel.program, tail[:size]))
            found = self._found(kernel, work, context, needs, tail, self._contents.version)
        if found.launch.parameters != tail[:size]:
            found = found._replace(launch=found.launch._replace(parameters=tail[:size]))
        if self._journal.on:
            if found.opaque is Reason.UNKNOWN_IMAGE:
                self._journal.spoil()  # it may come at any time
            self._journal.prepared(work, needs.free(size), found)
        return found

    def _found(self, kernel: Kernel, work: Record | Node, context: int, needs: _Needs, tail: bytes, known: int
               ) -> Prepared:
        """What is remembered of such a launch, perhaps with other parameters that do not matter.
        ``known``: the version of the contents, -1 for none."""
        body, version = work.body, self._memory.version
        size = body.parameter_bytes
        said = tail if needs.parameters is None else (
            size, tail[(size + 7) // 8 * 8:], *[tail[part] for part in needs.parameters])
        key = (kernel, context, body.grid, body.block, body.shared, body.flags, said, version, known)
        found = self._prepared.get(key)
        if found is None:
            found = self._prepare(kernel, work, body, context, known >= 0)
            if len(self._prepared) >= MOST_PREPARED:
                self._prepared.clear()
            if version == self._memory.version:  # else it has met a variable for the first time
                self._prepared[key] = found
        return found

    def _needs_of(self, kernel: Kernel) -> _Needs:
        program = kernel.program
        if program is None:
            return _NOTHING if not self._promised else _EVERYTHING
        found = self._needs.get(kernel)
        if found is None:
            if len(self._needs) >= MOST_PREPARED:
                self._needs.clear()
            found = self._needs[kernel] = _Needs(
                any(node[0] == "load" for node in program.nodes),
                None if self._promised else tuple([slice(*part) for part in Intervals(relevant_bytes(program))]))
        return found

    def variable(self, module: int, name: str, allocation: Allocation) -> None:
        """A record has said where a variable is. What was known of it has ended."""
        before = self._variables.get((module, name))
        if before is not None and before is not allocation:
            self._memory.drop(before)
        self._variables[module, name] = allocation

    def known(self, module: int, name: str) -> Allocation | None:
        """A variable of a module that somebody has named."""
        found = self._variables.get((module, name))
        return found if found is not None and self._memory.number(found.number) is found else None

    def unloaded(self, modules: set[int]) -> None:
        """Modules are gone, with their variables."""
        for key in [key for key in self._variables if key[0] in modules]:
            del self._variables[key]

    def _prepare(self, kernel: Kernel, work: Record | Node, body: Any, context: int, exactly: bool) -> Prepared:
        parameters = bytes(tails.launch_parameters(work))
        launch = Launch(kernel, tuple(body.grid), tuple(body.block), body.shared, parameters,
                        tuple(dict.fromkeys(_said(body, tails.launch_attributes(work)))))
        program = kernel.program
        if program is None:
            return self._opaque(launch, kernel.reason or Reason.UNKNOWN_KERNEL)
        short = len(parameters) < program.parameter_bytes
        if short or (program.parameter_bytes and body.flags & lib.WIRE_PARAMETERS_UNKNOWN):
            return self._opaque(launch, Reason.UNKNOWN_PARAMETERS)
        variables = {name: self._placed(kernel.module, name, size, context)
                     for name, size in program.global_sizes.items()}
        tables = self.tables(program, parameters) if exactly else []
        try:
            evaluation = evaluate(program, launch.grid, launch.block, parameters, self._memory.regions, variables,
                                  [self._in_region(table) for table in tables], launch.shared)
        except UsageError:
            return self._opaque(launch, Reason.UNKNOWN_PARAMETERS)
        launch = launch._replace(pins=tuple(dict.fromkeys((*launch.pins, *evaluation.pinned))))
        if evaluation.opaque is not None:
            return self._opaque(launch, evaluation.opaque)
        effects = self._effects(evaluation)
        pointers, torn = self._pointers(evaluation, parameters)
        pins = [*launch.pins, *torn, *self._of_memory(effects, self._memory.device_of(context))]
        unbounded = any(self._unbounded(effect) for effect in effects)
        launch = launch._replace(pins=tuple(dict.fromkeys(pins)), pointers=pointers, unbounded=unbounded,
                                 assumed=tuple(tables))
        return _prepared(launch, effects, None)

    # what an access program needs

    def _placed(self, module: int, name: str, size: int, context: int) -> tuple[int, int]:
        found = self.known(module, name)
        if found is None:
            found = self._variables[module, name] = self._memory.variable(module, name, size or _UNSIZED, context)
            self._met(found)
        return found.address, size or found.bytes

    def tables(self, program: AccessProgram, parameters: bytes) -> list[Known]:
        """What is known of the allocations that parameters point into."""
        found: dict[int, Known] = {}
        for word in dict.fromkeys(base.word for access in program.accesses for base in access.bases if base.word >= 0):
            held = self._memory.find(int.from_bytes(parameters[word:word + 8], "little"))
            if held is not None and held.pin is None:
                found.update((known.address, known) for known in self._contents.within(held.address, held.end))
        return list(found.values())

    def _in_region(self, known: Known) -> tuple[object, int, bytes]:
        region = self._memory.regions.find(known.address)
        assert region is not None, "what is known lies in memory that lives"
        return region.id, known.address - region.address, known.data

    # what evaluation gives

    def _effects(self, evaluation: Evaluation) -> tuple[Effect, ...]:
        found = []
        for one, bases in zip(evaluation.ranges, evaluation.bases, strict=True):
            region = self._memory.regions.by_id(one.allocation)
            assert region is not None, "ranges are of regions that were given"
            start = region.address
            base = bases[0]
            for lo, hi in self._memory.everywhere(start + one.lo, start + one.hi):
                found.append(Effect(one.kind, lo, hi, one.exact, base.word, base.name))
        return tuple(found)

    def _pointers(self, evaluation: Evaluation, parameters: bytes) -> tuple[tuple[Pointer, ...], list[Reason]]:
        """Words to be changed for a replica: those through which something is touched. A word through which two
        allocations may be touched, as it points between them, cannot be."""
        reached: dict[int, set[int]] = {}
        for one, bases in zip(evaluation.ranges, evaluation.bases, strict=True):
            held = self._memory.find(one.allocation) if isinstance(one.allocation, int) else None
            for base in bases:
                if base.word >= 0 and held is not None:
                    reached.setdefault(base.word, set()).add(held.number)
        found, torn = [], []
        for word, numbers in reached.items():
            if len(numbers) > 1:
                torn.append(Reason.POINTER_ESCAPES)
                continue
            (number,) = numbers
            held = self._memory.number(number)
            assert held is not None
            value = int.from_bytes(parameters[word:word + 8], "little")
            found.append(Pointer(word, number, value - held.address))
        return tuple(found), torn

    def _of_memory(self, effects: Iterable[Effect], device: int) -> Iterable[Reason]:
        for effect in effects:
            held = self._memory.find(effect.lo)
            if held is None:
                continue
            if held.pin is not None:
                yield held.pin
            elif held.device != device:
                yield Reason.PEER_MEMORY
            if self._memory.is_aliased(effect.lo, effect.hi):
                yield Reason.ALIASED_MEMORY

    def _unbounded(self, effect: Effect) -> bool:
        """Whether all that is known of a write is its allocation."""
        if effect.kind not in ("MAYW", "A") or effect.exact:
            return False
        region = self._memory.regions.find(effect.lo)
        return region is not None and (effect.lo, effect.hi) == (region.address, region.address + region.size)

    def _opaque(self, launch: Launch, reason: Reason) -> Prepared:
        if not self._promised or not launch.parameters:
            return _prepared(launch, ANYTHING, reason)
        found: dict[int, Allocation] = {}
        for word in range(0, len(launch.parameters) - 7, 4):
            held = self._memory.pointed(int.from_bytes(launch.parameters[word:word + 8], "little"))
            if held is not None:
                found[held.number] = held
        for (module, _), held in self._variables.items():
            if module == launch.kernel.module:
                found[held.number] = held
        effects = [Effect(kind, lo, hi, False) for held in found.values()
                   for lo, hi in self._memory.everywhere(held.address, held.end) for kind in ("R", "MAYW")]
        return _prepared(launch, tuple(effects), reason)


def _prepared(launch: Launch, effects: tuple[Effect, ...], opaque: Reason | None) -> Prepared:
    key = LaunchKey(launch.kernel.name, launch.grid, launch.block)
    return Prepared(launch, effects, opaque, key, launch_text(key))


def _said(body: Any, attributes: Iterable[Any]) -> Iterable[Reason]:
    """Why the way in which it was launched keeps a launch at home."""
    if body.flags & lib.WIRE_COOPERATIVE:
        yield Reason.COOPERATIVE_LAUNCH
    for attribute in attributes:
        first = [int.from_bytes(attribute.value[at:at + 4], "little") for at in (0, 4, 8)]
        if attribute.id == _COOPERATIVE:
            if first[0]:
                yield Reason.COOPERATIVE_LAUNCH
        elif attribute.id == _CLUSTER:
            if any(extent > 1 for extent in first):
                yield Reason.CLUSTER
        elif attribute.id not in _HARMLESS:
            yield Reason.LAUNCH_ATTRIBUTE
