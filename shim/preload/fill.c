/* The functions that fill memory with a value. */
#include <errno.h>

#include "copy.h"
#include "doors.h"
#include "hooks.h"
#include "session.h"
#include "work.h"

/* Whether the call waits for its end: functions without "Async" do so for memory of the host, and managed memory. What
 * the driver cannot say may be such. */
static void set_waiting(struct work *work, CUdeviceptr_v2 address) {
  enum memory_kind kind = memory_at(address, 1).kind;
  work->synchronous = kind == MEMORY_PINNED || kind == MEMORY_MANAGED;
  work->waits = work->synchronous || kind == MEMORY_UNKNOWN;
}

static void begin(struct work *work, unsigned number, CUstream handle, bool per_thread, bool async,
                  const CUDA_MEMSET_NODE_PARAMS_v2 *params) {
  int before = errno;
  struct work how = {0};
  if (!async) set_waiting(&how, params->dst);
  struct stream *stream = stream_of(handle, per_thread);
  struct wire_set *record = work_begin(work, WIRE_SET, number, sizeof *record, stream);
  set_from_params(params, &record->body);
  record->body.context = record->place.context;
  work->synchronous = how.synchronous;
  work->waits = how.waits;
  work_call(work, record);
  errno = before;
}

#define HOOK(symbol, stream, per_thread, async, pitch, element, width, height, parameters, names)                      \
  CUresult hook_##symbol parameters {                                                                                  \
    if (!recording()) return real.symbol names;                                                                        \
    struct work work;                                                                                                  \
    begin(&work, NUMBER_##symbol, stream, per_thread, async,                                                           \
          &(CUDA_MEMSET_NODE_PARAMS_v2){to, pitch, value, element, width, height, NULL});                              \
    return work_end(&work, real.symbol names);                                                                         \
  }

#define ROW(symbol, stream, own, async, bits, parameters, names) \
  HOOK(symbol, stream, own, async, 0, bits / 8, count, 1, parameters, names)
#define ROWS(symbol, stream, own, async, bits, parameters, names) \
  HOOK(symbol, stream, own, async, pitch, bits / 8, width, height, parameters, names)

#define FILLS(bits, type)                                                                                             \
  ROW(cuMemsetD##bits, NULL, false, false, bits, (CUdeviceptr_v1 to, type value, unsigned int count),                 \
      (to, value, count))                                                                                             \
  ROW(cuMemsetD##bits##_v2, NULL, false, false, bits, (CUdeviceptr_v2 to, type value, size_t count),                  \
      (to, value, count))                                                                                             \
  ROW(cuMemsetD##bits##_v2_ptds, NULL, true, false, bits, (CUdeviceptr_v2 to, type value, size_t count),              \
      (to, value, count))                                                                                             \
  ROW(cuMemsetD##bits##Async, stream, false, true, bits,                                                              \
      (CUdeviceptr_v2 to, type value, size_t count, CUstream stream), (to, value, count, stream))                     \
  ROW(cuMemsetD##bits##Async_ptsz, stream, true, true, bits,                                                          \
      (CUdeviceptr_v2 to, type value, size_t count, CUstream stream), (to, value, count, stream))                     \
  ROWS(cuMemsetD2D##bits, NULL, false, false, bits,                                                                   \
       (CUdeviceptr_v1 to, unsigned int pitch, type value, unsigned int width, unsigned int height),                  \
       (to, pitch, value, width, height))                                                                             \
  ROWS(cuMemsetD2D##bits##_v2, NULL, false, false, bits,                                                              \
       (CUdeviceptr_v2 to, size_t pitch, type value, size_t width, size_t height), (to, pitch, value, width, height)) \
  ROWS(cuMemsetD2D##bits##_v2_ptds, NULL, true, false, bits,                                                          \
       (CUdeviceptr_v2 to, size_t pitch, type value, size_t width, size_t height), (to, pitch, value, width, height)) \
  ROWS(cuMemsetD2D##bits##Async, stream, false, true, bits,                                                           \
       (CUdeviceptr_v2 to, size_t pitch, type value, size_t width, size_t height, CUstream stream),                   \
       (to, pitch, value, width, height, stream))                                                                     \
  ROWS(cuMemsetD2D##bits##Async_ptsz, stream, true, true, bits,                                                       \
       (CUdeviceptr_v2 to, size_t pitch, type value, size_t width, size_t height, CUstream stream),                   \
       (to, pitch, value, width, height, stream))

FILLS(8, unsigned char)
FILLS(16, unsigned short)
FILLS(32, unsigned int)
