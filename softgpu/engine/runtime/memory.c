/* Addresses: the windows of the spaces, and the table of allocations. */
#include "internal.h"

#include <stdio.h>
#include <string.h>

/* The allocation that holds the byte at `address`. A workspace of the launch's own counts as one. */
static bool find(const struct launch *launch, uint64_t address, struct sg_allocation *found) {
  const struct sg_allocation *table = launch->request->allocations;
  uint64_t low = 0, high = launch->request->allocation_count; /* the last start <= address is in [low - 1, high) */
  while (low < high) {
    uint64_t middle = low + (high - low) / 2;
    if (table[middle].start <= address)
      low = middle + 1;
    else
      high = middle;
  }
  if (low && address - table[low - 1].start < table[low - 1].size) {
    *found = table[low - 1];
    return true;
  }
  uint64_t workspace = (uint64_t)(uintptr_t)launch->workspace;
  if (launch->request->cooperative && !launch->request->workspace && address - workspace < WORKSPACE_BYTES) {
    *found = (struct sg_allocation){workspace, WORKSPACE_BYTES, 0, 0};
    return true;
  }
  return false;
}

/* The space in which an address of a site's space lies, and the address there. Global and constant memory are one. */
static enum sg_space space_of(uint8_t space, uint64_t *address) {
  if (space == SG_CONST) return SG_GLOBAL;
  if (space != SG_GENERIC) return space;
  uint64_t window = *address >> 48 << 48;
  if (window == 0) return SG_GLOBAL;
  enum sg_space found = window == SG_SHARED_WINDOW  ? SG_SHARED
                        : window == SG_LOCAL_WINDOW ? SG_LOCAL
                        : window == SG_PARAM_WINDOW ? SG_PARAM
                                                    : SG_GENERIC;
  if (found != SG_GENERIC) *address -= window;
  return found;
}

/* Where a space other than global lies in the host, for one lane; `size` bytes of it may be accessed. */
static uint8_t *base_of(const struct worker *worker, enum sg_space space, int lane, uint64_t *size) {
  const struct sg_env *env = &worker->env;
  const struct sg_kernel *kernel = worker->launch->kernel;
  switch (space) {
    case SG_SHARED:
      *size = env->shared_bytes;
      return env->shared;
    case SG_LOCAL:
      *size = kernel->local_bytes;
      return env->local + (size_t)lane * env->local_stride;
    case SG_PARAM:
      *size = kernel->param_bytes;
      return (uint8_t *)(uintptr_t)env->params;
    default:
      *size = 0;
      return NULL;
  }
}

static int fail_outside(struct worker *worker, const struct sg_site *site, int lane, uint64_t address) {
  char reason[200] = "outside every allocation";
  const struct sg_allocation *table = worker->launch->request->allocations, *before = NULL;
  for (uint64_t i = 0; i < worker->launch->request->allocation_count && table[i].start <= address; i++)
    before = &table[i];
  if (address >> 48)
    snprintf(reason, sizeof reason, "which lies in no memory");
  else if (before && address - before->start < before->size)
    snprintf(reason, sizeof reason, "past the end of the %llu bytes at 0x%llx", (unsigned long long)before->size,
             (unsigned long long)before->start);
  else if (before)
    snprintf(reason, sizeof reason, "outside every allocation; the one before it is %llu bytes at 0x%llx",
             (unsigned long long)before->size, (unsigned long long)before->start);
  return fail_access(worker, site, lane, address, reason);
}

static int fail_space(struct worker *worker, const struct sg_site *site, int lane, uint64_t given, enum sg_space space,
                      uint64_t size) {
  static const char *const names[] = {[SG_SHARED] = "shared", [SG_LOCAL] = "local", [SG_PARAM] = "parameter"};
  char reason[100];
  snprintf(reason, sizeof reason, "outside the %llu bytes of %s memory", (unsigned long long)size, names[space]);
  return fail_access(worker, site, lane, given, reason);
}

static int fail_misaligned(struct worker *worker, const struct sg_site *site, int lane, uint64_t address) {
  char reason[60];
  snprintf(reason, sizeof reason, "not aligned to %u bytes", site->align);
  return fail_access(worker, site, lane, address, reason);
}

