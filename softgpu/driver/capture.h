/* Captures: what is submitted to some streams becomes nodes of a graph. */
#ifndef SOFTGPU_CAPTURE_H
#define SOFTGPU_CAPTURE_H

#include <stdbool.h>
#include <stddef.h>

#include "api.h"
#include "command.h"
#include "graph.h"

/* What a call in a captured stream comes to, instead of being done. `waits`: it would have to wait for its end, which
 * is not possible. False: the stream is not captured, and nothing has happened. */
bool capture_command(const struct stream_place *place, bool waits, struct command *command, CUresult *result);
/* The same with a graph, which is taken. */
CUresult capture_child(const struct stream_place *place, struct graph *child);
/* What cannot become a part of a graph: the capture, if there is one, comes to nothing. */
CUresult capture_refuse(const struct stream_place *place);

/* Whether the calling thread may make calls that are not safe while there are captures. If not, these come to
 * nothing. */
CUresult capture_permits(void);
/* The same for a call that waits for a stream, or for all of a context; those may not be captured. */
CUresult capture_permits_stream(const struct stream_place *place);
CUresult capture_permits_context(CUcontext context);
/* Whether the default stream of a context may be used: no stream that it waits for is captured. Those captures come to
 * nothing, or with `ask` they go on. */
CUresult capture_permits_legacy(CUcontext context, bool ask);

/* What an event stands for that was recorded in a captured stream: some nodes. */
struct capture_point;
CUresult capture_record(const struct stream_place *place, struct capture_point **point); /* with a reference */
/* NULL: recorded elsewhere */
CUresult capture_wait(const struct stream_place *place, const struct capture_point *point);
CUresult capture_ask(const struct capture_point *point); /* the program asks whether it has been reached */
struct capture_point *capture_point_hold(struct capture_point *point);
void capture_point_release(struct capture_point *point); /* NULL: nothing */

/* A queue ends. */
void capture_forget(const struct queue *queue);

/* For the functions of the API. */

struct capture_info {
  CUstreamCaptureStatus status;
  unsigned long long id;
  CUgraph graph;
  const CUgraphNode *nodes; /* of the capture: valid until the next call about the stream */
  const CUgraphEdgeData *edges;
  size_t count;
};

/* Into a graph, or with NULL into a new one. */
CUresult capture_begin(const struct stream_place *place, CUstreamCaptureMode mode, CUgraph graph,
                       const CUgraphNode *nodes,
                       size_t count);
CUresult capture_end(const struct stream_place *place, CUgraph *graph);
CUresult capture_inform(const struct stream_place *place, struct capture_info *info);
/* Nodes that the next one comes after: these too, or with `only` none but these. */
CUresult capture_depend(const struct stream_place *place, const CUgraphNode *nodes, size_t count, bool only);
CUstreamCaptureMode capture_exchange_mode(CUstreamCaptureMode mode);

#endif
