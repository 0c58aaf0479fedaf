/* Graphs of all kinds of nodes, graphs in graphs, captured graphs; one that is larger than a record. */
#include "graph_work.h"

enum { LAUNCHES = 10, MANY = 2200 };

static unsigned char host[64];

static void called(void *given) { ++*(int *)given; }

/* Two streams: the second joins the capture, and comes back. */
static void captured(void) {
  CUgraph graph;
  CUevent fork, join;
  OK(cuEventCreate(&fork, 0));
  OK(cuEventCreate(&join, 0));
  OK(cuStreamBeginCapture(a, CU_STREAM_CAPTURE_MODE_GLOBAL));
  launch_mix(a, 1);
  OK(cuEventRecord(fork, a));
  OK(cuStreamWaitEvent(b, fork, 0));
  launch_mix(b, 2);
  OK(cuEventRecord(join, b));
  OK(cuStreamWaitEvent(a, join, 0));
  launch_mix(a, 3);
  OK(cuStreamEndCapture(a, &graph));
  CUgraphExec exec = instantiate(graph);
  print_edges(graph);
  OK(cuGraphDestroy(graph)); /* the executable one stays as it is */
  for (int i = 0; i < LAUNCHES; i++) OK(cuGraphLaunch(exec, a));
  OK(cuStreamSynchronize(a));
  OK(cuGraphExecDestroy(exec));
}

static CUgraphNode add_kernels(CUgraph graph, CUgraphNode after) {
  CUlibrary library;
  CUkernel kernel;
  OK(cuLibraryLoadData(&library, PTX, NULL, NULL, 0, NULL, NULL, 0));
  OK(cuLibraryGetKernel(&kernel, library, "other"));
  unsigned short value = 7;
  void *arguments[] = {&memory, &value};
  CUDA_KERNEL_NODE_PARAMS params = {.gridDimX = 2, .gridDimY = 3, .gridDimZ = 4, .blockDimX = 5, .blockDimY = 6,
                                    .blockDimZ = 1, .sharedMemBytes = 128, .kernelParams = arguments, .kern = kernel,
                                    .ctx = context};
  OK(cuGraphAddKernelNode(&after, graph, &after, 1, &params));
  struct {
    CUdeviceptr pointer;
    unsigned factor, term;
  } packed = {memory, 5, 9};
  size_t bytes = sizeof packed;
  void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END};
  params = mix_params(NULL, 11);
  params.extra = extra;
  OK(cuGraphAddKernelNode(&after, graph, &after, 1, &params));
  CUkernelNodeAttrValue cooperative = {.cooperative = 1};
  after = add_mix(graph, &after, 1, 12);
  OK(cuGraphKernelNodeSetAttribute(after, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &cooperative));
  return after;
}

static CUgraphNode add_memory(CUgraph graph, CUgraphNode after) {
  CUDA_MEMSET_NODE_PARAMS set = {.dst = memory + 64, .value = 0x12345, .elementSize = 2, .width = 5, .height = 3,
                                 .pitch = 64};
  OK(cuGraphAddMemsetNode(&after, graph, &after, 1, &set, context));
  CUDA_MEMCPY3D copy = {.srcMemoryType = CU_MEMORYTYPE_DEVICE, .srcDevice = memory, .srcXInBytes = 4, .srcPitch = 32,
                        .srcHeight = 4, .srcY = 1, .dstMemoryType = CU_MEMORYTYPE_DEVICE, .dstDevice = memory + 2048,
                        .dstPitch = 16, .dstHeight = 2, .WidthInBytes = 8, .Height = 2, .Depth = 2};
  OK(cuGraphAddMemcpyNode(&after, graph, &after, 1, &copy, context));
  copy = (CUDA_MEMCPY3D){.srcMemoryType = CU_MEMORYTYPE_HOST, .srcHost = host, .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                         .dstDevice = memory + 256, .WidthInBytes = 48, .Height = 1, .Depth = 1};
  OK(cuGraphAddMemcpyNode(&after, graph, &after, 1, &copy, context));
  CUDA_MEM_ALLOC_NODE_PARAMS allocation = {.poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                                         .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}},
                                           .bytesize = 1000};
  OK(cuGraphAddMemAllocNode(&after, graph, &after, 1, &allocation));
  set = (CUDA_MEMSET_NODE_PARAMS){.dst = allocation.dptr, .value = 3, .elementSize = 1, .width = 1000, .height = 1};
  OK(cuGraphAddMemsetNode(&after, graph, &after, 1, &set, context));
  OK(cuGraphAddMemFreeNode(&after, graph, &after, 1, allocation.dptr));
  printf("[%llu, %d]\n", (unsigned long long)allocation.dptr, 1000);
  CUstreamBatchMemOpParams operations[2] = {
      {.writeValue = {.operation = CU_STREAM_MEM_OP_WRITE_VALUE_64, .address = memory + 512, .value64 = 1ull << 40}},
      {.waitValue = {.operation = CU_STREAM_MEM_OP_WAIT_VALUE_64, .address = memory + 512, .value64 = 1ull << 40,
                     .flags = CU_STREAM_WAIT_VALUE_EQ}}};
  CUDA_BATCH_MEM_OP_NODE_PARAMS batch = {context, 2, operations, 0};
  OK(cuGraphAddBatchMemOpNode(&after, graph, &after, 1, &batch));
  return after;
}

