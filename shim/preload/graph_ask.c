/* What the driver says of nodes. */
#include <string.h>

#include "ask.h"
#include "graph_node.h"

static CUresult ask_kernel(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v3 *to) {
  CUDA_KERNEL_NODE_PARAMS_v2 from = {0};
  CUDA_KERNEL_NODE_PARAMS_v1 old = {0};
  CUresult result;
  if (real.cuGraphKernelNodeGetParams_v2) {
    result = real.cuGraphKernelNodeGetParams_v2(node, &from);
  } else {
    result = real.cuGraphKernelNodeGetParams(node, &old);
    memcpy(&from, &old, sizeof old); /* which the other begins with */
  }
  *to = (CUDA_KERNEL_NODE_PARAMS_v3){
      .func = from.func, .gridDimX = from.gridDimX, .gridDimY = from.gridDimY, .gridDimZ = from.gridDimZ,
      .blockDimX = from.blockDimX, .blockDimY = from.blockDimY, .blockDimZ = from.blockDimZ,
      .sharedMemBytes = from.sharedMemBytes, .kernelParams = from.kernelParams, .extra = from.extra,
      .kern = from.kern, .ctx = from.ctx,
  };
  return result;
}

_Static_assert(offsetof(CUDA_KERNEL_NODE_PARAMS_v2, kern) == sizeof(CUDA_KERNEL_NODE_PARAMS_v1), "it begins with it");

static CUlaunchAttributeValue ask_attribute(CUgraphNode node, CUlaunchAttributeID id) {
  static const CUlaunchAttributeValue nothing;
  CUlaunchAttributeValue value = nothing;
  if (!real.cuGraphKernelNodeGetAttribute || real.cuGraphKernelNodeGetAttribute(node, id, &value) != CUDA_SUCCESS)
    return nothing;
  return value;
}

/* Those that change what a launch does. */
static void ask_attributes(CUgraphNode node, struct node_attributes *to) {
  if (ask_attribute(node, CU_LAUNCH_ATTRIBUTE_COOPERATIVE).cooperative) to->flags = WIRE_COOPERATIVE;
  to->on_device = ask_attribute(node, CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE)
                      .deviceUpdatableKernelNode.deviceUpdatable != 0;
  CUlaunchAttributeID id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
  CUlaunchAttributeValue clusters = ask_attribute(node, id);
  if (!clusters.clusterDim.x) return;
  to->list[to->count++] = (CUlaunchAttribute){.id = id, .value = clusters};
  id = CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE;
  to->list[to->count++] = (CUlaunchAttribute){.id = id, .value = ask_attribute(node, id)};
}

static CUresult ask_set(CUgraphNode node, CUDA_MEMSET_NODE_PARAMS_v2 *to) {
  CUDA_MEMSET_NODE_PARAMS_v1 from = {0};
  CUresult result = real.cuGraphMemsetNodeGetParams(node, &from);
  *to = (CUDA_MEMSET_NODE_PARAMS_v2){.dst = from.dst, .pitch = from.pitch, .value = from.value,
                                     .elementSize = from.elementSize, .width = from.width, .height = from.height};
  return result;
}

static CUresult ask_host(CUgraphNode node, CUDA_HOST_NODE_PARAMS_v2 *to) {
  CUDA_HOST_NODE_PARAMS_v1 from = {0};
  CUresult result = real.cuGraphHostNodeGetParams(node, &from);
  *to = (CUDA_HOST_NODE_PARAMS_v2){.fn = from.fn, .userData = from.userData};
  return result;
}

static CUresult ask_allocation(CUgraphNode node, CUDA_MEM_ALLOC_NODE_PARAMS_v2 *to) {
  CUDA_MEM_ALLOC_NODE_PARAMS_v1 from = {0};
  if (!real.cuGraphMemAllocNodeGetParams) return CUDA_ERROR_NOT_SUPPORTED;
  CUresult result = real.cuGraphMemAllocNodeGetParams(node, &from);
  *to = (CUDA_MEM_ALLOC_NODE_PARAMS_v2){.poolProps = from.poolProps, .bytesize = from.bytesize, .dptr = from.dptr};
  return result;
}

static CUresult ask_operations(CUgraphNode node, CUDA_BATCH_MEM_OP_NODE_PARAMS_v2 *to) {
  CUDA_BATCH_MEM_OP_NODE_PARAMS_v1 from = {0};
  if (!real.cuGraphBatchMemOpNodeGetParams) return CUDA_ERROR_NOT_SUPPORTED;
  CUresult result = real.cuGraphBatchMemOpNodeGetParams(node, &from);
  *to = (CUDA_BATCH_MEM_OP_NODE_PARAMS_v2){.ctx = from.ctx, .count = from.count, .paramArray = from.paramArray,
                                           .flags = from.flags};
  return result;
}

static CUresult ask_params(CUgraphNode node, CUgraphNodeParams *params, struct node_attributes *attributes) {
  switch (params->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
      ask_attributes(node, attributes);
      return ask_kernel(node, &params->kernel);
    case CU_GRAPH_NODE_TYPE_MEMCPY: return real.cuGraphMemcpyNodeGetParams(node, &params->memcpy.copyParams);
    case CU_GRAPH_NODE_TYPE_MEMSET: return ask_set(node, &params->memset);
    case CU_GRAPH_NODE_TYPE_HOST: return ask_host(node, &params->host);
    case CU_GRAPH_NODE_TYPE_GRAPH: return real.cuGraphChildGraphNodeGetGraph(node, &params->graph.graph);
    case CU_GRAPH_NODE_TYPE_EMPTY: return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT: return real.cuGraphEventWaitNodeGetEvent(node, &params->eventWait.event);
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD: return real.cuGraphEventRecordNodeGetEvent(node, &params->eventRecord.event);
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC: return ask_allocation(node, &params->alloc);
    case CU_GRAPH_NODE_TYPE_MEM_FREE: return real.cuGraphMemFreeNodeGetParams(node, &params->free.dptr);
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP: return ask_operations(node, &params->memOp);
    default: return CUDA_ERROR_NOT_SUPPORTED;
  }
}

void node_ask(CUgraphNode node, CUgraphNodeParams *params, struct node_attributes *attributes) {
  memset(params, 0, sizeof *params);
  *attributes = (struct node_attributes){0};
  struct asking asking = ask_begin();
  CUresult result = real.cuGraphNodeGetType(node, &params->type);
  if (result == CUDA_SUCCESS) result = ask_params(node, params, attributes);
  ask_end(asking);
  if (result != CUDA_SUCCESS) params->type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
}
