/* Functions for nodes that launch kernels. */
#include "driver.h"
#include "graph_nodes.h"
#include "graph_params.h"

#define EXTENTS(from)                                                                                                 \
  .gridDimX = (from)->gridDimX, .gridDimY = (from)->gridDimY, .gridDimZ = (from)->gridDimZ,                           \
  .blockDimX = (from)->blockDimX, .blockDimY = (from)->blockDimY, .blockDimZ = (from)->blockDimZ,                     \
  .sharedMemBytes = (from)->sharedMemBytes, .kernelParams = (from)->kernelParams, .extra = (from)->extra

#define ANY(...) ((any){.type = CU_GRAPH_NODE_TYPE_KERNEL, .kernel = {__VA_ARGS__}})
#define ANY_OF_V1(from) ANY(.func = (from)->func, EXTENTS(from))
#define ANY_OF_V2(from) ANY(.func = (from)->func, EXTENTS(from), .kern = (from)->kern, .ctx = (from)->ctx)

/* The older form has only functions, for which handles of kernels do as well. */
#define V1_OF(all)                                                                                                    \
  ((CUDA_KERNEL_NODE_PARAMS_v1){.func = (all)->kernel.func ? (all)->kernel.func : (CUfunction)(all)->kernel.kern,     \
                                EXTENTS(&(all)->kernel)})
#define V2_OF(all)                                                                                                    \
  ((CUDA_KERNEL_NODE_PARAMS_v2){.func = (all)->kernel.func, EXTENTS(&(all)->kernel), .kern = (all)->kernel.kern,      \
                                .ctx = (all)->kernel.ctx})

NODES(Kernel, , CU_GRAPH_NODE_TYPE_KERNEL, CUDA_KERNEL_NODE_PARAMS_v1, ANY_OF_V1, V1_OF)
NODES(Kernel, _v2, CU_GRAPH_NODE_TYPE_KERNEL, CUDA_KERNEL_NODE_PARAMS_v2, ANY_OF_V2, V2_OF)

/* Of the attributes there is the one that changes what a launch does. */
static CUresult check_attribute(CUkernelNodeAttrID attribute) {
  if (attribute == CU_LAUNCH_ATTRIBUTE_COOPERATIVE) return CUDA_SUCCESS;
  return attribute > CU_LAUNCH_ATTRIBUTE_IGNORE && attribute < CU_LAUNCH_ATTRIBUTE_MAX ? CUDA_ERROR_NOT_SUPPORTED
                                                                                      : CUDA_ERROR_INVALID_VALUE;
}

EXPORTED CUresult cuGraphKernelNodeGetAttribute(CUgraphNode node, CUkernelNodeAttrID attribute,
                                                CUkernelNodeAttrValue *value) {
  bool cooperative;
  if (!value) return CUDA_ERROR_INVALID_VALUE;
  CHECK(node_get_cooperative(node, &cooperative));
  CHECK(check_attribute(attribute));
  value->cooperative = cooperative;
  return CUDA_SUCCESS;
}

EXPORTED CUresult cuGraphKernelNodeSetAttribute(CUgraphNode node, CUkernelNodeAttrID attribute,
                                                const CUkernelNodeAttrValue *value) {
  struct command *command;
  any params;
  if (!value) return CUDA_ERROR_INVALID_VALUE;
  CHECK(node_get(node, &params, CU_GRAPH_NODE_TYPE_KERNEL));
  CHECK(check_attribute(attribute));
  CHECK(params_launch(&params.kernel, value->cooperative != 0, &command));
  return node_set_command(node, command);
}

EXPORTED CUresult cuGraphKernelNodeCopyAttributes(CUgraphNode to, CUgraphNode from) {
  bool cooperative;
  CHECK(node_get_cooperative(from, &cooperative));
  CUkernelNodeAttrValue value = {.cooperative = cooperative};
  return cuGraphKernelNodeSetAttribute(to, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &value);
}
