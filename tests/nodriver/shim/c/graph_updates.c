/* Executable graphs get other parameters, in every way in which a driver takes them. */
#include "graph_work.h"

static int calls;
static void called(void *given) { ++*(int *)given; }
static void called_more(void *given) { *(int *)given += 100; }

enum { KERNEL, COPY, SET, HOST, RECORD, WAIT, CHILD, BATCH, LAST, NODES };

struct made {
  CUgraph graph, child;
  CUgraphNode nodes[NODES], inner[2];
  CUgraphExec exec;
};

static CUDA_MEMCPY3D copy_params(unsigned offset) {
  return (CUDA_MEMCPY3D){.srcMemoryType = CU_MEMORYTYPE_DEVICE, .srcDevice = memory + offset,
                         .dstMemoryType = CU_MEMORYTYPE_DEVICE, .dstDevice = memory + 1024, .WidthInBytes = 16,
                         .Height = 1, .Depth = 1};
}

static CUDA_MEMSET_NODE_PARAMS set_params(unsigned value) {
  return (CUDA_MEMSET_NODE_PARAMS){.dst = memory + 2048, .value = value, .elementSize = 4, .width = value, .height = 1};
}

static CUstreamBatchMemOpParams operation(unsigned value) {
  return (CUstreamBatchMemOpParams){
      .writeValue = {.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32, .address = memory + 3072, .value = value}};
}

static CUgraph make_child(unsigned value, CUgraphNode nodes[2]) {
  CUgraph child = new_graph();
  nodes[0] = add_mix(child, NULL, 0, value);
  nodes[1] = add_mix(child, nodes, 1, value + 1);
  return child;
}

/* A chain of all that can be changed. */
static void make(struct made *made, unsigned value, CUevent event) {
  CUgraphNode *n = made->nodes, unused[2];
  size_t two = 2;
  made->graph = new_graph();
  n[KERNEL] = add_mix(made->graph, NULL, 0, value);
  CUDA_MEMCPY3D copy = copy_params(value);
  OK(cuGraphAddMemcpyNode(&n[COPY], made->graph, &n[KERNEL], 1, &copy, context));
  CUDA_MEMSET_NODE_PARAMS set = set_params(value);
  OK(cuGraphAddMemsetNode(&n[SET], made->graph, &n[COPY], 1, &set, context));
  CUDA_HOST_NODE_PARAMS host = {called, &calls};
  OK(cuGraphAddHostNode(&n[HOST], made->graph, &n[SET], 1, &host));
  OK(cuGraphAddEventRecordNode(&n[RECORD], made->graph, &n[HOST], 1, event));
  OK(cuGraphAddEventWaitNode(&n[WAIT], made->graph, &n[RECORD], 1, event));
  made->child = make_child(value + 50, unused);
  OK(cuGraphAddChildGraphNode(&n[CHILD], made->graph, &n[WAIT], 1, made->child));
  CUgraph embedded;
  OK(cuGraphChildGraphNodeGetGraph(n[CHILD], &embedded));
  OK(cuGraphGetNodes(embedded, made->inner, &two));
  CUstreamBatchMemOpParams one = operation(value);
  CUDA_BATCH_MEM_OP_NODE_PARAMS batch = {context, 1, &one, 0};
  OK(cuGraphAddBatchMemOpNode(&n[BATCH], made->graph, &n[CHILD], 1, &batch));
  n[LAST] = add_mix(made->graph, &n[BATCH], 1, value + 1);
  CUkernelNodeAttrValue cooperative = {.cooperative = 1}; /* which new parameters do not change */
  OK(cuGraphKernelNodeSetAttribute(n[LAST], CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &cooperative));
}

static void set_kernel(const struct made *made, CUgraphNode node, unsigned value) {
  void *arguments[] = {&memory, &factor, &value};
  CUDA_KERNEL_NODE_PARAMS params = mix_params(arguments, value + 1);
  OK(cuGraphExecKernelNodeSetParams(made->exec, node, &params));
}

