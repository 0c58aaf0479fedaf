/* Address ranges that programs reserve, and what they map there.
 *
 * A reservation is mapped without any access; memory is mapped over it. What is unmapped becomes inaccessible again,
 * but not while a copy or a kernel may be using the reservation: then that happens when none does any more. */
#include "vmm.h"

#include <pthread.h>
#include <search.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "allocations.h"
#include "driver.h"
#include "mapping.h"
#include "physical.h"
#include "view.h"

struct piece {
  struct physical *physical; /* a reference */
  struct rights rights;      /* changed and read with the lock of the allocations */
};

struct range {
  uint64_t start, size;
};

struct reservation {
  struct range range; /* first: `compare` */
  struct mapping *mapping;
  size_t pieces;       /* that are mapped */
  struct range *stale; /* were mapped, and may still be used */
  size_t stale_count;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* reservations, and what is mapped in them */
static void *tree;

CUmemAllocationHandleType piece_types(const struct piece *piece) { return piece->physical->types; }
unsigned long long piece_block(const struct piece *piece) { return piece->physical->id; }

static int compare(const void *left, const void *right) {
  const struct range *a = left, *b = right;
  if (a->start + a->size <= b->start) return -1;
  return a->start >= b->start + b->size;
}

/* The reservation that holds a range, which is not empty. The lock is held. */
static struct reservation *around(uint64_t start, uint64_t size) {
  struct range wanted = {start, 1};
  struct reservation *const *found = tfind(&wanted, &tree, compare);
  if (!found || size > (*found)->range.start + (*found)->range.size - start) return NULL;
  return *found;
}

bool is_reserved(uint64_t address) {
  pthread_mutex_lock(&lock);
  bool reserved = around(address, 1);
  pthread_mutex_unlock(&lock);
  return reserved;
}

static void *at(uint64_t address) { return (void *)(uintptr_t)address; }

/* Make a range inaccessible again. */
static void blank(uint64_t start, uint64_t end) {
  if (start < end)
    mmap(at(start), end - start, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

/* The same for what is not mapped once more. The lock is held. */
static void blank_unless_mapped(const struct range *range) {
  uint64_t end = range->start + range->size, from = range->start, here = from;
  allocations_read();
  while (here < end) {
    const struct allocation *found = allocation_with(here, 1);
    if (found) blank(from, here);
    here = found ? found->start + found->size : here + GRANULARITY;
    if (found) from = here;
  }
  allocations_release();
  blank(from, end);
}

/* Nobody may be using the reservation at some address any more. */
static void settle(void *start) {
  pthread_mutex_lock(&lock);
  struct reservation *reservation = around((uint64_t)(uintptr_t)start, 1);
  if (reservation && reservation->range.start == (uint64_t)(uintptr_t)start && mapping_alone(reservation->mapping)) {
    for (size_t n = 0; n < reservation->stale_count; n++) blank_unless_mapped(&reservation->stale[n]);
    reservation->stale_count = 0;
  }
  pthread_mutex_unlock(&lock);
}

EXPORTED CUresult cuMemAddressReserve(CUdeviceptr *pointer, size_t size, size_t alignment, CUdeviceptr wanted,
                                      unsigned long long flags) {
  uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
  CHECK(ready());
  if (!pointer || flags || !size || size % page || wanted % page || alignment & (alignment - 1))
    return CUDA_ERROR_INVALID_VALUE;
  if (alignment < GRANULARITY) alignment = GRANULARITY;
  if (size + alignment < size) return CUDA_ERROR_OUT_OF_MEMORY;
  void *memory = mmap(at(wanted), size + alignment, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  uint64_t got = (uint64_t)(uintptr_t)memory, start = (got + alignment - 1) & ~(uint64_t)(alignment - 1);
  if (start > got) munmap(memory, start - got);
  if (start - got < alignment) munmap(at(start + size), alignment - (start - got));
  struct reservation *made = calloc(1, sizeof *made);
  struct mapping *mapping = mapping_make(at(start), size, settle);
  bool added = false;
  if (made && mapping) {
    *made = (struct reservation){.range = {start, size}, .mapping = mapping};
    pthread_mutex_lock(&lock);
    added = tsearch(made, &tree, compare);
    pthread_mutex_unlock(&lock);
  }
  if (!added) {
    mapping_release(mapping);
    free(made);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  *pointer = start;
  return CUDA_SUCCESS;
}

EXPORTED CUresult cuMemAddressFree(CUdeviceptr pointer, size_t size) {
  CHECK(ready());
  pthread_mutex_lock(&lock);
  struct reservation *found = size ? around(pointer, size) : NULL;
  bool good = found && found->range.start == pointer && found->range.size == size && !found->pieces;
  if (good) tdelete(&found->range, &tree, compare);
  pthread_mutex_unlock(&lock);
  if (!good) return CUDA_ERROR_INVALID_VALUE;
  mapping_release(found->mapping);
  free(found->stale);
  free(found);
  return CUDA_SUCCESS;
}

/* Nobody has rights to it until it is mapped and `cuMemSetAccess` gives them. The lock is held. */
static CUresult map(uint64_t start, uint64_t size, struct physical *physical) {
  struct reservation *reservation = around(start, size);
  if (!reservation || size > physical->size) return CUDA_ERROR_INVALID_VALUE;
  struct piece *piece = malloc(sizeof *piece);
  if (!piece) return CUDA_ERROR_OUT_OF_MEMORY;
  *piece = (struct piece){.physical = physical};
  struct allocation made = {.start = start, .size = size, .kind = MAPPED, .device = physical->device,
                            .mapping = reservation->mapping, .rights = &piece->rights, .object = piece};
  allocations_write();
  bool added = allocation_add(&made);
  allocations_release();
  if (!added) {
    free(piece);
    return CUDA_ERROR_INVALID_VALUE;
  }
  reservation->pieces++;
  if (mmap(at(start), size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_NORESERVE, physical->file,
           (off_t)physical->offset) != MAP_FAILED)
    return CUDA_SUCCESS;
  allocations_write();
  allocation_remove(start, &made);
  allocations_release();
  reservation->pieces--;
  free(piece);
  return CUDA_ERROR_OUT_OF_MEMORY;
}

static bool whole(uint64_t start, uint64_t size) {
  return size && start % GRANULARITY == 0 && size % GRANULARITY == 0 && start + size > start;
}

EXPORTED CUresult cuMemMap(CUdeviceptr pointer, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
                           unsigned long long flags) {
  struct physical *physical;
  CHECK(ready());
  if (flags || offset || !whole(pointer, size)) return CUDA_ERROR_INVALID_VALUE;
  CHECK(physical_map(handle, &physical));
  pthread_mutex_lock(&lock);
  CUresult result = map(pointer, size, physical);
  pthread_mutex_unlock(&lock);
  if (result != CUDA_SUCCESS) physical_unmap(physical);
  return result;
}

/* Whether a range is made of whole mappings, with the allocations' lock held. */
static bool mapped(uint64_t start, uint64_t size) {
  if (!whole(start, size)) return false;
  for (uint64_t end = start + size; start < end;) {
    const struct allocation *found = allocation_with(start, 1);
    if (!found || found->kind != MAPPED || found->start != start || found->size > end - start) return false;
    start += found->size;
  }
  return true;
}

/* One mapping is none any more; the reference of its memory is the caller's to give back. The lock is held. */
static struct physical *unmap(uint64_t start, uint64_t *end) {
  struct allocation removed;
  struct reservation *reservation = around(start, 1);
  allocation_remove(start, &removed);
  *end = start + removed.size;
  reservation->pieces--;
  struct range *stale = realloc(reservation->stale, (reservation->stale_count + 1) * sizeof *stale);
  if (stale) { /* otherwise it stays as it is, for which nobody has any use */
    stale[reservation->stale_count++] = (struct range){start, removed.size};
    reservation->stale = stale;
  }
  struct piece *piece = removed.object;
  struct physical *physical = piece->physical;
  free(piece);
  return physical;
}

EXPORTED CUresult cuMemUnmap(CUdeviceptr pointer, size_t size) {
  CHECK(ready());
  pthread_mutex_lock(&lock);
  allocations_write();
  bool good = mapped(pointer, size);
  allocations_release();
  pthread_mutex_unlock(&lock);
  if (!good) return CUDA_ERROR_INVALID_VALUE;
  for (uint64_t start = pointer, end; start < pointer + size; start = end) {
    pthread_mutex_lock(&lock);
    allocations_write();
    const struct allocation *found = allocation_with(start, 1);
    bool still = found && found->kind == MAPPED && found->start == start; /* or another thread was faster */
    struct physical *physical = still ? unmap(start, &end) : NULL;
    void *reserved = physical ? at(around(start, 1)->range.start) : NULL;
    allocations_release();
    pthread_mutex_unlock(&lock);
    if (!physical) return CUDA_ERROR_INVALID_VALUE;
    views_forget();
    settle(reserved);
    physical_unmap(physical);
  }
  return CUDA_SUCCESS;
}

/* Rights. */

/* For all mappings of a range, which there are. The locks are held. */
static CUresult check(uint64_t start, uint64_t end, const CUmemAccessDesc *wanted) {
  if (wanted->flags != CU_MEM_ACCESS_FLAGS_PROT_NONE && wanted->flags != CU_MEM_ACCESS_FLAGS_PROT_READ &&
      wanted->flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
    return CUDA_ERROR_INVALID_VALUE;
  if (wanted->location.type == CU_MEM_LOCATION_TYPE_HOST || wanted->location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA)
    return CUDA_ERROR_NOT_SUPPORTED;
  if (wanted->location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_INVALID_VALUE;
  CUdevice device = wanted->location.id;
  if (!device_at(device)) return CUDA_ERROR_INVALID_DEVICE;
  while (start < end) {
    const struct allocation *found = allocation_with(start, 1);
    if (device != found->device && !devices_are_peers(device, found->device)) return CUDA_ERROR_INVALID_DEVICE;
    start += found->size;
  }
  return CUDA_SUCCESS;
}

static void set(uint64_t start, uint64_t end, const CUmemAccessDesc *wanted) {
  while (start < end) {
    const struct allocation *found = allocation_with(start, 1);
    struct piece *piece = found->object;
    rights_set(&piece->rights, wanted->location.id, wanted->flags);
    start += found->size;
  }
}

EXPORTED CUresult cuMemSetAccess(CUdeviceptr pointer, size_t size, const CUmemAccessDesc *wanted, size_t count) {
  CHECK(ready());
  if (!wanted || !count) return CUDA_ERROR_INVALID_VALUE;
  pthread_mutex_lock(&lock); /* what is being mapped is mapped then */
  allocations_write();
  CUresult result = mapped(pointer, size) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  for (size_t n = 0; n < count && result == CUDA_SUCCESS; n++) result = check(pointer, pointer + size, &wanted[n]);
  for (size_t n = 0; n < count && result == CUDA_SUCCESS; n++) set(pointer, pointer + size, &wanted[n]);
  if (result == CUDA_SUCCESS) allocations_changed();
  allocations_release();
  pthread_mutex_unlock(&lock);
  return result;
}

EXPORTED CUresult cuMemGetAccess(unsigned long long *flags, const CUmemLocation *location, CUdeviceptr pointer) {
  CHECK(ready());
  if (!flags || !location || location->type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_INVALID_VALUE;
  if (!device_at(location->id)) return CUDA_ERROR_INVALID_DEVICE;
  allocations_read();
  const struct allocation *found = allocation_with(pointer, 1);
  bool good = found && found->kind == MAPPED;
  if (good) *flags = (unsigned long long)rights_of(found->rights, location->id);
  allocations_release();
  return good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

EXPORTED CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *pointer) {
  CHECK(ready());
  if (!handle) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = CUDA_ERROR_INVALID_VALUE;
  allocations_read();
  const struct allocation *found = allocation_with((uint64_t)(uintptr_t)pointer, 1);
  if (found && found->kind == MAPPED) result = physical_retain(((struct piece *)found->object)->physical, handle);
  allocations_release();
  return result;
}
