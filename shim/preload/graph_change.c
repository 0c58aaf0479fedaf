/* Executable graphs get new parameters for a node: recorded when the driver has taken them. Nodes are named by their
 * handles in the graph that the executable one was made from, whatever became of that. */
#include <string.h>

#include "graph_exec.h"
#include "hooks.h"
#include "session.h"

static void record_node(unsigned number, uint64_t exec, const struct wire_node *node) {
  struct wire_graph_node *record = record_begin(WIRE_GRAPH_NODE, number, sizeof *record + node->size);
  record->exec = exec;
  memcpy(record + 1, node, node->size);
  record_end(record);
}

/* What was not recorded of it, as its attributes, stays. */
static void set_params(unsigned number, CUgraphExec exec, CUgraphNode node, const CUgraphNodeParams *params) {
  uint64_t handle = (uint64_t)(uintptr_t)exec;
  struct wire_node *before = ledger_node(handle, (uint64_t)(uintptr_t)node);
  struct growing now = {0};
  struct node_attributes attributes;
  if (before) {
    node_attributes(before, &attributes);
    node_put(&now, before, params, &attributes);
    store_give(before, before->size);
  }
  if (!before || now.failed)
    exec_unknown(number, exec);
  else
    record_node(number, handle, (const struct wire_node *)(const void *)now.bytes);
  growing_end(&now);
}

/* The nodes of a node that is a graph: those behind it, as many as the other graph has. */
static void set_child(unsigned number, CUgraphExec exec, CUgraphNode node, CUgraph child) {
  uint64_t handle = (uint64_t)(uintptr_t)exec;
  struct wire_graph_exec *before = ledger_graph(handle);
  struct graph_read read;
  bool known = false;
  if (!before) return;
  graph_read(&read, child, 0);
  const struct wire_node *found = (const void *)(before + 1);
  for (uint32_t i = 0; i < before->nodes && !known; i++, found = node_after(found))
    known = found->node == (uint64_t)(uintptr_t)node && found->kind == WIRE_NODE_CHILD &&
            read.node_count < before->nodes - i;
  known = known && exec_pair(handle, &read, found, read.node_count);
  const struct wire_node *now = (const struct wire_node *)(const void *)read.nodes.bytes;
  for (uint32_t i = 0; known && i < read.node_count; i++, now = node_after(now)) record_node(number, handle, now);
  if (!known) exec_unknown(number, exec);
  graph_read_end(&read);
  store_give(before, before->head.size);
}

static CUresult changed(CUresult result, unsigned number, CUgraphExec exec, CUgraphNode node,
                        const CUgraphNodeParams *params) {
  inside--;
  if (result != CUDA_SUCCESS) return result;
  if (params->type == CU_GRAPH_NODE_TYPE_GRAPH)
    set_child(number, exec, node, params->graph.graph);
  else
    set_params(number, exec, node, params);
  return result;
}

#define CHANGE(symbol, arguments, ...)                                            \
  if (!recording()) return real.symbol arguments;                                 \
  CUgraphNodeParams params = {__VA_ARGS__};                                       \
  inside++;                                                                       \
  return changed(real.symbol arguments, NUMBER_##symbol, exec, node, &params)

/* A structure that is not there is refused by the driver. */
#define GIVEN(params) (params ? *params : (__typeof__(*params)){0})

#define OLD_KERNEL(from)                                                                                             \
  .func = from.func, .gridDimX = from.gridDimX, .gridDimY = from.gridDimY, .gridDimZ = from.gridDimZ,                \
  .blockDimX = from.blockDimX, .blockDimY = from.blockDimY, .blockDimZ = from.blockDimZ,                             \
  .sharedMemBytes = from.sharedMemBytes, .kernelParams = from.kernelParams, .extra = from.extra

CUresult hook_cuGraphExecKernelNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                             const CUDA_KERNEL_NODE_PARAMS_v1 *given) {
  CUDA_KERNEL_NODE_PARAMS_v1 from = GIVEN(given);
  CHANGE(cuGraphExecKernelNodeSetParams, (exec, node, given), .type = CU_GRAPH_NODE_TYPE_KERNEL,
         .kernel = {OLD_KERNEL(from)});
}

CUresult hook_cuGraphExecKernelNodeSetParams_v2(CUgraphExec exec, CUgraphNode node,
                                                const CUDA_KERNEL_NODE_PARAMS_v2 *given) {
  CUDA_KERNEL_NODE_PARAMS_v2 from = GIVEN(given);
  CHANGE(cuGraphExecKernelNodeSetParams_v2, (exec, node, given), .type = CU_GRAPH_NODE_TYPE_KERNEL,
         .kernel = {OLD_KERNEL(from), .kern = from.kern, .ctx = from.ctx});
}

CUresult hook_cuGraphExecMemcpyNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_MEMCPY3D_v2 *given,
                                             CUcontext context) {
  CHANGE(cuGraphExecMemcpyNodeSetParams, (exec, node, given, context), .type = CU_GRAPH_NODE_TYPE_MEMCPY,
         .memcpy = {.copyCtx = context, .copyParams = GIVEN(given)});
}

CUresult hook_cuGraphExecMemsetNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                             const CUDA_MEMSET_NODE_PARAMS_v1 *given, CUcontext context) {
  CUDA_MEMSET_NODE_PARAMS_v1 from = GIVEN(given);
  CHANGE(cuGraphExecMemsetNodeSetParams, (exec, node, given, context), .type = CU_GRAPH_NODE_TYPE_MEMSET,
         .memset = {.dst = from.dst, .pitch = from.pitch, .value = from.value, .elementSize = from.elementSize,
                    .width = from.width, .height = from.height, .ctx = context});
}

CUresult hook_cuGraphExecHostNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_HOST_NODE_PARAMS_v1 *given) {
  CUDA_HOST_NODE_PARAMS_v1 from = GIVEN(given);
  CHANGE(cuGraphExecHostNodeSetParams, (exec, node, given), .type = CU_GRAPH_NODE_TYPE_HOST,
         .host = {.fn = from.fn, .userData = from.userData});
}

CUresult hook_cuGraphExecChildGraphNodeSetParams(CUgraphExec exec, CUgraphNode node, CUgraph child) {
  CHANGE(cuGraphExecChildGraphNodeSetParams, (exec, node, child), .type = CU_GRAPH_NODE_TYPE_GRAPH,
         .graph = {.graph = child});
}

CUresult hook_cuGraphExecEventRecordNodeSetEvent(CUgraphExec exec, CUgraphNode node, CUevent event) {
  CHANGE(cuGraphExecEventRecordNodeSetEvent, (exec, node, event), .type = CU_GRAPH_NODE_TYPE_EVENT_RECORD,
         .eventRecord = {event});
}

CUresult hook_cuGraphExecEventWaitNodeSetEvent(CUgraphExec exec, CUgraphNode node, CUevent event) {
  CHANGE(cuGraphExecEventWaitNodeSetEvent, (exec, node, event), .type = CU_GRAPH_NODE_TYPE_WAIT_EVENT,
         .eventWait = {event});
}

CUresult hook_cuGraphExecBatchMemOpNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                                 const CUDA_BATCH_MEM_OP_NODE_PARAMS *given) {
  CUDA_BATCH_MEM_OP_NODE_PARAMS from = GIVEN(given);
  CHANGE(cuGraphExecBatchMemOpNodeSetParams, (exec, node, given), .type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP,
         .memOp = {.ctx = from.ctx, .count = from.count, .paramArray = from.paramArray, .flags = from.flags});
}

CUresult hook_cuGraphExecExternalSemaphoresSignalNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                                               const CUDA_EXT_SEM_SIGNAL_NODE_PARAMS_v1 *given) {
  CHANGE(cuGraphExecExternalSemaphoresSignalNodeSetParams, (exec, node, given),
         .type = CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL);
}

CUresult hook_cuGraphExecExternalSemaphoresWaitNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                                             const CUDA_EXT_SEM_WAIT_NODE_PARAMS_v1 *given) {
  CHANGE(cuGraphExecExternalSemaphoresWaitNodeSetParams, (exec, node, given),
         .type = CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT);
}

CUresult hook_cuGraphExecNodeSetParams(CUgraphExec exec, CUgraphNode node, CUgraphNodeParams *given) {
  if (!recording()) return real.cuGraphExecNodeSetParams(exec, node, given);
  CUgraphNodeParams params = GIVEN(given);
  inside++;
  CUresult result = real.cuGraphExecNodeSetParams(exec, node, given);
  return changed(result, NUMBER_cuGraphExecNodeSetParams, exec, node, &params);
}

/* Its parameters stay as they are. */
CUresult hook_cuGraphNodeSetEnabled(CUgraphExec exec, CUgraphNode node, unsigned enabled) {
  if (!recording()) return real.cuGraphNodeSetEnabled(exec, node, enabled);
  inside++;
  CUresult result = real.cuGraphNodeSetEnabled(exec, node, enabled);
  inside--;
  if (result != CUDA_SUCCESS) return result;
  struct wire_node *now = ledger_node((uint64_t)(uintptr_t)exec, (uint64_t)(uintptr_t)node);
  if (!now) {
    exec_unknown(NUMBER_cuGraphNodeSetEnabled, exec);
    return result;
  }
  now->enabled = enabled != 0;
  record_node(NUMBER_cuGraphNodeSetEnabled, (uint64_t)(uintptr_t)exec, now);
  store_give(now, now->size);
  return result;
}
