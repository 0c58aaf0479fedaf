/* Graphs: their nodes and edges, what launches do, changes of executable ones. */
#include "graphs.h"

static void structure(void) {
  CUgraph graph = new_graph(), clone, other = new_graph();
  CUgraphNode a = add_empty(graph, NULL, 0), b = add_empty(graph, &a, 1), c, found[4], to[4], twice[2] = {a, a};
  CUgraphNode both[2] = {a, b};
  CUgraphEdgeData data[4], special = {.from_port = CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC, .type = 1};
  CUgraphNodeType type;
  size_t count;
  c = add_empty(graph, both, 2);
  GIVES(CUDA_ERROR_INVALID_VALUE, cuGraphAddEmptyNode(&found[0], graph, twice, 2));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuGraphAddEmptyNode(&found[0], other, &a, 1));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuGraphAddEmptyNode(NULL, graph, NULL, 0));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuGraphAddEmptyNode(&found[0], (CUgraph)a, NULL, 0));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuGraphCreate(&other, 1));
  OK(cuGraphGetNodes(graph, NULL, &count));
  CHECK(count == 3);
  count = 4;
  OK(cuGraphGetNodes(graph, found, &count));
  CHECK(count == 3 && found[0] == a && found[1] == b && found[2] == c && !found[3]);
  count = 2;
  OK(cuGraphGetNodes(graph, found, &count));
  CHECK(count == 2);
  count = 2;
  OK(cuGraphGetRootNodes(graph, found, &count));
  CHECK(count == 1 && found[0] == a && !found[1]);
  OK(cuGraphGetEdges(graph, NULL, NULL, NULL, &count));
  CHECK(count == 3);
  count = 4;
  OK(cuGraphGetEdges(graph, found, to, data, &count));
  CHECK(count == 3 && found[0] == a && to[0] == b && found[1] == a && to[1] == c && found[2] == b && to[2] == c);
  CHECK(!data[2].type && !found[3] && !to[3]);
  GIVES(CUDA_ERROR_INVALID_VALUE, cuGraphGetEdges(graph, found, NULL, NULL, &count));
  count = 4;
  OK(cuGraphNodeGetDependencies(c, found, NULL, &count));
  CHECK(count == 2 && found[0] == a && found[1] == b);
  count = 4;
  OK(cuGraphNodeGetDependentNodes(a, found, data, &count));
  CHECK(count == 2 && found[0] == b && found[1] == c);
  OK(cuGraphNodeGetType(a, &type));
  CHECK(type == CU_GRAPH_NODE_TYPE_EMPTY);
  /* Edges come and go; all of a call or none. */
  CUgraphNode from2[2] = {a, b}, to2[2] = {c, b};
  GIVES(CUDA_ERROR_INVALID_VALUE, cuGraphAddDependencies(graph, &a, &b, NULL, 1));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuGraphRemoveDependencies(graph, from2, to2, NULL, 2));
  GIVES(CUDA_ERROR_NOT_SUPPORTED, cuGraphAddDependencies(graph, &b, &a, &special, 1));
  special.reserved[0] = 1;
  GIVES(CUDA_ERROR_INVALID_VALUE, cuGraphAddDependencies(graph, &b, &a, &special, 1));
  OK(cuGraphGetEdges(graph, NULL, NULL, NULL, &count));
  CHECK(count == 3);
  OK(cuGraphRemoveDependencies(graph, &a, &c, NULL, 1));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuGraphRemoveDependencies(graph, &a, &c, NULL, 1));
  OK(cuGraphClone(&clone, graph));
  OK(cuGraphNodeFindInClone(&found[0], b, clone));
  CHECK(found[0] != b);
  count = 3;
  OK(cuGraphNodeGetDependencies(found[0], &found[1], NULL, &count));
  OK(cuGraphNodeFindInClone(&found[2], a, clone));
  CHECK(count == 1 && found[1] == found[2]);
  GIVES(CUDA_ERROR_INVALID_VALUE, cuGraphNodeFindInClone(&found[2], a, other));
  /* A cycle is seen when it is to be launched. */
  CUgraphExec exec;
  CUDA_GRAPH_INSTANTIATE_PARAMS params = {0};
  OK(cuGraphAddDependencies(graph, &c, &b, NULL, 1));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuGraphInstantiate(&exec, graph, 0));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuGraphInstantiateWithParams(&exec, graph, &params));
  CHECK(params.result_out == CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE);
  CHECK(params.hErrNode_out == b || params.hErrNode_out == c);
  OK(cuGraphDestroyNode(c));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuGraphDestroyNode(c));
  OK(cuGraphNodeGetDependentNodes(b, NULL, NULL, &count));
  CHECK(!count);
  OK(cuGraphDestroy(graph));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuGraphDestroy(graph));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuGraphNodeGetType(a, &type));
  count = 4;
  OK(cuGraphGetNodes(clone, found, &count));
  CHECK(count == 3);
  OK(cuGraphDestroy(clone));
  OK(cuGraphDestroy(other));
}

