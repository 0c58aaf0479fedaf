/* Executable graphs, and their launches. */
#include "graph_exec.h"

#include <pthread.h>
#include <stdlib.h>

#include "capture.h"
#include "clock.h"
#include "driver.h"
#include "freed.h"
#include "graph_memory.h"
#include "handles.h"
#include "strict.h"
#include "work.h"

static const unsigned long long FLAGS =
    CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;

struct exec {
  _Atomic unsigned references; /* the handle's, and those of launches */
  struct graph *graph;
  unsigned long long flags;
  struct plan plan;
  struct queue **queues;           /* of its lanes; NULL: not made yet */
  struct operation **operations;   /* of segments, during a launch */
  struct operation *last;          /* of the last launch */
  struct exec_memory memory;
  struct exec *next;               /* of those whose graphs have memory */
};

static struct freed freed = FREED;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* all of them, but for the counts */
static struct exec *with_memory;

void execs_lock(void) { pthread_mutex_lock(&lock); }
void execs_unlock(void) { pthread_mutex_unlock(&lock); }

CUresult exec_of(CUgraphExec handle, struct exec **exec) {
  *exec = (struct exec *)handle;
  return handle_is(GRAPH_EXEC, handle, false) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

struct graph *exec_graph(const struct exec *exec) { return exec->graph; }

static void let_go(struct exec *exec) {
  if (--exec->references) return;
  for (size_t n = 0; exec->queues && n < exec->plan.lane_count; n++)
    if (exec->queues[n]) queue_drop(exec->queues[n]);
  if (exec->last) operation_release(exec->last);
  plan_end(&exec->plan);
  exec_memory_end(&exec->memory);
  graph_end(exec->graph);
  free(exec->queues);
  free(exec->operations);
  object_free(&freed, exec);
}

/* Launches. */

/* What one operation of a launch does. */
struct step {
  struct exec *exec;   /* a reference */
  struct chain *chain; /* a reference; NULL: nothing */
  struct stream_place place;
};

static void end_step(struct step *step) {
  if (step->chain) chain_release(step->chain);
  let_go(step->exec);
  free(step);
}

static void do_step(void *given) {
  struct step *step = given;
  for (size_t n = 0; step->chain && n < step->chain->count; n++)
    if (step->chain->commands[n]) command_do(step->chain->commands[n], &step->place);
  end_step(step);
}

static CUresult queue_step(struct exec *exec, struct chain *chain, bool foreign, const struct stream_place *place,
                           struct queue *queue, struct operation *const *after, size_t count, struct operation **made) {
  struct step *step = malloc(sizeof *step);
  if (!step) return CUDA_ERROR_OUT_OF_MEMORY;
  exec->references++;
  *step = (struct step){exec, chain ? chain_hold(chain) : NULL, *place};
  if (queue_add(queue, &(struct work){do_step, step, foreign}, after, count, made)) return CUDA_SUCCESS;
  end_step(step);
  return CUDA_ERROR_OUT_OF_MEMORY;
}

/* Put a segment into a queue, after `count` operations of others. */
static CUresult queue_segment(struct exec *exec, const struct segment *segment, const struct stream_place *place,
                              struct queue *queue, struct operation *const *after, size_t count, struct operation **made) {
  struct command *command = segment->alone ? segment->chain->commands[0] : NULL;
  if (command && command->kind->queue) return command_queue(command, queue, after, count, made);
  return queue_step(exec, segment->chain, command && command->kind->foreign, place, queue, after, count, made);
}

static CUresult make_queues(struct exec *exec, const struct stream_place *place) {
  for (size_t lane = 0; lane < exec->plan.lane_count; lane++) {
    CUcontext context = exec->plan.lanes[lane].context;
    if (!exec->queues[lane]) exec->queues[lane] = queue_make(context ? context : place->context, false, false);
    if (!exec->queues[lane]) return CUDA_ERROR_OUT_OF_MEMORY;
  }
  return CUDA_SUCCESS;
}

/* All segments, each in its lane. `after`: room for as many operations as one can wait for; the first is what comes
 * before the whole graph. */
static CUresult queue_segments(struct exec *exec, const struct stream_place *place, struct operation **after) {
  const struct plan *plan = &exec->plan;
  bool begun[plan->lane_count];
  for (size_t lane = 0; lane < plan->lane_count; lane++) begun[lane] = false;
  for (size_t n = 0; n < plan->segment_count; n++) {
    const struct segment *segment = &plan->segments[n];
    size_t count = 1;
    for (size_t i = 0; i < segment->waits; i++) after[count++] = exec->operations[plan->waits[segment->first_wait + i]];
    bool skip = begun[segment->lane] || segment->waits; /* what it waits for comes after the beginning itself */
    CHECK(queue_segment(exec, segment, place, exec->queues[segment->lane], after + skip, count - skip,
                        segment->awaited ? &exec->operations[n] : NULL));
    begun[segment->lane] = true;
  }
  return CUDA_SUCCESS;
}

/* A place in the stream, which is reached when what comes before is done, and left when all lanes are. */
static CUresult launch_lanes(struct exec *exec, const struct stream_place *place, struct operation **last) {
  const struct plan *plan = &exec->plan;
  struct operation *start;
  size_t count = 0;
  CHECK(make_queues(exec, place));
  struct operation **after = malloc((plan->segment_count + 1) * sizeof *after);
  if (!after) return CUDA_ERROR_OUT_OF_MEMORY;
  bool forked = queue_fork(place->queue, exec->queues[plan->segments[0].lane], &exec->last, exec->last != NULL,
                           plan->lane_count, &start, last);
  CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
  if (forked) {
    after[0] = start;
    result = queue_segments(exec, place, after);
    for (size_t lane = 0; lane < plan->lane_count; lane++) {
      struct operation *operation = exec->operations[plan->lanes[lane].last];
      if (operation) after[count++] = operation;
    }
    queue_join(*last, after, count);
    operation_release(start);
  }
  for (size_t n = 0; n < plan->segment_count; n++)
    if (exec->operations[n]) {
      operation_release(exec->operations[n]);
      exec->operations[n] = NULL;
    }
  free(after);
  return result;
}

/* What has to be alone in a segment may be impossible by now. */
static CUresult check_segments(const struct plan *plan) {
  for (size_t n = 0; n < plan->segment_count; n++) {
    const struct segment *segment = &plan->segments[n];
    const struct command *command = segment->alone ? segment->chain->commands[0] : NULL;
    if (command && command->kind->check) CHECK(command->kind->check(command));
  }
  return CUDA_SUCCESS;
}

/* The lock is held. */
static CUresult launch(struct exec *exec, const struct stream_place *place) {
  const struct plan *plan = &exec->plan;
  struct operation *last = NULL;
  CUresult result;
  for (size_t lane = 0; lane < plan->lane_count; lane++)
    if (plan->lanes[lane].context) CHECK(context_check(plan->lanes[lane].context, plan->lanes[lane].context_id));
  CHECK(check_segments(plan));
  CHECK(exec_memory_launch(&exec->memory, exec->flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH));
  if (!plan->segment_count)
    result = queue_step(exec, NULL, false, place, place->queue, &exec->last, exec->last != NULL, &last);
  else if (plan->segment_count == 1 && (!plan->lanes[0].context || plan->lanes[0].context == place->context))
    result = queue_segment(exec, &plan->segments[0], place, place->queue, &exec->last, exec->last != NULL, &last);
  else
    result = launch_lanes(exec, place, &last);
  if (last) {
    if (exec->last) operation_release(exec->last);
    exec->last = last;
  }
  return result;
}

/* In a stream that is captured it is a graph in the graph. */
static CUresult capture_launch(CUgraphExec handle, const struct stream_place *place) {
  struct exec *exec;
  struct graph *child = NULL;
  execs_lock();
  CUresult result = exec_of(handle, &exec);
  if (result == CUDA_SUCCESS && exec->graph->memory) result = CUDA_ERROR_NOT_SUPPORTED;
  if (result == CUDA_SUCCESS) {
    graphs_lock();
    child = graph_clone(exec->graph, false);
    graphs_unlock();
    if (!child) result = CUDA_ERROR_OUT_OF_MEMORY;
  }
  execs_unlock();
  return result == CUDA_SUCCESS ? capture_child(place, child) : result;
}

static CUresult launch_in(CUgraphExec handle, CUstream stream, bool own) {
  struct stream_place place;
  struct exec *exec;
  CHECK(stream_place(stream, own, &place));
  if (is_captured(&place)) return capture_launch(handle, &place);
  CHECK(strict_room(&place));
  execs_lock();
  CUresult result = exec_of(handle, &exec);
  if (result == CUDA_SUCCESS) {
    clock_call_graph(exec->plan.slot_count);
    result = launch(exec, &place);
  }
  execs_unlock();
  return result;
}

EXPORTED CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream) { return launch_in(exec, stream, false); }
EXPORTED CUresult cuGraphLaunch_ptsz(CUgraphExec exec, CUstream stream) { return launch_in(exec, stream, true); }

