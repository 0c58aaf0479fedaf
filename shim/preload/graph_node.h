/* What a node of a graph does, in records. */
#ifndef TESSERA_GRAPH_NODE_H
#define TESSERA_GRAPH_NODE_H

#include "growing.h"
#include "real.h"
#include "wire.h"

enum { NODE_ATTRIBUTES = 8 };

/* What a launch in a node has besides its parameters. */
struct node_attributes {
  bool on_device; /* kernels may change it: nobody knows what it does */
  unsigned flags; /* enum wire_launch_flag: WIRE_COOPERATIVE */
  unsigned count;
  CUlaunchAttribute list[NODE_ATTRIBUTES];
};

/* The parameters of a node of a graph as the driver says them; what they point to belongs to the driver. Without
 * success only the type is there, CU_GRAPH_NODE_TYPE_CONDITIONAL for one that cannot be told. */
void node_ask(CUgraphNode node, CUgraphNodeParams *params, struct node_attributes *attributes);

/* The attributes of a node as it was recorded. */
void node_attributes(const struct wire_node *node, struct node_attributes *attributes);

/* A struct wire_node with its body: at the end of what grows. `named`: node, parent and enabled. */
void node_put(struct growing *to, const struct wire_node *named, const CUgraphNodeParams *params,
              const struct node_attributes *attributes);

#endif
