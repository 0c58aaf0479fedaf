"""References of ``elementwise.cu``, ``division.cu``, ``structs.cu``, ``rope.cu`` and the hand-written PTX."""

from __future__ import annotations

import numpy as np

from tests.references.core import Array, Expected, Inputs, quiet, references

elementwise = references("elementwise")
division = references("division")
structs = references("structs")
rope = references("rope")
renderer = references("hand_renderer")
blocks = references("hand_blocks")
forms = references("hand_forms")


@elementwise()
@quiet
def scale(k: Inputs) -> Expected:
    return {"y": k.x * np.float32(k.a)}


@elementwise()
def fill_exact(k: Inputs) -> Expected:
    return {"y": np.full(len(k.y), k.value)}


@elementwise()
def add_2d(k: Inputs) -> Expected:
    c = k.c
    for y in range(k.height):
        row = slice(y * k.pitch, y * k.pitch + k.width)
        c[row] = k.a[row] + k.b[row]
    return {"c": c}


@elementwise()
def add_3d(k: Inputs) -> Expected:
    return {"c": k.a + np.float32(k.b)}


@elementwise(rtol=2e-6, atol=1e-6)
@quiet
def saxpy_stride(k: Inputs) -> Expected:
    return {"y": (np.float64(k.a) * k.x + k.y).astype(np.float32)}


@elementwise()
def relu_unrolled(k: Inputs) -> Expected:
    return {"y": np.fmax(k.x, 0)}


@elementwise()
def reverse(k: Inputs) -> Expected:
    return {"y": k.x[::-1]}


@elementwise()
def reverse_in_place(k: Inputs) -> Expected:
    return {"x": k.x[::-1]}


@elementwise()
def copy_pitched(k: Inputs) -> Expected:
    to, source = k.to, getattr(k, "from")
    for row in range(k.height):
        to[row * k.to_pitch: row * k.to_pitch + k.width] = source[row * k.from_pitch: row * k.from_pitch + k.width]
    return {"to": to}


@elementwise()
def add_float4(k: Inputs) -> Expected:
    return {"c": k.a + k.b}


@elementwise()
def narrow_int4(k: Inputs) -> Expected:
    return {"s": k.x.astype(np.int16), "u": k.x.astype(np.uint8)}


@elementwise()
def scale_vector_tail(k: Inputs) -> Expected:
    return {"y": k.x * np.float32(k.a)}


@elementwise(rtol=1e-14, atol=1e-15)
@quiet
def axpy_f64(k: Inputs) -> Expected:
    return {"y": k.a * k.x + k.y}


@elementwise()
def narrow_parameters(k: Inputs) -> Expected:
    return {"y": np.full(k.n, k.a + k.b * k.c + k.d if k.g else k.e - k.f, np.float64)}


