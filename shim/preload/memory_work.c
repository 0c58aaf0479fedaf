/* Work on memory that is recorded by the name of its function: what memory holds afterwards nobody says. */
#include "hooks.h"
#include "session.h"
#include "work.h"

#define HOOK(symbol, per_thread, stream, parameters, names)                                            \
  CUresult hook_##symbol parameters {                                                                  \
    if (!recording()) return real.symbol names;                                                        \
    struct work work;                                                                                  \
    struct wire_other_work *record = work_begin(&work, WIRE_OTHER_WORK, NUMBER_##symbol, sizeof *record, \
                                                stream_of(stream, per_thread));                        \
    work_call(&work, record);                                                                          \
    return work_end(&work, real.symbol names);                                                         \
  }

#define TWINS(symbol, parameters, names)         \
  HOOK(symbol, false, stream, parameters, names) \
  HOOK(symbol##_ptsz, true, stream, parameters, names)

TWINS(cuMemDiscardBatchAsync,
      (CUdeviceptr_v2 *addresses, size_t *sizes, size_t count, unsigned long long flags, CUstream stream),
      (addresses, sizes, count, flags, stream))
TWINS(cuMemDiscardAndPrefetchBatchAsync,
      (CUdeviceptr_v2 *addresses, size_t *sizes, size_t count, CUmemLocation_v1 *locations, size_t *from,
       size_t location_count, unsigned long long flags, CUstream stream),
      (addresses, sizes, count, locations, from, location_count, flags, stream))
TWINS(cuMemBatchDecompressAsync,
      (CUmemDecompressParams *list, size_t count, unsigned int flags, size_t *failed, CUstream stream),
      (list, count, flags, failed, stream))
