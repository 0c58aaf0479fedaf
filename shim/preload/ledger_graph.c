/* What the ledger has of executable graphs. */
#include <string.h>

#include "ledger.h"
#include "session.h"
#include "store.h"

struct wire_graph_exec *ledger_graph(uint64_t exec) { return ledger_copy(WIRE_GRAPH_EXEC, exec); }

struct wire_graph_node *ledger_change(uint64_t exec, uint64_t node) {
  return ledger_copy(ledger_change_key(node), exec);
}

/* Under the ring's lock. */
static const struct wire_node *find(uint64_t exec, uint64_t handle) {
  const struct wire_graph_node *change = (const void *)ledger_find(ledger_change_key(handle), exec);
  if (change) return (const void *)(change + 1);
  const struct wire_graph_exec *graph = (const void *)ledger_find(WIRE_GRAPH_EXEC, exec);
  if (!graph) return NULL;
  const struct wire_node *node = (const void *)(graph + 1);
  for (uint32_t i = 0; i < graph->nodes; i++, node = (const void *)((const char *)node + node->size))
    if (node->node == handle) return node;
  return NULL;
}

struct wire_node *ledger_node(uint64_t exec, uint64_t node) {
  lock_take(&session->ring.lock);
  const struct wire_node *found = find(exec, node);
  struct wire_node *made = found ? store_take(found->size) : NULL;
  if (made) memcpy(made, found, found->size);
  lock_give(&session->ring.lock);
  return made;
}
