/* Pools: those that programs create, and the default one of each device. A pool keeps no memory in reserve: what is
 * freed is the device's at once, so that there is nothing to trim. */
#include "pool.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "arena.h"
#include "driver.h"
#include "freed.h"
#include "handles.h"
#include "mapping.h"

static struct freed freed = FREED;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct pool *defaults[MOST_DEVICES], *currents[MOST_DEVICES]; /* NULL: the default one */

struct pool *pool_begin(CUdevice device, CUmemAllocationHandleType types) {
  struct pool *pool = object_make(&freed, sizeof *pool);
  if (!pool) return NULL;
  *pool = (struct pool){.device = device, .types = types, .size = device_at(device)->memory, .reuse = {1, 1, 1},
                        .references = 1, .rights = {1ull << device, 1ull << device}};
  return pool;
}

CUresult pool_finish(struct pool *pool, CUmemoryPool *handle) {
  if (!handle_add(POOL, pool)) {
    pool_release(pool);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  *handle = (CUmemoryPool)pool;
  return CUDA_SUCCESS;
}

/* The lock is held. */
static struct pool *hold(struct pool *pool) {
  pool->references++;
  return pool;
}

void pool_release(struct pool *pool) {
  pthread_mutex_lock(&lock);
  bool last = !--pool->references;
  pthread_mutex_unlock(&lock);
  if (!last) return;
  if (pool->arena && arena_mapping(pool->arena)) arena_end(pool->arena);
  mapping_release(pool->imported);
  object_free(&freed, pool);
}

CUresult pool_with(CUmemoryPool handle, struct pool **pool) {
  CHECK(ready());
  pthread_mutex_lock(&lock); /* destroying one takes it too */
  bool known = handle_is(POOL, handle, false);
  if (known) *pool = hold((struct pool *)handle);
  pthread_mutex_unlock(&lock);
  return known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* The lock is held. */
static struct pool *default_of(CUdevice device) {
  if (defaults[device]) return defaults[device];
  struct pool *pool = pool_begin(device, CU_MEM_HANDLE_TYPE_NONE);
  if (!pool) return NULL;
  pool->arena = arena_of(device);
  pool->standard = true;
  if (!handle_add(POOL, pool)) {
    object_free(&freed, pool);
    return NULL;
  }
  return defaults[device] = pool;
}

static struct pool *current_of(CUdevice device) { return currents[device] ? currents[device] : default_of(device); }

CUresult pool_current(CUdevice device, struct pool **pool) {
  pthread_mutex_lock(&lock);
  *pool = current_of(device);
  if (*pool) hold(*pool);
  pthread_mutex_unlock(&lock);
  return *pool ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

bool pool_use(struct pool *pool, uint64_t bytes) {
  pthread_mutex_lock(&lock);
  bool fits = bytes <= pool->size && pool->used <= pool->size - bytes;
  if (fits) {
    hold(pool);
    pool->used += bytes;
    if (pool->used > pool->most_used) pool->most_used = pool->used;
    if (pool->used > pool->most_reserved) pool->most_reserved = pool->used;
  }
  pthread_mutex_unlock(&lock);
  return fits;
}

void pool_unuse(struct pool *pool, uint64_t bytes) {
  pthread_mutex_lock(&lock);
  pool->used -= bytes;
  pthread_mutex_unlock(&lock);
  pool_release(pool);
}

/* Only zeros where nothing is defined. */
static bool blank(const unsigned char *bytes, size_t count) {
  for (size_t n = 0; n < count; n++)
    if (bytes[n]) return false;
  return true;
}

EXPORTED CUresult cuMemPoolCreate(CUmemoryPool *handle, const CUmemPoolProps *wanted) {
  CHECK(ready());
  if (!handle || !wanted || wanted->win32SecurityAttributes || !blank(wanted->reserved, sizeof wanted->reserved))
    return CUDA_ERROR_INVALID_VALUE;
  if (wanted->allocType == CU_MEM_ALLOCATION_TYPE_MANAGED || wanted->usage ||
      (wanted->location.type > CU_MEM_LOCATION_TYPE_DEVICE &&
       wanted->location.type <= CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT) ||
      wanted->handleTypes & ~CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
    return CUDA_ERROR_NOT_SUPPORTED;
  if (wanted->allocType != CU_MEM_ALLOCATION_TYPE_PINNED || wanted->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
    return CUDA_ERROR_INVALID_VALUE;
  const struct device *device = device_at(wanted->location.id);
  if (!device) return CUDA_ERROR_INVALID_DEVICE;
  struct pool *pool = pool_begin(wanted->location.id, wanted->handleTypes);
  if (!pool) return CUDA_ERROR_OUT_OF_MEMORY;
  if (wanted->maxSize && wanted->maxSize < pool->size) pool->size = wanted->maxSize;
  pool->arena = wanted->handleTypes ? arena_make(pool->device, pool->size, "pool") : arena_of(pool->device);
  if (pool->arena) return pool_finish(pool, handle);
  pool_release(pool);
  return CUDA_ERROR_OUT_OF_MEMORY;
}

EXPORTED CUresult cuMemPoolDestroy(CUmemoryPool handle) {
  CHECK(ready());
  struct pool *pool = (struct pool *)handle;
  pthread_mutex_lock(&lock);
  bool good = handle_is(POOL, handle, false) && !pool->standard && handle_is(POOL, handle, true);
  if (good && currents[pool->device] == pool) currents[pool->device] = NULL;
  pthread_mutex_unlock(&lock);
  if (!good) return CUDA_ERROR_INVALID_VALUE;
  pool_release(pool);
  return CUDA_SUCCESS;
}

/* Devices' pools. */

EXPORTED CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *handle, CUdevice device) {
  CHECK(ready());
  if (!handle) return CUDA_ERROR_INVALID_VALUE;
  if (!device_at(device)) return CUDA_ERROR_INVALID_DEVICE;
  pthread_mutex_lock(&lock);
  *handle = (CUmemoryPool)default_of(device);
  pthread_mutex_unlock(&lock);
  return *handle ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

EXPORTED CUresult cuDeviceGetMemPool(CUmemoryPool *handle, CUdevice device) {
  CHECK(ready());
  if (!handle) return CUDA_ERROR_INVALID_VALUE;
  if (!device_at(device)) return CUDA_ERROR_INVALID_DEVICE;
  pthread_mutex_lock(&lock);
  *handle = (CUmemoryPool)current_of(device);
  pthread_mutex_unlock(&lock);
  return *handle ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

EXPORTED CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool handle) {
  CHECK(ready());
  if (!device_at(device)) return CUDA_ERROR_INVALID_DEVICE;
  struct pool *pool = (struct pool *)handle;
  pthread_mutex_lock(&lock);
  bool good = handle_is(POOL, handle, false) && pool->device == device && !pool->imported;
  if (good) currents[device] = pool;
  pthread_mutex_unlock(&lock);
  return good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* The same by locations, of which only devices have pools here. */
static CUresult place(const CUmemLocation *location, CUmemAllocationType type) {
  CHECK(ready());
  if (!location || (type != CU_MEM_ALLOCATION_TYPE_PINNED && type != CU_MEM_ALLOCATION_TYPE_MANAGED))
    return CUDA_ERROR_INVALID_VALUE;
  if (type == CU_MEM_ALLOCATION_TYPE_MANAGED || location->type == CU_MEM_LOCATION_TYPE_HOST ||
      location->type == CU_MEM_LOCATION_TYPE_HOST_NUMA)
    return CUDA_ERROR_NOT_SUPPORTED;
  return location->type == CU_MEM_LOCATION_TYPE_DEVICE ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

EXPORTED CUresult cuMemGetDefaultMemPool(CUmemoryPool *handle, CUmemLocation *location, CUmemAllocationType type) {
  CHECK(place(location, type));
  return cuDeviceGetDefaultMemPool(handle, location->id);
}

EXPORTED CUresult cuMemGetMemPool(CUmemoryPool *handle, CUmemLocation *location, CUmemAllocationType type) {
  CHECK(place(location, type));
  return cuDeviceGetMemPool(handle, location->id);
}

EXPORTED CUresult cuMemSetMemPool(CUmemLocation *location, CUmemAllocationType type, CUmemoryPool handle) {
  CHECK(place(location, type));
  return cuDeviceSetMemPool(location->id, handle);
}

/* Attributes. */

EXPORTED CUresult cuMemPoolTrimTo(CUmemoryPool handle, size_t kept) {
  struct pool *pool;
  (void)kept;
  CHECK(pool_with(handle, &pool));
  pool_release(pool);
  return CUDA_SUCCESS;
}

/* The lock is held. */
static CUresult get(const struct pool *pool, CUmemPool_attribute attribute, void *value) {
  switch (attribute) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
      *(int *)value = pool->reuse[attribute - CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES];
      break;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD: *(cuuint64_t *)value = pool->threshold; break;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT: *(cuuint64_t *)value = pool->used; break;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH: *(cuuint64_t *)value = pool->most_reserved; break;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH: *(cuuint64_t *)value = pool->most_used; break;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

static CUresult set(struct pool *pool, CUmemPool_attribute attribute, const void *value) {
  switch (attribute) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
      pool->reuse[attribute - CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES] = *(const int *)value != 0;
      break;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD: pool->threshold = *(const cuuint64_t *)value; break;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
      if (*(const cuuint64_t *)value) return CUDA_ERROR_INVALID_VALUE;
      *(attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH ? &pool->most_used : &pool->most_reserved) = pool->used;
      break;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

EXPORTED CUresult cuMemPoolGetAttribute(CUmemoryPool handle, CUmemPool_attribute attribute, void *value) {
  struct pool *pool;
  if (!value) return CUDA_ERROR_INVALID_VALUE;
  CHECK(pool_with(handle, &pool));
  pthread_mutex_lock(&lock);
  CUresult result = get(pool, attribute, value);
  pthread_mutex_unlock(&lock);
  pool_release(pool);
  return result;
}

EXPORTED CUresult cuMemPoolSetAttribute(CUmemoryPool handle, CUmemPool_attribute attribute, void *value) {
  struct pool *pool;
  if (!value) return CUDA_ERROR_INVALID_VALUE;
  CHECK(pool_with(handle, &pool));
  pthread_mutex_lock(&lock);
  CUresult result = set(pool, attribute, value);
  pthread_mutex_unlock(&lock);
  pool_release(pool);
  return result;
}

/* Rights of devices: all or none; a pool's own device cannot lose its own. */
static CUresult check(const struct pool *pool, const CUmemAccessDesc *wanted) {
  if (wanted->location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_INVALID_VALUE;
  if (!device_at(wanted->location.id)) return CUDA_ERROR_INVALID_DEVICE;
  bool own = wanted->location.id == pool->device;
  if (wanted->flags == CU_MEM_ACCESS_FLAGS_PROT_NONE) return own ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
  if (wanted->flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE) return CUDA_ERROR_INVALID_VALUE;
  return own || devices_are_peers(wanted->location.id, pool->device) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

EXPORTED CUresult cuMemPoolSetAccess(CUmemoryPool handle, const CUmemAccessDesc *wanted, size_t count) {
  struct pool *pool;
  CUresult result = CUDA_SUCCESS;
  CHECK(pool_with(handle, &pool));
  if (count && !wanted) result = CUDA_ERROR_INVALID_VALUE;
  for (size_t n = 0; n < count && result == CUDA_SUCCESS; n++) result = check(pool, &wanted[n]);
  if (result == CUDA_SUCCESS) {
    allocations_write();
    for (size_t n = 0; n < count; n++) rights_set(&pool->rights, wanted[n].location.id, wanted[n].flags);
    allocations_changed();
    allocations_release();
  }
  pool_release(pool);
  return result;
}

EXPORTED CUresult cuMemPoolGetAccess(CUmemAccess_flags *flags, CUmemoryPool handle, CUmemLocation *location) {
  struct pool *pool;
  if (!flags || !location || location->type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_INVALID_VALUE;
  CHECK(pool_with(handle, &pool));
  CUresult result = device_at(location->id) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
  allocations_read();
  if (result == CUDA_SUCCESS) *flags = rights_of(&pool->rights, location->id);
  allocations_release();
  pool_release(pool);
  return result;
}
