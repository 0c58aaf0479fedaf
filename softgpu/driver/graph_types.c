/* Functions for nodes of one type each: their parameters are brought into the common form, and back. */
#include "driver.h"
#include "graph.h"
#include "graph_nodes.h"

EXPORTED CUresult cuGraphAddEmptyNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *before, size_t count) {
  return node_add((struct node_place){node, graph, before, count}, &(any){.type = CU_GRAPH_NODE_TYPE_EMPTY});
}

static any memcpy_params(const CUDA_MEMCPY3D *params, CUcontext context) {
  return (any){.type = CU_GRAPH_NODE_TYPE_MEMCPY, .memcpy = {.copyCtx = context, .copyParams = *params}};
}

/* A node that is there keeps its context. */
static CUcontext context_of(CUgraphNode node, CUgraphNodeType type) {
  any params;
  if (node_get(node, &params, type) != CUDA_SUCCESS) return NULL;
  return type == CU_GRAPH_NODE_TYPE_MEMCPY ? params.memcpy.copyCtx : params.memset.ctx;
}

EXPORTED CUresult cuGraphAddMemcpyNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *before, size_t count,
                                       const CUDA_MEMCPY3D *params, CUcontext context) {
  if (!params) return CUDA_ERROR_INVALID_VALUE;
  any all = memcpy_params(params, context);
  return node_add((struct node_place){node, graph, before, count}, &all);
}

EXPORTED CUresult cuGraphMemcpyNodeGetParams(CUgraphNode node, CUDA_MEMCPY3D *params) {
  any all;
  if (!params) return CUDA_ERROR_INVALID_VALUE;
  CHECK(node_get(node, &all, CU_GRAPH_NODE_TYPE_MEMCPY));
  *params = all.memcpy.copyParams;
  return CUDA_SUCCESS;
}

EXPORTED CUresult cuGraphMemcpyNodeSetParams(CUgraphNode node, const CUDA_MEMCPY3D *params) {
  if (!params) return CUDA_ERROR_INVALID_VALUE;
  any all = memcpy_params(params, context_of(node, CU_GRAPH_NODE_TYPE_MEMCPY));
  return node_set(node, &all);
}

EXPORTED CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_MEMCPY3D *params,
                                                 CUcontext context) {
  if (!params) return CUDA_ERROR_INVALID_VALUE;
  any all = memcpy_params(params, context);
  return node_set_in(exec, node, &all);
}

static any memset_params(const CUDA_MEMSET_NODE_PARAMS_v1 *params, CUcontext context) {
  return (any){.type = CU_GRAPH_NODE_TYPE_MEMSET,
               .memset = {.dst = params->dst, .pitch = params->pitch, .value = params->value,
                          .elementSize = params->elementSize, .width = params->width, .height = params->height,
                          .ctx = context}};
}

EXPORTED CUresult cuGraphAddMemsetNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *before, size_t count,
                                       const CUDA_MEMSET_NODE_PARAMS_v1 *params, CUcontext context) {
  if (!params) return CUDA_ERROR_INVALID_VALUE;
  any all = memset_params(params, context);
  return node_add((struct node_place){node, graph, before, count}, &all);
}

EXPORTED CUresult cuGraphMemsetNodeGetParams(CUgraphNode node, CUDA_MEMSET_NODE_PARAMS_v1 *params) {
  any all;
  if (!params) return CUDA_ERROR_INVALID_VALUE;
  CHECK(node_get(node, &all, CU_GRAPH_NODE_TYPE_MEMSET));
  *params = (CUDA_MEMSET_NODE_PARAMS_v1){.dst = all.memset.dst, .pitch = all.memset.pitch, .value = all.memset.value,
                                         .elementSize = all.memset.elementSize, .width = all.memset.width,
                                         .height = all.memset.height};
  return CUDA_SUCCESS;
}

EXPORTED CUresult cuGraphMemsetNodeSetParams(CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS_v1 *params) {
  if (!params) return CUDA_ERROR_INVALID_VALUE;
  any all = memset_params(params, context_of(node, CU_GRAPH_NODE_TYPE_MEMSET));
  return node_set(node, &all);
}

EXPORTED CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                                 const CUDA_MEMSET_NODE_PARAMS_v1 *params, CUcontext context) {
  if (!params) return CUDA_ERROR_INVALID_VALUE;
  any all = memset_params(params, context);
  return node_set_in(exec, node, &all);
}

static any any_of_host(const CUDA_HOST_NODE_PARAMS_v1 *params) {
  return (any){.type = CU_GRAPH_NODE_TYPE_HOST, .host = {.fn = params->fn, .userData = params->userData}};
}

static CUDA_HOST_NODE_PARAMS_v1 host_of(const any *all) {
  return (CUDA_HOST_NODE_PARAMS_v1){.fn = all->host.fn, .userData = all->host.userData};
}

NODES(Host, , CU_GRAPH_NODE_TYPE_HOST, CUDA_HOST_NODE_PARAMS_v1, any_of_host, host_of)

static any any_of_batch(const CUDA_BATCH_MEM_OP_NODE_PARAMS_v1 *params) {
  return (any){.type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP,
               .memOp = {.ctx = params->ctx, .count = params->count, .paramArray = params->paramArray,
                         .flags = params->flags}};
}

