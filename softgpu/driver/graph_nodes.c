/* Nodes: they are added, and their parameters are asked for and set, whatever their type. */
#include "graph_nodes.h"

#include "driver.h"
#include "graph.h"
#include "graph_exec.h"
#include "graph_memory.h"
#include "graph_params.h"
#include "graph_update.h"
#include "launch.h"

/* The graph that a new node is to have. The lock is held. */
static CUresult take_child(const struct graph *graph, const CUDA_CHILD_GRAPH_NODE_PARAMS *params,
                           struct graph **child) {
  struct graph *given;
  CHECK(graph_of(params->graph, &given));
  if (given->moved) return CUDA_ERROR_INVALID_VALUE;
  if (params->ownership == CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE) {
    if (given->memory) return CUDA_ERROR_NOT_SUPPORTED;
    *child = graph_clone(given, false);
    return *child ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
  }
  while (graph->owner) graph = graph->owner->graph;
  if (params->ownership != CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE || given->owner || given == graph)
    return CUDA_ERROR_INVALID_VALUE;
  *child = given;
  return CUDA_SUCCESS;
}

/* The lock is held. Takes the command if it succeeds. */
static CUresult add_locked(const struct node_place *place, const CUgraphNodeParams *params, struct command *command) {
  struct graph *graph, *child = NULL;
  CHECK(graph_of(place->graph, &graph));
  CHECK(graph_check(graph, place->before, place->count));
  if (params->type == CU_GRAPH_NODE_TYPE_GRAPH) CHECK(take_child(graph, &params->graph, &child));
  if (command) CHECK(graph_memory_enter(graph, command));
  struct node *node = graph_add(graph, place->before, place->count, params->type, command, child);
  if (node) {
    if (child) {
      child->moved = params->graph.ownership == CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE;
      for (struct graph *above = graph; above; above = above->owner ? above->owner->graph : NULL)
        above->memory |= child->memory;
    }
    *place->node = (CUgraphNode)node;
    return CUDA_SUCCESS;
  }
  if (child && params->graph.ownership == CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE) {
    graph_hide(child);
    graph_end(child);
  }
  return CUDA_ERROR_OUT_OF_MEMORY;
}

static bool has_command(CUgraphNodeType type) {
  return type != CU_GRAPH_NODE_TYPE_GRAPH && type != CU_GRAPH_NODE_TYPE_EMPTY;
}

static bool may_change(CUgraphNodeType type) {
  return has_command(type) && type != CU_GRAPH_NODE_TYPE_MEM_ALLOC && type != CU_GRAPH_NODE_TYPE_MEM_FREE;
}

CUresult node_add(struct node_place place, const CUgraphNodeParams *params) {
  struct command *command = NULL;
  CHECK(ready());
  if (!place.node || !params) return CUDA_ERROR_INVALID_VALUE;
  if (has_command(params->type)) CHECK(params_command(params, &command));
  graphs_lock();
  CUresult result = add_locked(&place, params, command);
  graphs_unlock();
  if (result != CUDA_SUCCESS && command) command_release(command);
  return result;
}

CUresult node_get(CUgraphNode handle, CUgraphNodeParams *params, CUgraphNodeType type) {
  struct node *node;
  CHECK(ready());
  graphs_lock();
  CUresult result = node_of(handle, &node);
  if (result == CUDA_SUCCESS && node->type != type) result = CUDA_ERROR_INVALID_VALUE;
  if (result == CUDA_SUCCESS) command_params(node->command, params);
  graphs_unlock();
  return result;
}

CUresult node_get_cooperative(CUgraphNode handle, bool *cooperative) {
  struct node *node;
  CHECK(ready());
  graphs_lock();
  CUresult result = node_of(handle, &node);
  if (result == CUDA_SUCCESS && node->type != CU_GRAPH_NODE_TYPE_KERNEL) result = CUDA_ERROR_INVALID_VALUE;
  if (result == CUDA_SUCCESS) *cooperative = launch_is_cooperative(node->command);
  graphs_unlock();
  return result;
}