@division()
def divide_by_constant(k: Inputs) -> Expected:
    i = np.arange(k.n)
    return {"y": (k.x[i // 7].astype(np.int64) * 7 + i % 7).astype(np.int32)}


@division()
def divide_by_constant_signed(k: Inputs) -> Expected:
    i = np.arange(k.n)
    return {"y": (k.x[i // 12].astype(np.int64) + i % 12).astype(np.int32)}


@division()
def divide_by_power(k: Inputs) -> Expected:
    i = np.arange(k.n)
    return {"y": k.row[i // 16] * k.column[i % 16]}


@division()
def divide_by_value(k: Inputs) -> Expected:
    i = np.arange(k.n)
    return {"y": k.row[i // k.width] + k.column[i % k.width]}


@division("divide_by_value_signed")
@division("divide_by_value_64")
def divide_and_subtract(k: Inputs) -> Expected:
    i = np.arange(k.n)
    return {"y": k.row[i // k.width] - k.column[i % k.width]}


@division()
def permute_4d(k: Inputs) -> Expected:
    return {"y": k.x.reshape(k.d0, k.d1, k.d2, k.d3).transpose(0, 2, 1, 3).ravel()}


@division()
def im2col(k: Inputs) -> Expected:
    image = np.pad(k.image.reshape(k.channels, k.height, k.width), ((0, 0), (k.pad, k.pad), (k.pad, k.pad)))
    oh = (k.height + 2 * k.pad - k.kernel) // k.stride + 1
    ow = (k.width + 2 * k.pad - k.kernel) // k.stride + 1
    columns = np.empty((k.channels, k.kernel, k.kernel, oh, ow), np.float32)
    for ky in range(k.kernel):
        for kx in range(k.kernel):
            columns[:, ky, kx] = image[:, ky: ky + oh * k.stride: k.stride, kx: kx + ow * k.stride: k.stride]
    return {"columns": columns}


@division()
def hash_gather(k: Inputs) -> Expected:
    h = np.arange(k.n, dtype=np.uint32) * np.uint32(2654435761)
    h ^= h >> np.uint32(15)
    return {"y": k.table[h & np.uint32(k.mask)]}


@division()
def hash_remainder(k: Inputs) -> Expected:
    h = np.arange(k.n, dtype=np.uint32) * np.uint32(747796405) + np.uint32(2891336453)
    return {"y": k.table[h % np.uint32(k.size)]}


@division()
def wrap_16(k: Inputs) -> Expected:
    return {"y": k.table[(k.start + np.arange(k.n)) % 65536]}


@division()
def ring_copy(k: Inputs) -> Expected:
    return {"y": k.ring[(k.start + np.arange(k.n)) % k.capacity]}


@structs()
def struct_scale(k: Inputs) -> Expected:
    source, rows, columns, from_stride, target, _, _, to_stride, factor = k.p.values
    x, y = source.data.copy(), target.data.copy()
    for r in range(rows):
        row = x[r * from_stride: r * from_stride + columns]
        y[r * to_stride: r * to_stride + columns] = row * np.float32(factor)
    return {target: y}


@structs()
def struct_pointer_array(k: Inputs) -> Expected:
    count = k.b.values[16]
    return {b: b.data * np.float32(k.a) for b in k.b.values[:count]}


@structs()
def struct_concat(k: Inputs) -> Expected:
    return {"y": np.concatenate([k.b.values[i].data for i in (0, 3, 7)])}


@structs()
def struct_strided_gather(k: Inputs) -> Expected:
    data, dimensions, *rest = k.s.values
    shape, strides = rest[:dimensions], rest[5:5 + dimensions]
    return {"y": np.lib.stride_tricks.as_strided(data.data, shape, [4 * s for s in strides]).ravel()}


@structs(rtol=1e-5, atol=1e-5)
def struct_wide(k: Inputs) -> Expected:
    weights = np.array(k.w.values[:70], np.float32)
    target, source, n = k.w.values[70:]
    return {target: source.data * weights.sum(dtype=np.float64) + weights[np.arange(n) % 70]}


@structs()
def struct_small(k: Inputs) -> Expected:
    return {"y": np.full(k.n, -5 * 1000 + 1234 + 77)}


@rope(rtol=1e-5, atol=1e-5)
def rope_table(k: Inputs) -> Expected:
    found = {}
    cosine, sine = (t.reshape(-1, k.half_size)[k.position][:, None] for t in (k.cosine, k.sine))
    for name, heads in (("q", k.query_heads), ("k", k.key_heads)):
        x = getattr(k, name).reshape(len(k.position), heads, 2, k.half_size)
        a, b = x[:, :, 0], x[:, :, 1]
        found[name] = np.stack([a * cosine - b * sine, b * cosine + a * sine], axis=2).ravel()
    return found


@rope(rtol=2e-3, atol=2e-3)
def rope_select(k: Inputs) -> Expected:
    angle = k.turn.reshape(-1, 2)
    found = {}
    for name in ("q", "k")[: k.grid[1]]:
        v = getattr(k, name).astype(np.float32).reshape(-1, 2)
        turned = [v[:, 0] * angle[:, 0] - v[:, 1] * angle[:, 1], v[:, 0] * angle[:, 1] + v[:, 1] * angle[:, 0]]
        found[name] = np.stack(turned, axis=1).ravel()
    return found


@rope(rtol=1e-3, atol=2e-4)
def rope_angles(k: Inputs) -> Expected:
    v = k.x.reshape(k.tokens, k.pairs, 2).astype(np.float64)
    angle = np.arange(k.tokens)[:, None] * k.base ** (-np.arange(k.pairs) / k.pairs)
    c, s = np.cos(angle), np.sin(angle)
    return {"x": np.stack([v[..., 0] * c - v[..., 1] * s, v[..., 0] * s + v[..., 1] * c], axis=2).ravel()}


@rope()
def select_of_four(k: Inputs) -> Expected:
    return {"abcd"[k.which]: np.arange(k.n, dtype=np.float32)}


@rope()
def concatenate(k: Inputs) -> Expected:
    return {"y": np.concatenate([k.a, k.b])}


@rope()
def ping_pong(k: Inputs) -> Expected:
    a, b = k.a, k.b
    for step in range(k.steps):
        if step % 2 == 0:
            b = a + np.roll(a, -1)
        else:
            a = b + np.roll(b, -1)
    return {"a": a, "b": b}


@renderer()
def E_scale_rows(k: Inputs) -> Expected:
    return {"data0": (k.data1.reshape(-1, 128) * k.data2[:, None]).ravel()}


@renderer(rtol=1e-5, atol=1e-5)
def r_sum_rows(k: Inputs) -> Expected:
    return {"data0": k.data1.reshape(len(k.data0), -1).sum(1, dtype=np.float64)}


@blocks()
def scale_block(k: Inputs) -> Expected:
    return {"y": k.x * np.float32(k.a)}


@blocks(rtol=1e-5, atol=1e-5)
def sum_block(k: Inputs) -> Expected:
    return {"y": np.array([k.x[r * k.stride: r * k.stride + k.n].sum(dtype=np.float64) for r in range(k.blocks)])}


@forms()
def jump_table(k: Inputs) -> Expected:
    x = k.x
    return {"y": np.choose(x & 3, [x + np.uint32(100), x * np.uint32(3), ~x, x >> np.uint32(2)])}


@forms()
def call_prototype(k: Inputs) -> Expected:
    return {"y": k.x * np.uint32(2) if k.which else k.x + np.uint32(7)}


@forms()
def generic_spaces(k: Inputs) -> Expected:
    t = np.arange(len(k.y), dtype=np.uint32)
    return {"y": np.where(t % 2 == 0, t * 8 + 1000, k.x)}


@forms()
def initialised(k: Inputs) -> Expected:
    t = np.arange(k.threads)
    numbers = np.array([3, 1, 4, 1, 5, 9], np.float32)
    return {"y": numbers[t + 2 * k.which] * np.array([0.5, 0.25, 0.125, 0.0625], np.float32)[t]}


@forms()
@quiet
def packed_moves(k: Inputs) -> Expected:
    low, high = k.x[0::2].astype(np.uint64), k.x[1::2].astype(np.uint64)
    wide = (low << np.uint64(32) | high) + np.uint64(1)
    first, second = wide.astype(np.uint32), (wide >> np.uint64(32)).astype(np.uint32)
    total: Array = k.total
    total[0] += first.sum(dtype=np.uint32)
    total[1] = max(total[1], *second) if len(second) else total[1]
    return {"y": np.stack([first, second], axis=1).ravel(), "total": total}
