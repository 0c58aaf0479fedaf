#include <string.h>

#include "ask.h"
#include "graph_read.h"
#include "store.h"

enum { MOST_NODES = 1 << 18, MOST_BEFORE = 64 };

/* Places by handles: an open hash table of places + 1. */
struct places {
  uint32_t *slots, mask;
};

static uint32_t *slot_of(const struct graph_order *order, const struct places *places, CUgraphNode node) {
  uint32_t at = (uint32_t)(((uint64_t)(uintptr_t)node * 0x9e3779b97f4a7c15u) >> 40) & places->mask;
  while (places->slots[at] && order->nodes[places->slots[at] - 1] != node) at = (at + 1) & places->mask;
  return &places->slots[at];
}

static size_t slots_for(uint32_t count) {
  size_t slots = 16;
  while (slots < 2ul * count) slots *= 2;
  return slots;
}

/* With data of edges where there may be some: without room for it the driver would refuse. */
static CUresult dependencies(CUgraphNode node, CUgraphNode *list, CUgraphEdgeData *data, size_t *count) {
  return real.cuGraphNodeGetDependencies_v2 ? real.cuGraphNodeGetDependencies_v2(node, list, data, count)
                                            : real.cuGraphNodeGetDependencies(node, list, count);
}

static bool add_places(struct graph_order *order, const struct places *places, const CUgraphNode *list, size_t count) {
  uint32_t *added = growing_add(&order->before, count * sizeof *added);
  if (!added) return false;
  for (size_t i = 0; i < count; i++) {
    uint32_t found = *slot_of(order, places, list[i]);
    if (!found) return false;
    added[i] = found - 1;
  }
  return true;
}

/* What one node comes after. */
static bool ask_before(struct graph_order *order, const struct places *places, CUgraphNode node) {
  CUgraphNode few[MOST_BEFORE];
  CUgraphEdgeData few_data[MOST_BEFORE];
  size_t count = MOST_BEFORE;
  if (dependencies(node, few, few_data, &count) != CUDA_SUCCESS) return false;
  if (count < MOST_BEFORE) return add_places(order, places, few, count);
  count = 0; /* there may be more */
  if (dependencies(node, NULL, NULL, &count) != CUDA_SUCCESS || count > MOST_NODES) return false;
  size_t bytes = count * sizeof(CUgraphNode), data_bytes = count * sizeof(CUgraphEdgeData), found = count;
  CUgraphNode *list = store_take(bytes);
  CUgraphEdgeData *data = store_take(data_bytes);
  bool good = list && data && dependencies(node, list, data, &found) == CUDA_SUCCESS && found == count &&
              add_places(order, places, list, count);
  store_give(list, bytes);
  store_give(data, data_bytes);
  return good;
}

static bool ask_nodes(struct graph_order *order, CUgraph graph) {
  size_t count = 0;
  if (real.cuGraphGetNodes(graph, NULL, &count) != CUDA_SUCCESS || count > MOST_NODES) return false;
  order->count = (uint32_t)count;
  order->nodes = store_take((count + 1) * sizeof *order->nodes);
  order->order = store_take((count + 1) * sizeof *order->order);
  order->first = store_take((count + 1) * sizeof *order->first);
  if (!order->nodes || !order->order || !order->first) return false;
  size_t found = count;
  return !count || (real.cuGraphGetNodes(graph, order->nodes, &found) == CUDA_SUCCESS && found == count);
}

static bool ask_all(struct graph_order *order, struct places *places, size_t slots) {
  places->mask = (uint32_t)slots - 1;
  for (uint32_t i = 0; i < order->count; i++) *slot_of(order, places, order->nodes[i]) = i + 1;
  for (uint32_t i = 0; i < order->count; i++) {
    if (!ask_before(order, places, order->nodes[i])) return false;
    order->first[i + 1] = (uint32_t)(order->before.used / sizeof(uint32_t));
  }
  return true;
}

/* The order itself; `seen` has a zero for each node. False for a cycle. */
static bool sort(struct graph_order *order, char *seen) {
  const uint32_t *before = (const uint32_t *)(const void *)order->before.bytes;
  uint32_t count = 0;
  for (uint32_t i = 0; i < order->first[order->count]; i++) seen[before[i]] = 1;
  for (uint32_t i = 0; i < order->count; i++)
    if (!seen[i]) order->order[count++] = i; /* the last ones */
  memset(seen, 0, order->count);
  for (uint32_t i = 0; i < count; i++) seen[order->order[i]] = 1;
  for (uint32_t n = 0; n < count; n++) {
    uint32_t place = order->order[n];
    for (uint32_t i = order->first[place]; i < order->first[place + 1]; i++)
      if (!seen[before[i]]) {
        seen[before[i]] = 1;
        order->order[count++] = before[i];
      }
  }
  return count == order->count;
}

bool graph_order(struct graph_order *order, CUgraph graph) {
  *order = (struct graph_order){0};
  struct asking asking = ask_begin();
  bool good = ask_nodes(order, graph);
  size_t slots = slots_for(good ? order->count : 0), slot_bytes = slots * sizeof(uint32_t);
  struct places places = {good ? store_take(slot_bytes) : NULL, 0};
  char *seen = good ? store_take(order->count + 1) : NULL;
  good = places.slots && seen && ask_all(order, &places, slots) && sort(order, seen);
  ask_end(asking);
  store_give(places.slots, slot_bytes);
  store_give(seen, order->count + 1);
  return good;
}

void graph_order_end(struct graph_order *order) {
  store_give(order->nodes, (order->count + 1ul) * sizeof *order->nodes);
  store_give(order->order, (order->count + 1ul) * sizeof *order->order);
  store_give(order->first, (order->count + 1ul) * sizeof *order->first);
  growing_end(&order->before);
}
