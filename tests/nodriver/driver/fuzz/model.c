/* Things that belong together, as random picks seldom do: a graph with a node of every kind and what is made of it, and
 * addresses with memory for them. */
#include "fuzz.h"

static const CUmemAllocationProp PHYSICAL = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                             .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                             .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};

static void keep_node(struct fuzzer *f, CUgraphNodeType type, CUresult result, CUgraphNode node) {
  if (result != CUDA_SUCCESS) return;
  f->model.nodes[type] = (uint64_t)(uintptr_t)node;
  keep_handle(f, P_CUgraphNode, f->model.nodes[type]);
}

/* The caller has just made a context, a function without parameters in it, and some memory. */
static void make_nodes(struct fuzzer *f, CUgraph graph, CUfunction function, CUdeviceptr memory) {
  CUgraphNode node;
  CUcontext context;
  CUevent event;
  CUgraph child;
  CUDA_KERNEL_NODE_PARAMS kernel = {.func = function, .gridDimX = 1, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 1,
                                    .blockDimY = 1, .blockDimZ = 1};
  CUDA_MEMCPY3D copy = {.srcMemoryType = CU_MEMORYTYPE_DEVICE, .srcDevice = memory, .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                        .dstDevice = memory + 32, .WidthInBytes = 16, .Height = 1, .Depth = 1};
  CUDA_MEMSET_NODE_PARAMS fill = {.dst = memory, .elementSize = 4, .width = 4, .height = 1};
  CUDA_HOST_NODE_PARAMS host = {.fn = some_destructor(f), .userData = f};
  CUstreamBatchMemOpParams write = {.writeValue = {.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32, .address = memory}};
  CUDA_MEM_ALLOC_NODE_PARAMS take = {.poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .location = PHYSICAL.location},
                                     .bytesize = 1000};
  if (cuCtxGetCurrent(&context)) return;
  CUDA_BATCH_MEM_OP_NODE_PARAMS operations = {.ctx = context, .count = 1, .paramArray = &write};
  keep_node(f, CU_GRAPH_NODE_TYPE_KERNEL, cuGraphAddKernelNode_v2(&node, graph, NULL, 0, &kernel), node);
  keep_node(f, CU_GRAPH_NODE_TYPE_MEMCPY, cuGraphAddMemcpyNode(&node, graph, NULL, 0, &copy, context), node);
  keep_node(f, CU_GRAPH_NODE_TYPE_MEMSET, cuGraphAddMemsetNode(&node, graph, NULL, 0, &fill, context), node);
  if (host.fn) keep_node(f, CU_GRAPH_NODE_TYPE_HOST, cuGraphAddHostNode(&node, graph, NULL, 0, &host), node);
  keep_node(f, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, cuGraphAddBatchMemOpNode(&node, graph, NULL, 0, &operations), node);
  if (!cuEventCreate(&event, 0)) {
    keep_handle(f, P_CUevent, (uint64_t)(uintptr_t)event);
    keep_node(f, CU_GRAPH_NODE_TYPE_EVENT_RECORD, cuGraphAddEventRecordNode(&node, graph, NULL, 0, event), node);
    keep_node(f, CU_GRAPH_NODE_TYPE_WAIT_EVENT, cuGraphAddEventWaitNode(&node, graph, NULL, 0, event), node);
  }
  if (!cuGraphCreate(&child, 0)) {
    keep_node(f, CU_GRAPH_NODE_TYPE_GRAPH, cuGraphAddChildGraphNode(&node, graph, NULL, 0, child), node);
    cuGraphDestroy(child);
  }
  if (one_in(f, 4) && !cuGraphAddMemAllocNode(&node, graph, NULL, 0, &take)) {
    keep_node(f, CU_GRAPH_NODE_TYPE_MEM_ALLOC, CUDA_SUCCESS, node);
    keep_node(f, CU_GRAPH_NODE_TYPE_MEM_FREE, cuGraphAddMemFreeNode(&node, graph, (CUgraphNode *)&f->model.nodes[10], 1, take.dptr),
              node);
  }
}

void make_model(struct fuzzer *f, CUfunction function, CUdeviceptr memory) {
  CUgraph graph;
  CUgraphExec exec;
  CUdeviceptr managed;
  CUmemGenericAllocationHandle physical;
  if (one_in(f, 2) && !cuGraphCreate(&graph, 0)) {
    make_nodes(f, graph, function, memory);
    f->model.graph = (uint64_t)(uintptr_t)graph;
    keep_handle(f, P_CUgraph, f->model.graph);
    if (!cuGraphInstantiateWithFlags(&exec, graph, 0)) {
      f->model.exec = (uint64_t)(uintptr_t)exec;
      keep_handle(f, P_CUgraphExec, f->model.exec);
    }
  }
  if (one_in(f, 2) && !cuMemAllocManaged(&managed, 10000, CU_MEM_ATTACH_GLOBAL)) keep_memory(f, managed, 10000, false);
  if (one_in(f, 4) && !cuMemCreate(&physical, MAPPED_BYTES, &PHYSICAL, 0)) {
    f->model.physical = physical;
    keep_handle(f, P_CUmemGenericAllocationHandle, physical);
  }
  if (one_in(f, 4) && !cuMemAddressReserve(&f->model.reserved, MAPPED_BYTES, 0, 0, 0))
    keep_reserved(f, f->model.reserved, MAPPED_BYTES);
}

uint64_t model_node(struct fuzzer *f, CUgraphNodeType type) {
  return one_in(f, 5) ? some_handle(f, P_CUgraphNode) : f->model.nodes[type];
}

uint64_t model_graph(struct fuzzer *f) { return one_in(f, 5) ? some_handle(f, P_CUgraph) : f->model.graph; }
uint64_t model_exec(struct fuzzer *f) { return one_in(f, 5) ? some_handle(f, P_CUgraphExec) : f->model.exec; }
CUdeviceptr model_address(struct fuzzer *f) { return one_in(f, 5) ? some_address(f) : f->model.reserved; }

uint64_t model_physical(struct fuzzer *f) {
  return one_in(f, 5) ? some_handle(f, P_CUmemGenericAllocationHandle) : f->model.physical;
}
