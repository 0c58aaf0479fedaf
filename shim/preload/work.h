/* One piece of work that a call queues: a record, then the call, and what the driver said if it did not want it.
 *
 *   struct work work;
 *   struct wire_set *record = work_begin(&work, WIRE_SET, NUMBER_cuMemsetD8Async, sizeof *record,
 *                                        stream_of(stream, false));
 *   record->body = ...
 *   work_call(&work, record);
 *   return work_end(&work, real.cuMemsetD8Async(...));
 */
#ifndef TESSERA_WORK_H
#define TESSERA_WORK_H

#include "streams.h"

struct work {
  struct stream *stream;
  uint64_t sequence;
  unsigned function;
  enum wire_kind kind;
  bool captured;
  bool waits;       /* the call may wait for work: the stream's lock is not held meanwhile */
  bool synchronous; /* it does: and it is recorded that it is over */
};

/* Holds the lock of the stream, which may be NULL for want of memory, and the ring's, so that all that the record needs
 * has to be known before. Gives a record of `bytes` bytes, with head and place. */
void *work_begin(struct work *work, enum wire_kind kind, unsigned function, size_t bytes, struct stream *stream);
void *work_begin_synchronous(struct work *work, enum wire_kind kind, unsigned function, size_t bytes,
                             struct stream *stream);

/* The record is written, and one more of the same kind comes before the call. Its sequence is in `work` then; the
 * outcome of the call is recorded only for the last one. */
void *work_more(struct work *work, void *record, size_t bytes);

/* The record is written; the driver is called next. */
void work_call(struct work *work, void *record);

/* The driver has answered. */
CUresult work_end(struct work *work, CUresult result);
void work_over(struct work *work); /* the same, for those who record the outcome themselves */

/* What came of a record, with the contents that came to host memory: `content` NULL without any. */
void record_outcome(uint64_t of, unsigned function, CUresult result, const uint8_t *content, uint64_t bytes);

#endif
