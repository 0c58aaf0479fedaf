/* What the programs about graphs share. */
#ifndef GRAPHS_H
#define GRAPHS_H

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "check.h"

static CUcontext context;
static CUstream stream;

static inline void pause_ms(long milliseconds) {
  struct timespec time = {milliseconds / 1000, milliseconds % 1000 * 1000000};
  nanosleep(&time, NULL);
}

static inline void wait_until(atomic_int *value, int wanted) {
  for (int i = 0; i < 10000 && *value != wanted; i++) pause_ms(1);
  CHECK(*value == wanted);
}

static inline CUgraph new_graph(void) {
  CUgraph graph;
  OK(cuGraphCreate(&graph, 0));
  return graph;
}

static inline CUgraphExec instantiate(CUgraph graph) {
  CUgraphExec exec;
  OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
  return exec;
}

static inline void launch(CUgraphExec exec) {
  OK(cuGraphLaunch(exec, stream));
  OK(cuStreamSynchronize(stream));
}

static inline CUgraphNode add_empty(CUgraph graph, const CUgraphNode *before, size_t count) {
  CUgraphNode node;
  OK(cuGraphAddEmptyNode(&node, graph, before, count));
  return node;
}

static inline CUgraphNode add_host(CUgraph graph, const CUgraphNode *before, size_t count, CUhostFn function, void *given) {
  CUgraphNode node;
  CUDA_HOST_NODE_PARAMS params = {function, given};
  OK(cuGraphAddHostNode(&node, graph, before, count, &params));
  return node;
}

static inline CUDA_MEMSET_NODE_PARAMS set_params(CUdeviceptr to, unsigned value, size_t count) {
  return (CUDA_MEMSET_NODE_PARAMS){.dst = to, .value = value, .elementSize = 4, .width = count, .height = 1};
}

static inline CUgraphNode add_set(CUgraph graph, const CUgraphNode *before, size_t count, CUdeviceptr to, unsigned value) {
  CUgraphNode node;
  CUDA_MEMSET_NODE_PARAMS params = set_params(to, value, 1);
  OK(cuGraphAddMemsetNode(&node, graph, before, count, &params, context));
  return node;
}

static CUDA_MEMCPY3D copy_params(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  return (CUDA_MEMCPY3D){.srcMemoryType = CU_MEMORYTYPE_DEVICE, .srcDevice = from, .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                         .dstDevice = to, .WidthInBytes = bytes, .Height = 1, .Depth = 1};
}

static inline CUgraphNode add_copy(CUgraph graph, const CUgraphNode *before, size_t count, CUdeviceptr to, CUdeviceptr from) {
  CUgraphNode node;
  CUDA_MEMCPY3D params = copy_params(to, from, 4);
  OK(cuGraphAddMemcpyNode(&node, graph, before, count, &params, context));
  return node;
}

#endif
