/* Memory that streams allocate and free in their order.
 *
 * An address is known as soon as a call returns, and its bytes are zero and taken from then on; a free is done when the
 * stream comes to it. When there is no memory while frees are still in streams, they are waited for. */
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "arena.h"
#include "capture.h"
#include "command.h"
#include "driver.h"
#include "graph_memory.h"
#include "mapping.h"
#include "memfile.h"
#include "memory.h"
#include "pool.h"
#include "space.h"

struct pooled {
  struct pool *pool; /* a reference */
  uint64_t bytes;
  bool leaves; /* changed with the lock of the allocations */
};

static _Atomic unsigned leaving; /* frees that are in streams */

struct pool *pool_of(const struct pooled *pooled) { return pooled->pool; }
bool pooled_leaves(const struct pooled *pooled) { return pooled->leaves; }

void pooled_end(struct pooled *pooled) {
  pool_unuse(pooled->pool, pooled->bytes);
  free(pooled);
}

static struct pooled *pooled_begin(struct pool *pool, uint64_t bytes) {
  struct pooled *pooled = malloc(sizeof *pooled);
  if (pooled && pool_use(pool, bytes)) {
    *pooled = (struct pooled){.pool = pool, .bytes = bytes};
    return pooled;
  }
  free(pooled);
  return NULL;
}

static CUresult take(struct pool *pool, size_t bytes, CUdeviceptr *pointer) {
  struct allocation made = {.size = bytes, .kind = POOLED, .device = pool->device, .arena = pool->arena,
                            .rights = &pool->rights};
  if (bytes > pool->size) return CUDA_ERROR_OUT_OF_MEMORY;
  struct pooled *pooled = pooled_begin(pool, (bytes + GRAIN - 1) / GRAIN * GRAIN);
  if (!pooled) return CUDA_ERROR_OUT_OF_MEMORY;
  made.object = pooled;
  CUresult result = arena_take(made.arena, bytes, 1, &made.block, &made.start);
  if (result != CUDA_SUCCESS) {
    pooled_end(pooled);
    return result;
  }
  made.mapping = mapping_hold(arena_mapping(made.arena));
  result = memory_add(&made);
  if (result == CUDA_SUCCESS) *pointer = made.start;
  return result;
}

/* In a graph it is memory of the graph, wherever streams get theirs from. */
static CUresult capture_allocation(const struct stream_place *place, CUdevice device, size_t bytes,
                                   CUdeviceptr *pointer) {
  CUDA_MEM_ALLOC_NODE_PARAMS_v2 params = {
      .poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {CU_MEM_LOCATION_TYPE_DEVICE, device}},
      .bytesize = bytes};
  struct command *command;
  CHECK(graph_alloc_command(&params, &command));
  graph_alloc_params(command, &params);
  CHECK(submit(place, false, command));
  *pointer = params.dptr;
  return CUDA_SUCCESS;
}

static CUresult capture_release(const struct stream_place *place, CUdeviceptr pointer) {
  struct command *command;
  CHECK(graph_free_command(pointer, &command));
  return submit(place, false, command);
}

static CUresult allocate(CUdeviceptr *pointer, size_t bytes, CUmemoryPool handle, CUstream stream, bool own) {
  struct stream_place place;
  struct pool *pool;
  CHECK(stream_place(stream, own, &place));
  if (!pointer || !bytes) return CUDA_ERROR_INVALID_VALUE;
  CHECK(handle ? pool_with(handle, &pool) : pool_current(place.device, &pool));
  if (is_captured(&place)) {
    CUdevice device = pool->device;
    pool_release(pool);
    return capture_allocation(&place, device, bytes, pointer);
  }
  CUresult result = pool->arena ? take(pool, bytes, pointer) : CUDA_ERROR_INVALID_VALUE;
  if (result == CUDA_ERROR_OUT_OF_MEMORY && leaving) {
    work_wait(place.context);
    result = take(pool, bytes, pointer);
  }
  pool_release(pool);
  return result;
}

#define ALLOCATE(suffix, own)                                                                               \
  EXPORTED CUresult cuMemAllocAsync##suffix(CUdeviceptr *pointer, size_t bytes, CUstream stream) {          \
    return allocate(pointer, bytes, NULL, stream, own);                                                     \
  }                                                                                                         \
  EXPORTED CUresult cuMemAllocFromPoolAsync##suffix(CUdeviceptr *pointer, size_t bytes, CUmemoryPool pool,  \
                                                    CUstream stream) {                                      \
    return pool ? allocate(pointer, bytes, pool, stream, own) : CUDA_ERROR_INVALID_VALUE;                   \
  }

ALLOCATE(, false)
ALLOCATE(_ptsz, true)

/* Frees. */

struct release {
  struct command command;
  uint64_t address;
  unsigned long long id;
};

/* Note that a free is in a stream, or is not after all. */
static bool mark(uint64_t address, bool leaves, unsigned long long *id) {
  allocations_write();
  const struct allocation *found = allocation_with(address, 1);
  bool good = found && found->start == address && found->kind == POOLED;
  struct pooled *pooled = good ? found->object : NULL;
  good = good && pooled->leaves != leaves;
  if (good) {
    pooled->leaves = leaves;
    *id = found->id;
  }
  allocations_release();
  if (good) leaving += leaves ? 1u : -1u;
  return good;
}

static CUresult do_release(const struct command *command) {
  const struct release *release = (const struct release *)command;
  struct allocation removed;
  allocations_write();
  const struct allocation *found = allocation_with(release->address, 1);
  bool still = found && found->id == release->id && allocation_remove(release->address, &removed);
  allocations_release();
  if (!still) return CUDA_SUCCESS;
  memory_give_back(&removed);
  leaving--;
  return CUDA_SUCCESS;
}

