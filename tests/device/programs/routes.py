"""What the driver says of the parameters of a kernel, by every route on which its module may be loaded.

    python -m tests.device.programs.routes DEVICE FATBIN

The fatbin holds the kernel ``twice``.
"""

from __future__ import annotations

import ctypes
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cuda.bindings import driver

from orchestrator import exchange
from tests.device.programs.device import Device, call, main

NAME = exchange.entry_point(exchange.GATHER)

Info = Callable[[Any, int], tuple[Any, ...]]


def parameters(info: Info, kernel: Any) -> list[list[int]] | str:
    """Offset and bytes of each, until the driver says that there is no more; else the result's name."""
    found: list[list[int]] = []
    while True:
        result, *values = info(kernel, len(found))
        if result == driver.CUresult.CUDA_ERROR_INVALID_VALUE and found:
            return found
        if result != driver.CUresult.CUDA_SUCCESS:
            return str(result.name)
        found.append([int(value) for value in values])


def of_module(module: Any, name: bytes = NAME) -> dict[str, Any]:
    return {"cuFuncGetParamInfo": parameters(driver.cuFuncGetParamInfo, call(driver.cuModuleGetFunction(module, name)))}


def of_library(library: Any, name: bytes = NAME) -> dict[str, Any]:
    kernel = call(driver.cuLibraryGetKernel(library, name))
    function = call(driver.cuKernelGetFunction(kernel))
    return {"cuKernelGetParamInfo": parameters(driver.cuKernelGetParamInfo, kernel),
            "cuFuncGetParamInfo of its function": parameters(driver.cuFuncGetParamInfo, function)}


def linked(image: bytes) -> bytes:
    """The image that the driver's linker makes."""
    state = call(driver.cuLinkCreate(0, [], []))
    kind = driver.CUjitInputType.CU_JIT_INPUT_PTX
    call(driver.cuLinkAddData(state, kind, image, len(image), b"gather.ptx", 0, [], []))
    address, size = call(driver.cuLinkComplete(state))
    made = ctypes.string_at(int(address), size)
    call(driver.cuLinkDestroy(state))
    return made


def run(number: str, fatbin: str) -> dict[str, Any]:
    Device(int(number))
    ptx, packed = exchange.image(exchange.GATHER), Path(fatbin).read_bytes()
    code = linked(ptx)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "gather.ptx")
        file.write_bytes(ptx[:-1])
        path = str(file).encode()
        routes = {
            "cuModuleLoad": of_module(call(driver.cuModuleLoad(path))),
            "cuModuleLoadData": of_module(call(driver.cuModuleLoadData(ptx))),
            "cuModuleLoadDataEx": of_module(call(driver.cuModuleLoadDataEx(ptx, 0, [], []))),
            "cuModuleLoadData, linked": of_module(call(driver.cuModuleLoadData(code))),
            "cuLibraryLoadFromFile": of_library(call(driver.cuLibraryLoadFromFile(path, [], [], 0, [], [], 0))),
            "cuLibraryLoadData": of_library(call(driver.cuLibraryLoadData(ptx, [], [], 0, [], [], 0))),
        }  # fmt: skip
    twice = {
        "cuModuleLoadFatBinary": of_module(call(driver.cuModuleLoadFatBinary(packed)), b"twice"),
        "cuModuleLoadData": of_module(call(driver.cuModuleLoadData(packed)), b"twice"),
        "cuLibraryLoadData": of_library(call(driver.cuLibraryLoadData(packed, [], [], 0, [], [], 0)), b"twice"),
    }
    return {"gather": routes, "twice": twice, "linked_begins_with": code[:4].hex()}


if __name__ == "__main__":
    main(run)
