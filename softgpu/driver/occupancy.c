/* Occupancy. Registers do not limit it, as there are none here; caches do not, which are not configured. */
#include "occupancy.h"

#include "driver.h"
#include "function.h"

enum { WARP = 32, RESERVED_SHARED = 1024 };

/* Of shared memory, that the driver has of each block. */
static int reserved(const struct card *card) { return card->major < 8 ? 0 : RESERVED_SHARED; }

/* In which shared memory is given. */
static int grain(const struct card *card) { return card->major < 8 ? 256 : 128; }

int occupancy(const struct card *card, int shared, int threads) {
  int warps = (threads + WARP - 1) / WARP;
  int bytes = (shared + reserved(card) + grain(card) - 1) / grain(card) * grain(card);
  int by_threads = card->threads_per_sm / (warps * WARP);
  int by_shared = bytes ? card->shared_per_sm / bytes : card->blocks_per_sm;
  int least = by_threads < by_shared ? by_threads : by_shared;
  return least < card->blocks_per_sm ? least : card->blocks_per_sm;
}

/* What of a kernel counts. */
struct kernel {
  const struct card *card;
  int threads, fixed, dynamic; /* most threads of a block; bytes of shared memory of its own, and most beside that */
};

static CUresult kernel_of(CUfunction handle, struct kernel *kernel) {
  static const uint32_t any[3];
  HELD_FUNCTION function = NULL;
  const struct variant *variant;
  CHECK(function_here(handle, &function));
  CUdevice device = function->module->device;
  CHECK(code_variant(function->module->code, function->kernel, any, device, &variant));
  int fixed = (int)variant->kernel->static_shared;
  *kernel = (struct kernel){device_at(device)->card, most_threads(function->kernel->described), fixed,
                            settings_dynamic_shared(function->settings, fixed)};
  return CUDA_SUCCESS;
}

/* None, when such a block cannot be launched. */
static int blocks(const struct kernel *kernel, int threads, size_t dynamic) {
  if (threads > kernel->threads || dynamic > (size_t)kernel->dynamic) return 0;
  return occupancy(kernel->card, kernel->fixed + (int)dynamic, threads);
}

/* The flag is about cards whose caches limit occupancy; there are none. */
static bool good_flags(unsigned flags) { return !(flags & ~(unsigned)CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE); }

EXPORTED CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *count, CUfunction handle, int threads,
                                                                       size_t dynamic, unsigned int flags) {
  struct kernel kernel;
  CHECK(kernel_of(handle, &kernel));
  if (!count || threads <= 0 || !good_flags(flags)) return CUDA_ERROR_INVALID_VALUE;
  *count = blocks(&kernel, threads, dynamic);
  return CUDA_SUCCESS;
}

EXPORTED CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *count, CUfunction handle, int threads,
                                                              size_t dynamic) {
  return cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(count, handle, threads, dynamic, CU_OCCUPANCY_DEFAULT);
}

/* The block with most threads on an SM, and of these the largest; 0 when none can be launched. Sizes are multiples of a
 * warp, but for the limit. */
EXPORTED CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int *grid, int *block, CUfunction handle,
                                                            CUoccupancyB2DSize dynamic_of, size_t dynamic, int limit,
                                                            unsigned int flags) {
  struct kernel kernel;
  CHECK(kernel_of(handle, &kernel));
  if (!grid || !block || limit < 0 || !good_flags(flags)) return CUDA_ERROR_INVALID_VALUE;
  int most = limit && limit < kernel.threads ? limit : kernel.threads, best = 0;
  *grid = *block = 0;
  for (int size = (most + WARP - 1) / WARP * WARP; size > 0; size -= WARP) {
    int threads = size < most ? size : most;
    int count = blocks(&kernel, threads, dynamic_of ? dynamic_of(threads) : dynamic);
    if (count * threads <= best) continue;
    best = count * threads;
    *block = threads;
    *grid = count * kernel.card->sms;
  }
  return CUDA_SUCCESS;
}

EXPORTED CUresult cuOccupancyMaxPotentialBlockSize(int *grid, int *block, CUfunction handle,
                                                   CUoccupancyB2DSize dynamic_of, size_t dynamic, int limit) {
  return cuOccupancyMaxPotentialBlockSizeWithFlags(grid, block, handle, dynamic_of, dynamic, limit,
                                                   CU_OCCUPANCY_DEFAULT);
}

EXPORTED CUresult cuOccupancyAvailableDynamicSMemPerBlock(size_t *dynamic, CUfunction handle, int count, int threads) {
  struct kernel kernel;
  CHECK(kernel_of(handle, &kernel));
  if (!dynamic || count <= 0 || threads <= 0 || blocks(&kernel, threads, 0) < count) return CUDA_ERROR_INVALID_VALUE;
  int each = kernel.card->shared_per_sm / count / grain(kernel.card) * grain(kernel.card);
  int left = each - reserved(kernel.card) - kernel.fixed;
  *dynamic = (size_t)(left < kernel.dynamic ? left : kernel.dynamic);
  return CUDA_SUCCESS;
}