/* A node does what its parameters say, which can be asked for and set, also in an executable graph. */
static void parameters(void) {
  CUdeviceptr memory;
  unsigned back[4];
  OK(cuMemAlloc(&memory, 16));
  CUgraph graph = new_graph();
  CUgraphNode set = add_set(graph, NULL, 0, memory, 7), copy = add_copy(graph, &set, 1, memory + 4, memory);
  CUDA_MEMSET_NODE_PARAMS set_back;
  CUDA_MEMCPY3D copy_back;
  CUDA_HOST_NODE_PARAMS host_back;
  OK(cuGraphMemsetNodeGetParams(set, &set_back));
  CHECK(set_back.dst == memory && set_back.value == 7 && set_back.width == 1);
  OK(cuGraphMemcpyNodeGetParams(copy, &copy_back));
  CHECK(copy_back.dstDevice == memory + 4 && copy_back.WidthInBytes == 4);
  GIVES(CUDA_ERROR_INVALID_VALUE, cuGraphMemcpyNodeGetParams(set, &copy_back));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuGraphHostNodeGetParams(set, &host_back));
  CUgraphExec exec = instantiate(graph);
  launch(exec);
  OK(cuMemcpyDtoH(back, memory, 16));
  CHECK(back[0] == 7 && back[1] == 7 && !back[2]);
  set_back.value = 9;
  OK(cuGraphExecMemsetNodeSetParams(exec, set, &set_back, context));
  CUDA_MEMCPY3D copy_to = copy_params(memory + 8, memory, 8);
  OK(cuGraphExecMemcpyNodeSetParams(exec, copy, &copy_to, context));
  launch(exec);
  OK(cuMemcpyDtoH(back, memory, 16));
  CHECK(back[0] == 9 && back[1] == 7 && back[2] == 9 && back[3] == 7);
  OK(cuGraphMemsetNodeGetParams(set, &set_back));
  CHECK(set_back.value == 7); /* of the graph itself */
  /* What may not be changed. */
  copy_to.Height = 2;
  GIVES(CUDA_ERROR_INVALID_VALUE, cuGraphExecMemcpyNodeSetParams(exec, copy, &copy_to, context));
  copy_to = copy_params(memory, memory + 8, 0);
  GIVES(CUDA_ERROR_INVALID_VALUE, cuGraphExecMemcpyNodeSetParams(exec, copy, &copy_to, context));
  copy_to = copy_params((CUdeviceptr)(uintptr_t)back, memory, 8);
  copy_to.dstMemoryType = CU_MEMORYTYPE_HOST;
  copy_to.dstHost = back;
  GIVES(CUDA_ERROR_INVALID_VALUE, cuGraphExecMemcpyNodeSetParams(exec, copy, &copy_to, context));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuGraphExecMemsetNodeSetParams(exec, copy, &set_back, context));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuGraphExecMemsetNodeSetParams((CUgraphExec)graph, set, &set_back, context));
  /* A node is switched off and on; its parameters stay. */
  unsigned enabled;
  OK(cuGraphNodeSetEnabled(exec, set, 0));
  OK(cuGraphNodeGetEnabled(exec, set, &enabled));
  CHECK(!enabled);
  OK(cuMemsetD32(memory, 0, 4));
  launch(exec);
  OK(cuMemcpyDtoH(back, memory, 16));
  CHECK(!back[0] && !back[2]);
  set_back.value = 11;
  OK(cuGraphExecMemsetNodeSetParams(exec, set, &set_back, context));
  OK(cuGraphNodeSetEnabled(exec, set, 1));
  launch(exec);
  OK(cuMemcpyDtoH(back, memory, 16));
  CHECK(back[0] == 11 && back[2] == 11);
  /* The common form. */
  CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_MEMSET, .memset = {.dst = memory, .value = 5, .elementSize = 1,
                                                                           .width = 3, .height = 1, .ctx = context}};
  CUgraphNode more;
  OK(cuGraphAddNode(&more, graph, &copy, NULL, 1, &params));
  params.memset.value = 6;
  OK(cuGraphNodeSetParams(more, &params));
  CUgraphExec second = instantiate(graph);
  launch(second);
  OK(cuMemcpyDtoH(back, memory, 16));
  CHECK(back[0] == 0x060606 && back[1] == 7);
  params.memset.value = 8;
  OK(cuGraphExecNodeSetParams(second, more, &params));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuGraphExecNodeSetParams(exec, more, &params)); /* which did not have it */
  params.reserved2 = 1;
  GIVES(CUDA_ERROR_INVALID_VALUE, cuGraphAddNode(&more, graph, &copy, NULL, 1, &params));
  params.reserved2 = 0;
  params.reserved1[20] = 1;
  GIVES(CUDA_ERROR_INVALID_VALUE, cuGraphAddNode(&more, graph, &copy, NULL, 1, &params));
  params = (CUgraphNodeParams){.type = CU_GRAPH_NODE_TYPE_CONDITIONAL};
  GIVES(CUDA_ERROR_NOT_SUPPORTED, cuGraphAddNode(&more, graph, &copy, NULL, 1, &params));
  params.type = (CUgraphNodeType)77;
  GIVES(CUDA_ERROR_INVALID_VALUE, cuGraphAddNode(&more, graph, &copy, NULL, 1, &params));
  launch(second);
  OK(cuMemcpyDtoH(back, memory, 16));
  CHECK(back[0] == 0x080808);
  OK(cuGraphDestroyNode(set));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuGraphExecMemsetNodeSetParams(exec, set, &set_back, context));
  OK(cuGraphDestroy(graph));
  launch(exec); /* lives on */
  cuuint64_t flags;
  OK(cuGraphExecGetFlags(exec, &flags));
  CHECK(!flags);
  OK(cuGraphExecDestroy(exec));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuGraphExecDestroy(exec));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuGraphLaunch(exec, stream));
  OK(cuGraphExecDestroy(second));
  OK(cuMemFree(memory));
}

