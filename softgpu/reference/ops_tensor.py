"""Matrix instructions of a warp: mma, wmma, ldmatrix, stmatrix, movmatrix. Layouts and arithmetic are in ``tensor``."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from softgpu.reference.access import READ, WRITE, load, resolve, store
from softgpu.reference.decode import Decode, Decoder
from softgpu.reference.issue import Issue, Rows
from softgpu.reference.ops_memory import SPACES, address_operand
from softgpu.reference.ops_warp import whole_mask
from softgpu.reference.program import Read, Value
from softgpu.reference.tensor import LDMATRIX, MMA, STMATRIX, WMMA, WMMA_ACCESS, MatrixAccess, MatrixOperation
from softgpu.reference.warps import Masks, meeting

WARP = 32
Bits = npt.NDArray[Any]


def _together(d: Decoder, run: Any, *signature: object) -> None:
    """An ``.aligned`` instruction: all threads of a warp execute it at the same place."""

    def exchange(issues: list[Issue], values: list[Value], masks: Masks) -> list[Value]:
        assert len(issues) >= 1
        run(issues[0] if len(issues) == 1 else _joined(issues))
        return []

    d.control(meeting((d.instruction.mnemonic, id(d.instruction), *signature), whole_mask(), (), (), exchange),
              counted=False)


def _joined(issues: list[Issue]) -> Issue:
    """Parts of warps that came to the same instruction at different times, as one issue."""
    first = issues[0]
    if any(x.frame is not first.frame or x.depth != first.depth for x in issues):
        raise first.undefined("an .aligned instruction executed at different call depths")
    return Issue(first.team, first.frame, first.depth, np.sort(np.concatenate([x.rows() for x in issues])), first.line)


def _check_whole(x: Issue) -> int:
    """The number of warps, all complete."""
    if x.count % WARP or not x.team.whole_warps:
        raise x.undefined("a matrix instruction needs all 32 threads of the warp")
    return x.count // WARP


def _gather(x: Issue, reads: list[Read], warps: int) -> Bits:
    """Registers as (warps, registers, 32)."""
    return np.stack([x.full(read(x)).reshape(warps, WARP) for read in reads], axis=1)


def _scatter(x: Issue, writes: list[Any], registers: Bits) -> None:
    for k, write in enumerate(writes):
        write(x, np.ascontiguousarray(registers[:, k]).reshape(-1))


def _multiply(d: Decoder, operation: MatrixOperation) -> None:
    d.modifiers.clear()
    d.done(4)
    writes = [d.write(item, f"b{operation.d.bits}") for item in d.items(0, operation.d_registers)]
    parts = (operation.a, operation.b, operation.c)
    reads = [[d.read(item, f"b{part.bits}") for item in d.items(1 + k, part.registers)]
             for k, part in enumerate(parts)]

    def run(x: Issue) -> None:
        warps = _check_whole(x)
        a, b, c = (_gather(x, part, warps) for part in reads)
        _scatter(x, writes, operation(a, b, c))

    _together(d, run)


def _mma(d: Decoder) -> None:
    operation = MMA.get(d.instruction.mnemonic)
    if operation is None:
        d.fail("not in the table of supported mnemonics")
    _multiply(d, operation)


def _without_space(d: Decoder) -> tuple[str, str]:
    """The mnemonic without its state space, and the space ("": generic)."""
    space = d.take_anywhere(("global", "shared", "shared::cta", "shared::cluster"))
    name = ".".join((d.instruction.opcode, *d.modifiers))
    d.modifiers.clear()
    return name, SPACES[space] if space else ""


def _wmma(d: Decoder) -> None:
    if d.modifiers and d.modifiers[0] == "mma":
        operation = WMMA.get(d.instruction.mnemonic)
        if operation is None:
            d.fail("not in the table of supported mnemonics")
        _multiply(d, operation)
        return
    name, space = _without_space(d)
    access = WMMA_ACCESS.get(name)
    if access is None:
        d.fail("not in the table of supported mnemonics")
    d.done(2, 3)
    _wmma_access(d, access, space)


def _wmma_access(d: Decoder, access: MatrixAccess, space: str) -> None:
    where, registers = (0, 1) if access.is_store else (1, 0)
    address, space = address_operand(d, where, space)
    kind = f"b{access.bits}"
    stride = d.source(2, "u32") if len(d.operands) == 3 else None
    items = d.items(registers, access.registers)
    reads = [d.read(item, kind) for item in items] if access.is_store else []
    writes = [] if access.is_store else [d.write(item, kind) for item in items]
    size = access.element_bytes

    def run(x: Issue) -> None:
        warps = _check_whole(x)
        bases = x.full(address(x)).view(np.int64).reshape(warps, 1, 1, WARP)
        steps = x.full(stride(x)).astype(np.int64) if stride is not None else None
        places = np.stack([access.offsets(None if steps is None else steps[w * WARP:(w + 1) * WARP])
                           for w in range(warps)]) + bases
        elements = access.unpack(_gather(x, reads, warps)) if access.is_store else np.empty(places.shape, np.uint64)
        for register in range(places.shape[1]):
            for part in range(places.shape[2]):
                flat = np.ascontiguousarray(places[:, register, part]).reshape(-1).view(np.uint64)
                pieces = resolve(x, space, flat, size, WRITE if access.is_store else READ)
                if access.is_store:
                    value = elements[:, register, part].reshape(-1).astype(np.dtype(f"u{size}"))
                    store(x, pieces, size, 0, value)
                else:
                    elements[:, register, part] = x.full(load(pieces, size, 0, x.count)).reshape(warps, WARP)
        if not access.is_store:
            _scatter(x, writes, access.pack(elements))

    _together(d, run)


def _row_addresses(x: Issue, address: Read, lanes: npt.NDArray[np.int64], warps: int) -> tuple[Issue, Bits]:
    """The issue of the threads that give row addresses, in order of lanes, and those addresses."""
    positions: Rows = (np.arange(warps)[:, None] * WARP + lanes.reshape(-1)).reshape(-1)
    return x.only(positions), x.full(address(x))[positions]


def _ldmatrix(d: Decoder) -> None:
    name, space = _without_space(d)
    move = LDMATRIX.get(name)
    if move is None:
        d.fail("not in the table of supported mnemonics")
    d.done(2)
    address, space = address_operand(d, 1, space)
    writes = [d.write(item, "b32") for item in d.items(0, move.matrices)]

    def run(x: Issue) -> None:
        warps = _check_whole(x)
        givers, rows = _row_addresses(x, address, move.row_lanes, warps)
        pieces = resolve(givers, space, rows, 16, READ)
        halves = [givers.full(load(pieces, 2, k, givers.count)) for k in range(8)]
        matrices = np.stack(halves, axis=1).reshape(warps, move.matrices, 8, 8)
        _scatter(x, writes, move.load(matrices))

    _together(d, run)


def _stmatrix(d: Decoder) -> None:
    name, space = _without_space(d)
    move = STMATRIX.get(name)
    if move is None:
        d.fail("not in the table of supported mnemonics")
    d.done(2)
    address, space = address_operand(d, 0, space)
    reads = [d.read(item, "b32") for item in d.items(1, move.matrices)]

    def run(x: Issue) -> None:
        warps = _check_whole(x)
        givers, rows = _row_addresses(x, address, move.row_lanes, warps)
        pieces = resolve(givers, space, rows, 16, WRITE)
        matrices = move.store(_gather(x, reads, warps)).reshape(givers.count, 8)
        for k in range(8):
            store(givers, pieces, 2, k, np.ascontiguousarray(matrices[:, k]))

    _together(d, run)


def _movmatrix(d: Decoder) -> None:
    """A lane's register is what ldmatrix gives it; the result what ldmatrix.trans would."""
    for modifier in ("sync", "aligned", "m8n8", "trans", "b16"):
        d.need(modifier)
    d.done(2)
    write, read = d.destination(0, "b32"), d.source(1, "b32")
    transposed = LDMATRIX["ldmatrix.sync.aligned.m8n8.x1.trans.b16"]
    straight = STMATRIX["stmatrix.sync.aligned.m8n8.x1.b16"]

    def run(x: Issue) -> None:
        warps = _check_whole(x)
        registers = transposed.load(straight.store(_gather(x, [read], warps)))
        _scatter(x, [write], registers)

    _together(d, run)


TABLE: dict[str, Decode] = {
    "mma": _mma, "wmma": _wmma, "ldmatrix": _ldmatrix, "stmatrix": _stmatrix, "movmatrix": _movmatrix,
}
