/* Executable graphs come, are launched and end. What they do is read from the graphs that they are made from. */
#include "graph_exec.h"

#include <string.h>

#include "contexts.h"
#include "hooks.h"
#include "session.h"
#include "things.h"
#include "work.h"

void exec_record(unsigned number, const struct exec_fields *fields, const struct graph_read *read) {
  size_t bytes = sizeof(struct wire_graph_exec) + (read ? read->nodes.used + read->edges.used : 0);
  bool whole = read && read->whole && bytes <= WIRE_LARGEST_RECORD;
  if (!whole) bytes = sizeof(struct wire_graph_exec);
  struct wire_graph_exec *record = record_begin(WIRE_GRAPH_EXEC, number, bytes);
  record->exec = fields->exec;
  record->graph = fields->graph;
  record->context = fields->context;
  record->nodes = whole ? read->node_count : 0;
  record->edges = whole ? read->edge_count : 0;
  record->whole = whole;
  record->flags = fields->flags;
  char *next = (char *)(record + 1);
  if (whole && read->nodes.used) memcpy(next, read->nodes.bytes, read->nodes.used);
  if (whole && read->edges.used) memcpy(next + read->nodes.used, read->edges.bytes, read->edges.used);
  record_end(record);
}

static void put_fields(struct exec_fields *fields, const struct wire_graph_exec *before) {
  *fields = (struct exec_fields){before->exec, before->graph, before->context, before->flags};
}

void exec_unknown(unsigned number, CUgraphExec exec) {
  struct wire_graph_exec *before = ledger_graph((uint64_t)(uintptr_t)exec);
  if (!before) return;
  struct exec_fields fields;
  put_fields(&fields, before);
  if (before->whole) exec_record(number, &fields, NULL);
  store_give(before, before->head.size);
}

/* Made. */

static CUresult made(CUresult result, unsigned number, const CUgraphExec *exec, CUgraph graph,
                     unsigned long long flags) {
  inside--;
  if (result != CUDA_SUCCESS) return result;
  struct exec_fields fields = {(uint64_t)(uintptr_t)*exec, (uint64_t)(uintptr_t)graph,
                               (uint64_t)(uintptr_t)context_now(), (uint32_t)flags};
  struct graph_read read;
  graph_read(&read, graph, 0);
  exec_record(number, &fields, &read);
  graph_read_end(&read);
  return result;
}

#define INSTANTIATE(symbol, flags, arguments)                                     \
  if (!recording()) return real.symbol arguments;                                 \
  inside++;                                                                       \
  return made(real.symbol arguments, NUMBER_##symbol, exec, graph, flags)

CUresult hook_cuGraphInstantiate(CUgraphExec *exec, CUgraph graph, CUgraphNode *bad, char *log, size_t room) {
  INSTANTIATE(cuGraphInstantiate, 0, (exec, graph, bad, log, room));
}

CUresult hook_cuGraphInstantiate_v2(CUgraphExec *exec, CUgraph graph, CUgraphNode *bad, char *log, size_t room) {
  INSTANTIATE(cuGraphInstantiate_v2, 0, (exec, graph, bad, log, room));
}

CUresult hook_cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, unsigned long long flags) {
  INSTANTIATE(cuGraphInstantiateWithFlags, flags, (exec, graph, flags));
}

CUresult hook_cuGraphInstantiateWithParams(CUgraphExec *exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *params) {
  INSTANTIATE(cuGraphInstantiateWithParams, params ? params->flags : 0, (exec, graph, params));
}

CUresult hook_cuGraphInstantiateWithParams_ptsz(CUgraphExec *exec, CUgraph graph,
                                                CUDA_GRAPH_INSTANTIATE_PARAMS *params) {
  INSTANTIATE(cuGraphInstantiateWithParams_ptsz, params ? params->flags : 0, (exec, graph, params));
}

/* Launched. */

static void launch(struct work *work, unsigned number, CUgraphExec exec, CUstream stream, bool per_thread) {
  struct wire_graph_launch *record = work_begin(work, WIRE_GRAPH_LAUNCH, number, sizeof *record,
                                                stream_of(stream, per_thread));
  record->exec = (uint64_t)(uintptr_t)exec;
  work_call(work, record);
}