static atomic_int gate, begun, turns;

static void wait_gate(void *given) {
  begun++;
  wait_until(&gate, 1);
  if (given) *(atomic_int *)given = ++turns;
}

static void take_turn(void *given) { *(atomic_int *)given = ++turns; }

/* Branches go on side by side; what comes after a launch in its stream waits for all of them; launches of one executable
 * graph come one after another, whatever their streams. */
static void order(void) {
  CUstream other;
  atomic_int turn[4] = {0}, after = 0;
  gate = begun = turns = 0;
  OK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
  CUgraph graph = new_graph();
  CUgraphNode first = add_empty(graph, NULL, 0), branch[3];
  for (int i = 0; i < 3; i++) branch[i] = add_host(graph, &first, 1, wait_gate, NULL);
  add_host(graph, branch, 3, take_turn, &turn[0]);
  CUgraphExec exec = instantiate(graph);
  OK(cuGraphLaunch(exec, stream));
  OK(cuLaunchHostFunc(stream, take_turn, &after));
  wait_until(&begun, 3); /* all branches at once */
  OK(cuGraphLaunch(exec, other));
  pause_ms(20);
  CHECK(begun == 3 && !after);
  GIVES(CUDA_ERROR_NOT_READY, cuStreamQuery(stream));
  OK(cuGraphExecDestroy(exec)); /* while it is under way */
  OK(cuGraphDestroy(graph));
  gate = 1;
  OK(cuStreamSynchronize(other));
  OK(cuStreamSynchronize(stream));
  CHECK(begun == 6 && turn[0] >= 2 && after);
  OK(cuStreamDestroy(other));
}

