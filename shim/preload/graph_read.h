/* A graph as it is: its nodes in one order, and what comes after what. */
#ifndef TESSERA_GRAPH_READ_H
#define TESSERA_GRAPH_READ_H

#include "growing.h"
#include "real.h"
#include "wire.h"

struct graph_read {
  struct growing nodes; /* struct wire_node, those of a child graph right behind it */
  struct growing edges; /* struct wire_edge */
  uint32_t node_count, edge_count;
  bool whole;
};

/* All nodes, enabled, in the order in which cuGraphExecUpdate pairs nodes: the last ones in the graph's order, then in
 * turn the dependencies of each in their order. So the nodes of two graphs that are paired have the same places.
 * `parent`: of all of them. */
void graph_read(struct graph_read *read, CUgraph graph, uint64_t parent);
void graph_read_end(struct graph_read *read);

static inline struct wire_node *node_after(const struct wire_node *node) {
  return (struct wire_node *)(void *)((char *)(uintptr_t)node + node->size);
}

/* graph_order.c: handles of nodes, for each the places of those that it comes after. */
struct graph_order {
  CUgraphNode *nodes;
  uint32_t count;
  uint32_t *order;        /* places, in the order above */
  uint32_t *first;        /* of those before a node: from first[place] to first[place + 1] in `before` */
  struct growing before;  /* uint32_t */
};

/* False: the driver says too little, there is too much, or no memory. It is to be ended in any case. */
bool graph_order(struct graph_order *order, CUgraph graph);
void graph_order_end(struct graph_order *order);

#endif
