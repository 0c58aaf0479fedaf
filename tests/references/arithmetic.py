"""References of ``halves.cu``, ``bits.cu`` and ``math.cu``: number formats and single operations."""

from __future__ import annotations

import numpy as np

from tests.references.core import Array, Expected, Inputs, from_bf16, quiet, references, to_bf16, to_f16

halves = references("halves")
bits = references("bits")
functions = references("math")


@halves(rtol=1e-3, atol=1e-7)
@quiet
def axpy_half2(k: Inputs) -> Expected:
    return {"y": to_f16(np.float64(np.float16(k.a)) * k.x + k.y)}


@halves(rtol=1e-3, atol=1e-7)
@quiet
def arithmetic_half2(k: Inputs) -> Expected:
    a, b = k.a, k.b
    total = a + b
    product = np.fmin(np.fmax(a * b, np.float16(-8)), np.float16(8))
    fused = to_f16(a.astype(np.float64) * b - total.astype(np.float64))
    relu = np.where(np.isnan(fused), fused, np.maximum(fused, 0))
    parts = [total, a - b, product, relu]
    return {"y": np.stack([p.reshape(-1, 2) for p in parts], axis=1).ravel()}


@halves()
@quiet
def compare_half2(k: Inputs) -> Expected:
    a, b = k.a.reshape(-1, 2), k.b.reshape(-1, 2)
    lower = np.where(a <= b, np.uint32(0xFFFF), np.uint32(0))
    mask = lower[:, 0] | lower[:, 1] << np.uint32(16)
    return {"y": (a > b).astype(np.float16).ravel(), "mask": mask ^ (a == b).all(1).astype(np.uint32)}


@halves(rtol=1e-2, atol=1e-30)
@quiet
def fma_bfloat162(k: Inputs) -> Expected:
    a, b = from_bf16(k.a).astype(np.float64), from_bf16(k.b).astype(np.float64)
    return {"y": to_bf16(a * b + np.fmax(np.abs(a), b))}


@halves()
@quiet
def convert_round(k: Inputs) -> Expected:
    near = to_f16(k.x)
    down = np.where(near.astype(np.float32) > k.x, np.nextafter(near, np.float16(-np.inf)), near)
    b = to_bf16(k.x)
    return {"h": np.stack([near, down], axis=1).ravel(), "b": b, "back": down.astype(np.float32) + b}


@halves(rtol=2e-3, atol=1e-6)
@quiet
def half_functions(k: Inputs) -> Expected:
    x = k.x.astype(np.float64).reshape(-1, 2)
    return {"y": np.stack([to_f16(np.exp2(x)), to_f16(np.sqrt(np.abs(x)))], axis=1).ravel()}


def dot_bytes(a: Array, b: Array, kind: type[np.generic]) -> Array:
    """Dot products of the four bytes of each word."""
    return (a.view(kind).reshape(-1, 4).astype(np.int64) * b.view(kind).reshape(-1, 4)).sum(1)


@halves()
def dot_int8(k: Inputs) -> Expected:
    b = np.tile(k.b, k.rows) if k.rows else k.a
    return {"y": dot_bytes(k.a, b, np.int8).reshape(k.rows, k.words).sum(1).astype(np.int32)}


@halves()
def dot_uint8(k: Inputs) -> Expected:
    return {"y": (dot_bytes(k.a, k.b, np.uint8) + 7).astype(np.uint32)}


@halves()
def quantise_int8(k: Inputs) -> Expected:
    x = k.x.reshape(-1, k.columns)
    largest = np.abs(x).max(1)
    scales = largest / np.float32(127)
    with np.errstate(invalid="ignore"):
        q = np.where(largest[:, None] > 0, np.rint(x / scales[:, None]), 0)
    return {"y": np.clip(q, -127, 127).astype(np.int8).ravel(), "scales": scales}


