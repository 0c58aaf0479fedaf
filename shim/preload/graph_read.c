#include "graph_read.h"

#include "graph_node.h"

enum { MOST_DEPTH = 64 };

static void read_graph(struct graph_read *read, CUgraph graph, uint64_t parent, unsigned depth);

static void read_node(struct graph_read *read, CUgraphNode node, uint64_t parent, unsigned depth) {
  struct wire_node named = {.node = (uint64_t)(uintptr_t)node, .parent = parent, .enabled = 1};
  struct node_attributes attributes;
  CUgraphNodeParams params;
  node_ask(node, &params, &attributes);
  node_put(&read->nodes, &named, &params, &attributes);
  read->node_count++;
  if (params.type == CU_GRAPH_NODE_TYPE_GRAPH) read_graph(read, params.graph.graph, named.node, depth + 1);
}

static void read_edges(struct graph_read *read, const struct graph_order *order, uint32_t place) {
  const uint32_t *before = (const uint32_t *)(const void *)order->before.bytes;
  uint32_t from = order->first[place], to = order->first[place + 1];
  struct wire_edge *edges = growing_add(&read->edges, (to - from) * sizeof *edges);
  for (uint32_t i = from; edges && i < to; i++)
    edges[i - from] = (struct wire_edge){(uint64_t)(uintptr_t)order->nodes[before[i]],
                                         (uint64_t)(uintptr_t)order->nodes[place]};
  read->edge_count += to - from;
}

static void read_graph(struct graph_read *read, CUgraph graph, uint64_t parent, unsigned depth) {
  struct graph_order order;
  read->whole = graph_order(&order, graph) && depth < MOST_DEPTH;
  for (uint32_t i = 0; read->whole && i < order.count; i++) {
    uint32_t place = order.order[i];
    read_edges(read, &order, place);
    read_node(read, order.nodes[place], parent, depth);
    if (read->nodes.failed || read->edges.failed) read->whole = false;
  }
  graph_order_end(&order);
}

void graph_read(struct graph_read *read, CUgraph graph, uint64_t parent) {
  *read = (struct graph_read){0};
  read_graph(read, graph, parent, 0);
}

void graph_read_end(struct graph_read *read) {
  growing_end(&read->nodes);
  growing_end(&read->edges);
}
