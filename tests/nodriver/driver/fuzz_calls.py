"""The C code of random calls: one function for every implemented function of the driver, from the types and names of
its parameters. A function enters with its status; one with a parameter that none of the rules here knows is left out.

    python -m tests.nodriver.driver.fuzz_calls

lists those that are left out, and why.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from softgpu.driver.wrappers import STRUCTURES as PASSED
from softgpu.driver.wrappers import parameters
from tessera.driver_api import DONE, Function, functions

HANDLES = (
    "CUcontext", "CUstream", "CUevent", "CUmodule", "CUfunction", "CUlibrary", "CUkernel", "CUlinkState", "CUgraph",
    "CUgraphNode", "CUgraphExec", "CUmemoryPool", "CUarray", "CUmipmappedArray", "CUuserObject", "CUgreenCtx",
    "CUmemGenericAllocationHandle",
)
SCALARS = {
    "int", "unsigned int", "unsigned", "size_t", "unsigned long long", "cuuint32_t", "cuuint64_t", "unsigned char",
    "unsigned short",
}
NEVER: dict[str, str] = {}
"""Functions that are not called, and why."""

STRUCTURES = {
    "CUlaunchConfig": "launch_config", "CUDA_MEMCPY2D_v1": "copy_2d_v1", "CUDA_MEMCPY2D_v2": "copy_2d",
    "CUDA_MEMCPY3D_v1": "copy_3d_v1", "CUDA_MEMCPY3D_v2": "copy_3d", "CUDA_MEMCPY3D_PEER_v1": "copy_3d_peer",
    "CUDA_MEMSET_NODE_PARAMS_v1": "fill_params", "CUDA_KERNEL_NODE_PARAMS_v1": "kernel_params",
    "CUDA_KERNEL_NODE_PARAMS_v2": "kernel_params", "CUDA_HOST_NODE_PARAMS_v1": "host_params",
    "CUgraphEdgeData": "edges", "CUmemLocation_v1": "location", "CUmemAllocationProp_v1": "allocation_properties",
    "CUmemPoolProps_v1": "pool_properties", "CUmemAccessDesc_v1": "access_rights",
    "CUDA_BATCH_MEM_OP_NODE_PARAMS_v1": "batch_params", "CUDA_BATCH_MEM_OP_NODE_PARAMS": "batch_params",
    "CUDA_ARRAY_DESCRIPTOR_v1": "array_v1", "CUDA_ARRAY_DESCRIPTOR_v2": "array",
    "CUDA_ARRAY3D_DESCRIPTOR_v1": "array_3d_v1", "CUDA_ARRAY3D_DESCRIPTOR_v2": "array_3d",
    "CUstreamAttrValue_v1": "attribute_value", "CUkernelNodeAttrValue_v1": "attribute_value",
}
"""Pointers to constant ones, and the functions that fill them."""

SPECIAL = {
    ("cuGraphAddNode", "nodeParams"): "node_params(f)",
    ("cuGraphNodeSetParams", "nodeParams"): "node_params(f)",
    ("cuGraphExecNodeSetParams", "nodeParams"): "node_params(f)",
    ("cuStreamBatchMemOp", "paramArray"): "memory_operations(f)",
    ("cuUserObjectCreate", "destroy"): "(uint64_t)(uintptr_t)some_destructor(f)",
    ("cuGraphDebugDotPrint", "path"): '"/dev/null"', ("cuLogsDumpToFile", "pathToFile"): '"/dev/null"',
    ("cuMemRangeGetAttribute", "dataSize"): "below(f, 65)",
    ("cuGraphInstantiate", "bufferSize"): "below(f, 4096)",
    ("cuMemImportFromShareableHandle", "osHandle"): "one_in(f, 6) ? below(f, 12) - 1 : (uint64_t)f->exported",
    ("cuMemPoolImportFromShareableHandle", "handle"): "one_in(f, 6) ? below(f, 12) - 1 : (uint64_t)f->exported",
    ("cuGraphAddMemAllocNode", "nodeParams"): "allocation_params(f)",
    ("cuMemcpyBatchAsync", "attrs"): "copy_attributes(f)", ("cuMemcpyBatchAsync", "attrIdxs"): "indices(f)",
    ("cuMemcpyBatchAsync", "attrsIdxs"): "indices(f)", ("cuMemcpyBatchAsync", "sizes"): "copy_sizes(f)",
    ("cuMemcpyBatchAsync", "count"): "1 + below(f, 4)",
    ("cuMemcpyBatchAsync", "numAttrs"): "one_in(f, 12) ? below(f, 5) : 1",
    ("cuMemcpy3DBatchAsync", "opList"): "copies_3d(f)", ("cuMemcpy3DBatchAsync", "numOps"): "1 + below(f, 4)",
    ("cuMemcpy3DBatchAsync", "numParams"): "1 + below(f, 4)",
    ("cuMemMap", "ptr"): "model_address(f)", ("cuMemSetAccess", "ptr"): "model_address(f)",
    ("cuMemUnmap", "ptr"): "model_address(f)", ("cuMemGetAccess", "ptr"): "model_address(f)",
    ("cuMemMap", "handle"): "model_physical(f)", ("cuMemExportToShareableHandle", "handle"): "model_physical(f)",
    ("cuMemExportToShareableHandle", "handleType"): "one_in(f, 6) ? below(f, 9) : 1",
    ("cuMemPoolExportToShareableHandle", "handleType"): "one_in(f, 6) ? below(f, 9) : 1",
    ("cuMemAllocManaged", "flags"): "one_in(f, 4) ? below(f, 5) : 1",
    ("cuGraphNodeFindInClone", "hOriginalNode"): "model_node(f, CU_GRAPH_NODE_TYPE_KERNEL)",
    ("cuGraphClone", "originalGraph"): "model_graph(f)",
    ("cuMemAddressReserve", "size"): "large_size(f)",
    ("cuMemAddressReserve", "alignment"): "one_in(f, 4) ? small_size(f) : 0",
    ("cuMemAddressReserve", "addr"): "one_in(f, 6) ? some_address(f) : 0",
    ("cuMemAddressFree", "size"): "large_size(f)", ("cuMemMap", "size"): "large_size(f)",
    ("cuMemMap", "offset"): "one_in(f, 4) ? large_size(f) : 0", ("cuMemUnmap", "size"): "large_size(f)",
    ("cuMemSetAccess", "size"): "large_size(f)", ("cuMemCreate", "size"): "large_size(f)",
}
"""Parameters by function and name."""

_NODE_TYPES = {
    "Kernel": "KERNEL", "Memcpy": "MEMCPY", "Memset": "MEMSET", "Host": "HOST", "ChildGraph": "GRAPH",
    "EventRecord": "EVENT_RECORD", "EventWait": "WAIT_EVENT", "BatchMemOp": "BATCH_MEM_OP", "MemAlloc": "MEM_ALLOC",
    "MemFree": "MEM_FREE", "": "KERNEL",
}
_COUNT = re.compile(r"^(num\w*|\w*[cC]ount|len)$")
_ENDS = re.compile(r"Destroy|Free|Unload|Unregister|Unmap|Close|Release|Reset|Disable|Detach")
_FREES = re.compile(r"Free|Unmap|CloseMem")
_PRIMARY = re.compile(r"PrimaryCtx(Release|Reset)")
_MAKES = re.compile(r"Create|Alloc|Load|Retain|Clone|Instantiate|Add|Get|Import|Begin|EndCapture|Enumerate")
_OFTEN = re.compile(r"Create|Alloc|Launch|Memcpy|Memset|Record|Wait|Load|Add|Instantiate|GetFunction|GetKernel|Elapsed"
                    r"|EndCapture|Map|SetAccess|NodeSetParams")
_SELDOM = re.compile(r"^cuCtx|^cuStreamBeginCapture|Array|AtoA|AtoD|AtoH|DtoA|HtoA|LoadFromFile|AddFile|ModuleLoad$")
_NODE = re.compile(r"^cuGraph(?!Add)(?:Exec)?(" + "|".join(_NODE_TYPES) + ")Node")
_EITHER = re.compile(r"^cuMemcpy(Async|Peer|PeerAsync)?(_pt[ds][sz])?$")
_BY_NAME = {
    "gridDimX": "extent(f, 8, 1u << 31)", "gridDimY": "extent(f, 2, 65536)", "gridDimZ": "extent(f, 2, 65536)",
    "blockDimX": "extent(f, 128, 1025)", "blockDimY": "extent(f, 2, 1025)", "blockDimZ": "extent(f, 2, 65)",
    "sharedMemBytes": "(one_in(f, 8) ? (unsigned)ONE_OF(f, 16, 49152, 49153, 1 << 20, UINT32_MAX) : 0)",
}


@dataclass(frozen=True)
class Argument:
    """A C expression, evaluated once, and what is kept of the argument after success."""

    value: str
    kept: str = ""


def argument(function: Function, kind: str, name: str) -> Argument | None:
    """What a parameter gets; None: no rule knows it."""
    special = _special(function, kind, name)
    if special is not None:
        return Argument(special)
    structure = STRUCTURES.get(kind.removeprefix("const ").removesuffix(" *"))
    if structure and kind.startswith("const "):
        return Argument(f"{structure}(f)")
    kind = kind.removeprefix("const ").replace("_v1", "").replace("CUdeviceptr_v2", "CUdeviceptr")
    base, stars = kind.rstrip(" *"), kind.count("*")
    if base in HANDLES:
        return _handle(function, base, stars)
    if base == "CUdeviceptr":
        return _address(function, stars)
    if base in ("void", "char"):
        return _untyped(function, base, stars, name)
    if name in _BY_NAME:
        return Argument(_BY_NAME[name])
    if stars == 1:
        return _pointer(function, base, kind)
    if stars == 2:
        return Argument("room(f)")
    return None if stars else _number(function, base, name)


def _special(function: Function, kind: str, name: str) -> str | None:
    if (function.name, name) in SPECIAL:
        return SPECIAL[function.name, name]
    if function.name.startswith("cuStreamWaitValue"):
        return {"addr": "zero_address(f)", "value": "0", "flags": "below(f, 2)"}.get(name)
    if kind == "CUstream" and re.search("EndCapture|CaptureInfo|CaptureDependencies", function.name):
        return "captured_stream(f)"
    node = _NODE.search(function.name)
    if node and kind == "CUgraphNode":
        return f"model_node(f, CU_GRAPH_NODE_TYPE_{_NODE_TYPES[node[1]]})"
    if kind == "CUgraphExec" and "Exec" in function.name and "Node" in function.name:
        return "model_exec(f)"
    if kind == "CUstream" and "BeginCapture" in function.name:
        return "made_stream(f)"
    if name in ("dsts", "srcs", "dptrs"):
        return "addresses(f)"
    return "location_itself(f)" if name == "location" and "CUmemLocation_v1 location" in function.parameters else None


def _handle(function: Function, base: str, stars: int) -> Argument | None:
    if not stars:
        pool = "one_in(f, 8) ? P_CUkernel : P_CUfunction" if base == "CUfunction" else f"P_{base}"
        ends = base != "CUfunction" and _ENDS.search(function.name)
        return Argument(f"some_handle(f, {pool})", f"ended_handle(f, P_{base}, $);" if ends else "")
    if stars == 1 and f"const {base} *" in function.parameters:
        return Argument(f"some_handles(f, P_{base})")
    if stars == 1:
        keeps = _MAKES.search(function.name) and (base != "CUcontext" or re.search("Create|Retain", function.name))
        return Argument("room(f)", f"keep_handle(f, P_{base}, *(const uint64_t *)$);" if keeps else "")
    return Argument("room(f)") if stars == 2 else None


def _address(function: Function, stars: int) -> Argument | None:
    if stars == 1 and "const CUdeviceptr" not in function.parameters:
        keeps = re.search("Alloc|Global|ImportPointer|OpenMemHandle", function.name)
        if function.name == "cuMemAddressReserve":
            return Argument("room(f)", "keep_reserved(f, *(const uint64_t *)$, size_of(values[1]));")
        return Argument("room(f)", "keep_memory(f, *(const uint64_t *)$, size_of(values[1]), false);" if keeps else "")
    if stars:
        return None
    either = _EITHER.match(function.symbol)
    return Argument("living_address(f)" if either else "some_address(f)",
                    "freed_memory(f, $);" if _FREES.search(function.name) else "")


def _untyped(function: Function, base: str, stars: int, name: str) -> Argument | None:
    const = f"const {base}" in function.parameters
    if base == "char":
        return Argument("some_text(f)" if const and stars == 1 else "room(f)")
    if stars == 2:
        if name == "kernelParams":
            return Argument("some_parameters(f)")
        if name == "extra":
            return Argument("0")
        if re.search("[oO]ptions?Values", name):
            return Argument("option_values(f)")
        if name == "data":
            return Argument("rooms(f)")
        pinned = function.name in ("cuMemAllocHost", "cuMemHostAlloc")
        return Argument("room(f)", "keep_memory(f, *(const uint64_t *)$, size_of(values[1]), true);" if pinned else "")
    if name in ("dstHost", "srcHost"):
        return Argument("some_host(f)")
    if name in ("image", "code", "fatCubin") or (name == "data" and function.name == "cuLinkAddData"):
        return Argument("some_image(f)")
    if function.name in ("cuMemFreeHost", "cuMemHostUnregister", "cuMemHostGetDevicePointer", "cuMemHostGetFlags"):
        return Argument("some_host_handle(f)", "freed_memory(f, $);" if "Free" in function.name else "")
    if function.name == "cuMemHostRegister":
        return Argument("some_host(f)", "keep_memory(f, $, size_of(values[1]), true);")
    return Argument("room(f)")


def _pointer(function: Function, base: str, kind: str) -> Argument | None:
    if base in ("CUipcMemHandle", "CUipcEventHandle"):
        return Argument("f->shared_handle")
    if base == "CUjit_option":
        return Argument("some_options(f)")
    if base in SCALARS or base == "float" or re.match("CU(pointer|mem_range)_attribute$", base):
        return Argument("counting_room(f)")
    if f"const {base}" in function.parameters and base != "CUuuid":
        return None
    return Argument("room(f)")


def _number(function: Function, base: str, name: str) -> Argument | None:
    if base == "CUdevice" or name == "ordinal":
        return Argument("(uint64_t)some_device(f)")
    if base == "CUhostFn":
        return Argument("(uint64_t)(uintptr_t)some_function(f)")
    if base == "CUstreamCallback":
        return Argument("(uint64_t)(uintptr_t)some_callback(f)")
    if _COUNT.match(name) or name == "paramIndex":
        return Argument("one_in(f, 2) ? below(f, 5) : 0")
    if base in ("CUipcMemHandle", "CUipcEventHandle"):
        return Argument("f->shared_handle")
    if "Callback" in base or base == "CUoccupancyB2DSize":
        return Argument("0")
    if base == "CUstreamCaptureMode":  # of the others many calls fail, in all threads
        return Argument("one_in(f, 12) ? below(f, 4) : CU_STREAM_CAPTURE_MODE_RELAXED")
    if base == "CUjitInputType":
        return Argument("one_in(f, 4) ? below(f, 8) : CU_JIT_INPUT_PTX")
    if base == "size_t":
        small = _EITHER.match(function.symbol) or function.name in ("cuMemHostRegister", "cuLinkAddData")
        if function.name == "cuLinkAddData":
            return Argument("values[2] ? strlen((const char *)(uintptr_t)values[2]) + 1 : 0")
        return Argument("small_size(f)" if small else "some_size(f)")
    if name.lower() == "flags":
        return Argument("some_flags(f)")
    if base in SCALARS or base.startswith("CU"):
        return Argument("some_number(f)")
    return None


def call(function: Function) -> str | None:
    """The C function; None: a parameter is not known."""
    given = parameters(function)
    found = [argument(function, kind, name) for kind, name in given]
    if function.symbol in NEVER or any(one is None for one in found):
        return None
    arguments = [one for one in found if one is not None]
    lines = [f"static CUresult call_{function.symbol}(struct fuzzer *f) {{"]
    lines.append(f"  uint64_t values[{len(given) + 2}] = {{0}};")
    lines += [f"  values[{n}] = (uint64_t)({one.value});" for n, one in enumerate(arguments)]
    passed = ", ".join([_passed(kind, f"values[{n}]") for n, (kind, _) in enumerate(given)])
    lines.append(f'  begin_call(f, "{function.symbol}", {len(given)}, values);')
    lines.append(f"  CUresult result = {function.symbol}({passed});")
    lines.append("  end_call(f, result);")
    for n, one in enumerate(arguments):
        if one.kept:
            pointer = one.kept.replace("*(const uint64_t *)$", f"*(const uint64_t *)(uintptr_t)values[{n}]")
            lines.append(f"  if (result == CUDA_SUCCESS && values[{n}]) {pointer.replace('$', f'values[{n}]')}")
    if function.name.startswith("cuStreamBeginCapture"):
        lines.append("  if (result == CUDA_SUCCESS) f->captured = values[0] ? values[0] : 2;")
    if re.search("Export.*ShareableHandle", function.name):
        lines += ["  if (result == CUDA_SUCCESS) {", "    if (f->exported > 0) close(f->exported);",
                  "    f->exported = *(const int *)(uintptr_t)values[0];", "  }"]
    if re.search("Ctx(Destroy|Detach|Release|Reset)|PrimaryCtx", function.name):
        lines.append("  if (result == CUDA_SUCCESS) context_ended(f);")
    return "\n".join([*lines, "  return result;", "}"])


def _passed(kind: str, value: str) -> str:
    """A parameter of its type from the 64 bits that stand for it, or point to it."""
    if kind in PASSED:
        return f"*({kind} *)(uintptr_t){value}"
    return f"({kind})" + (f"(uintptr_t){value}" if "*" in kind or kind.startswith("CU") else value)


def source() -> str:
    """A C file with all calls and their table."""
    lines = ['#include "fuzz.h"', "#include <string.h>", "#include <unistd.h>"]
    rows = []
    for function in functions():
        text = call(function) if function.status == DONE else None
        if text is None:
            continue
        ending = "ENDS_ALL" if _PRIMARY.search(function.name) else \
            "ENDS_ONE" if _ENDS.search(function.name) else "ENDS_NOTHING"
        weight = 1 if _SELDOM.search(function.name) else \
            20 if _OFTEN.search(function.name) else 8 if ending == "ENDS_ONE" else 6
        if function.header != "cuda":
            lines.append(f"CUresult {function.symbol}({function.parameters});")
        lines.append(text)
        rows.append(f"{{call_{function.symbol}, {weight}, {ending}}},")
    lines += ["const struct fuzzed fuzzed[] = {", *rows, "};", f"const unsigned fuzzed_count = {len(rows)};"]
    return "\n".join(lines) + "\n"


def left_out() -> list[str]:
    """Implemented functions that are not called."""
    return [f.symbol for f in functions() if f.status == DONE and call(f) is None]


if __name__ == "__main__":
    for symbol in left_out():
        print(symbol, NEVER.get(symbol, "a parameter of a type that is not known"))