/* The lock is held. */
static CUresult set_locked(CUgraphNode handle, struct command *command, struct command **before) {
  struct node *node;
  CHECK(node_of(handle, &node));
  if (node->type != command->kind->type) return CUDA_ERROR_INVALID_VALUE;
  *before = node->command;
  node->command = command;
  return CUDA_SUCCESS;
}

/* A command for a node that is there: what its parameters do not say stays as it is. */
static CUresult command_for(CUgraphNode node, const CUgraphNodeParams *params, struct command **made) {
  bool cooperative;
  if (params->type != CU_GRAPH_NODE_TYPE_KERNEL) return params_command(params, made);
  CHECK(node_get_cooperative(node, &cooperative));
  return params_launch(&params->kernel, cooperative, made);
}

CUresult node_set(CUgraphNode node, const CUgraphNodeParams *params) {
  struct command *command;
  CHECK(ready());
  if (!may_change(params->type)) return CUDA_ERROR_NOT_SUPPORTED;
  CHECK(command_for(node, params, &command));
  return node_set_command(node, command);
}

CUresult node_set_command(CUgraphNode node, struct command *command) {
  struct command *before;
  graphs_lock();
  CUresult result = set_locked(node, command, &before);
  graphs_unlock();
  command_release(result == CUDA_SUCCESS ? before : command);
  return result;
}

/* The lock is held. */
static CUresult set_in_locked(CUgraphExec handle, CUgraphNode node, struct command *command) {
  struct exec *exec;
  struct slot *slot;
  CHECK(exec_of(handle, &exec));
  CHECK(exec_slot(exec, node, &slot));
  if (!slot->node->command || params_change(slot->node->command, command) != CU_GRAPH_EXEC_UPDATE_SUCCESS)
    return CUDA_ERROR_INVALID_VALUE;
  return exec_set(exec, slot, command);
}

/* In an executable graph. */
CUresult node_set_in(CUgraphExec exec, CUgraphNode node, const CUgraphNodeParams *params) {
  struct command *command;
  CHECK(ready());
  if (params->type == CU_GRAPH_NODE_TYPE_GRAPH) return update_child(exec, node, params->graph.graph);
  if (!may_change(params->type)) return CUDA_ERROR_NOT_SUPPORTED;
  CHECK(command_for(node, params, &command));
  execs_lock();
  CUresult result = set_in_locked(exec, node, command);
  execs_unlock();
  command_release(command);
  return result;
}

/* Of any type. */

EXPORTED CUresult cuGraphAddNode_v2(CUgraphNode *node, CUgraph graph, const CUgraphNode *before,
                                    const CUgraphEdgeData *data, size_t count, CUgraphNodeParams *params) {
  CHECK(ready());
  if (!params || !params_clean(params)) return CUDA_ERROR_INVALID_VALUE;
  CHECK(edges_check(data, count));
  CHECK(node_add((struct node_place){node, graph, before, count}, params));
  CUgraphNodeParams made;
  if (params->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC && node_get(*node, &made, params->type) == CUDA_SUCCESS)
    params->alloc.dptr = made.alloc.dptr;
  return CUDA_SUCCESS;
}

EXPORTED CUresult cuGraphAddNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *before, size_t count,
                                 CUgraphNodeParams *params) {
  return cuGraphAddNode_v2(node, graph, before, NULL, count, params);
}

EXPORTED CUresult cuGraphNodeSetParams(CUgraphNode node, CUgraphNodeParams *params) {
  return params && params_clean(params) ? node_set(node, params) : CUDA_ERROR_INVALID_VALUE;
}

EXPORTED CUresult cuGraphExecNodeSetParams(CUgraphExec exec, CUgraphNode node, CUgraphNodeParams *params) {
  return params && params_clean(params) ? node_set_in(exec, node, params) : CUDA_ERROR_INVALID_VALUE;
}