/* There is nothing to be brought to a device before a launch. */
static CUresult upload(CUgraphExec handle, CUstream stream, bool own) {
  struct stream_place place;
  struct exec *exec;
  CHECK(stream_place(stream, own, &place));
  if (is_captured(&place)) return capture_refuse(&place);
  execs_lock();
  CUresult result = exec_of(handle, &exec);
  execs_unlock();
  return result;
}

EXPORTED CUresult cuGraphUpload(CUgraphExec exec, CUstream stream) { return upload(exec, stream, false); }
EXPORTED CUresult cuGraphUpload_ptsz(CUgraphExec exec, CUstream stream) { return upload(exec, stream, true); }

/* Creation and end. */

/* Of a graph with memory there may be one at a time. The locks are held. */
static bool is_there(const struct graph *graph) {
  const struct exec *exec = with_memory;
  while (exec && exec->graph->origin != graph->id) exec = exec->next;
  return exec;
}

/* The locks are held. */
static CUresult make(CUgraph handle, struct exec *exec, CUgraphNode *bad) {
  struct graph *graph;
  struct node *in_cycle = NULL;
  CHECK(graph_of(handle, &graph));
  if (graph->moved || is_there(graph)) return CUDA_ERROR_INVALID_VALUE;
  exec->graph = graph_clone(graph, true);
  if (!exec->graph) return CUDA_ERROR_OUT_OF_MEMORY;
  CUresult result = plan_make(exec->graph, &exec->plan, &in_cycle);
  for (size_t n = 0; in_cycle && n < graph->nodes.count; n++)
    if (graph->nodes.at[n]->id == in_cycle->origin) *bad = (CUgraphNode)graph->nodes.at[n];
  return result == CUDA_SUCCESS ? exec_memory_make(&exec->plan, &exec->memory) : result;
}

