/* A graph's nodes in topological order (Kahn), with those of graphs in it. */
#include "graph_items.h"

#include <stdlib.h>

#include "driver.h"

void items_end(struct items *items) {
  free(items->at);
  free(items->before);
}

/* Begin a new item; `items_after` says what it comes after. */
static CUresult item_add(struct items *items, struct node *node) {
  if (items->count == items->room) {
    size_t room = items->room ? 2 * items->room : 64;
    struct item *at = realloc(items->at, room * sizeof *at);
    if (!at) return CUDA_ERROR_OUT_OF_MEMORY;
    items->at = at;
    items->room = room;
  }
  items->at[items->count++] = (struct item){node, items->before_count, 0};
  return CUDA_SUCCESS;
}

static CUresult item_after(struct items *items, size_t earlier) {
  if (items->before_count == items->before_room) {
    size_t room = items->before_room ? 2 * items->before_room : 64;
    size_t *before = realloc(items->before, room * sizeof *before);
    if (!before) return CUDA_ERROR_OUT_OF_MEMORY;
    items->before = before;
    items->before_room = room;
  }
  items->before[items->before_count++] = earlier;
  items->at[items->count - 1].count++;
  return CUDA_SUCCESS;
}

enum { NONE = -1 };

static CUresult add_graph(const struct graph *graph, long entry, struct items *items, struct node **bad);

/* A node whose `before` have items already, by their numbers; it gets a number then. Roots come after `entry`. */
static CUresult add_node(struct node *node, long entry, struct items *items, struct node **bad) {
  CHECK(item_add(items, node->child ? NULL : node));
  if (!node->before.count && entry != NONE) CHECK(item_after(items, (size_t)entry));
  for (size_t n = 0; n < node->before.count; n++) CHECK(item_after(items, node->before.at[n]->number));
  if (!node->child) {
    node->number = items->count - 1;
    return CUDA_SUCCESS;
  }
  size_t begin = items->count - 1;
  CHECK(add_graph(node->child, (long)begin, items, bad));
  CHECK(item_add(items, NULL));
  CHECK(item_after(items, begin));
  for (size_t n = 0; n < node->child->nodes.count; n++)
    if (!node->child->nodes.at[n]->after.count) CHECK(item_after(items, node->child->nodes.at[n]->number));
  node->number = items->count - 1;
  return CUDA_SUCCESS;
}

/* Nodes whose `before` are all done lie on a stack, so that what follows a node comes right after it if that can be.
 * Until a node is done, its number says how many are missing. */
static CUresult add_sorted(const struct graph *graph, struct node **ready, long entry, struct items *items,
                           struct node **bad) {
  size_t done = 0, found = 0;
  for (size_t n = graph->nodes.count; n--;) {
    graph->nodes.at[n]->number = graph->nodes.at[n]->before.count;
    if (!graph->nodes.at[n]->number) ready[found++] = graph->nodes.at[n];
  }
  unsigned long long mark = graph_walk();
  for (; found; done++) {
    struct node *node = ready[--found];
    CHECK(add_node(node, entry, items, bad));
    node->mark = mark;
    for (size_t n = node->after.count; n--;)
      if (!--node->after.at[n]->number) ready[found++] = node->after.at[n];
  }
  if (done == graph->nodes.count) return CUDA_SUCCESS;
  for (size_t n = 0; n < graph->nodes.count; n++)
    if (graph->nodes.at[n]->mark != mark) *bad = graph->nodes.at[n];
  return CUDA_ERROR_INVALID_VALUE;
}

static CUresult add_graph(const struct graph *graph, long entry, struct items *items, struct node **bad) {
  struct node **ready = malloc((graph->nodes.count + 1) * sizeof *ready);
  if (!ready) return CUDA_ERROR_OUT_OF_MEMORY;
  CUresult result = add_sorted(graph, ready, entry, items, bad);
  free(ready);
  return result;
}

CUresult items_make(const struct graph *graph, struct items *items, struct node **bad) {
  *items = (struct items){0};
  *bad = NULL;
  CUresult result = add_graph(graph, NONE, items, bad);
  if (result != CUDA_SUCCESS) items_end(items);
  return result;
}
