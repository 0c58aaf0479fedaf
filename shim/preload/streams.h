/* Streams as the driver has them, announced when they are first met. */
#ifndef TESSERA_STREAMS_H
#define TESSERA_STREAMS_H

#include "real.h"
#include "table.h"
#include "wire.h"

/* A stream, or a default stream of a context. */
struct stream {
  struct entry entry;
  struct lock lock;        /* held from the record of work until the driver has taken it in */
  struct wire_place place; /* as in records */
};

enum { LEGACY_STREAM = 1, PER_THREAD_STREAM = 2 };

/* What the program means by a handle; `per_thread`: 0 is the thread's own. NULL without memory. */
struct stream *stream_of(CUstream handle, bool per_thread);
void stream_end(CUstream handle); /* the handle means nothing any more */

/* Whether work on it becomes part of a graph just now. */
bool stream_captured(const struct stream *stream);

/* A record of WIRE_END for a handle or an address. */
void record_ended(enum wire_kind kind, uint64_t handle, unsigned function);

#endif
