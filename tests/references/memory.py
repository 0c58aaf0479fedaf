"""References of ``memory.cu``: state spaces and module variables."""

from __future__ import annotations

import numpy as np

from tests.references.core import Expected, Inputs, quiet, references

memory = references("memory")
PRIMES = np.array([2, 3, 5, 7, 11, 13, 17, 19], np.float32)
SQUARES = np.arange(10) ** 2


@memory()
def constant_weights(k: Inputs) -> Expected:
    return {"y": k.variable("weights")[k.x & 63] * PRIMES[np.arange(k.n) & 7]}


@memory(rtol=1e-5, atol=1e-5)
def global_state(k: Inputs) -> Expected:
    state = k.variable("state").astype(np.float64)
    state[: k.n] += k.x * SQUARES[np.arange(k.n) % 10]
    return {"global state": state, "global counter": [6 if k.n else 5]}


@memory()
def global_pointer(k: Inputs) -> Expected:
    target = k.case.globals["target"].values[0]  # type: ignore[union-attr]
    return {target: k.variable("state")[: k.n] * np.float32(2)}  # type: ignore[dict-item]


@memory()
def global_pointer_constant(k: Inputs) -> Expected:
    t = np.arange(k.threads)
    return {"y": SQUARES[t + 5 * k.which] + k.variable("state")[16 + t].astype(np.int32)}


@memory()
def local_array(k: Inputs) -> Expected:
    found = []
    for i, values in enumerate(k.x.reshape(-1, 4).tolist()):
        mine = [slot * i for slot in range(16)]
        for v in values:
            mine[v & 15] += v
        total = 0
        for v in mine:
            total = total * 3 + v
        found.append((total + 2**31) % 2**32 - 2**31)
    return {"y": np.array(found, np.int64).astype(np.int32)}


@memory()
def local_sort(k: Inputs) -> Expected:
    return {"y": np.sort(k.x.reshape(k.threads, k.n), axis=1).ravel()}


@memory()
@quiet
def dynamic_shared(k: Inputs) -> Expected:
    return {"y": k.x[::-1] + np.int32(1)}


@memory(rtol=1e-6)
def cache_operators(k: Inputs) -> Expected:
    return {"y": np.repeat(k.x * np.float64(6), 4), "w": k.v}


@memory()
def cache_policy(k: Inputs) -> Expected:
    return {"y": k.x * np.float32(2)}


@memory()
def discard_line(k: Inputs) -> Expected:
    return {"y": np.arange(32 * k.lines)}


@memory()
def clocks(k: Inputs) -> Expected:
    return {"y": k.x}
