/* Streams: names for queues. */
#ifndef SOFTGPU_STREAM_H
#define SOFTGPU_STREAM_H

#include "api.h"
#include <stdbool.h>

#include "work.h"

/* Where work of a stream goes. */
struct stream_place {
  struct queue *queue;
  CUcontext context;
  unsigned long long context_id;
  CUdevice device;
};

/* The place of a stream; for 0, which is the default stream of the calling thread's context, or with `own` that thread's. It
 * is an error when work of the context has failed. */
CUresult stream_place(CUstream stream, bool own, struct stream_place *place);

/* A context ends: so do its streams and events. */
void streams_end(CUcontext context);
void events_end(CUcontext context);

#endif