#define LAUNCH(symbol, per_thread)                                                \
  if (!recording()) return real.symbol(exec, stream);                             \
  struct work work;                                                               \
  launch(&work, NUMBER_##symbol, exec, stream, per_thread);                       \
  return work_end(&work, real.symbol(exec, stream))

CUresult hook_cuGraphLaunch(CUgraphExec exec, CUstream stream) { LAUNCH(cuGraphLaunch, false); }
CUresult hook_cuGraphLaunch_ptsz(CUgraphExec exec, CUstream stream) { LAUNCH(cuGraphLaunch_ptsz, true); }

/* Ended. */

CUresult hook_cuGraphExecDestroy(CUgraphExec exec) {
  if (!recording()) return real.cuGraphExecDestroy(exec);
  struct wire_end what = {.kind = WIRE_GRAPH_EXEC, .handle = (uint64_t)(uintptr_t)exec};
  struct ending ending = ending_begin(NUMBER_cuGraphExecDestroy, what);
  return ending_done(&ending, real.cuGraphExecDestroy(exec));
}

/* Changed by another graph. */

bool exec_pair(uint64_t exec, struct graph_read *nodes, const struct wire_node *before, uint32_t count) {
  if (!nodes->whole || nodes->node_count != count) return false;
  struct wire_node *node = (struct wire_node *)(void *)nodes->nodes.bytes;
  for (uint32_t i = 0; i < count; i++, node = node_after(node), before = node_after(before)) {
    /* What could not be read before may be readable now, and the other way round. */
    if (node->kind != before->kind && node->kind != WIRE_NODE_OTHER && before->kind != WIRE_NODE_OTHER) return false;
    struct wire_graph_node *change = ledger_change(exec, before->node);
    node->enabled = change ? ((const struct wire_node *)(const void *)(change + 1))->enabled : before->enabled;
    if (change) store_give(change, change->head.size);
    node->node = before->node;
    node->parent = before->parent;
  }
  return true;
}

/* Its edges stay as they were. */
static bool keep_edges(struct graph_read *read, const struct wire_graph_exec *before, const struct wire_node *end) {
  growing_end(&read->edges);
  size_t bytes = before->edges * sizeof(struct wire_edge);
  void *edges = growing_add(&read->edges, bytes);
  if (edges && bytes) memcpy(edges, end, bytes);
  read->edge_count = before->edges;
  return edges != NULL;
}

/* Later calls name the nodes by their handles in the graph that it was made from. */
static CUresult updated(CUresult result, unsigned number, CUgraphExec exec, CUgraph graph) {
  inside--;
  uint64_t handle = (uint64_t)(uintptr_t)exec;
  struct wire_graph_exec *before = result == CUDA_SUCCESS ? ledger_graph(handle) : NULL;
  if (!before) return result;
  const struct wire_node *first = (const void *)(before + 1), *end = first;
  struct exec_fields fields;
  struct graph_read read;
  put_fields(&fields, before);
  graph_read(&read, graph, 0);
  for (uint32_t i = 0; i < before->nodes; i++) end = node_after(end);
  bool known = before->whole && exec_pair(handle, &read, first, before->nodes) && keep_edges(&read, before, end);
  exec_record(number, &fields, known ? &read : NULL);
  graph_read_end(&read);
  store_give(before, before->head.size);
  return result;
}

CUresult hook_cuGraphExecUpdate(CUgraphExec exec, CUgraph graph, CUgraphNode *bad, CUgraphExecUpdateResult *what) {
  if (!recording()) return real.cuGraphExecUpdate(exec, graph, bad, what);
  inside++;
  return updated(real.cuGraphExecUpdate(exec, graph, bad, what), NUMBER_cuGraphExecUpdate, exec, graph);
}

CUresult hook_cuGraphExecUpdate_v2(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo *info) {
  if (!recording()) return real.cuGraphExecUpdate_v2(exec, graph, info);
  inside++;
  return updated(real.cuGraphExecUpdate_v2(exec, graph, info), NUMBER_cuGraphExecUpdate_v2, exec, graph);
}
