/* Questions about nodes and edges of graphs, and changes of edges. */
#include "driver.h"
#include "graph.h"

/* Answers have room for as many nodes as the program says; behind those that there are, NULL. */
struct answer {
  CUgraphNode *nodes;
  CUgraphEdgeData *data; /* of edges; NULL: it is not asked for */
  size_t *count;
};

static CUresult begin(const struct answer *answer) {
  CHECK(ready());
  return !answer->count || (answer->data && !answer->nodes) ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

/* The lock is held. `roots`: only nodes that come after none. */
static void tell(const struct nodes *found, bool roots, const struct answer *answer) {
  size_t there = 0;
  for (size_t n = 0; n < found->count; n++) {
    if (roots && found->at[n]->before.count) continue;
    if (answer->nodes && there < *answer->count) {
      answer->nodes[there] = (CUgraphNode)found->at[n];
      if (answer->data) answer->data[there] = (CUgraphEdgeData){0};
    }
    there++;
  }
  for (size_t n = there; answer->nodes && n < *answer->count; n++) answer->nodes[n] = NULL;
  if (!answer->nodes || there < *answer->count) *answer->count = there;
}

static CUresult graph_nodes(CUgraph handle, bool roots, struct answer answer) {
  struct graph *graph;
  CHECK(begin(&answer));
  graphs_lock();
  CUresult result = graph_of(handle, &graph);
  if (result == CUDA_SUCCESS) tell(&graph->nodes, roots, &answer);
  graphs_unlock();
  return result;
}

EXPORTED CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *count) {
  return graph_nodes(graph, false, (struct answer){nodes, NULL, count});
}

EXPORTED CUresult cuGraphGetRootNodes(CUgraph graph, CUgraphNode *nodes, size_t *count) {
  return graph_nodes(graph, true, (struct answer){nodes, NULL, count});
}

static CUresult neighbours(CUgraphNode handle, bool after, struct answer answer) {
  struct node *node;
  CHECK(begin(&answer));
  graphs_lock();
  CUresult result = node_of(handle, &node);
  if (result == CUDA_SUCCESS) tell(after ? &node->after : &node->before, false, &answer);
  graphs_unlock();
  return result;
}

EXPORTED CUresult cuGraphNodeGetDependencies(CUgraphNode node, CUgraphNode *nodes, size_t *count) {
  return neighbours(node, false, (struct answer){nodes, NULL, count});
}

EXPORTED CUresult cuGraphNodeGetDependencies_v2(CUgraphNode node, CUgraphNode *nodes, CUgraphEdgeData *data,
                                                size_t *count) {
  return neighbours(node, false, (struct answer){nodes, data, count});
}

EXPORTED CUresult cuGraphNodeGetDependentNodes(CUgraphNode node, CUgraphNode *nodes, size_t *count) {
  return neighbours(node, true, (struct answer){nodes, NULL, count});
}

EXPORTED CUresult cuGraphNodeGetDependentNodes_v2(CUgraphNode node, CUgraphNode *nodes, CUgraphEdgeData *data,
                                                  size_t *count) {
  return neighbours(node, true, (struct answer){nodes, data, count});
}

/* The lock is held. */
static void tell_edges(const struct graph *graph, CUgraphNode *from, const struct answer *to) {
  size_t there = 0, room = to->nodes ? *to->count : 0;
  for (size_t n = 0; n < graph->nodes.count; n++) {
    struct node *node = graph->nodes.at[n];
    for (size_t i = 0; i < node->after.count; i++, there++) {
      if (there >= room) continue;
      from[there] = (CUgraphNode)node;
      to->nodes[there] = (CUgraphNode)node->after.at[i];
      if (to->data) to->data[there] = (CUgraphEdgeData){0};
    }
  }
  for (size_t n = there; n < room; n++) from[n] = to->nodes[n] = NULL;
  if (!to->nodes || there < room) *to->count = there;
}

EXPORTED CUresult cuGraphGetEdges_v2(CUgraph handle, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *data,
                                     size_t *count) {
  struct graph *graph;
  struct answer answer = {to, data, count};
  CHECK(begin(&answer));
  if (!from != !to) return CUDA_ERROR_INVALID_VALUE;
  graphs_lock();
  CUresult result = graph_of(handle, &graph);
  if (result == CUDA_SUCCESS) tell_edges(graph, from, &answer);
  graphs_unlock();
  return result;
}

EXPORTED CUresult cuGraphGetEdges(CUgraph graph, CUgraphNode *from, CUgraphNode *to, size_t *count) {
  return cuGraphGetEdges_v2(graph, from, to, NULL, count);
}

EXPORTED CUresult cuGraphNodeGetType(CUgraphNode handle, CUgraphNodeType *type) {
  struct node *node;
  CHECK(ready());
  if (!type) return CUDA_ERROR_INVALID_VALUE;
  graphs_lock();
  CUresult result = node_of(handle, &node);
  if (result == CUDA_SUCCESS) *type = node->type;
  graphs_unlock();
  return result;
}

/* Both ends of an edge, in a graph. The lock is held. */
static CUresult ends(const struct graph *graph, CUgraphNode from_handle, CUgraphNode to_handle, struct node **from,
                     struct node **to) {
  CHECK(node_of(from_handle, from));
  CHECK(node_of(to_handle, to));
  return (*from)->graph == graph && (*to)->graph == graph ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* Add an edge that is not there, or with `remove` remove one that is. */
static CUresult change(const struct graph *graph, CUgraphNode from_handle, CUgraphNode to_handle, bool remove) {
  struct node *from, *to;
  CHECK(ends(graph, from_handle, to_handle, &from, &to));
  if (edge_is(from, to) != remove) return CUDA_ERROR_INVALID_VALUE;
  if (!remove) return edge_add(from, to) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
  edge_remove(from, to);
  return CUDA_SUCCESS;
}

/* All or none: what was changed is changed back. */
static CUresult change_all(CUgraph handle, const CUgraphNode *from, const CUgraphNode *to, const CUgraphEdgeData *data,
                           size_t count, bool remove) {
  struct graph *graph;
  size_t done = 0;
  CHECK(ready());
  if (count && (!from || !to)) return CUDA_ERROR_INVALID_VALUE;
  CHECK(edges_check(data, count));
  graphs_lock();
  CUresult result = graph_of(handle, &graph);
  if (result == CUDA_SUCCESS && remove && count && graph->memory) result = CUDA_ERROR_NOT_SUPPORTED;
  while (result == CUDA_SUCCESS && done < count) {
    result = change(graph, from[done], to[done], remove);
    if (result == CUDA_SUCCESS) done++;
  }
  if (result != CUDA_SUCCESS)
    while (done--) change(graph, from[done], to[done], !remove);
  graphs_unlock();
  return result;
}

EXPORTED CUresult cuGraphAddDependencies_v2(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
                                            const CUgraphEdgeData *data, size_t count) {
  return change_all(graph, from, to, data, count, false);
}

EXPORTED CUresult cuGraphAddDependencies(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, size_t count) {
  return change_all(graph, from, to, NULL, count, false);
}

EXPORTED CUresult cuGraphRemoveDependencies_v2(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
                                               const CUgraphEdgeData *data, size_t count) {
  return change_all(graph, from, to, data, count, true);
}

EXPORTED CUresult cuGraphRemoveDependencies(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
                                            size_t count) {
  return change_all(graph, from, to, NULL, count, true);
}
