/* Memory that graphs allocate and free. */
#ifndef SOFTGPU_GRAPH_MEMORY_H
#define SOFTGPU_GRAPH_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

#include "api.h"
#include "command.h"
#include "graph.h"
#include "graph_plan.h"

/* Nodes that allocate, or free what another one allocates. The address is known at once. */
CUresult graph_alloc_command(const CUDA_MEM_ALLOC_NODE_PARAMS_v2 *params, struct command **made);
CUresult graph_free_command(CUdeviceptr pointer, struct command **made);
void graph_alloc_params(const struct command *command, CUDA_MEM_ALLOC_NODE_PARAMS_v2 *params);
CUdeviceptr graph_free_params(const struct command *command);

/* With the lock of graphs: a graph is to get such a node, unless it may not have it. */
CUresult graph_memory_enter(struct graph *graph, const struct command *command);

/* What launches of an executable graph leave to be freed, and what they free that others have left. */
struct exec_memory {
  const struct command **left, **freed;
  size_t left_count, freed_count;
};

CUresult exec_memory_make(const struct plan *plan, struct exec_memory *memory);
void exec_memory_end(struct exec_memory *memory);
/* A launch begins, or may not. `again`: it frees what the one before has left. */
CUresult exec_memory_launch(const struct exec_memory *memory, bool again);

/* The program frees what a launch has left, now or in a stream. False: the memory is none of graphs. */
bool graph_memory_free(CUdeviceptr pointer, const struct stream_place *place, CUresult *result);

#endif