static CUresult instantiate(CUgraphExec *handle, CUgraph graph, unsigned long long flags, CUgraphNode *bad) {
  CHECK(ready());
  *bad = NULL;
  if (flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH && !(flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH))
    return CUDA_ERROR_NOT_SUPPORTED;
  if (!handle || flags & ~FLAGS) return CUDA_ERROR_INVALID_VALUE;
  struct exec *exec = object_make(&freed, sizeof *exec);
  if (!exec) return CUDA_ERROR_OUT_OF_MEMORY;
  exec->references = 1;
  exec->flags = flags;
  execs_lock();
  graphs_lock();
  CUresult result = make(graph, exec, bad);
  graphs_unlock();
  if (result == CUDA_SUCCESS) {
    exec->queues = calloc(exec->plan.lane_count + 1, sizeof *exec->queues);
    exec->operations = calloc(exec->plan.segment_count + 1, sizeof *exec->operations);
    if (!exec->queues || !exec->operations || !handle_add(GRAPH_EXEC, exec)) result = CUDA_ERROR_OUT_OF_MEMORY;
  }
  if (result == CUDA_SUCCESS && exec->graph->memory) {
    exec->next = with_memory;
    with_memory = exec;
  }
  execs_unlock();
  if (result == CUDA_SUCCESS)
    *handle = (CUgraphExec)exec;
  else if (exec->graph)
    let_go(exec);
  else
    object_free(&freed, exec);
  return result;
}

EXPORTED CUresult cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, unsigned long long flags) {
  CUgraphNode bad;
  return instantiate(exec, graph, flags, &bad);
}

EXPORTED CUresult cuGraphInstantiate_v2(CUgraphExec *exec, CUgraph graph, CUgraphNode *bad, char *log, size_t room) {
  CUgraphNode found;
  CUresult result = instantiate(exec, graph, 0, &found);
  if (bad) *bad = found;
  if (log && room) *log = 0;
  return result;
}

EXPORTED CUresult cuGraphInstantiate(CUgraphExec *exec, CUgraph graph, CUgraphNode *bad, char *log, size_t room) {
  return cuGraphInstantiate_v2(exec, graph, bad, log, room);
}

static CUresult instantiate_with(CUgraphExec *exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *params, bool own) {
  CHECK(ready());
  if (!params) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = instantiate(exec, graph, params->flags & ~(cuuint64_t)CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD,
                                &params->hErrNode_out);
  params->result_out = result == CUDA_SUCCESS     ? CUDA_GRAPH_INSTANTIATE_SUCCESS
                       : params->hErrNode_out ? CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE
                                              : CUDA_GRAPH_INSTANTIATE_ERROR;
  if (result != CUDA_SUCCESS || !(params->flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD)) return result;
  result = upload(*exec, params->hUploadStream, own);
  if (result == CUDA_SUCCESS) return result;
  params->result_out = CUDA_GRAPH_INSTANTIATE_ERROR;
  cuGraphExecDestroy(*exec);
  return result;
}

