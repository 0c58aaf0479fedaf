/* Streams: names for queues. */
#ifndef SOFTGPU_STREAM_H
#define SOFTGPU_STREAM_H

#include "api.h"
#include <stdbool.h>

#include "work.h"

/* The queue of a stream; for 0, which is the default stream of the calling thread's context, or with `own` that thread's. */
CUresult stream_queue(CUstream stream, bool own, struct queue **queue);

/* A context ends: so do its streams and events. */
void streams_end(CUcontext context);
void events_end(CUcontext context);

#endif
