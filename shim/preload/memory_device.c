/* Memory of devices, and managed memory. */
#include "hooks.h"
#include "memory.h"
#include "streams.h"

static CUresult made(unsigned function, uint64_t address, struct wire_memory what) {
  what.address = address;
  what.context = context_here();
  what.device = device_here();
  memory_made(function, &what, NULL);
  return CUDA_SUCCESS;
}

static CUresult allocated(unsigned function, uint64_t address, uint64_t bytes) {
  return made(function, address, (struct wire_memory){.bytes = bytes, .kind = WIRE_ALLOCATED});
}

CUresult hook_cuMemAlloc(CUdeviceptr_v1 *pointer, unsigned bytes) {
  if (!recording()) return real.cuMemAlloc(pointer, bytes);
  CUresult result = DRIVER(real.cuMemAlloc(pointer, bytes));
  return result || !pointer ? result : allocated(NUMBER_cuMemAlloc, *pointer, bytes);
}

CUresult hook_cuMemAlloc_v2(CUdeviceptr_v2 *pointer, size_t bytes) {
  if (!recording()) return real.cuMemAlloc_v2(pointer, bytes);
  CUresult result = DRIVER(real.cuMemAlloc_v2(pointer, bytes));
  return result || !pointer ? result : allocated(NUMBER_cuMemAlloc_v2, *pointer, bytes);
}

static CUresult pitched(unsigned function, uint64_t address, uint64_t pitch, uint64_t width, uint64_t height) {
  return made(function, address, (struct wire_memory){.bytes = pitch * height, .kind = WIRE_PITCHED, .pitch = pitch,
                                                      .width = width, .height = height});
}

CUresult hook_cuMemAllocPitch(CUdeviceptr_v1 *pointer, unsigned *pitch, unsigned width, unsigned height,
                              unsigned element) {
  if (!recording()) return real.cuMemAllocPitch(pointer, pitch, width, height, element);
  CUresult result = DRIVER(real.cuMemAllocPitch(pointer, pitch, width, height, element));
  if (result || !pointer || !pitch) return result;
  return pitched(NUMBER_cuMemAllocPitch, *pointer, *pitch, width, height);
}

CUresult hook_cuMemAllocPitch_v2(CUdeviceptr_v2 *pointer, size_t *pitch, size_t width, size_t height,
                                 unsigned element) {
  if (!recording()) return real.cuMemAllocPitch_v2(pointer, pitch, width, height, element);
  CUresult result = DRIVER(real.cuMemAllocPitch_v2(pointer, pitch, width, height, element));
  if (result || !pointer || !pitch) return result;
  return pitched(NUMBER_cuMemAllocPitch_v2, *pointer, *pitch, width, height);
}

CUresult hook_cuMemAllocManaged(CUdeviceptr_v2 *pointer, size_t bytes, unsigned flags) {
  if (!recording()) return real.cuMemAllocManaged(pointer, bytes, flags);
  CUresult result = DRIVER(real.cuMemAllocManaged(pointer, bytes, flags));
  if (result || !pointer) return result;
  return made(NUMBER_cuMemAllocManaged, *pointer,
              (struct wire_memory){.bytes = bytes, .kind = WIRE_MANAGED, .flags = flags});
}

/* Of 0 the driver says that there is nothing to do. */
CUresult hook_cuMemFree(CUdeviceptr_v1 pointer) {
  if (!pointer || !recording()) return real.cuMemFree(pointer);
  struct ending ending = memory_end(NUMBER_cuMemFree, pointer, 0);
  return ending_done(&ending, real.cuMemFree(pointer));
}

CUresult hook_cuMemFree_v2(CUdeviceptr_v2 pointer) {
  if (!pointer || !recording()) return real.cuMemFree_v2(pointer);
  struct ending ending = memory_end(NUMBER_cuMemFree_v2, pointer, 0);
  return ending_done(&ending, real.cuMemFree_v2(pointer));
}

/* In stream order. */

