/* Pinned memory of the host. */
#include "hooks.h"
#include "memory.h"

/* Devices may have another address for it. */
static uint64_t device_address(void *pointer) {
  CUdeviceptr_v2 found = 0;
  if (!real.cuMemHostGetDevicePointer_v2 || ASK(real.cuMemHostGetDevicePointer_v2(&found, pointer, 0))) return 0;
  return found == number_of(pointer) ? 0 : found;
}

static CUresult made(unsigned function, void *pointer, uint64_t bytes, unsigned kind, unsigned flags) {
  struct wire_memory what = {.address = number_of(pointer), .bytes = bytes, .kind = kind, .flags = flags, .device = -1};
  what.context = context_here();
  what.device_address = device_address(pointer);
  memory_made(function, &what, NULL);
  return CUDA_SUCCESS;
}

CUresult hook_cuMemAllocHost(void **pointer, unsigned bytes) {
  if (!recording()) return real.cuMemAllocHost(pointer, bytes);
  CUresult result = DRIVER(real.cuMemAllocHost(pointer, bytes));
  return result || !pointer ? result : made(NUMBER_cuMemAllocHost, *pointer, bytes, WIRE_HOST, 0);
}

CUresult hook_cuMemAllocHost_v2(void **pointer, size_t bytes) {
  if (!recording()) return real.cuMemAllocHost_v2(pointer, bytes);
  CUresult result = DRIVER(real.cuMemAllocHost_v2(pointer, bytes));
  return result || !pointer ? result : made(NUMBER_cuMemAllocHost_v2, *pointer, bytes, WIRE_HOST, 0);
}

CUresult hook_cuMemHostAlloc(void **pointer, size_t bytes, unsigned flags) {
  if (!recording()) return real.cuMemHostAlloc(pointer, bytes, flags);
  CUresult result = DRIVER(real.cuMemHostAlloc(pointer, bytes, flags));
  return result || !pointer ? result : made(NUMBER_cuMemHostAlloc, *pointer, bytes, WIRE_HOST, flags);
}

CUresult hook_cuMemFreeHost(void *pointer) {
  if (!pointer || !recording()) return real.cuMemFreeHost(pointer);
  struct ending ending = memory_end(NUMBER_cuMemFreeHost, number_of(pointer), WIRE_HOST);
  return ending_done(&ending, real.cuMemFreeHost(pointer));
}

CUresult hook_cuMemHostRegister(void *pointer, size_t bytes, unsigned flags) {
  if (!recording()) return real.cuMemHostRegister(pointer, bytes, flags);
  CUresult result = DRIVER(real.cuMemHostRegister(pointer, bytes, flags));
  return result ? result : made(NUMBER_cuMemHostRegister, pointer, bytes, WIRE_REGISTERED, flags);
}

CUresult hook_cuMemHostRegister_v2(void *pointer, size_t bytes, unsigned flags) {
  if (!recording()) return real.cuMemHostRegister_v2(pointer, bytes, flags);
  CUresult result = DRIVER(real.cuMemHostRegister_v2(pointer, bytes, flags));
  return result ? result : made(NUMBER_cuMemHostRegister_v2, pointer, bytes, WIRE_REGISTERED, flags);
}

CUresult hook_cuMemHostUnregister(void *pointer) {
  if (!pointer || !recording()) return real.cuMemHostUnregister(pointer);
  struct ending ending = memory_end(NUMBER_cuMemHostUnregister, number_of(pointer), WIRE_REGISTERED);
  return ending_done(&ending, real.cuMemHostUnregister(pointer));
}
