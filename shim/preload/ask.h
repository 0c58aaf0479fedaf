/* Questions of the library's own to the driver: they are none of the program's calls, and they spoil no capture,
 * whatever its mode is. In between there are no calls of the program's. */
#ifndef TESSERA_ASK_H
#define TESSERA_ASK_H

#include "real.h"
#include "session.h"

struct asking {
  CUstreamCaptureMode mode; /* the thread's own */
  bool relaxed;
};

static inline struct asking ask_begin(void) {
  struct asking asking = {CU_STREAM_CAPTURE_MODE_RELAXED, false};
  inside++;
  if (__builtin_expect(__atomic_load_n(&session->captures, __ATOMIC_RELAXED) != 0, 0))
    asking.relaxed = real.cuThreadExchangeStreamCaptureMode &&
                     real.cuThreadExchangeStreamCaptureMode(&asking.mode) == CUDA_SUCCESS;
  return asking;
}

static inline void ask_end(struct asking asking) {
  if (asking.relaxed) real.cuThreadExchangeStreamCaptureMode(&asking.mode);
  inside--;
}

#endif
