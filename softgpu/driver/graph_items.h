/* A graph without graphs in it: what is to be done, in an order in which it can be. */
#ifndef SOFTGPU_GRAPH_ITEMS_H
#define SOFTGPU_GRAPH_ITEMS_H

#include <stddef.h>

#include "graph.h"

struct item {
  struct node *node; /* NULL: where a graph in the graph begins or ends */
  size_t before, count; /* earlier items that it comes after: where they are in `items.before` */
};

struct items {
  struct item *at;
  size_t count, room;
  size_t *before, before_count, before_room;
};

/* With the lock of graphs. `bad`: a node in a cycle. */
CUresult items_make(const struct graph *graph, struct items *items, struct node **bad);
void items_end(struct items *items);

#endif