@halves()
@quiet
def dequantise_int4(k: Inputs) -> Expected:
    q = np.stack([k.packed & 15, k.packed >> 4], axis=1).astype(np.float16) - np.float16(8)
    return {"y": (q * k.scales[np.arange(len(k.packed)) // 16][:, None]).ravel()}


def u32(value: int) -> int:
    return value & 0xFFFFFFFF


@bits()
def bit_functions(k: Inputs) -> Expected:
    rows = []
    for p, q in zip(k.a.tolist(), k.b.tolist(), strict=True):
        joined = (q << 32) | p
        nibbles = [joined.to_bytes(8, "little")[s] for s in (4, 7, 1, 3)]
        reversed_bits = int(f"{p:032b}"[::-1], 2)
        lowest = (p & -p).bit_length()
        signed = [v - (1 << 32) if v >> 31 else v for v in (p, q)]
        rows.append([
            p >> 5 & 0x1FF, q & ~(0xFFF << 8) | (p & 0xFFF) << 8, p.bit_length() - 1 if p else 0xFFFFFFFF,
            u32((p & 0xFFFFFF) * (q & 0xFFFFFF) + p), p.bit_count() + (32 - q.bit_length()) * 64 + lowest * 4096,
            reversed_bits, int.from_bytes(bytes(nibbles), "little"), u32(joined << 11 >> 32),
            u32(joined >> (q & 31)), p * q >> 32, u32(abs(signed[0] - signed[1]) + 3), u32((p & q) ^ (~p | q << 3))])
    return {"y": np.array(rows, np.uint64).astype(np.uint32).ravel()}


@bits()
def wide_multiply(k: Inputs) -> Expected:
    products = [a * b + a for a, b in zip(k.a.tolist(), k.b.tolist(), strict=True)]
    return {"y": np.array([w for p in products for w in (p & (1 << 64) - 1, p >> 64)], np.uint64)}


@bits()
def signed_arithmetic(k: Inputs) -> Expected:
    a, b = k.a.astype(np.int64), k.b.astype(np.int64)
    quotient = np.where((a < 0) == (b < 0), np.abs(a) // np.abs(b), -(np.abs(a) // np.abs(b)))
    absolute = np.abs(k.a.astype(np.int64)).astype(np.int32)
    total = np.clip(a + b, -2**31, 2**31 - 1)
    parts = [total, quotient, a - quotient * b, a * b >> 32, absolute >> (k.b & 7), a * b >> 9]
    return {"y": np.stack([p.astype(np.int32) for p in parts], axis=1).ravel()}


@bits()
def shifts(k: Inputs) -> Expected:
    x, by = k.x.astype(np.uint64), k.by.astype(np.uint64)
    over = by > 31
    amount = np.where(over, np.uint64(0), by)
    left = np.where(over, np.uint64(0), x << amount).astype(np.uint32)
    right = np.where(over, np.uint64(0), x >> amount).astype(np.uint32)
    arithmetic = (k.x.view(np.int32) >> np.minimum(by, 31).astype(np.int32)).view(np.uint32)
    return {"y": np.stack([left, right, arithmetic], axis=1).ravel()}


@bits()
def narrow_arithmetic(k: Inputs) -> Expected:
    a, b = k.a.astype(np.int32), k.b.astype(np.int32)
    return {"y": (a * b).astype(np.int16) >> 1, "u": (a + b).astype(np.uint8)}


def toward_zero(wide: Array) -> Array:
    """float64 to float32, rounding toward zero."""
    near = wide.astype(np.float32)
    return np.where(np.abs(near.astype(np.float64)) > np.abs(wide), np.nextafter(near, np.float32(0)), near)


def upward(wide: Array) -> Array:
    """float64 to float32, rounding up."""
    near = wide.astype(np.float32)
    return np.where(near.astype(np.float64) < wide, np.nextafter(near, np.float32(np.inf)), near)


@functions(rtol=1.3e-7, atol=1e-44)
@quiet
def rounded(k: Inputs) -> Expected:
    a, b = k.a, k.b
    wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
    parts = [
        a + b, toward_zero(wide_a * wide_b), a / b, np.sqrt(np.abs(a)), upward(wide_a * wide_b + wide_a),
        np.float32(1) / b, np.fmin(a, b) + np.fmax(a, b), np.rint(a) + np.floor(b) - np.trunc(a)]
    return {"y": np.stack(parts, axis=1).ravel()}


@functions(rtol=2e-5, atol=2e-6)
@quiet
def approximate(k: Inputs) -> Expected:
    x = k.x.astype(np.float64)
    small = np.where(np.abs(x) < 1e30, x, np.nan)  # what sine and cosine of huge values are is no business of ours
    divided = np.where(np.abs(k.x) > 2.0**126, np.copysign(0.0, x), 1 / x)
    root = 1 / np.sqrt(np.abs(x))
    parts = [np.exp(x), np.log(np.abs(x)), np.sin(small), np.cos(small), root, divided, np.tanh(x), np.exp2(x)]
    return {"y": np.stack([p.astype(np.float32) for p in parts], axis=1).ravel()}


@functions()
@quiet
def conversions(k: Inputs) -> Expected:
    x = k.x.astype(np.float64)
    clean = np.where(np.isnan(x), 0, x)
    near = np.clip(np.rint(clean), -2**31, 2**31 - 1)
    cut = np.clip(np.trunc(clean), -2**31, 2**31 - 1)
    up = np.clip(np.ceil(clean), 0, 2**32 - 1)
    signed = k.k
    unsigned = toward_zero(signed.view(np.uint32).astype(np.float64))
    return {
        "s": np.stack([near, cut], axis=1).astype(np.int64).astype(np.int32).ravel(),
        "u": np.stack([up.astype(np.int64), (signed & 255).astype(np.int64)], axis=1).astype(np.uint32).ravel(),
        "f": np.stack([signed.astype(np.float32), unsigned, np.clip(clean, 0, 1).astype(np.float32)], axis=1).ravel()}


@functions(rtol=3e-16, atol=1e-320)
@quiet
def doubles(k: Inputs) -> Expected:
    a, b = k.a, k.b
    product = (a.astype(np.longdouble) * b + 1).astype(np.float64)
    parts = [a / b, np.sqrt(np.abs(a)), product, np.fmin(a, b) + a.astype(np.float32)]
    return {"y": np.stack(parts, axis=1).ravel(), "whole": np.floor(b).astype(np.int64)}


@functions(rtol=4e-16)
@quiet
def exp_f64(k: Inputs) -> Expected:
    return {"y": np.exp(k.x)}


@functions(rtol=1e-5, atol=1e-5)
def polynomial(k: Inputs) -> Expected:
    return {"y": np.polynomial.polynomial.polyval(k.x.astype(np.float64), k.c.astype(np.float64))}
