/* Memory of devices that has no address until it is mapped: handles, and how processes exchange them.
 *
 * What can be exported has a file of its own, which lives as long as any process has it; what cannot is a part of its
 * device's. */
#include "physical.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "arena.h"
#include "driver.h"
#include "handles.h"
#include "memfile.h"
#include "share.h"

struct counted {
  struct physical physical;  /* first: who has one has this */
  unsigned handles, mapped;  /* references */
  struct block *block;       /* NULL: it has a file of its own */
  bool imported;             /* the process that made it counts its bytes */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* references */
static unsigned long long last_id;

static CUresult check(const CUmemAllocationProp *wanted) {
  if (!wanted || wanted->win32HandleMetaData) return CUDA_ERROR_INVALID_VALUE;
  bool host = wanted->location.type > CU_MEM_LOCATION_TYPE_DEVICE &&
              wanted->location.type <= CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
  if (wanted->type == CU_MEM_ALLOCATION_TYPE_MANAGED || host || wanted->allocFlags.gpuDirectRDMACapable ||
      wanted->allocFlags.usage || wanted->requestedHandleTypes & ~CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
    return CUDA_ERROR_NOT_SUPPORTED;
  for (size_t n = 0; n < sizeof wanted->allocFlags.reserved; n++)
    if (wanted->allocFlags.reserved[n]) return CUDA_ERROR_INVALID_VALUE;
  if (wanted->type != CU_MEM_ALLOCATION_TYPE_PINNED || wanted->location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
      wanted->allocFlags.compressionType > CU_MEM_ALLOCATION_COMP_GENERIC)
    return CUDA_ERROR_INVALID_VALUE;
  return device_at(wanted->location.id) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

EXPORTED CUresult cuMemGetAllocationGranularity(size_t *granularity, const CUmemAllocationProp *wanted,
                                                CUmemAllocationGranularity_flags option) {
  CHECK(ready());
  if (!granularity || option > CU_MEM_ALLOC_GRANULARITY_RECOMMENDED) return CUDA_ERROR_INVALID_VALUE;
  CHECK(check(wanted));
  *granularity = GRANULARITY;
  return CUDA_SUCCESS;
}

/* Somebody's last reference is gone. */
static void end(struct counted *counted) {
  struct physical *physical = &counted->physical;
  if (counted->block) {
    arena_give(arena_of(physical->device), counted->block);
  } else {
    close(physical->file);
    if (!counted->imported) share_give(physical->device, physical->size);
  }
  free(counted);
}

/* The bytes of a new one. */
static CUresult fill(struct counted *counted) {
  struct physical *physical = &counted->physical;
  uint64_t limit = device_at(physical->device)->memory, address;
  if (!physical->types) {
    struct arena *arena = arena_of(physical->device);
    CHECK(arena_take(arena, physical->size, GRANULARITY, &counted->block, &address));
    physical->file = arena_file(arena);
    physical->offset = arena_offset(arena, address);
    return CUDA_SUCCESS;
  }
  if (!share_take(physical->device, physical->size, limit)) return CUDA_ERROR_OUT_OF_MEMORY;
  physical->file = memfile_make("memory", physical->device, physical->size);
  if (physical->file >= 0) return CUDA_SUCCESS;
  share_give(physical->device, physical->size);
  return CUDA_ERROR_OUT_OF_MEMORY;
}

/* Give it a handle; its reference is taken. */
static CUresult name(struct counted *counted, CUmemGenericAllocationHandle *handle) {
  pthread_mutex_lock(&lock);
  counted->physical.id = 1ull << 63 | ++last_id;
  bool named = handle_add(MEMORY, counted);
  pthread_mutex_unlock(&lock);
  if (!named) {
    end(counted);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  *handle = (CUmemGenericAllocationHandle)(uintptr_t)counted;
  return CUDA_SUCCESS;
}

EXPORTED CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size, const CUmemAllocationProp *wanted,
                              unsigned long long flags) {
  CHECK(ready());
  if (!handle || flags || !size || size % GRANULARITY) return CUDA_ERROR_INVALID_VALUE;
  CHECK(check(wanted));
  struct counted *made = calloc(1, sizeof *made);
  if (!made) return CUDA_ERROR_OUT_OF_MEMORY;
  *made = (struct counted){
      .physical = {.device = wanted->location.id, .types = wanted->requestedHandleTypes, .size = size}, .handles = 1};
  CUresult result = fill(made);
  if (result == CUDA_SUCCESS) return name(made, handle);
  free(made);
  return result;
}

/* That of a handle, with the lock held after success. */
static CUresult find(CUmemGenericAllocationHandle handle, struct counted **counted) {
  CHECK(ready());
  pthread_mutex_lock(&lock);
  *counted = (struct counted *)(uintptr_t)handle;
  if (handle_is(MEMORY, *counted, false)) return CUDA_SUCCESS;
  pthread_mutex_unlock(&lock);
  return CUDA_ERROR_INVALID_VALUE;
}

/* Something has been taken from its references: the lock is given back, and it ends with the last one. */
static void settle(struct counted *counted) {
  bool last = !counted->handles && !counted->mapped;
  pthread_mutex_unlock(&lock);
  if (last) end(counted);
}

EXPORTED CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  struct counted *counted;
  CHECK(find(handle, &counted));
  if (!--counted->handles) handle_is(MEMORY, counted, true);
  settle(counted);
  return CUDA_SUCCESS;
}

CUresult physical_map(CUmemGenericAllocationHandle handle, struct physical **physical) {
  struct counted *counted;
  CHECK(find(handle, &counted));
  counted->mapped++;
  pthread_mutex_unlock(&lock);
  *physical = &counted->physical;
  return CUDA_SUCCESS;
}

void physical_unmap(struct physical *physical) {
  struct counted *counted = (struct counted *)physical;
  pthread_mutex_lock(&lock);
  counted->mapped--;
  settle(counted);
}

CUresult physical_retain(struct physical *physical, CUmemGenericAllocationHandle *handle) {
  struct counted *counted = (struct counted *)physical;
  pthread_mutex_lock(&lock);
  bool named = counted->handles || handle_add(MEMORY, counted);
  if (named) counted->handles++;
  pthread_mutex_unlock(&lock);
  *handle = (CUmemGenericAllocationHandle)(uintptr_t)counted;
  return named ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

EXPORTED CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *properties,
                                                         CUmemGenericAllocationHandle handle) {
  struct counted *counted;
  if (!properties) return CUDA_ERROR_INVALID_VALUE;
  CHECK(find(handle, &counted));
  *properties = (CUmemAllocationProp){.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                      .requestedHandleTypes = counted->physical.types,
                                      .location = {CU_MEM_LOCATION_TYPE_DEVICE, counted->physical.device}};
  pthread_mutex_unlock(&lock);
  return CUDA_SUCCESS;
}

/* Between processes. */

EXPORTED CUresult cuMemExportToShareableHandle(void *out, CUmemGenericAllocationHandle handle,
                                               CUmemAllocationHandleType type, unsigned long long flags) {
  struct counted *counted;
  if (!out || flags) return CUDA_ERROR_INVALID_VALUE;
  CHECK(find(handle, &counted));
  bool good = type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR && counted->physical.types & type;
  int file = good ? fcntl(counted->physical.file, F_DUPFD_CLOEXEC, 0) : -1;
  pthread_mutex_unlock(&lock);
  if (!good) return CUDA_ERROR_INVALID_VALUE;
  if (file < 0) return CUDA_ERROR_OUT_OF_MEMORY;
  *(int *)out = file;
  return CUDA_SUCCESS;
}

EXPORTED CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *given,
                                                 CUmemAllocationHandleType type) {
  int file = (int)(intptr_t)given;
  CHECK(ready());
  if (!handle || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_INVALID_VALUE;
  struct counted *made = calloc(1, sizeof *made);
  if (!made) return CUDA_ERROR_OUT_OF_MEMORY;
  *made = (struct counted){.physical = {.types = type}, .handles = 1, .imported = true};
  bool good = memfile_is(file, "memory", &made->physical.device, &made->physical.size);
  made->physical.file = good ? fcntl(file, F_DUPFD_CLOEXEC, 0) : -1;
  if (made->physical.file >= 0) return name(made, handle);
  free(made);
  return good ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_VALUE;
}
