"""What functions of the driver return that get nothing but zeros, before ``cuInit`` and with a context.

    python -m tests.device.programs.nulls DRIVER [SYMBOL...]     without these functions

Writes a line for each call before it and the result behind it, so that the last line says which one ended the program.
"""

from __future__ import annotations

import ctypes
import sys

from tessera.driver_api import Function, functions

CALLED = (
    "cuDeviceGet", "cuDeviceGetCount", "cuDeviceGetName", "cuDeviceTotalMem_v2", "cuDeviceGetAttribute",
    "cuDriverGetVersion", "cuGetProcAddress_v2", "cuGetErrorName", "cuGetErrorString", "cuCtxGetCurrent",
    "cuCtxGetDevice", "cuCtxSynchronize", "cuMemAlloc_v2", "cuMemAllocHost_v2", "cuMemAllocPitch_v2",
    "cuMemAllocManaged", "cuMemAllocAsync", "cuMemHostAlloc", "cuMemGetInfo_v2", "cuMemFree_v2", "cuMemFreeHost",
    "cuMemHostRegister_v2", "cuMemHostUnregister", "cuMemCreate", "cuMemAddressReserve", "cuMemMap", "cuMemcpy",
    "cuMemcpyHtoD_v2", "cuMemcpyDtoH_v2", "cuMemcpyDtoD_v2", "cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2",
    "cuMemcpy2D_v2", "cuMemcpy3D_v2", "cuMemsetD8_v2", "cuMemsetD32_v2", "cuMemsetD32Async", "cuModuleLoad",
    "cuModuleLoadData", "cuModuleLoadFatBinary", "cuModuleGetFunction", "cuModuleGetGlobal_v2", "cuModuleUnload",
    "cuLibraryLoadData", "cuLibraryGetKernel", "cuLibraryUnload", "cuKernelGetFunction", "cuFuncGetAttribute",
    "cuFuncGetParamInfo", "cuLaunchKernel", "cuLaunchKernel_ptsz", "cuLaunchKernelEx", "cuLaunchCooperativeKernel",
    "cuLaunchHostFunc", "cuStreamCreate", "cuStreamDestroy_v2", "cuStreamQuery", "cuStreamSynchronize",
    "cuStreamWaitEvent", "cuStreamIsCapturing", "cuStreamBeginCapture_v2", "cuStreamEndCapture", "cuEventCreate",
    "cuEventDestroy_v2", "cuEventRecord", "cuEventQuery", "cuEventSynchronize", "cuEventElapsedTime", "cuGraphCreate",
    "cuGraphInstantiateWithFlags", "cuGraphLaunch", "cuGraphExecDestroy", "cuGraphDestroy", "cuGraphAddKernelNode_v2",
    "cuLinkCreate_v2", "cuLinkAddData_v2", "cuLinkDestroy", "cuArrayCreate_v2", "cuArrayDestroy", "cuIpcGetMemHandle",
    "cuPointerGetAttribute", "cuOccupancyMaxActiveBlocksPerMultiprocessor", "cuTexObjectCreate",
)  # fmt: skip


def call(library: ctypes.CDLL, function: Function, when: str) -> None:
    print(f"{when} {function.symbol}", flush=True)
    try:
        found = getattr(library, function.symbol)
    except AttributeError:
        print("not there", flush=True)
        return
    count = function.parameters.count(",") + 1 if function.parameters not in ("", "void") else 0
    print(found(*[ctypes.c_void_p(None)] * count), flush=True)


def main() -> None:
    driver, left_out = sys.argv[1], sys.argv[2:]
    library = ctypes.CDLL(driver)
    wanted = [f for f in functions() if f.symbol in CALLED and f.symbol not in left_out]
    for function in wanted:
        call(library, function, "before cuInit:")
    context = ctypes.c_void_p()
    results = [library.cuInit(0), library.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0),
               library.cuCtxSetCurrent(context)]
    print(f"a context\n{results}", flush=True)
    for function in wanted:
        call(library, function, "with a context:")


if __name__ == "__main__":
    main()
