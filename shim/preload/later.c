#include "later.h"

#include "doors.h"
#include "store.h"
#include "work.h"

struct later {
  struct rows rows;
  uint64_t of;
  unsigned function;
  bool send;
};

void tell_rows(uint64_t of, unsigned function, const struct rows *rows, bool send) {
  uint8_t digest[WIRE_CONTENT_BYTES];
  if (rows_readable(rows) && rows_content(rows, send, digest))
    record_outcome(of, function, CUDA_SUCCESS, digest, rows->bytes);
  else
    record_outcome(of, function, CUDA_SUCCESS, NULL, 0);
}

static void CUDA_CB run(void *given) {
  struct later *later = given;
  tell_rows(later->of, later->function, &later->rows, later->send);
  store_give(later, sizeof *later);
}

void tell_rows_later(const struct stream *stream, uint64_t of, unsigned function, const struct rows *rows, bool send,
                     bool otherwise_now) {
  struct later *later = store_take(sizeof *later);
  if (later) *later = (struct later){*rows, of, function, send};
  /* The place names default streams by handles of their own, for which there is no twin. */
  CUstream handle = (CUstream)(uintptr_t)stream->place.stream;
  if (later && real.cuLaunchHostFunc && real.cuLaunchHostFunc(handle, run, later) == CUDA_SUCCESS) return;
  store_give(later, sizeof *later);
  if (otherwise_now) tell_rows(of, function, rows, send);
}