/* The default stream of the context waits for a launch as a whole, and the other way round. */
static void default_stream(void) {
  atomic_int turn[3] = {0};
  gate = begun = turns = 0;
  CUgraph graph = new_graph();
  CUgraphNode a = add_host(graph, NULL, 0, wait_gate, &turn[1]);
  add_host(graph, &a, 1, take_turn, &turn[2]);
  CUgraphExec exec = instantiate(graph);
  CUstream blocking;
  OK(cuStreamCreate(&blocking, 0));
  OK(cuLaunchHostFunc(NULL, wait_gate, &turn[0]));
  OK(cuGraphLaunch(exec, blocking));
  wait_until(&begun, 1);
  pause_ms(10);
  CHECK(begun == 1);
  atomic_int last = 0;
  OK(cuLaunchHostFunc(NULL, take_turn, &last));
  gate = 1;
  OK(cuCtxSynchronize());
  CHECK(turn[0] == 1 && turn[1] == 2 && turn[2] == 3 && last == 4);
  OK(cuStreamDestroy(blocking));
  OK(cuGraphExecDestroy(exec));
  OK(cuGraphDestroy(graph));
}

/* Events are recorded by launches, and waited for. */
static void events(void) {
  CUevent start, end, external;
  CUstream other;
  CUgraphNode node;
  float milliseconds;
  gate = begun = turns = 0;
  OK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
  OK(cuEventCreate(&start, 0));
  OK(cuEventCreate(&end, 0));
  OK(cuEventCreate(&external, 0));
  CUgraph graph = new_graph();
  OK(cuGraphAddEventRecordNode(&node, graph, NULL, 0, start));
  node = add_host(graph, &node, 1, wait_gate, NULL);
  OK(cuGraphAddEventWaitNode(&node, graph, &node, 1, external));
  OK(cuGraphAddEventRecordNode(&node, graph, &node, 1, external)); /* to be replaced */
  OK(cuGraphEventRecordNodeSetEvent(node, end));
  CUevent back;
  OK(cuGraphEventRecordNodeGetEvent(node, &back));
  CHECK(back == end);
  GIVES(CUDA_ERROR_INVALID_VALUE, cuGraphEventWaitNodeGetEvent(node, &back));
  GIVES(CUDA_ERROR_INVALID_HANDLE, cuGraphEventRecordNodeSetEvent(node, (CUevent)graph));
  CUgraphExec exec = instantiate(graph);
  atomic_int seen = 0, outside = 0;
  OK(cuLaunchHostFunc(other, wait_gate, &outside));
  OK(cuEventRecord(external, other));
  OK(cuGraphLaunch(exec, stream));
  GIVES(CUDA_ERROR_NOT_READY, cuEventQuery(end)); /* recorded by the launch, as soon as that returns */
  OK(cuEventSynchronize(start));
  OK(cuStreamWaitEvent(other, end, 0));
  OK(cuLaunchHostFunc(other, take_turn, &seen));
  pause_ms(10);
  CHECK(!seen);
  gate = 1;
  OK(cuStreamSynchronize(other));
  CHECK(outside == 1 && seen == 2);
  OK(cuEventElapsedTime(&milliseconds, start, end));
  CHECK(milliseconds >= 9);
  OK(cuGraphExecEventRecordNodeSetEvent(exec, node, external));
  launch(exec);
  OK(cuEventElapsedTime(&milliseconds, start, external));
  OK(cuStreamSynchronize(stream));
  OK(cuEventDestroy(end));
  launch(exec);
  OK(cuEventDestroy(external));
  int before = begun;
  GIVES(CUDA_ERROR_INVALID_HANDLE, cuGraphLaunch(exec, stream)); /* and nothing of it is done */
  OK(cuStreamSynchronize(stream));
  CHECK(begun == before);
  OK(cuEventDestroy(start));
  OK(cuGraphExecDestroy(exec));
  OK(cuGraphDestroy(graph));
  OK(cuStreamDestroy(other));
}

