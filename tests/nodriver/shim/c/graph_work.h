/* What the programs about graphs under the preload library share. */
#ifndef GRAPH_WORK_H
#define GRAPH_WORK_H

#include "../../driver/c/check.h"

/* mix(p, factor, term): *p = *p * factor + term. wide: eight kilobytes of parameters. */
static const char PTX[] =
    ".version 8.1\n.target sm_70\n.address_size 64\n"
    ".visible .entry mix(.param .u64 pp, .param .u32 pf, .param .u32 pt)\n"
    "{ .reg .b32 %r<5>; .reg .b64 %d<2>;\n"
    "  ld.param.u64 %d1, [pp]; ld.param.u32 %r1, [pf]; ld.param.u32 %r2, [pt];\n"
    "  ld.global.u32 %r3, [%d1]; mad.lo.u32 %r4, %r3, %r1, %r2; st.global.u32 [%d1], %r4; ret; }\n"
    ".visible .entry other(.param .u64 pp, .param .u16 pv) { ret; }\n"
    ".visible .entry wide(.param .align 8 .b8 p[4000]) { ret; }\n";

static CUcontext context;
static CUstream a, b;
static CUmodule module;
static CUfunction mix, other, wide;
static CUdeviceptr memory;

static inline void begin(void) {
  OK(cuInit(0));
  OK(cuCtxCreate(&context, NULL, 0, 0));
  OK(cuStreamCreate(&a, CU_STREAM_NON_BLOCKING));
  OK(cuStreamCreate(&b, CU_STREAM_NON_BLOCKING));
  OK(cuModuleLoadData(&module, PTX));
  OK(cuModuleGetFunction(&mix, module, "mix"));
  OK(cuModuleGetFunction(&other, module, "other"));
  OK(cuModuleGetFunction(&wide, module, "wide"));
  OK(cuMemAlloc(&memory, 4096));
}

static unsigned factor = 1;

static inline void launch_mix(CUstream stream, unsigned value) {
  void *arguments[] = {&memory, &factor, &value};
  OK(cuLaunchKernel(mix, value + 1, 1, 1, 1, 1, 1, 0, stream, arguments, NULL));
}

static inline CUDA_KERNEL_NODE_PARAMS mix_params(void **arguments, unsigned blocks) {
  return (CUDA_KERNEL_NODE_PARAMS){.func = mix, .gridDimX = blocks, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 1,
                                   .blockDimY = 1, .blockDimZ = 1, .kernelParams = arguments};
}

static inline CUgraphNode add_mix(CUgraph graph, const CUgraphNode *before, size_t count, unsigned value) {
  CUgraphNode node;
  void *arguments[] = {&memory, &factor, &value};
  CUDA_KERNEL_NODE_PARAMS params = mix_params(arguments, value + 1);
  OK(cuGraphAddKernelNode(&node, graph, before, count, &params));
  return node;
}

static inline CUgraph new_graph(void) {
  CUgraph graph;
  OK(cuGraphCreate(&graph, 0));
  return graph;
}

static inline CUgraphExec instantiate(CUgraph graph) {
  CUgraphExec exec;
  OK(cuGraphInstantiate(&exec, graph, 0));
  return exec;
}

static inline void launch(CUgraphExec exec) {
  OK(cuGraphLaunch(exec, a));
  OK(cuStreamSynchronize(a));
}

/* A line of JSON: the edges of a graph, as the driver says them. */
static inline void print_edges(CUgraph graph) {
  CUgraphNode from[64], to[64];
  size_t count = 64;
  OK(cuGraphGetEdges(graph, from, to, NULL, &count));
  printf("[");
  for (size_t i = 0; i < count; i++)
    printf("%s[%llu, %llu]", i ? ", " : "", (unsigned long long)from[i], (unsigned long long)to[i]);
  printf("]\n");
}

#endif
