"""A compiler for tests of the service: the text of the "PTX" says what happens.

``sleep S`` waits first, ``crash`` kills the process, ``unsupported``, ``invalid`` and ``defect`` raise; ``count FILE``
adds a line to a file per compilation. Anything else is compiled to an empty kernel of the asked name.
"""

from __future__ import annotations

import itertools
import os
import signal
import time
from typing import Any

from softgpu.engine.errors import UnsupportedKernel
from softgpu.engine.objects import QUICK, compile_object
from softgpu.engine.options import Options
from softgpu.engine.target import host_target
from softgpu.engine.version import abi_version
from tessera.errors import TesseraError


def kernel_ir(name: str) -> str:
    """IR of a kernel that does nothing."""
    target = host_target()
    letters = "".join(f"\\{byte:02X}" for byte in name.encode())
    return f"""{target.header}
@name = private unnamed_addr constant [{len(name.encode()) + 1} x i8] c"{letters}\\00"
define internal i32 @run(ptr %env, i64 %first, i64 %last) #0 {{
  ret i32 0
}}
@softgpu_kernel = constant {{ [16 x i32], ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr }} {{
  [16 x i32] [i32 {0x55504753}, i32 {abi_version()}, {", ".join(["i32 0"] * 14)}],
  ptr @run, ptr null, ptr null, ptr null, ptr null, ptr null, ptr @name, ptr null }}, align 8
attributes #0 = {{ {target.attributes} }}
"""


def compile_ptx(ptx: bytes, kernel: str, options: Options) -> bytes:
    words = ptx.decode().split()
    for word, argument in itertools.pairwise([*words, ""]):
        if word == "sleep":
            time.sleep(float(argument))
        elif word == "count":
            with open(argument, "a") as file:
                file.write(f"{os.getpid()}\n")
        elif word == "crash":
            os.kill(os.getpid(), signal.SIGSEGV)
        elif word == "unsupported":
            raise UnsupportedKernel("frob.f32", 7, "no such thing")
        elif word == "invalid":
            raise TesseraError("line 3: expected a directive")
        elif word == "defect":
            raise KeyError("oh")
    return compile_object(kernel_ir(kernel), QUICK)


def describe(ptx: bytes) -> dict[str, Any]:
    if b"crash" in ptx:
        os.kill(os.getpid(), signal.SIGSEGV)
    return {"bytes": len(ptx)}
