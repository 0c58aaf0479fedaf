/* Captures. Each has a graph, and members: streams whose next nodes come after certain nodes. */
#include "capture.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "driver.h"
#include "graph_memory.h"

struct member {
  struct member *next;
  const struct queue *queue; /* NULL: the stream is no more, but what it has done has to be joined all the same */
  CUcontext context;
  bool blocking;
  struct nodes nodes;
  CUgraphEdgeData *edges; /* for those who ask; nothing special about any */
};

struct capture {
  struct capture *next;
  unsigned long long id, thread;
  CUstreamCaptureMode mode;
  struct graph *graph;
  bool own; /* the graph was made by it */
  bool invalid;
  struct member *members; /* the last one is the one that it was begun with */
};

struct capture_point {
  _Atomic unsigned references;
  unsigned long long capture;
  size_t count;
  struct node *nodes[];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* all of them; before that of graphs */
static struct capture *captures;
static unsigned long long last_capture;
static _Atomic unsigned active; /* captures: without any nobody needs the lock */
static _Atomic unsigned long long last_thread;

static _Thread_local struct {
  unsigned long long number;
  CUstreamCaptureMode mode;
} here;

static unsigned long long this_thread(void) {
  if (!here.number) here.number = ++last_thread;
  return here.number;
}

CUstreamCaptureMode capture_exchange_mode(CUstreamCaptureMode mode) {
  CUstreamCaptureMode before = here.mode;
  here.mode = mode;
  return before;
}

/* The member of a queue, and its capture. The lock is held. */
static struct member *find(const struct queue *queue, struct capture **capture) {
  for (*capture = captures; *capture; *capture = (*capture)->next)
    for (struct member *member = (*capture)->members; member; member = member->next)
      if (member->queue == queue) return member;
  return NULL;
}

bool is_captured(const struct stream_place *place) {
  struct capture *capture;
  if (!active) return false;
  pthread_mutex_lock(&lock);
  bool found = find(place->queue, &capture);
  pthread_mutex_unlock(&lock);
  return found;
}

static CUresult invalidate(struct capture *capture, CUresult result) {
  capture->invalid = true;
  return result;
}

/* With the lock, and that of graphs if `nodes` may be in use. */
static bool member_after(struct member *member, struct node *node) {
  for (size_t n = 0; n < member->nodes.count; n++)
    if (member->nodes.at[n] == node) return true;
  return nodes_add(&member->nodes, node);
}

/* Nodes. */

/* The lock is held. Takes command or child if it succeeds. */
static CUresult add(struct capture *capture, struct member *member, CUgraphNodeType type, struct command *command,
                    struct graph *child) {
  if (capture->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  graphs_lock();
  CUresult result = command ? graph_memory_enter(capture->graph, command) : CUDA_SUCCESS;
  if (result != CUDA_SUCCESS) {
    graphs_unlock();
    return invalidate(capture, result);
  }
  struct node *node =
      graph_add(capture->graph, (const CUgraphNode *)(void *)member->nodes.at, member->nodes.count, type, command,
                child);
  if (node) member->nodes.count = 0;
  bool good = node && member_after(member, node);
  graphs_unlock();
  return good ? CUDA_SUCCESS : invalidate(capture, CUDA_ERROR_OUT_OF_MEMORY);
}

bool capture_command(const struct stream_place *place, bool waits, struct command *command, CUresult *result) {
  struct capture *capture;
  if (!active) return false;
  pthread_mutex_lock(&lock);
  struct member *member = find(place->queue, &capture);
  if (member) {
    command_hold(command);
    *result = waits ? invalidate(capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED)
                    : add(capture, member, command->kind->type, command, NULL);
    if (*result != CUDA_SUCCESS) command_release(command);
  }
  pthread_mutex_unlock(&lock);
  return member;
}

CUresult capture_child(const struct stream_place *place, struct graph *child) {
  struct capture *capture;
  pthread_mutex_lock(&lock);
  struct member *member = find(place->queue, &capture);
  CUresult result = member ? add(capture, member, CU_GRAPH_NODE_TYPE_GRAPH, NULL, child) : CUDA_ERROR_ILLEGAL_STATE;
  pthread_mutex_unlock(&lock);
  if (result == CUDA_SUCCESS) return result;
  graphs_lock();
  graph_hide(child);
  graphs_unlock();
  graph_end(child);
  return result;
}

CUresult capture_refuse(const struct stream_place *place) {
  struct capture *capture;
  pthread_mutex_lock(&lock);
  if (find(place->queue, &capture)) capture->invalid = true;
  pthread_mutex_unlock(&lock);
  return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

/* What is permitted. */

CUresult capture_permits(void) {
  bool bad = false;
  if (!active || here.mode == CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_SUCCESS;
  pthread_mutex_lock(&lock);
  for (struct capture *capture = captures; capture; capture = capture->next)
    if (capture->thread == this_thread()
            ? capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED
            : here.mode == CU_STREAM_CAPTURE_MODE_GLOBAL && capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL)
      bad = capture->invalid = true;
  pthread_mutex_unlock(&lock);
  return bad ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS;
}

CUresult capture_permits_stream(const struct stream_place *place) {
  return is_captured(place) ? capture_refuse(place) : capture_permits();
}

/* Whether streams of a context are captured: all of them, or those that its default stream waits for. */
static bool captured_in(CUcontext context, bool all, bool goes_on) {
  bool found = false;
  if (!active) return false;
  pthread_mutex_lock(&lock);
  for (struct capture *capture = captures; capture; capture = capture->next)
    for (struct member *member = capture->members; member; member = member->next)
      if (member->queue && member->context == context && (all || member->blocking)) {
        found = true;
        capture->invalid |= !goes_on;
      }
  pthread_mutex_unlock(&lock);
  return found;
}

CUresult capture_permits_context(CUcontext context) {
  return captured_in(context, true, false) ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : capture_permits();
}

CUresult capture_permits_legacy(CUcontext context, bool ask) {
  return captured_in(context, false, ask) ? CUDA_ERROR_STREAM_CAPTURE_IMPLICIT : CUDA_SUCCESS;
}

/* Members, and events, by which streams become such. */

static struct member *member_add(struct capture *capture, const struct stream_place *place) {
  struct member *member = calloc(1, sizeof *member);
  if (!member) return NULL;
  *member = (struct member){capture->members, place->queue, place->context, place->blocking, {0}, NULL};
  return capture->members = member;
}

struct capture_point *capture_point_hold(struct capture_point *point) {
  if (point) point->references++;
  return point;
}

void capture_point_release(struct capture_point *point) {
  if (point && !--point->references) free(point);
}

CUresult capture_record(const struct stream_place *place, struct capture_point **point) {
  struct capture *capture;
  CUresult result = CUDA_ERROR_ILLEGAL_STATE;
  pthread_mutex_lock(&lock);
  const struct member *member = find(place->queue, &capture);
  if (member) result = capture->invalid ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS;
  if (result == CUDA_SUCCESS) {
    size_t bytes = member->nodes.count * sizeof(struct node *);
    *point = malloc(sizeof **point + bytes);
    if (*point) {
      (*point)->references = 1;
      (*point)->capture = capture->id;
      (*point)->count = member->nodes.count;
      if (bytes) memcpy((*point)->nodes, member->nodes.at, bytes);
    } else {
      result = CUDA_ERROR_OUT_OF_MEMORY;
    }
  }
  pthread_mutex_unlock(&lock);
  return result;
}

static struct capture *with_id(unsigned long long id) {
  struct capture *capture = captures;
  while (capture && capture->id != id) capture = capture->next;
  return capture;
}

/* The lock is held. */
static CUresult wait_for(const struct stream_place *place, const struct capture_point *point) {
  struct capture *mine, *theirs = point ? with_id(point->capture) : NULL;
  struct member *member = find(place->queue, &mine);
  if (mine && mine->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (!theirs) /* it was recorded outside of captures, or in one that has ended */
    return mine ? invalidate(mine, CUDA_ERROR_STREAM_CAPTURE_ISOLATION) : CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
  if (theirs->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (mine && mine != theirs) {
    mine->invalid = true;
    return invalidate(theirs, CUDA_ERROR_STREAM_CAPTURE_MERGE);
  }
  if (!mine && place->legacy) return invalidate(theirs, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  if (!member) member = member_add(theirs, place);
  bool good = member;
  for (size_t n = 0; good && n < point->count; n++) good = member_after(member, point->nodes[n]);
  return good ? CUDA_SUCCESS : invalidate(theirs, CUDA_ERROR_OUT_OF_MEMORY);
}

CUresult capture_wait(const struct stream_place *place, const struct capture_point *point) {
  pthread_mutex_lock(&lock);
  CUresult result = wait_for(place, point);
  pthread_mutex_unlock(&lock);
  return result;
}

CUresult capture_ask(const struct capture_point *point) {
  pthread_mutex_lock(&lock);
  struct capture *capture = with_id(point->capture);
  if (capture) capture->invalid = true;
  pthread_mutex_unlock(&lock);
  return CUDA_ERROR_CAPTURED_EVENT;
}

/* Beginning and end. */

/* The locks are held. */
static CUresult begin_locked(struct capture *capture, const struct stream_place *place, CUgraph handle,
                             const CUgraphNode *nodes, size_t count) {
  struct capture *other;
  if (find(place->queue, &other)) return CUDA_ERROR_ILLEGAL_STATE;
  if (handle) {
    CHECK(graph_of(handle, &capture->graph));
    CHECK(graph_check(capture->graph, nodes, count));
  }
  struct member *member = member_add(capture, place);
  for (size_t n = 0; n < count && member; n++)
    if (!nodes_add(&member->nodes, (struct node *)nodes[n])) return CUDA_ERROR_OUT_OF_MEMORY;
  if (!handle && member) capture->graph = graph_make();
  return member && capture->graph ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static void free_capture(struct capture *capture) {
  for (struct member *member = capture->members, *next; member; member = next) {
    next = member->next;
    free(member->nodes.at);
    free(member->edges);
    free(member);
  }
  free(capture);
}

CUresult capture_begin(const struct stream_place *place, CUstreamCaptureMode mode, CUgraph graph,
                       const CUgraphNode *nodes,
                       size_t count) {
  if (mode > CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_ERROR_INVALID_VALUE;
  if (place->legacy) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  struct capture *capture = calloc(1, sizeof *capture);
  if (!capture) return CUDA_ERROR_OUT_OF_MEMORY;
  pthread_mutex_lock(&lock);
  graphs_lock();
  *capture = (struct capture){.next = captures, .id = ++last_capture, .thread = this_thread(), .mode = mode,
                              .own = !graph};
  CUresult result = begin_locked(capture, place, graph, nodes, count);
  if (result == CUDA_SUCCESS) {
    capture->graph->captures++;
    captures = capture;
    active++;
  }
  graphs_unlock();
  pthread_mutex_unlock(&lock);
  if (result != CUDA_SUCCESS) free_capture(capture);
  return result;
}

/* Whether all that members have done comes before what the first one does next. The locks are held. */
static bool is_joined(const struct capture *capture) {
  struct nodes seen = {0};
  unsigned long long mark = graph_walk();
  const struct member *first = capture->members;
  bool good = true;
  while (first->next) first = first->next;
  for (size_t n = 0; n < first->nodes.count && good; n++) {
    first->nodes.at[n]->mark = mark;
    good = nodes_add(&seen, first->nodes.at[n]);
  }
  for (size_t n = 0; n < seen.count && good; n++)
    for (size_t i = 0; i < seen.at[n]->before.count && good; i++) {
      struct node *before = seen.at[n]->before.at[i];
      if (before->mark == mark) continue;
      before->mark = mark;
      good = nodes_add(&seen, before);
    }
  free(seen.at);
  for (const struct member *member = capture->members; member; member = member->next)
    for (size_t n = 0; n < member->nodes.count; n++) good &= member->nodes.at[n]->mark == mark;
  return good;
}

/* The lock is held. Returns its own graph, to be ended by the caller when there is no use for it. */
static struct graph *take_out(struct capture *capture, bool wanted) {
  struct capture **at = &captures;
  while (*at != capture) at = &(*at)->next;
  *at = capture->next;
  active--;
  graphs_lock();
  capture->graph->captures--;
  struct graph *unwanted = !wanted && capture->own ? capture->graph : NULL;
  if (unwanted) graph_hide(unwanted);
  graphs_unlock();
  return unwanted;
}

/* Whether a capture may be ended by this call, and what came of it. The lock is held. */
static CUresult check_end(struct capture *capture, const struct member *member, bool *ends) {
  *ends = false;
  if (!member) return CUDA_ERROR_ILLEGAL_STATE;
  if (member->next) return invalidate(capture, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
  if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED && capture->thread != this_thread())
    return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
  *ends = true;
  if (capture->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  graphs_lock();
  bool joined = is_joined(capture);
  graphs_unlock();
  return joined ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
}

CUresult capture_end(const struct stream_place *place, CUgraph *graph) {
  struct capture *capture;
  struct graph *unwanted = NULL;
  bool ends;
  *graph = NULL;
  pthread_mutex_lock(&lock);
  const struct member *member = find(place->queue, &capture);
  CUresult result = check_end(capture, member, &ends);
  if (result == CUDA_SUCCESS) *graph = (CUgraph)capture->graph;
  if (ends) unwanted = take_out(capture, result == CUDA_SUCCESS);
  pthread_mutex_unlock(&lock);
  if (unwanted) graph_end(unwanted);
  if (ends) free_capture(capture);
  return result;
}

/* With the stream that it was begun with a capture ends. */
void capture_forget(const struct queue *queue) {
  struct capture *capture;
  struct graph *unwanted = NULL;
  if (!active) return;
  pthread_mutex_lock(&lock);
  struct member *member = find(queue, &capture);
  bool ends = member && !member->next;
  if (member) member->queue = NULL;
  if (ends) unwanted = take_out(capture, false);
  pthread_mutex_unlock(&lock);
  if (unwanted) graph_end(unwanted);
  if (ends) free_capture(capture);
}

/* Questions, and dependencies from outside. */

CUresult capture_inform(const struct stream_place *place, struct capture_info *info) {
  struct capture *capture;
  CUresult result = CUDA_SUCCESS;
  *info = (struct capture_info){.status = CU_STREAM_CAPTURE_STATUS_NONE};
  pthread_mutex_lock(&lock);
  struct member *member = find(place->queue, &capture);
  if (member && capture->invalid) {
    *info = (struct capture_info){.status = CU_STREAM_CAPTURE_STATUS_INVALIDATED};
  } else if (member) {
    free(member->edges);
    member->edges = calloc(member->nodes.count + 1, sizeof *member->edges);
    if (!member->edges) result = CUDA_ERROR_OUT_OF_MEMORY;
    *info = (struct capture_info){CU_STREAM_CAPTURE_STATUS_ACTIVE, capture->id, (CUgraph)capture->graph,
                                  (const CUgraphNode *)(void *)member->nodes.at, member->edges, member->nodes.count};
  }
  pthread_mutex_unlock(&lock);
  return result;
}

/* The lock is held, and that of graphs. */
static CUresult depend(struct capture *capture, struct member *member, const CUgraphNode *nodes, size_t count,
                       bool only) {
  struct nodes before = member->nodes;
  CHECK(graph_check(capture->graph, nodes, count));
  member->nodes = (struct nodes){0};
  bool good = true;
  for (size_t n = 0; n < before.count && good && !only; n++) good = member_after(member, before.at[n]);
  for (size_t n = 0; n < count && good; n++) good = member_after(member, (struct node *)nodes[n]);
  free(before.at);
  return good ? CUDA_SUCCESS : invalidate(capture, CUDA_ERROR_OUT_OF_MEMORY);
}

CUresult capture_depend(const struct stream_place *place, const CUgraphNode *nodes, size_t count, bool only) {
  struct capture *capture;
  pthread_mutex_lock(&lock);
  graphs_lock();
  struct member *member = find(place->queue, &capture);
  CUresult result = !member             ? CUDA_ERROR_ILLEGAL_STATE
                    : capture->invalid ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
                                       : depend(capture, member, nodes, count, only);
  graphs_unlock();
  pthread_mutex_unlock(&lock);
  return result;
}
