/* Executable graphs: a copy of a graph, and a plan for its launches. */
#ifndef SOFTGPU_GRAPH_EXEC_H
#define SOFTGPU_GRAPH_EXEC_H

#include "api.h"
#include "graph.h"
#include "graph_plan.h"

struct exec;

void execs_lock(void); /* before that of graphs */
void execs_unlock(void);

/* With the lock: CUDA_ERROR_INVALID_VALUE when it is none. */
CUresult exec_of(CUgraphExec handle, struct exec **exec);
struct graph *exec_graph(const struct exec *exec);

/* With the lock: where it has what belongs to a node of the graph that it was made from. */
CUresult exec_slot(const struct exec *exec, CUgraphNode node, struct slot **slot);
/* The same for a node of its copy. */
struct slot *exec_slot_of(const struct exec *exec, const struct node *node);
/* With the lock: what later launches do for a node. Takes no reference. */
CUresult exec_set(struct exec *exec, struct slot *slot, struct command *command);

#endif