static void children(void) {
  CUdeviceptr memory;
  unsigned back[2];
  OK(cuMemAlloc(&memory, 8));
  CUgraph parent = new_graph(), child = new_graph(), inside, moved = new_graph();
  CUgraphNode set = add_set(child, NULL, 0, memory, 3), node, last, found;
  OK(cuGraphAddChildGraphNode(&node, parent, NULL, 0, child));
  add_set(child, NULL, 0, memory, 100); /* not in the copy */
  last = add_copy(parent, &node, 1, memory + 4, memory);
  OK(cuGraphChildGraphNodeGetGraph(node, &inside));
  CHECK(inside != child);
  OK(cuGraphNodeFindInClone(&found, set, inside));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuGraphDestroy(inside));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuGraphChildGraphNodeGetGraph(last, &inside));
  CUgraphExec exec = instantiate(parent);
  launch(exec);
  OK(cuMemcpyDtoH(back, memory, 8));
  CHECK(back[0] == 3 && back[1] == 3);
  CUDA_MEMSET_NODE_PARAMS params = set_params(memory, 4, 1);
  OK(cuGraphExecMemsetNodeSetParams(exec, found, &params, context)); /* a node of the graph in the graph */
  launch(exec);
  OK(cuMemcpyDtoH(back, memory, 8));
  CHECK(back[0] == 4 && back[1] == 4);
  /* All of the child at once, if it has the same shape. */
  CUgraph same = new_graph();
  add_set(same, NULL, 0, memory, 5);
  OK(cuGraphExecChildGraphNodeSetParams(exec, node, same));
  launch(exec);
  OK(cuMemcpyDtoH(back, memory, 8));
  CHECK(back[0] == 5 && back[1] == 5);
  GIVES(CUDA_ERROR_INVALID_VALUE, cuGraphExecChildGraphNodeSetParams(exec, node, child));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuGraphExecChildGraphNodeSetParams(exec, last, same));
  /* A graph that is given away. */
  CUgraphNodeParams give = {.type = CU_GRAPH_NODE_TYPE_GRAPH, .graph = {moved, CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE}};
  CUgraphExec none;
  add_set(moved, NULL, 0, memory, 6);
  OK(cuGraphAddNode(&node, parent, &last, NULL, 1, &give));
  OK(cuGraphChildGraphNodeGetGraph(node, &inside));
  CHECK(inside == moved);
  GIVES(CUDA_ERROR_INVALID_VALUE, cuGraphDestroy(moved));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuGraphInstantiate(&none, moved, 0));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuGraphAddChildGraphNode(&node, same, NULL, 0, moved));
  give.graph.graph = parent;
  GIVES(CUDA_ERROR_INVALID_VALUE, cuGraphAddNode(&node, moved, NULL, NULL, 0, &give));
  OK(cuGraphExecDestroy(exec));
  exec = instantiate(parent);
  launch(exec);
  OK(cuMemcpyDtoH(back, memory, 8));
  CHECK(back[0] == 6 && back[1] == 3);
  OK(cuGraphExecDestroy(exec));
  OK(cuGraphDestroy(parent));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuGraphDestroy(moved));
  OK(cuGraphDestroy(child));
  OK(cuGraphDestroy(same));
  OK(cuMemFree(memory));
}

