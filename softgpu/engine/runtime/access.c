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

/* Lanes' bytes as they lie in memory. */
static void image(const uint64_t *addresses, const int64_t *offsets, uint32_t left, uint32_t width, uint8_t *values,
                  bool to_lanes) {
  int64_t least = offsets[0];
  for (int lane = 1; lane < SG_WARP; lane++)
    if (offsets[lane] < least) least = offsets[lane];
  for (; left; left &= left - 1) {
    unsigned lane = lowest(left);
    void *there = (void *)(uintptr_t)addresses[lane], *own = values + (offsets[lane] - least);
    memcpy(to_lanes ? own : there, to_lanes ? there : own, width);
  }
}

static int32_t access(struct sg_env *env, uint64_t base, const int64_t *offsets, uint64_t *addresses, uint32_t mask,
                      uint32_t site, struct sg_cache *cache, void *values, bool to_lanes) {
  const struct sg_kernel *kernel = worker_of(env)->launch->kernel;
  const struct sg_site *found = &kernel->sites[site];
  if (offsets)
    for (int lane = 0; lane < SG_WARP; lane++) addresses[lane] = base + (uint64_t)offsets[lane];
  if ((kernel->flags & SG_LOGS) && found->space <= SG_CONST) log_helper(env, addresses, mask, site);
  if (resolve_helper(env, addresses, mask, site, cache)) return -1;
  if (found->word == SG_AS_IN_MEMORY) {
    image(addresses, offsets, mask, found->width, values, to_lanes);
    return 0;
  }
  uint32_t word = found->word ? found->word : found->width;
  for (uint32_t k = 0; k < found->width / word; k++) {
    copy(addresses, mask, word, (uint8_t *)values + (size_t)k * SG_WARP * word, to_lanes);
    for (int lane = 0; lane < SG_WARP; lane++) addresses[lane] += word;
  }
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

/* The sites of a cp.async, from its first. */
enum { WHOLE = 1, FIRST_BYTE, ANY_BYTE, TARGET };

/* Log what lanes read whose copies are short, byte by byte. */
static void log_bytes(struct sg_env *env, const uint64_t *sources, const uint32_t *lengths, uint32_t mask,
                      uint32_t site) {
  uint64_t bytes[SG_WARP];
  for (uint32_t k = 0; mask; k++) {
    for (uint32_t left = mask; left; left &= left - 1) {
      unsigned lane = lowest(left);
      bytes[lane] = sources[lane] + k;
      if (lengths[lane] <= k) mask &= ~(1u << lane);
    }
    log_helper(env, bytes, mask, site);
  }
}

int32_t copy_helper(struct sg_env *env, uint64_t *sources, uint64_t *targets, const uint32_t *lengths, uint32_t mask,
                    uint32_t site, struct sg_cache *cache) {
  const struct sg_kernel *kernel = worker_of(env)->launch->kernel;
  uint32_t size = kernel->sites[site + TARGET].width, whole = 0, part = 0, wrong = 0;
  uint64_t last[SG_WARP];
  for (uint32_t left = mask; left; left &= left - 1) {
    unsigned lane = lowest(left);
    *(lengths[lane] > size ? &wrong : lengths[lane] == size ? &whole : &part) |= (uint32_t)(lengths[lane] != 0) << lane;
    last[lane] = sources[lane] + lengths[lane] - 1;
  }
  if (wrong) return undefined_helper(env, wrong, site, SG_COPY_SIZE);
  if (kernel->flags & SG_LOGS) {
    log_helper(env, sources, whole, site + WHOLE);
    log_bytes(env, sources, lengths, part, site + ANY_BYTE);
  }
  if (resolve_helper(env, sources, whole, site + WHOLE, cache) ||
      resolve_helper(env, sources, part, site + FIRST_BYTE, NULL) ||
      resolve_helper(env, last, part, site + ANY_BYTE, NULL) ||
      resolve_helper(env, targets, mask, site + TARGET, NULL))
    return -1;
  for (uint32_t left = mask; left; left &= left - 1) {
    unsigned lane = lowest(left);
    uint8_t *target = (uint8_t *)(uintptr_t)targets[lane];
    memset(target, 0, size);
    if (lengths[lane]) memcpy(target, (const void *)(uintptr_t)sources[lane], lengths[lane]);
  }
  return 0;
}
