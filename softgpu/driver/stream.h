/* Streams: names for queues. */
#ifndef SOFTGPU_STREAM_H
#define SOFTGPU_STREAM_H

#include "api.h"
#include <stdbool.h>

#include "work.h"

/* Where work of a stream goes. */
struct stream_place {
  struct queue *queue;
  CUstream stream; /* its handle; a default stream has the one that says whose it is */
  CUcontext context;
  unsigned long long context_id;
  CUdevice device;
  bool legacy;   /* the default stream of the context */
  bool blocking; /* that one and this wait for each other */
};

/* The place of a stream; for 0, which is the default stream of the calling thread's context, or with `own` that
 * thread's. It is an error when work of the context has failed. */
CUresult stream_place(CUstream stream, bool own, struct stream_place *place);
/* The same for calls that put nothing into it: also for a default stream that captures keep from being used. */
CUresult stream_find(CUstream stream, bool own, struct stream_place *place);
/* The place of what is made in a context, and of nodes of graphs: it has no stream, so that captures do not matter. For
 * NULL the current context. */
CUresult context_place(CUcontext context, struct stream_place *place);

/* Commands for nodes of graphs, and what they were made of. */
struct command;
CUresult host_command(const CUDA_HOST_NODE_PARAMS_v2 *params, struct command **made);
void host_params(const struct command *command, CUDA_HOST_NODE_PARAMS_v2 *params);
CUresult event_command(bool record, CUevent event, struct command **made); /* it records the event, or waits for it */
CUevent event_of(const struct command *command);

/* A context ends: so do its streams and events. */
void streams_end(CUcontext context);
void events_end(CUcontext context);

#endif
