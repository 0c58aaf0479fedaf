/* Nodes of any type, by their parameters. */
#ifndef SOFTGPU_GRAPH_NODES_H
#define SOFTGPU_GRAPH_NODES_H

#include <stdbool.h>
#include <stddef.h>

#include "api.h"
#include "command.h"

/* What adding one takes besides its parameters. */
struct node_place {
  CUgraphNode *node;
  CUgraph graph;
  const CUgraphNode *before;
  size_t count;
};

CUresult node_add(struct node_place place, const CUgraphNodeParams *params);
/* Not of nodes without a command. */
CUresult node_get(CUgraphNode node, CUgraphNodeParams *params, CUgraphNodeType type);
CUresult node_set(CUgraphNode node, const CUgraphNodeParams *params);
CUresult node_set_command(CUgraphNode node, struct command *command); /* takes the reference, in any case */
CUresult node_get_cooperative(CUgraphNode node, bool *cooperative); /* of a kernel */
/* In an executable graph. */
CUresult node_set_in(CUgraphExec exec, CUgraphNode node, const CUgraphNodeParams *params);

#endif