/* The pool that a device takes memory from, if the program names none. */
static uint64_t pool_here(void) {
  CUmemoryPool pool = NULL;
  CUdevice device = device_here();
  if (device < 0 || !real.cuDeviceGetMemPool || ASK(real.cuDeviceGetMemPool(&pool, device))) return 0;
  return number_of(pool);
}

/* Memory of a pool belongs to no context. In a capture it is an address that a graph will have memory at. */
static void pooled(unsigned function, uint64_t address, uint64_t bytes, CUmemoryPool pool, const struct stream *stream,
                   bool captured) {
  struct wire_memory what = {.address = address, .bytes = bytes, .kind = WIRE_POOLED, .device = -1};
  what.head.flags = captured ? WIRE_CAPTURED : 0;
  if (stream) what.stream = stream->place.stream;
  if (!captured) what.owner = pool ? number_of(pool) : pool_here();
  if (!captured) what.device = device_of(address);
  memory_made(function, &what, NULL);
}

#define ALLOCATE(symbol, pool, per_thread, arguments)                                              \
  if (!recording()) return real.symbol arguments;                                                  \
  struct stream *on = stream_of(stream, per_thread);                                               \
  bool captured = on && stream_captured(on);                                                       \
  CUresult result = DRIVER(real.symbol arguments);                                                 \
  if (!result && pointer) pooled(NUMBER_##symbol, *pointer, bytes, pool, on, captured);            \
  return result

CUresult hook_cuMemAllocAsync(CUdeviceptr_v2 *pointer, size_t bytes, CUstream stream) {
  ALLOCATE(cuMemAllocAsync, NULL, false, (pointer, bytes, stream));
}

CUresult hook_cuMemAllocAsync_ptsz(CUdeviceptr_v2 *pointer, size_t bytes, CUstream stream) {
  ALLOCATE(cuMemAllocAsync_ptsz, NULL, true, (pointer, bytes, stream));
}

CUresult hook_cuMemAllocFromPoolAsync(CUdeviceptr_v2 *pointer, size_t bytes, CUmemoryPool pool, CUstream stream) {
  ALLOCATE(cuMemAllocFromPoolAsync, pool, false, (pointer, bytes, pool, stream));
}

CUresult hook_cuMemAllocFromPoolAsync_ptsz(CUdeviceptr_v2 *pointer, size_t bytes, CUmemoryPool pool,
                                           CUstream stream) {
  ALLOCATE(cuMemAllocFromPoolAsync_ptsz, pool, true, (pointer, bytes, pool, stream));
}

typedef CUresult free_async(CUdeviceptr_v2 pointer, CUstream stream);

/* The stream's lock is held, as it is for work: the record stands where the driver puts the end. */
static CUresult release(CUdeviceptr_v2 pointer, CUstream stream, bool per_thread, free_async *call, unsigned function) {
  struct stream *on = stream_of(stream, per_thread);
  struct wire_end what = {.kind = WIRE_MEMORY, .handle = pointer, .stream = on ? on->place.stream : 0};
  what.head.flags = on && stream_captured(on) ? WIRE_CAPTURED : 0;
  if (on) lock_take(&on->lock);
  struct ending ending = ending_begin(function, what);
  CUresult result = call(pointer, stream);
  if (on) lock_give(&on->lock);
  return ending_done(&ending, result);
}

CUresult hook_cuMemFreeAsync(CUdeviceptr_v2 pointer, CUstream stream) {
  if (!recording()) return real.cuMemFreeAsync(pointer, stream);
  return release(pointer, stream, false, real.cuMemFreeAsync, NUMBER_cuMemFreeAsync);
}

CUresult hook_cuMemFreeAsync_ptsz(CUdeviceptr_v2 pointer, CUstream stream) {
  if (!recording()) return real.cuMemFreeAsync_ptsz(pointer, stream);
  return release(pointer, stream, true, real.cuMemFreeAsync_ptsz, NUMBER_cuMemFreeAsync_ptsz);
}
