/* Graphs: what they consist of, creation, clones, ends. */
#include "graph.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "driver.h"
#include "freed.h"
#include "handles.h"

static struct freed freed = FREED, freed_nodes = FREED;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* all graphs, and what follows */
static unsigned long long last_graph, last_node, last_mark;

void graphs_lock(void) { pthread_mutex_lock(&lock); }
void graphs_unlock(void) { pthread_mutex_unlock(&lock); }

CUresult graph_of(CUgraph handle, struct graph **graph) {
  *graph = (struct graph *)handle;
  return handle_is(GRAPH, handle, false) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult node_of(CUgraphNode handle, struct node **node) {
  *node = (struct node *)handle;
  return handle_is(GRAPH_NODE, handle, false) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

unsigned long long graph_walk(void) { return ++last_mark; }

bool nodes_add(struct nodes *nodes, struct node *node) {
  if (nodes->count == nodes->room) {
    size_t room = nodes->room ? 2 * nodes->room : 2;
    struct node **at = realloc(nodes->at, room * sizeof *at);
    if (!at) return false;
    nodes->at = at;
    nodes->room = room;
  }
  nodes->at[nodes->count++] = node;
  return true;
}

static bool nodes_remove(struct nodes *nodes, const struct node *node) {
  for (size_t n = nodes->count; n--;)
    if (nodes->at[n] == node) {
      memmove(nodes->at + n, nodes->at + n + 1, (--nodes->count - n) * sizeof *nodes->at);
      return true;
    }
  return false;
}

bool edge_add(struct node *from, struct node *to) {
  if (!nodes_add(&from->after, to)) return false;
  if (nodes_add(&to->before, from)) return true;
  from->after.count--;
  return false;
}

void edge_remove(struct node *from, struct node *to) {
  nodes_remove(&from->after, to);
  nodes_remove(&to->before, from);
}

bool edge_is(const struct node *from, const struct node *to) {
  if (from->after.count < to->before.count) {
    for (size_t n = 0; n < from->after.count; n++)
      if (from->after.at[n] == to) return true;
    return false;
  }
  for (size_t n = 0; n < to->before.count; n++)
    if (to->before.at[n] == from) return true;
  return false;
}

CUresult graph_check(const struct graph *graph, const CUgraphNode *dependencies, size_t count) {
  if (count && !dependencies) return CUDA_ERROR_INVALID_VALUE;
  unsigned long long mark = graph_walk();
  for (size_t n = 0; n < count; n++) {
    struct node *node;
    CHECK(node_of(dependencies[n], &node));
    if (node->graph != graph || node->mark == mark) return CUDA_ERROR_INVALID_VALUE;
    node->mark = mark;
  }
  return CUDA_SUCCESS;
}

CUresult edges_check(const CUgraphEdgeData *data, size_t count) {
  static const CUgraphEdgeData plain;
  CUresult result = CUDA_SUCCESS;
  for (size_t n = 0; data && n < count; n++) {
    if (data[n].type > CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC || data[n].to_port ||
        memcmp(data[n].reserved, plain.reserved, sizeof plain.reserved))
      return CUDA_ERROR_INVALID_VALUE;
    if (memcmp(&data[n], &plain, sizeof plain)) result = CUDA_ERROR_NOT_SUPPORTED;
  }
  return result;
}

void node_end(struct node *node) {
  if (node->command) command_release(node->command);
  if (node->child) graph_end(node->child);
  free(node->before.at);
  free(node->after.at);
  object_free(&freed_nodes, node);
}

/* A node that has no edges yet. What it is to have stays the caller's. */
static struct node *add(struct graph *graph, CUgraphNodeType type) {
  struct node *node = object_make(&freed_nodes, sizeof *node);
  if (!node) return NULL;
  *node = (struct node){.graph = graph, .id = ++last_node, .type = type};
  if (!nodes_add(&graph->nodes, node)) {
    object_free(&freed_nodes, node);
    return NULL;
  }
  if (graph->hidden || handle_add(GRAPH_NODE, node)) return node;
  graph->nodes.count--;
  object_free(&freed_nodes, node);
  return NULL;
}

struct node *graph_add(struct graph *graph, const CUgraphNode *dependencies, size_t count, CUgraphNodeType type,
                       struct command *command, struct graph *child) {
  struct node *node = add(graph, type);
  for (size_t n = 0; node && n < count; n++)
    if (!edge_add((struct node *)dependencies[n], node)) {
      graph_remove(node);
      node_end(node);
      return NULL;
    }
  if (!node) return NULL;
  node->command = command;
  node->child = child;
  if (child) child->owner = node;
  return node;
}

void graph_remove(struct node *node) {
  while (node->before.count) edge_remove(node->before.at[node->before.count - 1], node);
  while (node->after.count) edge_remove(node, node->after.at[node->after.count - 1]);
  nodes_remove(&node->graph->nodes, node);
  handle_is(GRAPH_NODE, node, true);
  if (node->child) graph_hide(node->child);
}

struct graph *graph_make(void) {
  struct graph *graph = object_make(&freed, sizeof *graph);
  if (graph) graph->id = ++last_graph;
  if (graph && handle_add(GRAPH, graph)) return graph;
  object_free(&freed, graph);
  return NULL;
}

static bool clone_nodes(const struct graph *from, struct graph *to) {
  for (size_t n = 0; n < from->nodes.count; n++) {
    struct node *original = from->nodes.at[n], *node = add(to, original->type);
    if (!node) return false;
    original->number = n;
    node->origin = original->id;
    node->disabled = original->disabled;
    if (original->command) node->command = command_hold(original->command);
    if (!original->child) continue;
    node->child = graph_clone(original->child, to->hidden);
    if (!node->child) return false;
    node->child->owner = node;
  }
  for (size_t n = 0; n < from->nodes.count; n++) {
    const struct nodes *before = &from->nodes.at[n]->before, *after = &from->nodes.at[n]->after;
    struct node *node = to->nodes.at[n];
    for (size_t i = 0; i < before->count; i++) /* both lists as they are: their order can be seen */
      if (!nodes_add(&node->before, to->nodes.at[before->at[i]->number])) return false;
    for (size_t i = 0; i < after->count; i++)
      if (!nodes_add(&node->after, to->nodes.at[after->at[i]->number])) return false;
  }
  return user_references_copy(from->objects, &to->objects);
}

struct graph *graph_clone(const struct graph *from, bool hidden) {
  struct graph *graph = hidden ? object_make(&freed, sizeof *graph) : graph_make();
  if (!graph) return NULL;
  graph->hidden = hidden;
  graph->origin = from->id;
  graph->memory = from->memory;
  if (clone_nodes(from, graph)) return graph;
  graph_hide(graph);
  graph_end(graph);
  return NULL;
}

void graph_hide(struct graph *graph) {
  handle_is(GRAPH, graph, true);
  for (size_t n = 0; n < graph->nodes.count; n++) {
    handle_is(GRAPH_NODE, graph->nodes.at[n], true);
    if (graph->nodes.at[n]->child) graph_hide(graph->nodes.at[n]->child);
  }
}

void graph_end(struct graph *graph) {
  for (size_t n = 0; n < graph->nodes.count; n++) node_end(graph->nodes.at[n]);
  user_references_end(graph->objects);
  free(graph->nodes.at);
  object_free(&freed, graph);
}

/* Whether captures write into it, or into a graph in it. */
static bool is_written(const struct graph *graph) {
  bool captured = graph->captures;
  for (size_t n = 0; n < graph->nodes.count && !captured; n++)
    captured = graph->nodes.at[n]->child && is_written(graph->nodes.at[n]->child);
  return captured;
}

EXPORTED CUresult cuGraphCreate(CUgraph *handle, unsigned int flags) {
  CHECK(ready());
  if (!handle || flags) return CUDA_ERROR_INVALID_VALUE;
  graphs_lock();
  struct graph *graph = graph_make();
  graphs_unlock();
  *handle = (CUgraph)graph;
  return graph ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

EXPORTED CUresult cuGraphDestroy(CUgraph handle) {
  struct graph *graph;
  CHECK(ready());
  graphs_lock();
  CUresult result = graph_of(handle, &graph);
  if (result == CUDA_SUCCESS && (graph->owner || is_written(graph))) result = CUDA_ERROR_INVALID_VALUE;
  if (result == CUDA_SUCCESS) graph_hide(graph);
  graphs_unlock();
  if (result == CUDA_SUCCESS) graph_end(graph);
  return result;
}

EXPORTED CUresult cuGraphClone(CUgraph *handle, CUgraph original) {
  struct graph *graph, *clone = NULL;
  CHECK(ready());
  if (!handle) return CUDA_ERROR_INVALID_VALUE;
  graphs_lock();
  CUresult result = graph_of(original, &graph);
  if (result == CUDA_SUCCESS && graph->memory) result = CUDA_ERROR_NOT_SUPPORTED;
  if (result == CUDA_SUCCESS && !(clone = graph_clone(graph, false))) result = CUDA_ERROR_OUT_OF_MEMORY;
  graphs_unlock();
  if (clone) *handle = (CUgraph)clone;
  return result;
}

EXPORTED CUresult cuGraphNodeFindInClone(CUgraphNode *handle, CUgraphNode original, CUgraph clone) {
  struct graph *graph;
  struct node *node, *found = NULL;
  CHECK(ready());
  graphs_lock();
  CUresult result = graph_of(clone, &graph);
  if (result == CUDA_SUCCESS) result = node_of(original, &node);
  if (result == CUDA_SUCCESS && node->graph->id == graph->origin)
    for (size_t n = 0; n < graph->nodes.count && !found; n++)
      if (graph->nodes.at[n]->origin == node->id) found = graph->nodes.at[n];
  graphs_unlock();
  if (!handle || !found) return CUDA_ERROR_INVALID_VALUE;
  *handle = (CUgraphNode)found;
  return result;
}

EXPORTED CUresult cuGraphDestroyNode(CUgraphNode handle) {
  struct node *node;
  CHECK(ready());
  graphs_lock();
  CUresult result = node_of(handle, &node);
  if (result == CUDA_SUCCESS && (node->graph->captures || (node->child && is_written(node->child))))
    result = CUDA_ERROR_INVALID_VALUE;
  if (result == CUDA_SUCCESS && node->graph->memory) result = CUDA_ERROR_NOT_SUPPORTED;
  if (result == CUDA_SUCCESS) graph_remove(node);
  graphs_unlock();
  if (result == CUDA_SUCCESS) node_end(node);
  return result;
}
