/* Executable graphs get what nodes of another graph do. */
#ifndef SOFTGPU_GRAPH_UPDATE_H
#define SOFTGPU_GRAPH_UPDATE_H

#include "api.h"

/* What the graph of a node in an executable graph does is what `child` does from now on. */
CUresult update_child(CUgraphExec exec, CUgraphNode node, CUgraph child);

#endif
