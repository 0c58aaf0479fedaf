/* Ranges of addresses, physical memory, and which of it is mapped where. */
#include "hooks.h"
#include "memory.h"

CUresult hook_cuMemAddressReserve(CUdeviceptr_v2 *pointer, size_t bytes, size_t alignment, CUdeviceptr_v2 wanted,
                                  unsigned long long flags) {
  if (!recording()) return real.cuMemAddressReserve(pointer, bytes, alignment, wanted, flags);
  CUresult result = DRIVER(real.cuMemAddressReserve(pointer, bytes, alignment, wanted, flags));
  if (result || !pointer) return result;
  struct wire_reservation record = {.address = *pointer, .bytes = bytes};
  record_thing(WIRE_RESERVATION, NUMBER_cuMemAddressReserve, 0, &record, sizeof record);
  return result;
}

CUresult hook_cuMemAddressFree(CUdeviceptr_v2 pointer, size_t bytes) {
  if (!recording()) return real.cuMemAddressFree(pointer, bytes);
  struct wire_end what = {.kind = WIRE_RESERVATION, .handle = pointer, .bytes = bytes};
  struct ending ending = ending_begin(NUMBER_cuMemAddressFree, what);
  return ending_done(&ending, real.cuMemAddressFree(pointer, bytes));
}

/* Physical memory. The driver counts how often a handle was given, and ends it with the last release. */

static void physical(unsigned function, uint64_t handle, uint64_t bytes, const CUmemAllocationProp_v1 *properties,
                     bool imported) {
  struct wire_physical record = {
      .handle = handle, .bytes = bytes, .type = properties->type, .location_type = properties->location.type,
      .location = properties->location.id, .shareable = properties->requestedHandleTypes, .imported = imported};
  record_thing(WIRE_PHYSICAL, function, 0, &record, sizeof record);
}

static CUmemAllocationProp_v1 properties_of(CUmemGenericAllocationHandle_v1 handle) {
  CUmemAllocationProp_v1 found = {0};
  if (!real.cuMemGetAllocationPropertiesFromHandle ||
      ASK(real.cuMemGetAllocationPropertiesFromHandle(&found, handle)) != CUDA_SUCCESS)
    return (CUmemAllocationProp_v1){0};
  return found;
}

CUresult hook_cuMemCreate(CUmemGenericAllocationHandle_v1 *handle, size_t bytes,
                          const CUmemAllocationProp_v1 *properties, unsigned long long flags) {
  if (!recording()) return real.cuMemCreate(handle, bytes, properties, flags);
  CUresult result = DRIVER(real.cuMemCreate(handle, bytes, properties, flags));
  if (result || !handle || !properties) return result;
  uses_forget(WIRE_PHYSICAL, *handle);
  use_begin(WIRE_PHYSICAL, *handle, 0);
  physical(NUMBER_cuMemCreate, *handle, bytes, properties, false);
  return result;
}

CUresult hook_cuMemImportFromShareableHandle(CUmemGenericAllocationHandle_v1 *handle, void *shared,
                                             CUmemAllocationHandleType type) {
  if (!recording()) return real.cuMemImportFromShareableHandle(handle, shared, type);
  CUresult result = DRIVER(real.cuMemImportFromShareableHandle(handle, shared, type));
  if (result || !handle || use_begin(WIRE_PHYSICAL, *handle, 0) > 1) return result;
  CUmemAllocationProp_v1 properties = properties_of(*handle);
  physical(NUMBER_cuMemImportFromShareableHandle, *handle, 0, &properties, true);
  return result;
}