static CUDA_BATCH_MEM_OP_NODE_PARAMS_v1 batch_of(const any *all) {
  return (CUDA_BATCH_MEM_OP_NODE_PARAMS_v1){.ctx = all->memOp.ctx, .count = all->memOp.count,
                                            .paramArray = all->memOp.paramArray, .flags = all->memOp.flags};
}

NODES(BatchMemOp, , CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, CUDA_BATCH_MEM_OP_NODE_PARAMS_v1, any_of_batch, batch_of)

EXPORTED CUresult cuGraphAddMemAllocNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *before, size_t count,
                                         CUDA_MEM_ALLOC_NODE_PARAMS_v1 *params) {
  if (!params) return CUDA_ERROR_INVALID_VALUE;
  any all = {.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC,
             .alloc = {.poolProps = params->poolProps, .accessDescs = params->accessDescs,
                       .accessDescCount = params->accessDescCount, .bytesize = params->bytesize}};
  CHECK(node_add((struct node_place){node, graph, before, count}, &all));
  CHECK(node_get(*node, &all, CU_GRAPH_NODE_TYPE_MEM_ALLOC));
  params->dptr = all.alloc.dptr;
  return CUDA_SUCCESS;
}

EXPORTED CUresult cuGraphMemAllocNodeGetParams(CUgraphNode node, CUDA_MEM_ALLOC_NODE_PARAMS_v1 *params) {
  any all;
  if (!params) return CUDA_ERROR_INVALID_VALUE;
  CHECK(node_get(node, &all, CU_GRAPH_NODE_TYPE_MEM_ALLOC));
  *params = (CUDA_MEM_ALLOC_NODE_PARAMS_v1){
      .poolProps = all.alloc.poolProps, .accessDescs = all.alloc.accessDescs,
      .accessDescCount = all.alloc.accessDescCount, .bytesize = all.alloc.bytesize, .dptr = all.alloc.dptr};
  return CUDA_SUCCESS;
}

EXPORTED CUresult cuGraphAddMemFreeNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *before, size_t count,
                                        CUdeviceptr pointer) {
  return node_add((struct node_place){node, graph, before, count},
                  &(any){.type = CU_GRAPH_NODE_TYPE_MEM_FREE, .free = {pointer}});
}

EXPORTED CUresult cuGraphMemFreeNodeGetParams(CUgraphNode node, CUdeviceptr *pointer) {
  any all;
  if (!pointer) return CUDA_ERROR_INVALID_VALUE;
  CHECK(node_get(node, &all, CU_GRAPH_NODE_TYPE_MEM_FREE));
  *pointer = all.free.dptr;
  return CUDA_SUCCESS;
}

#define EVENT_NODE(name, node_type, field)                                                                            \
  EXPORTED CUresult cuGraphAdd##name##Node(CUgraphNode *node, CUgraph graph, const CUgraphNode *before, size_t count, \
                                           CUevent event) {                                                           \
    return node_add((struct node_place){node, graph, before, count},                                                  \
                    &(any){.type = node_type, .field = {event}});                                                     \
  }                                                                                                                   \
  EXPORTED CUresult cuGraph##name##NodeGetEvent(CUgraphNode node, CUevent *event) {                                   \
    any all;                                                                                                          \
    if (!event) return CUDA_ERROR_INVALID_VALUE;                                                                      \
    CHECK(node_get(node, &all, node_type));                                                                           \
    *event = all.field.event;                                                                                         \
    return CUDA_SUCCESS;                                                                                              \
  }                                                                                                                   \
  EXPORTED CUresult cuGraph##name##NodeSetEvent(CUgraphNode node, CUevent event) {                                    \
    return node_set(node, &(any){.type = node_type, .field = {event}});                                               \
  }                                                                                                                   \
  EXPORTED CUresult cuGraphExec##name##NodeSetEvent(CUgraphExec exec, CUgraphNode node, CUevent event) {              \
    return node_set_in(exec, node, &(any){.type = node_type, .field = {event}});                                      \
  }

EVENT_NODE(EventRecord, CU_GRAPH_NODE_TYPE_EVENT_RECORD, eventRecord)
EVENT_NODE(EventWait, CU_GRAPH_NODE_TYPE_WAIT_EVENT, eventWait)

EXPORTED CUresult cuGraphAddChildGraphNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *before, size_t count,
                                           CUgraph child) {
  return node_add((struct node_place){node, graph, before, count},
                  &(any){.type = CU_GRAPH_NODE_TYPE_GRAPH, .graph = {.graph = child}});
}

EXPORTED CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode handle, CUgraph *graph) {
  struct node *node;
  CHECK(ready());
  if (!graph) return CUDA_ERROR_INVALID_VALUE;
  graphs_lock();
  CUresult result = node_of(handle, &node);
  if (result == CUDA_SUCCESS && !node->child) result = CUDA_ERROR_INVALID_VALUE;
  if (result == CUDA_SUCCESS) *graph = (CUgraph)node->child;
  graphs_unlock();
  return result;
}

EXPORTED CUresult cuGraphExecChildGraphNodeSetParams(CUgraphExec exec, CUgraphNode node, CUgraph child) {
  return node_set_in(exec, node, &(any){.type = CU_GRAPH_NODE_TYPE_GRAPH, .graph = {.graph = child}});
}
