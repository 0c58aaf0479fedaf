"""Launches: parameters with the addresses that memory has now."""

from __future__ import annotations

import ctypes
import sqlite3
from typing import Any

from orchestrator.traces.replay.code import Code
from orchestrator.traces.replay.driver import call, cuda
from orchestrator.traces.replay.report import Report
from orchestrator.traces.replay.space import Space
from shim.layout import layout, lib

BUFFER_POINTER, BUFFER_SIZE, END = 1, 2, 0
"""CU_LAUNCH_PARAM_*."""
COOPERATIVE = 2
"""CU_LAUNCH_ATTRIBUTE_COOPERATIVE."""
TAKEN = frozenset({COOPERATIVE, 3, 4, 5, 6, 8, 9, 10, 11, 14, 16})
"""Attributes that say how a kernel runs. Others name events, windows of addresses or nodes: they say when something is
told to whom, or how fast memory is."""
USUAL_SHARED = 48 << 10
"""Bytes of dynamic shared memory that a kernel may have without being told."""
WORD = 8
HOST_MEMORY = "kernels that use host or managed memory, which programs write without a record"


class Launches:
    """Of one client."""

    def __init__(self, code: Code, space: Space, report: Report) -> None:
        self._code, self._space, self._report = code, space, report
        self._shared: dict[int, int] = {}

    def run(self, row: sqlite3.Row, stream: Any) -> str | None:
        """A row of ``launch``, in a stream whose context is current; the kernel's name."""
        kernel = self._code.kernel_row(row["kernel"])
        name = str(kernel["name"]) if kernel else None
        function = self._code.kernel(row["kernel"])
        if function is None:
            self._report.skip("launches of kernels whose module is not there")
            return name
        if row["flags"] & lib.WIRE_PARAMETERS_UNKNOWN:
            self._report.skip("launches whose parameters were not recorded")
            return name
        self._allow_shared(row, function)
        data = self._rebased(row["kernel"], bytes(row["parameters"]))
        held = ctypes.create_string_buffer(data, max(len(data), 1))
        size = ctypes.c_size_t(len(data))
        extra = (ctypes.c_void_p * 5)(BUFFER_POINTER, ctypes.addressof(held), BUFFER_SIZE, ctypes.addressof(size), END)
        self._launch(row, function, stream, ctypes.addressof(extra) if data else 0)
        self._report.launches += 1
        return name

    def _launch(self, row: sqlite3.Row, function: Any, stream: Any, extra: int) -> None:
        shape = [row[f"{what}_{axis}"] for what in ("grid", "block") for axis in "xyz"]
        attributes = self._attributes(row)
        if not attributes:
            call(cuda.cuLaunchKernel(function, *shape, row["shared"], stream, 0, extra), "cuLaunchKernel")
            return
        config = cuda.CUlaunchConfig()
        config.gridDimX, config.gridDimY, config.gridDimZ = shape[:3]
        config.blockDimX, config.blockDimY, config.blockDimZ = shape[3:]
        config.sharedMemBytes, config.hStream = row["shared"], stream
        config.attrs, config.numAttrs = attributes, len(attributes)
        call(cuda.cuLaunchKernelEx(config, function, 0, extra), "cuLaunchKernelEx")

    def _attributes(self, row: sqlite3.Row) -> list[Any]:
        shape = layout("wire_attribute")
        found: dict[int, bytes] = {}
        for offset in range(0, len(row["attributes"]), shape.size):
            attribute = shape.read(row["attributes"], offset)
            if attribute.id in TAKEN:
                found[attribute.id] = attribute.value
            else:
                self._report.notes[f"launch attribute {attribute.id} left out"] += 1
        if row["flags"] & lib.WIRE_COOPERATIVE:
            found[COOPERATIVE] = (1).to_bytes(4, "little") + bytes(60)
        return [_attribute(number, value) for number, value in found.items()]

    def _allow_shared(self, row: sqlite3.Row, function: Any) -> None:
        """More shared memory than usual has to be asked for; records do not say that the program did."""
        wanted = row["shared"]
        if wanted <= max(USUAL_SHARED, self._shared.get(row["kernel"], 0)):
            return
        which = cuda.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        if isinstance(function, cuda.CUkernel):
            device = call(cuda.cuCtxGetDevice(), "cuCtxGetDevice")
            call(cuda.cuKernelSetAttribute(which, wanted, function, device), "cuKernelSetAttribute")
        else:
            call(cuda.cuFuncSetAttribute(function, which, wanted), "cuFuncSetAttribute")
        self._shared[row["kernel"]] = wanted

    def _rebased(self, kernel: int, data: bytes) -> bytes:
        """The parameters with addresses as they are now. Where memory is elsewhere, the analysis of the kernel says
        which words are addresses; without it, those that look like one."""
        moved: dict[int, int] = {}
        for offset in range(0, len(data) - WORD + 1, WORD):
            word = int.from_bytes(data[offset:offset + WORD], "little")
            place = self._space.find(word) if word else None
            if place is None:
                continue
            if place.host:
                self._report.doubts[HOST_MEMORY] += 1
            if place.now != place.address:
                moved[offset] = word - place.address + place.now
        if not moved:
            return data
        known = self._code.address_words(kernel)
        changed = bytearray(data)
        for offset, word in moved.items():
            if known is None or offset in known:
                changed[offset:offset + WORD] = word.to_bytes(WORD, "little")
                self._report.rebased["guessed" if known is None else "analysed"] += 1
        return bytes(changed)


def _attribute(number: int, value: bytes) -> Any:
    """A ``CUlaunchAttribute``: its value stands behind the number and four bytes of padding."""
    made = cuda.CUlaunchAttribute()
    made.id = cuda.CUlaunchAttributeID(number)
    ctypes.memmove(int(made.getPtr()) + 8, value, len(value))
    return made
