"""ldmatrix and stmatrix, and that ldmatrix feeds mma as its fragments want it."""

from __future__ import annotations

import numpy as np
import pytest

from softgpu.reference.tensor import FAMILIES, LDMATRIX, MMA, ROW_BYTES, STMATRIX


@pytest.mark.parametrize("trans", [False, True])
@pytest.mark.parametrize("matrices", [1, 2, 4])
def test_each_lane_holds_two_elements_of_a_row(matrices: int, trans: bool) -> None:
    suffix = f"sync.aligned.m8n8.x{matrices}{'.trans' if trans else ''}.b16"
    move = LDMATRIX[f"ldmatrix.{suffix}"]
    rows = np.arange(matrices * 64, dtype=np.uint16).reshape(matrices, 8, 8)
    registers = move.load(rows)
    for matrix in range(matrices):
        for lane in range(32):
            line, first = lane // 4, 2 * (lane % 4)
            pair = [rows[matrix, i, line] if trans else rows[matrix, line, i] for i in (first, first + 1)]
            assert registers[matrix, lane] == int(pair[0]) | int(pair[1]) << 16
    assert np.array_equal(STMATRIX[f"stmatrix.{suffix}"].store(registers), rows)


def test_lanes_of_the_row_addresses() -> None:
    move = LDMATRIX["ldmatrix.sync.aligned.m8n8.x4.trans.b16"]
    assert move.row_lanes.tolist() == [[8 * matrix + row for row in range(8)] for matrix in range(4)]
    assert LDMATRIX["ldmatrix.sync.aligned.m8n8.x1.b16"].row_lanes.shape == (1, 8)
    assert ROW_BYTES == 16 and not move.is_store and STMATRIX[FAMILIES["stmatrix"][0]].is_store


def test_ldmatrix_feeds_mma() -> None:
    """The usual way: A through .x4, a row-major B through .x2.trans, in shared memory as 8 x 8 blocks."""
    random = np.random.default_rng(0)
    a, b = random.integers(-8, 8, (16, 16)), random.integers(-8, 8, (16, 8))
    a_bits, b_bits = (matrix.astype(np.float16).view(np.uint16) for matrix in (a, b))
    blocks = np.stack([a_bits[:8, :8], a_bits[8:, :8], a_bits[:8, 8:], a_bits[8:, 8:]])
    a_registers = LDMATRIX["ldmatrix.sync.aligned.m8n8.x4.b16"].load(blocks)
    b_registers = LDMATRIX["ldmatrix.sync.aligned.m8n8.x2.trans.b16"].load(np.stack([b_bits[:8], b_bits[8:]]))
    operation = MMA["mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"]
    result = operation(a_registers, b_registers, np.zeros((4, 32), np.uint32)).view(np.float32)
    for lane in range(32):
        for i in range(4):
            assert result[i, lane] == (a @ b)[lane // 4 + 8 * (i // 2), 2 * (lane % 4) + i % 2]