static void updates(void) {
  CUdeviceptr memory;
  unsigned back[3];
  CUgraphExecUpdateResultInfo info;
  OK(cuMemAlloc(&memory, 12));
  CUgraph graph = new_graph(), same = new_graph(), wider = new_graph(), changed = new_graph();
  CUgraphNode a = add_set(graph, NULL, 0, memory, 1), b = add_copy(graph, &a, 1, memory + 4, memory), n;
  add_copy(graph, &a, 1, memory + 8, memory);
  CUgraphExec exec = instantiate(graph);
  /* The same shape, in another order of making. */
  CUgraphNode x = add_copy(same, NULL, 0, memory + 8, memory), y = add_copy(same, NULL, 0, memory + 4, memory);
  CUgraphNode z = add_set(same, NULL, 0, memory, 2), from[2] = {z, z}, to[2] = {x, y};
  OK(cuGraphAddDependencies(same, from, to, NULL, 2));
  OK(cuGraphExecUpdate(exec, same, &info));
  CHECK(info.result == CU_GRAPH_EXEC_UPDATE_SUCCESS && !info.errorNode);
  launch(exec);
  OK(cuMemcpyDtoH(back, memory, 12));
  CHECK(back[0] == 2 && back[2] == 2);
  CUDA_MEMSET_NODE_PARAMS params = set_params(memory, 30, 1);
  OK(cuGraphExecMemsetNodeSetParams(exec, a, &params, context)); /* nodes of the first graph still name those */
  launch(exec);
  OK(cuMemcpyDtoH(back, memory, 12));
  CHECK(back[0] == 30);
  /* What does not fit leaves it as it was. */
  add_set(wider, NULL, 0, memory, 3);
  GIVES(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, cuGraphExecUpdate(exec, wider, &info));
  CHECK(info.result == CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED && !info.errorNode);
  n = add_set(wider, NULL, 0, memory, 3);
  add_set(wider, &n, 1, memory, 3);
  GIVES(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, cuGraphExecUpdate(exec, wider, &info));
  CHECK(info.result == CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED && info.errorNode);
  n = add_set(changed, NULL, 0, memory, 77);
  CUgraphNode c = add_copy(changed, &n, 1, memory + 4, memory), d = add_set(changed, &n, 1, memory, 1);
  GIVES(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, cuGraphExecUpdate(exec, changed, &info));
  CHECK(info.result == CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED && info.errorNode == d);
  OK(cuGraphDestroyNode(d));
  d = add_copy(changed, &n, 1, memory + 8, memory);
  CUDA_MEMCPY3D copy = copy_params(memory, memory + 4, 4);
  copy.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
  OK(cuGraphMemcpyNodeSetParams(d, &copy));
  GIVES(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, cuGraphExecUpdate(exec, changed, &info));
  CHECK(info.result == CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED && info.errorNode == d);
  OK(cuGraphAddDependencies(changed, &c, &d, NULL, 1));
  GIVES(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, cuGraphExecUpdate(exec, changed, &info));
  CHECK(info.result == CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
  GIVES(CUDA_ERROR_INVALID_VALUE, cuGraphExecUpdate(exec, (CUgraph)b, &info));
  CHECK(info.result == CU_GRAPH_EXEC_UPDATE_ERROR);
  launch(exec);
  OK(cuMemcpyDtoH(back, memory, 12));
  CHECK(back[0] == 30 && back[2] == 30);
  OK(cuGraphExecDestroy(exec));
  OK(cuGraphDestroy(graph));
  OK(cuGraphDestroy(same));
  OK(cuGraphDestroy(wider));
  OK(cuGraphDestroy(changed));
  OK(cuMemFree(memory));
}

/* Memory that graphs allocate: at the same address in every launch, and the program's until it is freed. */
static CUgraphNode add_alloc(CUgraph graph, size_t bytes, CUdeviceptr *pointer) {
  CUgraphNode node;
  CUDA_MEM_ALLOC_NODE_PARAMS params = {
      .poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}},
      .bytesize = bytes};
  OK(cuGraphAddMemAllocNode(&node, graph, NULL, 0, &params));
  *pointer = params.dptr;
  OK(cuGraphMemAllocNodeGetParams(node, &params));
  CHECK(params.dptr == *pointer && params.bytesize == bytes);
  return node;
}

