/* Managed memory: its addresses are those of the host and of all devices, and its bytes are always where they are
 * needed. Advice and prefetches change nothing, but what has been said is remembered, because programs may ask. */
#include "managed.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "allocations.h"
#include "capture.h"
#include "command.h"
#include "driver.h"
#include "mapping.h"
#include "memory.h"

enum { PAGE = 4096, HOST_NODE = 0 };

/* Pages about which the same has been said, up to `end`. */
struct run {
  uint64_t end, users; /* devices that it is accessed by, a bit for each */
  bool host_uses, mostly_read;
  CUmemLocation preferred, prefetched;
};

struct managed {
  struct run *runs; /* all pages, in order */
  size_t count;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* what is known of all managed memory */

void managed_end(struct managed *managed) {
  free(managed->runs);
  free(managed);
}

static struct managed *begin(uint64_t end) {
  struct managed *managed = malloc(sizeof *managed);
  struct run *runs = malloc(sizeof *runs);
  if (!managed || !runs) {
    free(managed);
    free(runs);
    return NULL;
  }
  *runs = (struct run){.end = end};
  *managed = (struct managed){runs, 1};
  return managed;
}

EXPORTED CUresult cuMemAllocManaged(CUdeviceptr *pointer, size_t bytes, unsigned int flags) {
  struct here here;
  CHECK(current(&here));
  if (!pointer || !bytes || (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST))
    return CUDA_ERROR_INVALID_VALUE;
  CHECK(capture_permits());
  void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  struct allocation made = {.start = (uint64_t)(uintptr_t)memory, .size = bytes, .kind = MANAGED, .device = here.device,
                            .context = here.context, .mapping = mapping_make(memory, bytes, NULL)};
  if (!made.mapping) return CUDA_ERROR_OUT_OF_MEMORY;
  made.object = begin(made.start + bytes);
  if (!made.object) {
    mapping_release(made.mapping);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  CHECK(memory_add(&made));
  *pointer = made.start;
  return CUDA_SUCCESS;
}

/* Some pages of managed memory, with both locks after success. */
struct range {
  struct managed *managed;
  uint64_t start, end;
};

static CUresult open_range(uint64_t address, size_t bytes, struct range *range) {
  if (!bytes) return CUDA_ERROR_INVALID_VALUE;
  allocations_read();
  const struct allocation *found = allocation_with(address, bytes);
  if (!found || found->kind != MANAGED) {
    allocations_release();
    return CUDA_ERROR_INVALID_VALUE;
  }
  uint64_t last = found->start + found->size, end = address + bytes + (-(address + bytes) & (PAGE - 1));
  *range = (struct range){found->object, address & ~(uint64_t)(PAGE - 1), end < last ? end : last};
  pthread_mutex_lock(&lock);
  return CUDA_SUCCESS;
}

static CUresult close_range(CUresult result) {
  pthread_mutex_unlock(&lock);
  allocations_release();
  return result;
}

/* The first run of a range; its start is where the range begins once `cut` has been there. */
static size_t first_run(const struct range *range) {
  size_t n = 0;
  while (range->managed->runs[n].end <= range->start) n++;
  return n;
}

/* Let a run end at a place. */
static bool cut(struct managed *managed, uint64_t place) {
  size_t n = 0;
  while (managed->runs[n].end < place) n++;
  uint64_t start = n ? managed->runs[n - 1].end : 0;
  if (managed->runs[n].end == place || start == place) return true;
  struct run *runs = realloc(managed->runs, (managed->count + 1) * sizeof *runs);
  if (!runs) return false;
  for (size_t i = managed->count++; i > n; i--) runs[i] = runs[i - 1];
  runs[n].end = place;
  managed->runs = runs;
  return true;
}

static CUresult check_location(CUmemLocation *location) {
  switch (location->type) {
    case CU_MEM_LOCATION_TYPE_DEVICE: return device_at(location->id) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
    case CU_MEM_LOCATION_TYPE_HOST: location->id = 0; return CUDA_SUCCESS;
    case CU_MEM_LOCATION_TYPE_HOST_NUMA: return location->id == HOST_NODE ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT:
      *location = (CUmemLocation){CU_MEM_LOCATION_TYPE_HOST_NUMA, HOST_NODE};
      return CUDA_SUCCESS;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}

static void use(struct run *run, CUmemLocation location, bool now) {
  uint64_t bit = location.type == CU_MEM_LOCATION_TYPE_DEVICE ? 1ull << location.id : 0;
  if (!bit)
    run->host_uses = now;
  else
    run->users = now ? run->users | bit : run->users & ~bit;
}

static void advise(struct run *run, CUmem_advise advice, CUmemLocation location) {
  switch (advice) {
    case CU_MEM_ADVISE_SET_READ_MOSTLY:
    case CU_MEM_ADVISE_UNSET_READ_MOSTLY: run->mostly_read = advice == CU_MEM_ADVISE_SET_READ_MOSTLY; break;
    case CU_MEM_ADVISE_SET_PREFERRED_LOCATION: run->preferred = location; break;
    case CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION: run->preferred = (CUmemLocation){.id = 0}; break;
    case CU_MEM_ADVISE_SET_ACCESSED_BY:
    case CU_MEM_ADVISE_UNSET_ACCESSED_BY: use(run, location, advice == CU_MEM_ADVISE_SET_ACCESSED_BY); break;
  }
}

EXPORTED CUresult cuMemAdvise_v2(CUdeviceptr pointer, size_t bytes, CUmem_advise advice, CUmemLocation location) {
  struct range range;
  CHECK(ready());
  if (advice < CU_MEM_ADVISE_SET_READ_MOSTLY || advice > CU_MEM_ADVISE_UNSET_ACCESSED_BY)
    return CUDA_ERROR_INVALID_VALUE;
  bool placed = advice == CU_MEM_ADVISE_SET_PREFERRED_LOCATION || advice >= CU_MEM_ADVISE_SET_ACCESSED_BY;
  if (placed) CHECK(check_location(&location));
  if (advice >= CU_MEM_ADVISE_SET_ACCESSED_BY && location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA)
    return CUDA_ERROR_INVALID_VALUE;
  CHECK(open_range(pointer, bytes, &range));
  if (!cut(range.managed, range.start) || !cut(range.managed, range.end)) return close_range(CUDA_ERROR_OUT_OF_MEMORY);
  size_t n = first_run(&range);
  do advise(&range.managed->runs[n], advice, location);
  while (range.managed->runs[n++].end < range.end);
  return close_range(CUDA_SUCCESS);
}

static CUmemLocation location_of(CUdevice device) {
  return device == CU_DEVICE_CPU ? (CUmemLocation){CU_MEM_LOCATION_TYPE_HOST, 0}
                                 : (CUmemLocation){CU_MEM_LOCATION_TYPE_DEVICE, device};
}

EXPORTED CUresult cuMemAdvise(CUdeviceptr pointer, size_t bytes, CUmem_advise advice, CUdevice device) {
  return cuMemAdvise_v2(pointer, bytes, advice, location_of(device));
}

static CUresult prefetch(CUdeviceptr pointer, size_t bytes, CUmemLocation location, unsigned flags, CUstream stream,
                         bool own) {
  struct stream_place place;
  struct range range;
  CHECK(stream_place(stream, own, &place));
  if (is_captured(&place)) return capture_refuse(&place);
  if (flags) return CUDA_ERROR_INVALID_VALUE;
  CHECK(check_location(&location));
  CHECK(open_range(pointer, bytes, &range));
  if (!cut(range.managed, range.start) || !cut(range.managed, range.end)) return close_range(CUDA_ERROR_OUT_OF_MEMORY);
  size_t n = first_run(&range);
  do range.managed->runs[n].prefetched = location;
  while (range.managed->runs[n++].end < range.end);
  return close_range(CUDA_SUCCESS);
}

#define PREFETCH(suffix, own)                                                                                        \
  EXPORTED CUresult cuMemPrefetchAsync##suffix(CUdeviceptr pointer, size_t bytes, CUdevice device, CUstream stream) { \
    return prefetch(pointer, bytes, location_of(device), 0, stream, own);                                            \
  }                                                                                                                  \
  EXPORTED CUresult cuMemPrefetchAsync_v2##suffix(CUdeviceptr pointer, size_t bytes, CUmemLocation location,         \
                                                  unsigned int flags, CUstream stream) {                             \
    return prefetch(pointer, bytes, location, flags, stream, own);                                                   \
  }

PREFETCH(, false)
PREFETCH(_ptsz, true)

/* All of a range is meant, and any stream may use it anyway. */
static CUresult attach(CUstream stream, CUdeviceptr pointer, size_t bytes, unsigned flags, bool own) {
  struct stream_place place;
  CHECK(stream_place(stream, own, &place));
  if (is_captured(&place)) return capture_refuse(&place);
  if (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST && flags != CU_MEM_ATTACH_SINGLE)
    return CUDA_ERROR_INVALID_VALUE;
  if (flags == CU_MEM_ATTACH_SINGLE && (stream == CU_STREAM_LEGACY || (!stream && !own)))
    return CUDA_ERROR_INVALID_VALUE;
  allocations_read();
  const struct allocation *found = allocation_with(pointer, 1);
  bool good = found && found->start == pointer && found->kind == MANAGED && (!bytes || bytes == found->size);
  allocations_release();
  return good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

EXPORTED CUresult cuStreamAttachMemAsync(CUstream stream, CUdeviceptr pointer, size_t bytes, unsigned int flags) {
  return attach(stream, pointer, bytes, flags, false);
}

EXPORTED CUresult cuStreamAttachMemAsync_ptsz(CUstream stream, CUdeviceptr pointer, size_t bytes, unsigned int flags) {
  return attach(stream, pointer, bytes, flags, true);
}

/* Attributes: what holds for all runs of a range. */

static bool same(CUmemLocation a, CUmemLocation b) { return a.type == b.type && a.id == b.id; }

static struct run common(const struct range *range) {
  size_t n = first_run(range);
  struct run all = range->managed->runs[n];
  while (range->managed->runs[n].end < range->end) {
    const struct run *next = &range->managed->runs[++n];
    all.users &= next->users;
    all.host_uses &= next->host_uses;
    all.mostly_read &= next->mostly_read;
    if (!same(all.preferred, next->preferred)) all.preferred = (CUmemLocation){.id = 0};
    if (!same(all.prefetched, next->prefetched)) all.prefetched = (CUmemLocation){.id = 0};
  }
  return all;
}

static CUdevice device_of(CUmemLocation location) {
  if (location.type == CU_MEM_LOCATION_TYPE_DEVICE) return location.id;
  return location.type == CU_MEM_LOCATION_TYPE_INVALID ? CU_DEVICE_INVALID : CU_DEVICE_CPU;
}

static void list_users(const struct run *run, int *list, size_t room) {
  size_t count = 0;
  if (run->host_uses && count < room) list[count++] = CU_DEVICE_CPU;
  for (int n = 0; n < device_count() && count < room; n++)
    if (run->users >> n & 1) list[count++] = n;
  while (count < room) list[count++] = CU_DEVICE_INVALID;
}

static CUresult attribute(void *data, size_t size, CUmem_range_attribute which, const struct run *run) {
  int *number = data;
  bool list = which == CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY;
  if (!data || !size || size % sizeof *number || (!list && size != sizeof *number)) return CUDA_ERROR_INVALID_VALUE;
  switch (which) {
    case CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY: *number = run->mostly_read; break;
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION: *number = device_of(run->preferred); break;
    case CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY: list_users(run, number, size / sizeof *number); break;
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION: *number = device_of(run->prefetched); break;
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE: *number = (int)run->preferred.type; break;
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID: *number = run->preferred.id; break;
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE: *number = (int)run->prefetched.type; break;
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID: *number = run->prefetched.id; break;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

EXPORTED CUresult cuMemRangeGetAttributes(void **data, size_t *sizes, CUmem_range_attribute *which, size_t count,
                                          CUdeviceptr pointer, size_t bytes) {
  struct range range;
  CHECK(ready());
  if (!data || !sizes || !which || !count) return CUDA_ERROR_INVALID_VALUE;
  CHECK(open_range(pointer, bytes, &range));
  struct run all = common(&range);
  CUresult result = CUDA_SUCCESS;
  for (size_t n = 0; n < count && result == CUDA_SUCCESS; n++) result = attribute(data[n], sizes[n], which[n], &all);
  return close_range(result);
}

EXPORTED CUresult cuMemRangeGetAttribute(void *data, size_t size, CUmem_range_attribute which, CUdeviceptr pointer,
                                         size_t bytes) {
  return cuMemRangeGetAttributes(&data, &size, &which, 1, pointer, bytes);
}
