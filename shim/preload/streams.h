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
  uint32_t capturing;      /* a capture was begun with it, and not ended yet */
};

enum { LEGACY_STREAM = 1, PER_THREAD_STREAM = 2 };

/* What the program means by a handle; `per_thread`: 0 is the thread's own. NULL for what is no
 * stream, and without memory. */
struct stream *stream_of(CUstream handle, bool per_thread);
/* The handle means nothing any more, or those of a context. Gives the captures that were begun with them: they are over
 * when the call that ends the streams has succeeded, and then `captures_over` is to be told. */
unsigned stream_end(CUstream handle);
unsigned streams_end(uint64_t context);
void captures_over(unsigned count);

/* Whether work on it becomes part of a graph just now. */
bool stream_captured(const struct stream *stream);

/* A capture begins with it, or has ended: what `session->captures` counts. Whether that was so before. */
bool stream_capturing(struct stream *stream, bool begins);

#endif
