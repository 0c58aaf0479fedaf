"""Run as a script in a process of its own: tinygrad programs on its null device, kernels to standard output as JSON.

``python tinygrad_programs.py PTX|CUDA``: through tinygrad's own renderer, or through NVRTC. No GPU is needed: the null
device runs nothing. What the driver would be given is taken at the point where tinygrad starts a kernel.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

os.environ.update(DEV=f"NULL:{sys.argv[1]}:sm_80", PARALLEL="0", CACHELEVEL="0")

import tinygrad.engine.realize as realize
import tinygrad.runtime.support.compiler_cuda as compiler_cuda
from tinygrad import Tensor, dtypes
from tinygrad.uop.ops import Ops


class ToPtx(compiler_cuda.NVRTCCompiler):
    """NVRTC that stops at PTX, where the null device would ask for machine code."""

    def __init__(self, arch: str, ptx: bool = True, cache_key: str = "cuda") -> None:
        super().__init__(arch, True, cache_key)


compiler_cuda.NVRTCCompiler = ToPtx
compiler_cuda.NVPTXCompiler = compiler_cuda.PTXCompiler  # without linking
started: dict[str, dict[str, Any]] = {}
track = realize.track_stats


def tracked(ctx: Any, call: Any, device: str, buffers: Any, values: dict[str, int]) -> Any:
    program = call.src[0]
    if program.op is Ops.PROGRAM:
        grid, block = program.arg.launch_dims(values)
        started.setdefault(program.arg.function_name, {
            "kernel": program.arg.function_name, "text": program.src[4].arg.decode().rstrip("\0"), "grid": grid,
            "block": block, "buffers": [b.nbytes for b in buffers], "values": program.arg.vals(values)})
    return track(ctx, call, device, buffers, values)


realize.track_stats = tracked


def programs() -> None:
    """Small tensor programs of the kinds that models are made of."""
    a, b = Tensor.empty(24, 40), Tensor.empty(40, 16)
    (a @ b).relu().realize()
    a.softmax(axis=-1).realize()
    a.layernorm().realize()
    a.permute(1, 0).contiguous().realize()
    (a.pad(((1, 1), (2, 0))) * 2).contiguous().realize()
    Tensor.empty(1, 3, 10, 10).conv2d(Tensor.empty(4, 3, 3, 3)).realize()
    Tensor.empty(2, 3, 8, 8).max_pool2d().realize()
    a.cast(dtypes.half).sum(axis=0).realize()
    a.flip(1).contiguous().realize()
    Tensor.cat(a, a * 3, dim=0).realize()
    a.cumsum(axis=1).realize()


programs()
json.dump(list(started.values()), sys.stdout)