/* It may have had no handle any more, as only its mappings kept it. */
CUresult hook_cuMemRetainAllocationHandle(CUmemGenericAllocationHandle_v1 *handle, void *address) {
  if (!recording()) return real.cuMemRetainAllocationHandle(handle, address);
  CUresult result = DRIVER(real.cuMemRetainAllocationHandle(handle, address));
  if (result || !handle || use_begin(WIRE_PHYSICAL, *handle, 0) > 1) return result;
  CUmemAllocationProp_v1 properties = properties_of(*handle);
  uint64_t start, bytes = 0;
  allocation_of(number_of(address), &start, &bytes);
  physical(NUMBER_cuMemRetainAllocationHandle, *handle, bytes, &properties, false);
  return result;
}

CUresult hook_cuMemRelease(CUmemGenericAllocationHandle_v1 handle) {
  if (!recording()) return real.cuMemRelease(handle);
  int left = use_end(WIRE_PHYSICAL, handle);
  CUresult result;
  if (left > 0) {
    result = DRIVER(real.cuMemRelease(handle));
  } else {
    struct wire_end what = {.kind = WIRE_PHYSICAL, .handle = handle};
    struct ending ending = ending_begin(NUMBER_cuMemRelease, what);
    result = ending_done(&ending, real.cuMemRelease(handle));
  }
  if (result != CUDA_SUCCESS && left != USES_UNKNOWN) use_begin(WIRE_PHYSICAL, handle, 0);
  return result;
}

CUresult hook_cuMemExportToShareableHandle(void *shared, CUmemGenericAllocationHandle_v1 handle,
                                           CUmemAllocationHandleType type, unsigned long long flags) {
  if (!recording()) return real.cuMemExportToShareableHandle(shared, handle, type, flags);
  CUresult result = DRIVER(real.cuMemExportToShareableHandle(shared, handle, type, flags));
  struct wire_export record = {.address = handle, .kind = WIRE_PHYSICAL};
  if (!result) record_thing(WIRE_EXPORT, NUMBER_cuMemExportToShareableHandle, 0, &record, sizeof record);
  return result;
}

/* Mappings. */

CUresult hook_cuMemMap(CUdeviceptr_v2 pointer, size_t bytes, size_t offset, CUmemGenericAllocationHandle_v1 handle,
                       unsigned long long flags) {
  if (!recording()) return real.cuMemMap(pointer, bytes, offset, handle, flags);
  CUresult result = DRIVER(real.cuMemMap(pointer, bytes, offset, handle, flags));
  if (result != CUDA_SUCCESS) return result;
  CUmemAllocationProp_v1 properties = properties_of(handle);
  bool on_device = properties.location.type == CU_MEM_LOCATION_TYPE_DEVICE;
  struct wire_memory what = {.address = pointer, .bytes = bytes, .kind = WIRE_MAPPED, .owner = handle, .offset = offset,
                             .flags = (uint32_t)flags, .device = on_device ? properties.location.id : -1};
  memory_made(NUMBER_cuMemMap, &what, NULL);
  return result;
}

/* All that is mapped there. */
CUresult hook_cuMemUnmap(CUdeviceptr_v2 pointer, size_t bytes) {
  if (!recording()) return real.cuMemUnmap(pointer, bytes);
  struct wire_end what = {.kind = WIRE_MEMORY, .handle = pointer, .memory = WIRE_MAPPED, .bytes = bytes};
  struct ending ending = ending_begin(NUMBER_cuMemUnmap, what);
  return ending_done(&ending, real.cuMemUnmap(pointer, bytes));
}

CUresult hook_cuMemSetAccess(CUdeviceptr_v2 pointer, size_t bytes, const CUmemAccessDesc_v1 *list, size_t count) {
  if (!recording()) return real.cuMemSetAccess(pointer, bytes, list, count);
  CUresult result = DRIVER(real.cuMemSetAccess(pointer, bytes, list, count));
  for (size_t i = 0; !result && list && i < count; i++) {
    struct wire_access record = {.address = pointer, .bytes = bytes, .location_type = list[i].location.type,
                                 .location = list[i].location.id, .flags = list[i].flags};
    record_thing(WIRE_ACCESS, NUMBER_cuMemSetAccess, 0, &record, sizeof record);
  }
  return result;
}