static void each_kind(const struct made *made, CUevent event) {
  const CUgraphNode *n = made->nodes;
  set_kernel(made, n[KERNEL], 100);
  launch(made->exec);
  CUDA_MEMCPY3D copy = copy_params(256);
  OK(cuGraphExecMemcpyNodeSetParams(made->exec, n[COPY], &copy, context));
  CUDA_MEMSET_NODE_PARAMS set = set_params(9);
  OK(cuGraphExecMemsetNodeSetParams(made->exec, n[SET], &set, context));
  CUDA_HOST_NODE_PARAMS host = {called_more, &calls};
  OK(cuGraphExecHostNodeSetParams(made->exec, n[HOST], &host));
  OK(cuGraphExecEventRecordNodeSetEvent(made->exec, n[RECORD], event));
  OK(cuGraphExecEventWaitNodeSetEvent(made->exec, n[WAIT], event));
  CUstreamBatchMemOpParams one = operation(77);
  CUDA_BATCH_MEM_OP_NODE_PARAMS batch = {context, 1, &one, 0};
  OK(cuGraphExecBatchMemOpNodeSetParams(made->exec, n[BATCH], &batch));
  launch(made->exec);
  CUgraphNode nodes[2];
  CUgraph child = make_child(60, nodes);
  set_kernel(made, made->inner[1], 70);
  launch(made->exec);
  OK(cuGraphExecChildGraphNodeSetParams(made->exec, n[CHILD], child));
  OK(cuGraphDestroy(child));
  launch(made->exec);
  unsigned value = 120;
  void *arguments[] = {&memory, &factor, &value};
  CUgraphNodeParams any = {.type = CU_GRAPH_NODE_TYPE_KERNEL,
                           .kernel = {.func = mix, .gridDimX = 3, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 2,
                                      .blockDimY = 1, .blockDimZ = 1, .kernelParams = arguments}};
  OK(cuGraphExecNodeSetParams(made->exec, n[LAST], &any));
  child = make_child(62, nodes);
  any = (CUgraphNodeParams){.type = CU_GRAPH_NODE_TYPE_GRAPH, .graph = {.graph = child}};
  OK(cuGraphExecNodeSetParams(made->exec, n[CHILD], &any));
  launch(made->exec);
  /* Refused ones change nothing. */
  CUDA_KERNEL_NODE_PARAMS bad = mix_params(arguments, 1);
  CHECK(cuGraphExecKernelNodeSetParams(made->exec, n[COPY], &bad) != CUDA_SUCCESS);
  launch(made->exec);
}

static void enabled(const struct made *made) {
  OK(cuGraphNodeSetEnabled(made->exec, made->nodes[SET], 0));
  OK(cuGraphNodeSetEnabled(made->exec, made->nodes[KERNEL], 0));
  OK(cuGraphNodeSetEnabled(made->exec, made->inner[0], 0));
  launch(made->exec);
  set_kernel(made, made->nodes[KERNEL], 130); /* it stays disabled */
  launch(made->exec);
  OK(cuGraphNodeSetEnabled(made->exec, made->nodes[KERNEL], 1));
  launch(made->exec);
}

/* A whole graph's parameters; nodes have the names that they had before. */
static void whole(const struct made *made, CUevent event) {
  struct made next;
  make(&next, 200, event);
  CUgraphExecUpdateResultInfo info;
  OK(cuGraphExecUpdate(made->exec, next.graph, &info)); /* some nodes are disabled still */
  OK(cuGraphDestroy(next.graph));
  launch(made->exec);
  set_kernel(made, made->nodes[LAST], 210);
  set_kernel(made, made->inner[1], 211);
  OK(cuGraphNodeSetEnabled(made->exec, made->nodes[SET], 1));
  launch(made->exec);
  OK(cuGraphExecUpdate(made->exec, made->graph, &info));
  launch(made->exec);
  OK(cuGraphNodeSetEnabled(made->exec, made->inner[0], 1));
  launch(made->exec);
  /* One of another shape changes nothing. */
  CUgraphNode nodes[2];
  CUgraph other = make_child(1, nodes);
  GIVES(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, cuGraphExecUpdate(made->exec, other, &info));
  launch(made->exec);
}

/* Nodes are paired from the ends on, not in the order in which they were made. */
static void paired(void) {
  CUgraph one = new_graph(), two = new_graph();
  CUgraphNode x = add_mix(one, NULL, 0, 1), y = add_mix(one, NULL, 0, 2), z = add_mix(one, (CUgraphNode[]){x, y}, 2, 3);
  struct made made = {.graph = one, .exec = instantiate(one)};
  CUgraphNode y2 = add_mix(two, NULL, 0, 12), x2 = add_mix(two, NULL, 0, 11);
  add_mix(two, (CUgraphNode[]){x2, y2}, 2, 13);
  CUgraphExecUpdateResultInfo info;
  OK(cuGraphExecUpdate(made.exec, two, &info));
  launch(made.exec);
  set_kernel(&made, x, 21);
  launch(made.exec);
  set_kernel(&made, y, 22);
  launch(made.exec);
  set_kernel(&made, z, 23);
  launch(made.exec);
}

static void chain(void) {
  CUevent event;
  struct made made;
  OK(cuEventCreate(&event, 0));
  make(&made, 30, event);
  made.exec = instantiate(made.graph);
  launch(made.exec);
  each_kind(&made, event);
  enabled(&made);
  whole(&made, event);
  GIVES(CUDA_ERROR_INVALID_VALUE, cuGraphExecDestroy((CUgraphExec)(void *)made.graph)); /* which is none */
  launch(made.exec);
  set_kernel(&made, made.nodes[KERNEL], 140);
  if (cuGraphExecDestroy(made.exec) == CUDA_SUCCESS) return;
  launch(made.exec); /* it failed on purpose, and all is as before */
  OK(cuGraphExecDestroy(made.exec));
}

int main(int count, char **words) {
  begin();
  if (count == 2 && !strcmp(words[1], "paired")) paired();
  else chain();
  return 0;
}
