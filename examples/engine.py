"""A kernel of examples/kernels.ptx on the CPU, working on numpy arrays in place.

    .venv/bin/python examples/engine.py
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from softgpu.engine import LoadedModule, Memory, MemoryFault, launch

text = (Path(__file__).parent / "kernels.ptx").read_text()
memory = Memory()
module = LoadedModule(text, memory)
x, y = np.arange(1000, dtype=np.float32), np.ones(1000, np.float32)
result = launch(module, "saxpy", grid=8, block=128, arguments=[y, x, np.float32(2), 1000], counts=True)
print(f"y[0] = {y[0]:g}, y[999] = {y[999]:g}")
print(f"{result.instructions['fma.rn.f32']} fused multiply and adds, {result.work['global_read']} bytes read")

try:
    launch(module, "saxpy", grid=8, block=128, arguments=[y, x, np.float32(2), 1001])
except MemoryFault as fault:
    print(fault)
