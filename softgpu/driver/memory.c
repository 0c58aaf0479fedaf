/* Memory of devices and pinned memory of the host. */
#include "memory.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "allocations.h"
#include "arena.h"
#include "capture.h"
#include "driver.h"
#include "graph_memory.h"
#include "managed.h"
#include "mapping.h"
#include "pool.h"
#include "share.h"
#include "softgpu_engine.h"
#include "space.h"
#include "strict.h"
#include "view.h"

static const unsigned HOST_FLAGS = CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
static const unsigned REGISTER_FLAGS =
    CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP | CU_MEMHOSTREGISTER_READ_ONLY;

static CUresult here_of(struct allocation *allocation) {
  struct here here;
  CHECK(current(&here));
  CHECK(capture_permits());
  allocation->context = here.context;
  allocation->device = here.device;
  return CUDA_SUCCESS;
}

void memory_give_back(const struct allocation *allocation) {
  if (allocation->block) arena_give(allocation->arena, allocation->block);
  if (allocation->mapping) {
    views_forget();
    mapping_release(allocation->mapping);
  }
  if (allocation->kind == POOLED) pooled_end(allocation->object);
  if (allocation->kind == MANAGED) managed_end(allocation->object);
}

CUresult memory_add(const struct allocation *allocation) {
  allocations_write();
  bool added = allocation_add(allocation);
  allocations_release();
  if (!added) memory_give_back(allocation);
  return added ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* After the work that could still find it; for memory of no context that is the program's business. */
static void let_go(const struct allocation *allocation) {
  if (allocation->context) strict_wait(allocation->context);
  memory_give_back(allocation);
}

/* An allocation of one of some kinds (bits) that begins at an address; NULL without one. */
static const struct allocation *beginning(uint64_t start, unsigned kinds) {
  const struct allocation *found = allocation_with(start, 1);
  bool good = found && found->start == start && kinds >> found->kind & 1 &&
              !(found->kind == POOLED && pooled_leaves(found->object));
  return good ? found : NULL;
}

/* Take one away, after the work that may use it; for memory of no context that is the program's business. */
static CUresult take_away(uint64_t start, unsigned kinds, CUresult otherwise) {
  struct allocation removed;
  CHECK(capture_permits());
  allocations_read();
  const struct allocation *found = beginning(start, kinds);
  CUcontext context = found ? found->context : NULL;
  allocations_release();
  if (!found) return otherwise;
  if (context) strict_wait(context);
  allocations_write();
  bool good = beginning(start, kinds) && allocation_remove(start, &removed);
  allocations_release();
  if (!good) return otherwise; /* another thread was faster */
  memory_give_back(&removed);
  return CUDA_SUCCESS;
}

void memory_end(CUcontext context) {
  size_t count;
  allocations_read();
  uint64_t *starts = allocations_of(context, &count);
  allocations_release();
  for (size_t n = 0; n < count; n++) {
    struct allocation removed;
    allocations_write();
    bool still = allocation_remove(starts[n], &removed);
    allocations_release();
    if (still) let_go(&removed);
  }
  free(starts);
  views_forget(); /* another context may get its handle */
}

/* Devices. */

static CUresult take(struct allocation *made, uint64_t *address) {
  made->arena = arena_of(made->device);
  CHECK(arena_take(made->arena, made->size, 1, &made->block, &made->start));
  CHECK(memory_add(made));
  *address = made->start;
  return CUDA_SUCCESS;
}

EXPORTED CUresult cuMemAlloc_v2(CUdeviceptr *pointer, size_t bytes) {
  struct allocation made = {.size = bytes, .kind = ON_DEVICE};
  CHECK(here_of(&made));
  if (!pointer || !bytes) return CUDA_ERROR_INVALID_VALUE;
  uint64_t address;
  CHECK(take(&made, &address));
  *pointer = address;
  return CUDA_SUCCESS;
}

CUresult variable_make(CUcontext context, CUdevice device, uint64_t bytes, uint32_t limits, uint64_t *address) {
  struct allocation made = {.size = bytes, .kind = VARIABLE, .context = context, .device = device, .limits = limits};
  return take(&made, address);
}

void variable_end(uint64_t address) {
  struct allocation removed;
  allocations_write();
  bool still = allocation_remove(address, &removed);
  allocations_release();
  if (still) memory_give_back(&removed);
}

/* Rows begin at multiples of the grain, which suits every element size that may be named. */
EXPORTED CUresult cuMemAllocPitch_v2(CUdeviceptr *pointer, size_t *pitch, size_t width, size_t height,
                                     unsigned element) {
  struct here here;
  CHECK(current(&here));
  if (!pointer || !pitch || !width || !height || (element != 4 && element != 8 && element != 16))
    return CUDA_ERROR_INVALID_VALUE;
  size_t row = (width + GRAIN - 1) / GRAIN * GRAIN, bytes;
  if (row < width || __builtin_mul_overflow(row, height, &bytes)) return CUDA_ERROR_INVALID_VALUE;
  CHECK(cuMemAlloc_v2(pointer, bytes));
  *pitch = row;
  return CUDA_SUCCESS;
}

EXPORTED CUresult cuMemFree_v2(CUdeviceptr pointer) {
  CHECK(ready());
  static const unsigned KINDS = 1u << ON_DEVICE | 1u << POOLED | 1u << MANAGED;
  CUresult result = pointer ? capture_permits() : CUDA_SUCCESS;
  if (!pointer || result != CUDA_SUCCESS || graph_memory_free(pointer, NULL, &result)) return result;
  return take_away(pointer, KINDS, CUDA_ERROR_INVALID_VALUE);
}

EXPORTED CUresult cuMemGetInfo_v2(size_t *unused, size_t *total) {
  struct here here;
  CHECK(current(&here));
  if (!unused || !total) return CUDA_ERROR_INVALID_VALUE;
  *total = device_at(here.device)->memory;
  *unused = *total - share_taken(here.device);
  return CUDA_SUCCESS;
}

EXPORTED CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *size, CUdeviceptr pointer) {
  struct here here;
  CHECK(current(&here));
  allocations_read();
  const struct allocation *found = allocation_with(pointer, 1);
  if (found && base) *base = found->start;
  if (found && size) *size = found->size;
  allocations_release();
  return found ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

/* The host. */

EXPORTED CUresult cuMemHostAlloc(void **pointer, size_t bytes, unsigned int flags) {
  struct allocation made = {.size = bytes, .kind = PINNED, .flags = flags};
  CHECK(here_of(&made));
  if (!pointer || !bytes || flags & ~HOST_FLAGS) return CUDA_ERROR_INVALID_VALUE;
  void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  made.start = (uint64_t)(uintptr_t)memory;
  made.mapping = mapping_make(memory, bytes, NULL);
  if (!made.mapping) return CUDA_ERROR_OUT_OF_MEMORY;
  CHECK(memory_add(&made));
  *pointer = memory;
  return CUDA_SUCCESS;
}

EXPORTED CUresult cuMemAllocHost_v2(void **pointer, size_t bytes) { return cuMemHostAlloc(pointer, bytes, 0); }

EXPORTED CUresult cuMemFreeHost(void *pointer) {
  CHECK(ready());
  return take_away((uint64_t)(uintptr_t)pointer, 1u << PINNED, CUDA_ERROR_INVALID_VALUE);
}

EXPORTED CUresult cuMemHostRegister_v2(void *pointer, size_t bytes, unsigned int flags) {
  struct allocation made = {
      .start = (uint64_t)(uintptr_t)pointer, .size = bytes, .kind = REGISTERED, .flags = flags};
  CHECK(here_of(&made));
  if (!pointer || !bytes || made.start + bytes < made.start || flags & ~REGISTER_FLAGS) return CUDA_ERROR_INVALID_VALUE;
  if (flags & CU_MEMHOSTREGISTER_READ_ONLY) made.limits = SG_READ_ONLY;
  allocations_write();
  bool added = allocation_add(&made);
  allocations_release();
  return added ? CUDA_SUCCESS : CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
}

EXPORTED CUresult cuMemHostUnregister(void *pointer) {
  CHECK(ready());
  if (!pointer) return CUDA_ERROR_INVALID_VALUE;
  return take_away((uint64_t)(uintptr_t)pointer, 1u << REGISTERED, CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
}

/* Host memory that the driver knows, by any address in it; the lock is held after success. */
static CUresult host_with(void *pointer, const struct allocation **found) {
  CHECK(ready());
  allocations_read();
  *found = allocation_with((uint64_t)(uintptr_t)pointer, 1);
  if (*found && ((*found)->kind == PINNED || (*found)->kind == REGISTERED)) return CUDA_SUCCESS;
  allocations_release();
  return CUDA_ERROR_INVALID_VALUE;
}

/* Addresses are the same for host and devices. */
EXPORTED CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *device, void *pointer, unsigned int flags) {
  const struct allocation *found;
  if (!device || flags) return CUDA_ERROR_INVALID_VALUE;
  CHECK(host_with(pointer, &found));
  *device = (uint64_t)(uintptr_t)pointer;
  allocations_release();
  return CUDA_SUCCESS;
}

EXPORTED CUresult cuMemHostGetFlags(unsigned int *flags, void *pointer) {
  const struct allocation *found;
  if (!flags) return CUDA_ERROR_INVALID_VALUE;
  CHECK(host_with(pointer, &found));
  *flags = found->flags | CU_MEMHOSTALLOC_DEVICEMAP;
  CUresult result = found->kind == PINNED ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  allocations_release();
  return result;
}