/* A graph in a graph in a graph; its own graph is changed and destroyed before. */
static CUgraphNode add_child(CUgraph graph, CUgraphNode after) {
  CUgraph child = new_graph(), inner = new_graph();
  CUgraphNode node = add_mix(inner, NULL, 0, 20);
  add_mix(inner, &node, 1, 21);
  OK(cuGraphAddChildGraphNode(&node, child, NULL, 0, inner));
  add_mix(child, &node, 1, 22);
  add_mix(child, NULL, 0, 23);
  OK(cuGraphAddChildGraphNode(&after, graph, &after, 1, child));
  add_mix(child, NULL, 0, 24); /* too late */
  OK(cuGraphDestroy(child));
  OK(cuGraphDestroy(inner));
  return after;
}

static void all_kinds(void) {
  static int calls;
  CUevent event;
  CUgraph graph = new_graph();
  CUgraphNode node = add_mix(graph, NULL, 0, 10), first = node;
  OK(cuEventCreate(&event, 0));
  node = add_kernels(graph, node);
  CUDA_HOST_NODE_PARAMS host_params = {called, &calls};
  OK(cuGraphAddHostNode(&node, graph, &node, 1, &host_params));
  OK(cuGraphAddEventRecordNode(&node, graph, &node, 1, event));
  OK(cuGraphAddEventWaitNode(&node, graph, &node, 1, event));
  node = add_memory(graph, node);
  node = add_child(graph, node);
  OK(cuGraphAddEmptyNode(&node, graph, (CUgraphNode[]){first, node}, 2));
  CUgraphExec exec;
  CUDA_GRAPH_INSTANTIATE_PARAMS params = {.flags = CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH};
  OK(cuGraphInstantiateWithParams(&exec, graph, &params));
  print_edges(graph);
  launch(exec);
  launch(exec);
  CHECK(calls == 2);
  printf("[%llu, %llu]\n", (unsigned long long)(uintptr_t)called, (unsigned long long)(uintptr_t)event);
  OK(cuGraphExecDestroy(exec));
  OK(cuGraphDestroy(graph));
}

/* More than a record may have. */
static void large(void) {
  static unsigned char bytes[4000];
  void *arguments[] = {bytes};
  CUgraph graph = new_graph();
  for (int i = 0; i < MANY; i++) {
    CUgraphNode node;
    CUDA_KERNEL_NODE_PARAMS params = mix_params(arguments, 1);
    params.func = wide;
    OK(cuGraphAddKernelNode(&node, graph, NULL, 0, &params));
  }
  CUgraphExec exec = instantiate(graph);
  OK(cuGraphExecDestroy(exec));
  OK(cuGraphDestroy(graph));
}

int main(int count, char **words) {
  begin();
  if (count == 2 && !strcmp(words[1], "captured")) captured();
  else if (count == 2 && !strcmp(words[1], "large")) large();
  else all_kinds();
  return 0;
}
