"""Control flow, barriers and what only orders memory (PTX manual, sections 9.7.12, 9.7.13 and 9.7.19)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ptxparse.model import Symbol
from softgpu.reference.barriers import ALL, Reduce
from softgpu.reference.decode import Decode, Decoder
from softgpu.reference.errors import KernelTrap
from softgpu.reference.issue import Issue
from softgpu.reference.program import Control, Kind, Read, Value
from softgpu.reference.warps import Masks, meeting

if TYPE_CHECKING:
    from softgpu.reference.strand import Strand

SCOPES = ("cta", "cluster", "gpu", "sys")


def target_pc(d: Decoder, label: str) -> int:
    """Program counter of a label of the active function."""
    index = d.code.function.labels.get(label)
    if index is None:
        d.fail(f"{label} is not a label of this function")
    return d.code.position[index]


def _bra(d: Decoder) -> None:
    d.flag("uni")
    d.done(1)
    label = d.operands[0]
    if not isinstance(label, Symbol):
        d.fail("the target is not a label")
    d.operation.kind = Kind.BRANCH
    d.operation.target = target_pc(d, label.name)


def _brx(d: Decoder) -> None:
    d.need("idx")
    d.flag("uni")
    d.done(2)
    listed = d.operands[1]
    labels = d.code.function.branch_targets.get(listed.name) if isinstance(listed, Symbol) else None
    if labels is None:
        d.fail("the second operand is not a .branchtargets list")
    targets = np.array([target_pc(d, label) for label in labels], np.int64)
    index = d.source(0, "u32")

    def control(strand: Strand, x: Issue, key: int) -> int | None:
        chosen = x.full(index(x)).astype(np.int64)
        outside = chosen >= len(targets)
        if outside.any():
            position = int(np.flatnonzero(outside)[0])
            raise x.undefined(f"brx.idx index {chosen[position]} of {len(targets)} targets", position)
        keys = targets[chosen] - (x.depth << 32)
        rows = x.rows()
        for goal in np.unique(keys):
            strand.push(int(goal), rows[keys == goal] if not (keys == goal).all() else x.index)
        return None

    d.control(control)


def _exit(d: Decoder) -> None:
    d.done(0)

    def control(strand: Strand, x: Issue, key: int) -> int | None:
        x.team.exit(x)
        return None

    d.control(control)


def give_back(strand: Strand, x: Issue, key: int) -> int | None:
    """Return to the caller; from the kernel itself, exit."""
    if x.depth == 0:
        x.team.exit(x)
        return None
    rows = x.rows()
    keys = x.team.returns[x.depth][rows]
    for goal in np.unique(keys):
        chosen = keys == goal
        strand.push(int(goal), x.index if chosen.all() else rows[chosen])
    return None


def _ret(d: Decoder) -> None:
    d.flag("uni")
    d.done(0)
    d.control(give_back)


def _trap(reason: str) -> Decode:
    def decode(d: Decoder) -> None:
        d.done(0)

        def run(x: Issue) -> None:
            raise KernelTrap(reason, x.line, x.thread(0))

        d.plain(run)

    return decode


def _no_effect(d: Decoder) -> None:
    d.plain(lambda x: None)


def _nanosleep(d: Decoder) -> None:
    d.need("u32")
    d.done(1)
    duration = d.source(0, "u32")

    def run(x: Issue) -> None:
        x.team.grid.clock += int(duration(x).max())

    d.plain(run)


def _proxy(d: Decoder) -> None:
    """There is one way to memory: an alias of an address is that address, asynchronous copies are not executed."""
    if d.need("alias", "async") == "async":
        d.take("global", "shared::cta", "shared::cluster")
    d.done(0)
    _no_effect(d)


def _setmaxnreg(d: Decoder) -> None:
    """A hint: registers are not counted here."""
    d.need("inc", "dec")
    for modifier in ("sync", "aligned", "u32"):
        d.need(modifier)
    d.done(1)
    count = d.immediate(0)
    if not 24 <= count <= 256 or count % 8:
        d.fail(f"{count} registers")
    _no_effect(d)


def _membar(d: Decoder) -> None:
    if d.flag("proxy"):
        _proxy(d)
        return
    d.need("cta", "gl", "sys")
    d.done(0)
    _no_effect(d)


def _fence(d: Decoder) -> None:
    """Every access is performed at once, in one memory that all threads see: fences have nothing to do."""
    if d.flag("proxy"):
        _proxy(d)
        return
    d.take("sc", "acq_rel", "acquire", "release")
    d.need(*SCOPES)
    d.done(0)
    _no_effect(d)


def _griddepcontrol(d: Decoder) -> None:
    d.need("launch_dependents", "wait")
    d.done(0)
    _no_effect(d)


def _pmevent(d: Decoder) -> None:
    d.flag("mask")
    d.done(1)
    d.immediate(0)
    _no_effect(d)


def _bar(d: Decoder) -> None:
    if d.flag("warp"):
        _bar_warp(d)
        return
    _barrier(d, aligned=True)


def _barrier(d: Decoder, aligned: bool = False) -> None:
    """``bar`` is ``barrier`` with an implied ``.aligned``."""
    d.flag("cta")
    what = d.need("sync", "arrive", "red")
    operator = d.need("popc", "and", "or") if what == "red" else ""
    if not aligned:
        d.flag("aligned")
    if operator:
        d.need("u32" if operator == "popc" else "pred")
        d.done(3, 4)
        number, predicate = d.source(1, "u32"), d.predicate(d.operands[-1])
        expected = d.source(2, "u32") if len(d.operands) == 4 else None
        d.control(_arrival(number, expected, True, _reduction(d, operator), predicate))
        return
    d.done(*((2,) if what == "arrive" else (1, 2)))
    expected = d.source(1, "u32") if len(d.operands) == 2 else None
    d.control(_arrival(d.source(0, "u32"), expected, what == "sync", None, None))


def _reduction(d: Decoder, operator: str) -> Reduce:
    write = d.destination(0, "u32" if operator == "popc" else "pred")

    def reduce(x: Issue, predicate: npt.NDArray[np.bool_], blocks: npt.NDArray[np.intp]) -> None:
        size = x.team.blocks
        true = np.bincount(blocks, weights=predicate, minlength=size)
        if operator == "popc":
            result: Value = true.astype(np.uint32)
        elif operator == "or":
            result = true > 0
        else:
            result = true == np.bincount(blocks, minlength=size)
        write(x, result[blocks[:x.count]])

    return reduce


def _arrival(number: Read, expected: Read | None, waits: bool, reduce: Reduce | None,
             predicate: Read | None) -> Control:
    def control(strand: Strand, x: Issue, key: int) -> int | None:
        numbers = number(x)
        counts = expected(x) if expected is not None else np.zeros(1, np.uint32)
        both = np.unique(numbers.astype(np.int64) << 32 | counts.astype(np.int64))
        for one in both:
            part = x
            if len(both) > 1:
                chosen = (numbers.astype(np.int64) << 32 | counts.astype(np.int64)) == one
                part = x.only(np.flatnonzero(chosen))
            bits = None
            if predicate is not None:
                bits = part.full(predicate(part)).astype(np.bool_)
            count = int(one) & 0xFFFFFFFF if expected is not None else ALL
            if x.team.barriers.arrive(part, key + 1, int(one) >> 32, count, waits, reduce, bits):
                return key + 1
        return None

    return control


def _bar_warp(d: Decoder) -> None:
    d.need("sync")
    d.done(1)

    def exchange(issues: list[Issue], values: list[Value], masks: Masks) -> list[Value]:
        return []

    d.control(meeting("bar.warp.sync", d.source(0, "u32"), (), (), exchange), counted=False)


TABLE: dict[str, Decode] = {
    "bra": _bra, "brx": _brx, "exit": _exit, "ret": _ret, "trap": _trap("trap"), "brkpt": _trap("breakpoint"),
    "nanosleep": _nanosleep, "membar": _membar, "fence": _fence, "griddepcontrol": _griddepcontrol,
    "setmaxnreg": _setmaxnreg, "pmevent": _pmevent, "bar": _bar, "barrier": _barrier,
}
