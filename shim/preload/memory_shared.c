/* Memory that processes share. */
#include "hooks.h"
#include "memory.h"

CUresult hook_cuIpcGetMemHandle(CUipcMemHandle_v1 *handle, CUdeviceptr_v2 pointer) {
  if (!recording()) return real.cuIpcGetMemHandle(handle, pointer);
  CUresult result = DRIVER(real.cuIpcGetMemHandle(handle, pointer));
  if (!result) memory_exported(NUMBER_cuIpcGetMemHandle, pointer);
  return result;
}

/* The driver gives the same address for the same handle, and counts. */
static CUresult opened(unsigned function, const CUdeviceptr_v2 *pointer, unsigned flags, CUresult result) {
  if (result || !pointer) return result;
  uint64_t start;
  struct wire_memory what = {.address = *pointer, .kind = WIRE_IMPORTED, .flags = flags, .context = context_here()};
  if (use_begin(WIRE_MEMORY, *pointer, what.context) > 1) return result;
  allocation_of(*pointer, &start, &what.bytes);
  what.device = device_of(*pointer);
  memory_made(function, &what, NULL);
  return result;
}

CUresult hook_cuIpcOpenMemHandle(CUdeviceptr_v2 *pointer, CUipcMemHandle_v1 handle, unsigned flags) {
  if (!recording()) return real.cuIpcOpenMemHandle(pointer, handle, flags);
  CUresult result = DRIVER(real.cuIpcOpenMemHandle(pointer, handle, flags));
  return opened(NUMBER_cuIpcOpenMemHandle, pointer, flags, result);
}

CUresult hook_cuIpcOpenMemHandle_v2(CUdeviceptr_v2 *pointer, CUipcMemHandle_v1 handle, unsigned flags) {
  if (!recording()) return real.cuIpcOpenMemHandle_v2(pointer, handle, flags);
  CUresult result = DRIVER(real.cuIpcOpenMemHandle_v2(pointer, handle, flags));
  return opened(NUMBER_cuIpcOpenMemHandle_v2, pointer, flags, result);
}

CUresult hook_cuIpcCloseMemHandle(CUdeviceptr_v2 pointer) {
  if (!recording()) return real.cuIpcCloseMemHandle(pointer);
  int left = use_end(WIRE_MEMORY, pointer);
  CUresult result;
  if (left > 0) {
    result = DRIVER(real.cuIpcCloseMemHandle(pointer));
  } else {
    struct ending ending = memory_end(NUMBER_cuIpcCloseMemHandle, pointer, WIRE_IMPORTED);
    result = ending_done(&ending, real.cuIpcCloseMemHandle(pointer));
  }
  if (result && left != USES_UNKNOWN) use_begin(WIRE_MEMORY, pointer, context_here());
  return result;
}

CUresult hook_cuMemPoolExportPointer(CUmemPoolPtrExportData_v1 *data, CUdeviceptr_v2 pointer) {
  if (!recording()) return real.cuMemPoolExportPointer(data, pointer);
  CUresult result = DRIVER(real.cuMemPoolExportPointer(data, pointer));
  if (!result) memory_exported(NUMBER_cuMemPoolExportPointer, pointer);
  return result;
}

CUresult hook_cuMemPoolImportPointer(CUdeviceptr_v2 *pointer, CUmemoryPool pool, CUmemPoolPtrExportData_v1 *data) {
  if (!recording()) return real.cuMemPoolImportPointer(pointer, pool, data);
  CUresult result = DRIVER(real.cuMemPoolImportPointer(pointer, pool, data));
  if (result || !pointer) return result;
  uint64_t start;
  struct wire_memory what = {.address = *pointer, .kind = WIRE_IMPORTED, .owner = number_of(pool)};
  allocation_of(*pointer, &start, &what.bytes);
  what.device = device_of(*pointer);
  memory_made(NUMBER_cuMemPoolImportPointer, &what, NULL);
  return result;
}

/* A range may have several mappings. */
CUresult hook_cuMemGetHandleForAddressRange(void *handle, CUdeviceptr pointer, size_t bytes, CUmemRangeHandleType type,
                                            unsigned long long flags) {
  if (!recording()) return real.cuMemGetHandleForAddressRange(handle, pointer, bytes, type, flags);
  CUresult result = DRIVER(real.cuMemGetHandleForAddressRange(handle, pointer, bytes, type, flags));
  uint64_t start, size, end = pointer + bytes;
  for (uint64_t at = pointer; !result && at < end; at = start + size) {
    if (!allocation_of(at, &start, &size)) {
      start = at;
      size = bytes;
    }
    memory_exported(NUMBER_cuMemGetHandleForAddressRange, at);
  }
  return result;
}