static cuuint64_t graph_bytes(void) {
  cuuint64_t bytes;
  OK(cuDeviceGetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &bytes));
  return bytes;
}

static void memory_nodes(void) {
  CUdeviceptr inner, kept, out, pointer;
  unsigned back[2];
  CUgraphExec second, freeing_exec;
  CHECK(!graph_bytes());
  OK(cuMemAlloc(&out, 4));
  CUgraph graph = new_graph(), freeing = new_graph(), none;
  CUgraphNode a = add_alloc(graph, 4096, &inner), b = add_set(graph, &a, 1, inner, 21), free_node;
  CUgraphNode c = add_copy(graph, &b, 1, out, inner), keeps = add_alloc(graph, 512, &kept);
  add_set(graph, &keeps, 1, kept, 22);
  CHECK(graph_bytes() == 4608);
  OK(cuGraphAddMemFreeNode(&free_node, graph, &c, 1, inner));
  OK(cuGraphMemFreeNodeGetParams(free_node, &pointer));
  CHECK(pointer == inner);
  GIVES(CUDA_ERROR_INVALID_VALUE, cuGraphAddMemFreeNode(&c, graph, NULL, 0, inner));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuGraphAddMemFreeNode(&c, freeing, NULL, 0, inner));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuGraphAddMemFreeNode(&c, graph, NULL, 0, out));
  GIVES(CUDA_ERROR_NOT_SUPPORTED, cuGraphClone(&none, graph));
  GIVES(CUDA_ERROR_NOT_SUPPORTED, cuGraphDestroyNode(b));
  GIVES(CUDA_ERROR_NOT_SUPPORTED, cuGraphRemoveDependencies(graph, &a, &b, NULL, 1));
  GIVES(CUDA_ERROR_NOT_SUPPORTED, cuGraphAddChildGraphNode(&c, freeing, NULL, 0, graph));
  CUgraphExec exec = instantiate(graph);
  GIVES(CUDA_ERROR_INVALID_VALUE, cuGraphInstantiate(&second, graph, 0));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuMemFree(kept)); /* not before a launch */
  launch(exec);
  OK(cuMemcpyDtoH(&back[0], out, 4));
  OK(cuMemcpyDtoH(&back[1], kept, 4));
  CHECK(back[0] == 21 && back[1] == 22);
  GIVES(CUDA_ERROR_INVALID_VALUE, cuGraphLaunch(exec, stream)); /* it is not freed yet */
  OK(cuMemFreeAsync(kept, stream));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuMemFreeAsync(kept, stream));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuMemFree(inner));
  launch(exec);
  OK(cuMemFree(kept));
  launch(exec);
  OK(cuGraphAddMemFreeNode(&c, freeing, NULL, 0, kept));
  OK(cuGraphInstantiate(&freeing_exec, freeing, 0));
  launch(freeing_exec);
  GIVES(CUDA_ERROR_INVALID_VALUE, cuGraphLaunch(freeing_exec, stream));
  OK(cuGraphExecDestroy(exec));
  OK(cuGraphInstantiate(&exec, graph, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH));
  launch(exec);
  launch(exec);
  OK(cuGraphExecDestroy(exec));
  OK(cuGraphExecDestroy(freeing_exec));
  OK(cuGraphDestroy(graph));
  OK(cuGraphDestroy(freeing));
  CHECK(graph_bytes() == 512); /* what the last launch has left */
  OK(cuMemcpyDtoH(&back[1], kept, 4));
  CHECK(back[1] == 22);
  OK(cuMemFree(kept));
  CHECK(!graph_bytes());
  GIVES(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoH(&back[1], kept, 4));
  /* By capture. */
  OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  OK(cuMemAllocAsync(&inner, 64, stream));
  OK(cuMemsetD32Async(inner, 23, 1, stream));
  OK(cuMemcpyDtoDAsync(out, inner, 4, stream));
  OK(cuMemFreeAsync(inner, stream));
  OK(cuStreamEndCapture(stream, &graph));
  exec = instantiate(graph);
  OK(cuGraphDestroy(graph));
  launch(exec);
  launch(exec);
  OK(cuMemcpyDtoH(&back[0], out, 4));
  CHECK(back[0] == 23);
  OK(cuGraphExecDestroy(exec));
  CHECK(!graph_bytes());
  OK(cuDeviceGraphMemTrim(0));
  OK(cuMemFree(out));
}