/* One lane of resolve_helper. `held`: the allocation of the lane before; its size becomes 0 outside global memory. */
static int resolve_one(struct worker *worker, const struct sg_site *site, int lane, uint64_t *address,
                       struct sg_allocation *held) {
  uint64_t given = *address;
  bool writes = site->access & (SG_WRITE | SG_ATOMIC);
  if (site->align > 1 && (given & (site->align - 1))) return fail_misaligned(worker, site, lane, given);
  enum sg_space space = space_of(site->space, address);
  if (space == SG_GLOBAL) {
    bool inside = given - held->start < held->size;
    if (!inside) inside = find(worker->launch, given, held);
    if (!inside || held->size < site->width || given - held->start > held->size - site->width)
      return fail_outside(worker, site, lane, given);
    if (writes && held->flags)
      return fail_access(worker, site, lane, given,
                         held->flags & SG_CONSTANT ? "constant memory cannot be written" : "which is read-only");
    return 0;
  }
  uint64_t size;
  uint8_t *base = base_of(worker, space, lane, &size);
  held->size = 0;
  if (!base) return fail_outside(worker, site, lane, given);
  if (size < site->width || *address > size - site->width) return fail_space(worker, site, lane, given, space, size);
  if (writes && space == SG_PARAM)
    return fail_access(worker, site, lane, given, "kernel parameters cannot be written");
  *address += (uint64_t)(uintptr_t)base;
  return 0;
}

/* See struct sg_cache. A start that is not aligned would make wrong alignments look right, so there is no limit then. */
static void fill_cache(struct sg_cache *cache, uint64_t start, uint64_t size) {
  uint64_t unit = 1ull << cache->shift, room = size < cache->extent ? 0 : size - cache->extent + 1;
  cache->start = start;
  cache->limit = start & (unit - 1) ? 0 : (room + unit - 1) >> cache->shift;
}

/* Constant and read-only allocations are cached for the constant space only: a cache may serve a pointer's reads and
 * its writes. */
int32_t resolve_helper(struct sg_env *env, uint64_t *addresses, uint32_t mask, uint32_t site, struct sg_cache *cache) {
  struct worker *worker = worker_of(env);
  const struct sg_site *found = &worker->launch->kernel->sites[site];
  struct sg_allocation held = {0, 0, 0, 0}, first = {0, 0, 0, 0};
  bool same = mask != 0;
  for (uint32_t left = mask; left; left &= left - 1) {
    unsigned lane = lowest(left);
    if (resolve_one(worker, found, (int)lane, &addresses[lane], &held)) return -1;
    if (left == mask) first = held;
    same = same && held.size && held.start == first.start;
  }
  if (cache && same && (!first.flags || found->space == SG_CONST)) fill_cache(cache, first.start, first.size);
  return 0;
}

void caches_begin(struct worker *worker) {
  const struct sg_kernel *kernel = worker->launch->kernel;
  struct sg_env *env = &worker->env;
  for (uint32_t i = 0; i < kernel->cache_count; i++) {
    struct sg_cache *cache = &env->caches[i];
    struct sg_allocation found;
    uint64_t pointer = 0;
    *cache = kernel->caches[i];
    if (cache->origin == SG_SHARED_MEMORY) fill_cache(cache, 0, env->shared_bytes);
    if (cache->origin == SG_PARAMETER && cache->number + sizeof pointer <= kernel->param_bytes)
      memcpy(&pointer, env->params + cache->number, sizeof pointer);
    if (cache->origin == SG_VARIABLE) pointer = env->globals[cache->number];
    if (pointer && find(worker->launch, pointer, &found) && !found.flags) fill_cache(cache, found.start, found.size);
  }
}

int32_t spaces_helper(struct sg_env *env, const uint64_t *addresses, uint32_t mask, uint32_t *constant) {
  struct sg_allocation found;
  uint32_t bits = 0;
  for (uint32_t left = mask; left; left &= left - 1) {
    unsigned lane = lowest(left);
    if (find(worker_of(env)->launch, addresses[lane], &found) && (found.flags & SG_CONSTANT)) bits |= 1u << lane;
  }
  *constant = bits;
  return 0;
}

const uint8_t *locate(struct worker *worker, int lane, uint64_t address, uint64_t *left) {
  uint64_t given = address;
  enum sg_space space = space_of(SG_GENERIC, &address);
  if (space == SG_GLOBAL) {
    struct sg_allocation found;
    if (!find(worker->launch, given, &found)) return NULL;
    *left = found.size - (given - found.start);
    return (const uint8_t *)(uintptr_t)given;
  }
  uint64_t size;
  const uint8_t *base = base_of(worker, space, lane, &size);
  if (!base || address >= size) return NULL;
  *left = size - address;
  return base + address;
}
