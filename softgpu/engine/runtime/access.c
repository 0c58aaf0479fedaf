/* The accesses of compiled code that its fast paths do not make: checked lane by lane, then copied. */
#include "internal.h"

#include <string.h>

/* A constant size lets the compiler make a plain move of it. */
#define COPY(bytes)                                                                                                \
  for (; left; left &= left - 1) {                                                                                 \
    unsigned lane = lowest(left);                                                                                  \
    void *there = (void *)(uintptr_t)addresses[lane], *own = (uint8_t *)values + (size_t)lane * (bytes);           \
    memcpy(to_lanes ? own : there, to_lanes ? there : own, bytes);                                                 \
  }                                                                                                                \
  break;

static inline void copy(const uint64_t *addresses, uint32_t left, uint32_t width, void *values, bool to_lanes) {
  switch (width) {
    case 1: COPY(1)
    case 2: COPY(2)
    case 4: COPY(4)
    case 8: COPY(8)
    case 16: COPY(16)
    case 32: COPY(32)
    default: break;
  }
}

void gather_helper(struct sg_env *env, const uint64_t *addresses, uint32_t mask, uint32_t width, void *values) {
  (void)env;
  copy(addresses, mask, width, values, true);
}

void scatter_helper(struct sg_env *env, const uint64_t *addresses, uint32_t mask, uint32_t width, void *values) {
  (void)env;
  copy(addresses, mask, width, values, false);
}

static int32_t access(struct sg_env *env, uint64_t base, const int64_t *offsets, uint64_t *addresses, uint32_t mask,
                      uint32_t site, struct sg_cache *cache, void *values, bool to_lanes) {
  const struct sg_kernel *kernel = worker_of(env)->launch->kernel;
  const struct sg_site *found = &kernel->sites[site];
  if (offsets)
    for (int lane = 0; lane < SG_WARP; lane++) addresses[lane] = base + (uint64_t)offsets[lane];
  if ((kernel->flags & SG_LOGS) && found->space <= SG_CONST) log_helper(env, addresses, mask, site);
  if (resolve_helper(env, addresses, mask, site, cache)) return -1;
  copy(addresses, mask, found->width, values, to_lanes);
  return 0;
}

int32_t load_helper(struct sg_env *env, uint64_t base, const int64_t *offsets, uint64_t *addresses, uint32_t mask,
                    uint32_t site, struct sg_cache *cache, void *values) {
  return access(env, base, offsets, addresses, mask, site, cache, values, true);
}

int32_t store_helper(struct sg_env *env, uint64_t base, const int64_t *offsets, uint64_t *addresses, uint32_t mask,
                     uint32_t site, struct sg_cache *cache, void *values) {
  return access(env, base, offsets, addresses, mask, site, cache, values, false);
}
