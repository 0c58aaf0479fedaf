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

/* The common form of parameters. */
typedef CUgraphNodeParams any;

/* The four functions for nodes of one type whose parameters are a structure. `any_of` brings a pointer to it into the
 * common form, `of` a pointer to that back. */
#define NODES(name, suffix, node_type, params_type, any_of, of)                                                       \
  EXPORTED CUresult cuGraphAdd##name##Node##suffix(CUgraphNode *node, CUgraph graph, const CUgraphNode *before,       \
                                                   size_t count, const params_type *params) {                         \
    if (!params) return CUDA_ERROR_INVALID_VALUE;                                                                     \
    any all = any_of(params);                                                                                         \
    return node_add((struct node_place){node, graph, before, count}, &all);                                           \
  }                                                                                                                   \
  EXPORTED CUresult cuGraph##name##NodeGetParams##suffix(CUgraphNode node, params_type *params) {                     \
    any all;                                                                                                          \
    if (!params) return CUDA_ERROR_INVALID_VALUE;                                                                     \
    CHECK(node_get(node, &all, node_type));                                                                           \
    *params = of(&all);                                                                                               \
    return CUDA_SUCCESS;                                                                                              \
  }                                                                                                                   \
  EXPORTED CUresult cuGraph##name##NodeSetParams##suffix(CUgraphNode node, const params_type *params) {               \
    if (!params) return CUDA_ERROR_INVALID_VALUE;                                                                     \
    any all = any_of(params);                                                                                         \
    return node_set(node, &all);                                                                                      \
  }                                                                                                                   \
  EXPORTED CUresult cuGraphExec##name##NodeSetParams##suffix(CUgraphExec exec, CUgraphNode node,                      \
                                                             const params_type *params) {                             \
    if (!params) return CUDA_ERROR_INVALID_VALUE;                                                                     \
    any all = any_of(params);                                                                                         \
    return node_set_in(exec, node, &all);                                                                             \
  }

#endif