static void skip_release(const struct command *command, CUresult failed) {
  (void)failed;
  do_release(command);
}

static void end_release(struct command *command) { free(command); }

static const struct command_kind RELEASE = {
    .type = CU_GRAPH_NODE_TYPE_MEM_FREE, .run = do_release, .skip = skip_release, .end = end_release};

static CUresult release(CUdeviceptr pointer, CUstream stream, bool own) {
  struct stream_place place;
  CHECK(stream_place(stream, own, &place));
  CUresult result;
  if (is_captured(&place)) return capture_release(&place, pointer);
  if (graph_memory_free(pointer, &place, &result)) return result;
  unsigned long long id;
  if (!mark(pointer, true, &id)) return CUDA_ERROR_INVALID_VALUE;
  struct release *made = malloc(sizeof *made);
  result = CUDA_ERROR_OUT_OF_MEMORY;
  if (made) {
    *made = (struct release){command_begin(&RELEASE, &place), pointer, id};
    result = submit(&place, false, &made->command);
  }
  if (result != CUDA_SUCCESS) mark(pointer, false, &id);
  return result;
}

EXPORTED CUresult cuMemFreeAsync(CUdeviceptr pointer, CUstream stream) { return release(pointer, stream, false); }
EXPORTED CUresult cuMemFreeAsync_ptsz(CUdeviceptr pointer, CUstream stream) { return release(pointer, stream, true); }

/* Between processes: the file of a pool's arena, and places in it. */

static unsigned long long number_of(int file) {
  struct stat found;
  return fstat(file, &found) ? 0 : found.st_ino;
}

EXPORTED CUresult cuMemPoolExportToShareableHandle(void *out, CUmemoryPool handle, CUmemAllocationHandleType type,
                                                   unsigned long long flags) {
  struct pool *pool;
  if (!out || flags) return CUDA_ERROR_INVALID_VALUE;
  CHECK(pool_with(handle, &pool));
  bool good = pool->arena && type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR && pool->types & type;
  int file = good ? fcntl(arena_file(pool->arena), F_DUPFD_CLOEXEC, 0) : -1;
  pool_release(pool);
  if (!good) return CUDA_ERROR_INVALID_VALUE;
  if (file < 0) return CUDA_ERROR_OUT_OF_MEMORY;
  *(int *)out = file;
  return CUDA_SUCCESS;
}

EXPORTED CUresult cuMemPoolImportFromShareableHandle(CUmemoryPool *handle, void *given, CUmemAllocationHandleType type,
                                                     unsigned long long flags) {
  CUdevice device;
  uint64_t size;
  int file = (int)(intptr_t)given;
  CHECK(ready());
  if (!handle || flags || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR || !memfile_is(file, "pool", &device, &size))
    return CUDA_ERROR_INVALID_VALUE;
  struct pool *pool = pool_begin(device, CU_MEM_HANDLE_TYPE_NONE);
  if (!pool) return CUDA_ERROR_OUT_OF_MEMORY;
  void *base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
  pool->imported = base == MAP_FAILED ? NULL : mapping_make(base, size, NULL);
  if (!pool->imported) {
    pool_release(pool);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  pool->base = (uint64_t)(uintptr_t)base;
  pool->size = size;
  pool->file = number_of(file);
  return pool_finish(pool, handle);
}

struct place_in_pool {
  uint64_t magic, file, offset, size;
};

static const uint64_t MAGIC = 0x4c4f4f5054464f53; /* "SOFTPOOL" */

EXPORTED CUresult cuMemPoolExportPointer(CUmemPoolPtrExportData *data, CUdeviceptr pointer) {
  CHECK(ready());
  if (!data) return CUDA_ERROR_INVALID_VALUE;
  struct place_in_pool place = {.magic = MAGIC};
  allocations_read();
  const struct allocation *found = allocation_with(pointer, 1);
  bool good = found && found->start == pointer && found->kind == POOLED && found->block && arena_mapping(found->arena);
  if (good) {
    place.file = number_of(arena_file(found->arena));
    place.offset = arena_offset(found->arena, pointer);
    place.size = found->size;
  }
  allocations_release();
  if (!good) return CUDA_ERROR_INVALID_VALUE;
  memset(data, 0, sizeof *data);
  memcpy(data, &place, sizeof place);
  return CUDA_SUCCESS;
}

static CUresult import(CUdeviceptr *pointer, struct pool *pool, const struct place_in_pool *place) {
  if (!pool->imported || place->magic != MAGIC || place->file != pool->file || !place->size ||
      place->size > pool->size || place->offset > pool->size - place->size)
    return CUDA_ERROR_INVALID_VALUE;
  struct pooled *pooled = pooled_begin(pool, place->size);
  if (!pooled) return CUDA_ERROR_OUT_OF_MEMORY;
  struct allocation made = {.start = pool->base + place->offset, .size = place->size, .kind = POOLED,
                            .device = pool->device, .rights = &pool->rights, .object = pooled,
                            .mapping = mapping_hold(pool->imported)};
  if (memory_add(&made) != CUDA_SUCCESS) return CUDA_ERROR_INVALID_VALUE; /* it has been imported already */
  *pointer = made.start;
  return CUDA_SUCCESS;
}

EXPORTED CUresult cuMemPoolImportPointer(CUdeviceptr *pointer, CUmemoryPool handle, CUmemPoolPtrExportData *data) {
  struct place_in_pool place;
  struct pool *pool;
  if (!pointer || !data) return CUDA_ERROR_INVALID_VALUE;
  CHECK(pool_with(handle, &pool));
  memcpy(&place, data, sizeof place);
  CUresult result = import(pointer, pool, &place);
  pool_release(pool);
  return result;
}