EXPORTED CUresult cuGraphInstantiateWithParams(CUgraphExec *exec, CUgraph graph,
                                               CUDA_GRAPH_INSTANTIATE_PARAMS *params) {
  return instantiate_with(exec, graph, params, false);
}

EXPORTED CUresult cuGraphInstantiateWithParams_ptsz(CUgraphExec *exec, CUgraph graph,
                                                    CUDA_GRAPH_INSTANTIATE_PARAMS *params) {
  return instantiate_with(exec, graph, params, true);
}

EXPORTED CUresult cuGraphExecDestroy(CUgraphExec handle) {
  CHECK(ready());
  execs_lock();
  bool was = handle_is(GRAPH_EXEC, handle, true);
  for (struct exec **at = &with_memory; was && *at; at = &(*at)->next)
    if (*at == (struct exec *)handle) {
      *at = (*at)->next;
      break;
    }
  execs_unlock();
  if (!was) return CUDA_ERROR_INVALID_VALUE;
  let_go((struct exec *)handle);
  return CUDA_SUCCESS;
}

EXPORTED CUresult cuGraphExecGetFlags(CUgraphExec handle, cuuint64_t *flags) {
  struct exec *exec;
  CHECK(ready());
  if (!flags) return CUDA_ERROR_INVALID_VALUE;
  execs_lock();
  CUresult result = exec_of(handle, &exec);
  if (result == CUDA_SUCCESS) *flags = exec->flags;
  execs_unlock();
  return result;
}

/* Changes. */

CUresult exec_slot(const struct exec *exec, CUgraphNode handle, struct slot **slot) {
  struct node *node;
  unsigned long long id = 0;
  graphs_lock();
  CUresult result = node_of(handle, &node);
  if (result == CUDA_SUCCESS) id = node->id;
  graphs_unlock();
  *slot = result == CUDA_SUCCESS ? plan_slot(&exec->plan, id) : NULL;
  return *slot ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

struct slot *exec_slot_of(const struct exec *exec, const struct node *node) { return plan_slot(&exec->plan,
                                                                                               node->origin); }

CUresult exec_set(struct exec *exec, struct slot *slot, struct command *command) {
  struct node *node = slot->node;
  struct command *shown = node->disabled ? NULL : command, *before = node->command;
  if (!chain_set(&exec->plan.segments[slot->segment].chain, slot->index, shown)) return CUDA_ERROR_OUT_OF_MEMORY;
  if (before == command) return CUDA_SUCCESS;
  node->command = command ? command_hold(command) : NULL;
  if (before) command_release(before);
  return CUDA_SUCCESS;
}

static bool may_be_disabled(CUgraphNodeType type) {
  return type == CU_GRAPH_NODE_TYPE_KERNEL || type == CU_GRAPH_NODE_TYPE_MEMCPY || type == CU_GRAPH_NODE_TYPE_MEMSET;
}

/* The lock is held after success. */
static CUresult find(CUgraphExec handle, CUgraphNode node, struct exec **exec, struct slot **slot) {
  CHECK(ready());
  execs_lock();
  CUresult result = exec_of(handle, exec);
  if (result == CUDA_SUCCESS) result = exec_slot(*exec, node, slot);
  if (result == CUDA_SUCCESS && !may_be_disabled((*slot)->node->type)) result = CUDA_ERROR_INVALID_VALUE;
  if (result != CUDA_SUCCESS) execs_unlock();
  return result;
}

EXPORTED CUresult cuGraphNodeSetEnabled(CUgraphExec handle, CUgraphNode node, unsigned int enabled) {
  struct exec *exec;
  struct slot *slot;
  CHECK(find(handle, node, &exec, &slot));
  slot->node->disabled = !enabled;
  CUresult result = exec_set(exec, slot, slot->node->command);
  execs_unlock();
  return result;
}

EXPORTED CUresult cuGraphNodeGetEnabled(CUgraphExec handle, CUgraphNode node, unsigned int *enabled) {
  struct exec *exec;
  struct slot *slot;
  if (!enabled) return CUDA_ERROR_INVALID_VALUE;
  CHECK(find(handle, node, &exec, &slot));
  *enabled = !slot->node->disabled;
  execs_unlock();
  return CUDA_SUCCESS;
}
