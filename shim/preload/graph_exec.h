/* Executable graphs as they were recorded. */
#ifndef TESSERA_GRAPH_EXEC_H
#define TESSERA_GRAPH_EXEC_H

#include "graph_node.h"
#include "graph_read.h"
#include "real.h"
#include "wire.h"

/* The record of an executable graph, whose nodes and edges `read` has: NULL if nobody knows what it does. */
struct exec_fields {
  uint64_t exec, graph, context;
  uint32_t flags;
};
void exec_record(unsigned number, const struct exec_fields *fields, const struct graph_read *read);

/* From now on nobody knows what it does. */
void exec_unknown(unsigned number, CUgraphExec exec);

/* Nodes get the handles that the executable graph was recorded with, its own parents and whether they are enabled:
 * `nodes` are paired with `count` that begin at `before`. False if they do not match. */
bool exec_pair(uint64_t exec, struct graph_read *nodes, const struct wire_node *before, uint32_t count);

#endif
