/* Executable graphs get what nodes of another graph do, if that has the same shape.
 *
 * Nodes are paired from the ends on, as the documentation of cuGraphExecUpdate says: the last nodes in order, then the
 * dependencies of each pair in order. */
#include "graph_update.h"

#include <stdlib.h>

#include "driver.h"
#include "graph_exec.h"
#include "graph_params.h"

struct update {
  struct exec *exec;
  CUgraphExecUpdateResultInfo *info;
  struct nodes mine, theirs; /* pairs that were found, of all graphs in the graphs */
};

static CUresult fail(const struct update *update, CUgraphExecUpdateResult result, const struct node *node,
                     const struct node *from) {
  *update->info = (CUgraphExecUpdateResultInfo){result, (CUgraphNode)node, (CUgraphNode)from};
  return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
}

static size_t ends_of(const struct graph *graph, struct node **last) {
  size_t count = 0;
  for (size_t n = 0; n < graph->nodes.count; n++)
    if (!graph->nodes.at[n]->after.count) {
      count++;
      *last = graph->nodes.at[n];
    }
  return count;
}

/* Note a pair. Of each node that is in one the mark is new, and its number is that of the pair. */
static CUresult pair(struct update *update, struct node *mine, struct node *theirs, unsigned long long mark) {
  mine->mark = theirs->mark = mark;
  mine->number = theirs->number = update->mine.count;
  return nodes_add(&update->mine, mine) && nodes_add(&update->theirs, theirs) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult pair_before(struct update *update, const struct node *mine, const struct node *theirs,
                            unsigned long long mark) {
  if (mine->type != theirs->type) return fail(update, CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED, theirs, NULL);
  if (mine->before.count != theirs->before.count)
    return fail(update, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, theirs, NULL);
  for (size_t n = 0; n < mine->before.count; n++) {
    struct node *a = mine->before.at[n], *b = theirs->before.at[n];
    if (a->mark != mark && b->mark != mark)
      CHECK(pair(update, a, b, mark));
    else if (a->mark != b->mark || a->number != b->number)
      return fail(update, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, theirs, b);
  }
  return CUDA_SUCCESS;
}

static CUresult pair_graphs(struct update *update, const struct graph *mine, const struct graph *theirs) {
  struct node *last = NULL;
  unsigned long long mark = graph_walk();
  size_t first = update->mine.count, i = 0, j = 0;
  if (mine->nodes.count != theirs->nodes.count)
    return fail(update, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, NULL, NULL);
  if (ends_of(mine, &last) != ends_of(theirs, &last))
    return fail(update, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, last, NULL);
  for (size_t n = ends_of(mine, &last); n--; i++, j++) {
    while (mine->nodes.at[i]->after.count) i++;
    while (theirs->nodes.at[j]->after.count) j++;
    CHECK(pair(update, mine->nodes.at[i], theirs->nodes.at[j], mark));
  }
  for (size_t n = first; n < update->mine.count; n++)
    CHECK(pair_before(update, update->mine.at[n], update->theirs.at[n], mark));
  if (update->mine.count - first != mine->nodes.count) /* a cycle */
    return fail(update, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, NULL, NULL);
  for (size_t n = first, behind = update->mine.count; n < behind; n++)
    if (update->mine.at[n]->child) CHECK(pair_graphs(update, update->mine.at[n]->child, update->theirs.at[n]->child));
  return CUDA_SUCCESS;
}

static CUresult apply(struct update *update) {
  for (size_t n = 0; n < update->mine.count; n++) {
    const struct node *mine = update->mine.at[n], *theirs = update->theirs.at[n];
    if (mine->command == theirs->command) continue;
    CUgraphExecUpdateResult result = params_change(mine->command, theirs->command);
    if (result != CU_GRAPH_EXEC_UPDATE_SUCCESS) return fail(update, result, theirs, NULL);
  }
  for (size_t n = 0; n < update->mine.count; n++)
    if (update->mine.at[n]->command)
      CHECK(exec_set(update->exec, exec_slot_of(update->exec, update->mine.at[n]), update->theirs.at[n]->command));
  return CUDA_SUCCESS;
}

/* The locks are held. */
static CUresult update_graph(struct exec *exec, const struct graph *mine, const struct graph *theirs,
                             CUgraphExecUpdateResultInfo *info) {
  struct update update = {.exec = exec, .info = info};
  CUresult result = pair_graphs(&update, mine, theirs);
  if (result == CUDA_SUCCESS) result = apply(&update);
  free(update.mine.at);
  free(update.theirs.at);
  return result;
}

static CUresult update(CUgraphExec handle, CUgraph graph_handle, CUgraphExecUpdateResultInfo *info) {
  struct exec *exec;
  struct graph *graph;
  CHECK(ready());
  *info = (CUgraphExecUpdateResultInfo){.result = CU_GRAPH_EXEC_UPDATE_ERROR};
  execs_lock();
  graphs_lock();
  CUresult result = exec_of(handle, &exec);
  if (result == CUDA_SUCCESS) result = graph_of(graph_handle, &graph);
  if (result == CUDA_SUCCESS && graph->moved) result = CUDA_ERROR_INVALID_VALUE;
  if (result == CUDA_SUCCESS) result = update_graph(exec, exec_graph(exec), graph, info);
  graphs_unlock();
  execs_unlock();
  if (result == CUDA_SUCCESS) info->result = CU_GRAPH_EXEC_UPDATE_SUCCESS;
  return result;
}

EXPORTED CUresult cuGraphExecUpdate_v2(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo *info) {
  return info ? update(exec, graph, info) : CUDA_ERROR_INVALID_VALUE;
}

EXPORTED CUresult cuGraphExecUpdate(CUgraphExec exec, CUgraph graph, CUgraphNode *node,
                                    CUgraphExecUpdateResult *result) {
  CUgraphExecUpdateResultInfo info = {.result = CU_GRAPH_EXEC_UPDATE_ERROR};
  CUresult returned = update(exec, graph, &info);
  if (node) *node = info.errorNode;
  if (result) *result = info.result;
  return returned;
}

CUresult update_child(CUgraphExec handle, CUgraphNode node, CUgraph child) {
  struct exec *exec;
  struct slot *slot;
  struct graph *graph;
  CUgraphExecUpdateResultInfo info;
  execs_lock();
  CUresult result = exec_of(handle, &exec);
  if (result == CUDA_SUCCESS) result = exec_slot(exec, node, &slot);
  graphs_lock();
  if (result == CUDA_SUCCESS) result = graph_of(child, &graph);
  if (result == CUDA_SUCCESS && (!slot->node->child || graph->moved)) result = CUDA_ERROR_INVALID_VALUE;
  if (result == CUDA_SUCCESS) result = update_graph(exec, slot->node->child, graph, &info);
  graphs_unlock();
  execs_unlock();
  return result == CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE ? CUDA_ERROR_INVALID_VALUE : result;
}