static atomic_int destroyed;

static void destroy(void *given) {
  GIVES(CUDA_ERROR_NOT_PERMITTED, cuCtxSynchronize());
  destroyed += *(int *)given;
}

static void user_objects(void) {
  static int one = 1;
  CUuserObject object;
  CUgraph graph = new_graph(), clone;
  GIVES(CUDA_ERROR_INVALID_VALUE, cuUserObjectCreate(&object, &one, destroy, 1, 0));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuUserObjectCreate(&object, &one, destroy, 0, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
  OK(cuUserObjectCreate(&object, &one, destroy, 2, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
  OK(cuUserObjectRetain(object, 1));
  OK(cuGraphRetainUserObject(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE));
  OK(cuGraphRetainUserObject(graph, object, 2, 0));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuGraphRetainUserObject(graph, object, 1, 2));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuGraphReleaseUserObject(graph, object, 4));
  OK(cuGraphReleaseUserObject(graph, object, 2));
  OK(cuUserObjectRelease(object, 2));
  gate = begun = 0;
  add_host(graph, NULL, 0, wait_gate, NULL);
  OK(cuGraphClone(&clone, graph));
  OK(cuGraphDestroy(graph));
  CUgraphExec exec = instantiate(clone);
  OK(cuGraphDestroy(clone));
  OK(cuGraphLaunch(exec, stream));
  OK(cuGraphExecDestroy(exec));
  wait_until(&begun, 1);
  CHECK(!destroyed); /* the launch that is under way has it */
  gate = 1;
  wait_until(&destroyed, 1);
  GIVES(CUDA_ERROR_INVALID_VALUE, cuUserObjectRelease(object, 1));
  OK(cuStreamSynchronize(stream));
}

/* Nodes of two contexts in one graph. */
static void two_contexts(void) {
  CUcontext second;
  CUdeviceptr here, there;
  unsigned back;
  OK(cuDevicePrimaryCtxRetain(&second, 1));
  OK(cuMemAlloc(&here, 4));
  OK(cuCtxSetCurrent(second));
  OK(cuMemAlloc(&there, 4));
  OK(cuCtxSetCurrent(context));
  CUgraph graph = new_graph();
  CUgraphNode a = add_set(graph, NULL, 0, here, 5), b;
  CUDA_MEMCPY3D params = copy_params(there, here, 4);
  OK(cuGraphAddMemcpyNode(&b, graph, &a, 1, &params, second));
  CUgraphExec exec = instantiate(graph);
  launch(exec);
  OK(cuMemcpyDtoH(&back, there, 4));
  CHECK(back == 5);
  OK(cuMemFree(there));
  OK(cuDevicePrimaryCtxRelease(1));
  GIVES(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuGraphLaunch(exec, stream));
  OK(cuGraphExecDestroy(exec));
  OK(cuGraphDestroy(graph));
  OK(cuMemFree(here));
}

int main(void) {
  CUgraph none;
  GIVES(CUDA_ERROR_NOT_INITIALIZED, cuGraphCreate(&none, 0));
  OK(cuInit(0));
  OK(cuDevicePrimaryCtxRetain(&context, 0));
  OK(cuCtxSetCurrent(context));
  OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  structure();
  parameters();
  order();
  default_stream();
  events();
  children();
  updates();
  memory_nodes();
  user_objects();
  two_contexts();
  OK(cuStreamDestroy(stream));
  OK(cuDevicePrimaryCtxRelease(0));
  return 0;
}
