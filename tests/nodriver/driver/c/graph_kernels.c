/* Graphs that launch kernels, made node by node and by capture; what becomes of one whose kernel fails. */
#include "check.h"

/* mix(p, factor, term): *p = *p * factor + term. */
static const char PTX[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry mix(.param .u64 pp, .param .u32 pf, .param .u32 pt)\n"
    "{ .reg .b32 %r<5>; .reg .b64 %d<2>;\n"
    "  ld.param.u64 %d1, [pp]; ld.param.u32 %r1, [pf]; ld.param.u32 %r2, [pt];\n"
    "  ld.global.u32 %r3, [%d1]; mad.lo.u32 %r4, %r3, %r1, %r2; st.global.u32 [%d1], %r4; ret; }\n";

enum { CHAIN = 200 };

static CUcontext context;
static CUstream stream;
static CUmodule module;
static CUfunction mix;
static CUdeviceptr memory;

static void begin(void) {
  OK(cuCtxCreate(&context, NULL, 0, 0));
  OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  OK(cuModuleLoadData(&module, PTX));
  OK(cuModuleGetFunction(&mix, module, "mix"));
  OK(cuMemAlloc(&memory, 8));
}

static CUDA_KERNEL_NODE_PARAMS params_of(void **arguments) {
  return (CUDA_KERNEL_NODE_PARAMS){.func = mix, .gridDimX = 1, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 1,
                                   .blockDimY = 1, .blockDimZ = 1, .kernelParams = arguments};
}

static unsigned launch(CUgraphExec exec) {
  unsigned value;
  OK(cuMemsetD32(memory, 1, 1));
  OK(cuGraphLaunch(exec, stream));
  OK(cuStreamSynchronize(stream));
  OK(cuMemcpyDtoH(&value, memory, 4));
  return value;
}

static void chain(void) {
  CUgraph graph;
  CUgraphNode nodes[CHAIN];
  CUgraphExec exec;
  unsigned factor = 3, term, expected = 1;
  void *arguments[] = {&memory, &factor, &term};
  OK(cuGraphCreate(&graph, 0));
  for (unsigned n = 0; n < CHAIN; n++) {
    term = n;
    expected = expected * factor + term;
    CUDA_KERNEL_NODE_PARAMS params = params_of(arguments);
    OK(cuGraphAddKernelNode(&nodes[n], graph, n ? &nodes[n - 1] : NULL, n > 0, &params));
  }
  OK(cuGraphInstantiate(&exec, graph, 0));
  CHECK(launch(exec) == expected);
  /* Other arguments, all in one buffer. */
  struct {
    CUdeviceptr pointer;
    unsigned factor, term;
  } packed = {memory, 5, 0};
  size_t bytes = sizeof packed;
  void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END};
  expected = 1;
  for (unsigned n = 0; n < CHAIN; n++) {
    packed.term = n;
    packed.factor = n % 2 ? 3 : 5;
    expected = expected * packed.factor + packed.term;
    if (n % 2) continue;
    CUDA_KERNEL_NODE_PARAMS params = params_of(NULL);
    params.extra = extra;
    OK(cuGraphExecKernelNodeSetParams(exec, nodes[n], &params));
  }
  CHECK(launch(exec) == expected);
  /* What a node has: in the graph still the first ones. */
  CUDA_KERNEL_NODE_PARAMS back;
  OK(cuGraphKernelNodeGetParams(nodes[7], &back));
  CHECK(back.func == mix && back.gridDimX == 1 && *(unsigned *)back.kernelParams[1] == 3 &&
        *(unsigned *)back.kernelParams[2] == 7 && *(CUdeviceptr *)back.kernelParams[0] == memory);
  back.blockDimX = 2000;
  GIVES(CUDA_ERROR_INVALID_VALUE, cuGraphKernelNodeSetParams(nodes[7], &back));
  CUkernelNodeAttrValue value = {.cooperative = 1};
  OK(cuGraphKernelNodeSetAttribute(nodes[7], CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &value));
  OK(cuGraphKernelNodeCopyAttributes(nodes[8], nodes[7]));
  memset(&value, 0, sizeof value);
  OK(cuGraphKernelNodeGetAttribute(nodes[8], CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &value));
  CHECK(value.cooperative == 1);
  /* An executable graph may not become one with other attributes; otherwise it gets all arguments back. */
  CUgraphExecUpdateResultInfo info;
  GIVES(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, cuGraphExecUpdate(exec, graph, &info));
  CHECK(info.result == CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED &&
        (info.errorNode == nodes[7] || info.errorNode == nodes[8]));
  CHECK(launch(exec) == expected);
  value.cooperative = 0;
  for (int n = 7; n < 9; n++) OK(cuGraphKernelNodeSetAttribute(nodes[n], CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &value));
  OK(cuGraphExecUpdate(exec, graph, &info));
  expected = 1;
  for (unsigned n = 0; n < CHAIN; n++) expected = expected * 3 + n;
  CHECK(launch(exec) == expected);
  /* The module's code stays while the graph needs it. */
  OK(cuModuleUnload(module));
  GIVES(CUDA_ERROR_INVALID_HANDLE, cuGraphKernelNodeSetParams(nodes[0], &(CUDA_KERNEL_NODE_PARAMS){.func = mix}));
  OK(cuGraphExecDestroy(exec));
  OK(cuGraphDestroy(graph));
}

static void capture(void) {
  CUgraph graph;
  CUgraphExec exec;
  unsigned factor = 7, term = 2;
  void *arguments[] = {&memory, &factor, &term};
  OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  for (int n = 0; n < 3; n++) OK(cuLaunchKernel(mix, 1, 1, 1, 1, 1, 1, 0, stream, arguments, NULL));
  OK(cuStreamEndCapture(stream, &graph));
  OK(cuGraphInstantiate(&exec, graph, 0));
  CHECK(launch(exec) == ((1 * 7 + 2) * 7 + 2) * 7 + 2);
  OK(cuGraphExecDestroy(exec));
  OK(cuGraphDestroy(graph));
}

/* A node may get its blocks later; a call may not. */
static void blocks_later(void) {
  CUgraph graph;
  CUgraphNode node;
  CUgraphExec exec;
  unsigned factor = 7, term = 2;
  void *arguments[] = {&memory, &factor, &term};
  CUDA_KERNEL_NODE_PARAMS params = params_of(arguments);
  params.gridDimX = 0;
  OK(cuGraphCreate(&graph, 0));
  OK(cuGraphAddKernelNode(&node, graph, NULL, 0, &params));
  OK(cuGraphInstantiate(&exec, graph, 0));
  params.gridDimX = 1;
  OK(cuGraphExecKernelNodeSetParams(exec, node, &params));
  CHECK(launch(exec) == 9);
  GIVES(CUDA_ERROR_INVALID_VALUE, cuLaunchKernel(mix, 0, 1, 1, 1, 1, 1, 0, stream, arguments, NULL));
  OK(cuGraphExecDestroy(exec));
  OK(cuGraphInstantiate(&exec, graph, 0));
  OK(cuGraphLaunch(exec, stream));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuStreamSynchronize(stream)); /* nobody said how many */
  OK(cuGraphExecDestroy(exec));
  OK(cuGraphDestroy(graph));
}

static void failure(void) {
  CUgraph graph;
  CUgraphNode node, next;
  CUgraphExec exec;
  CUcontext other;
  CUdeviceptr bad = 0x1000, healthy;
  unsigned factor = 1, term = 1, value;
  void *arguments[] = {&bad, &factor, &term};
  CUDA_KERNEL_NODE_PARAMS params = params_of(arguments);
  OK(cuGraphCreate(&graph, 0));
  OK(cuGraphAddKernelNode(&node, graph, NULL, 0, &params));
  CUDA_MEMSET_NODE_PARAMS set = {.dst = memory, .value = 9, .elementSize = 4, .width = 1, .height = 1};
  OK(cuGraphAddMemsetNode(&next, graph, &node, 1, &set, context)); /* not done any more */
  OK(cuCtxCreate(&other, NULL, 0, 0));
  OK(cuMemAlloc(&healthy, 4));
  set.dst = healthy;
  OK(cuGraphAddMemsetNode(&next, graph, &node, 1, &set, other)); /* of another context: done */
  OK(cuCtxSetCurrent(context));
  OK(cuMemsetD32(memory, 1, 1));
  OK(cuGraphInstantiate(&exec, graph, 0));
  OK(cuGraphLaunch(exec, stream));
  GIVES(CUDA_ERROR_ILLEGAL_ADDRESS, cuStreamSynchronize(stream));
  GIVES(CUDA_ERROR_ILLEGAL_ADDRESS, cuGraphLaunch(exec, stream));
  OK(cuCtxSetCurrent(other));
  OK(cuCtxSynchronize()); /* of what the launch does in this one */
  CUstream third;
  OK(cuStreamCreate(&third, 0));
  GIVES(CUDA_ERROR_ILLEGAL_ADDRESS, cuGraphLaunch(exec, third)); /* a node's context has failed */
  OK(cuMemcpyDtoH(&value, healthy, 4));
  CHECK(value == 9);
  OK(cuMemcpyDtoH(&value, memory, 4)); /* by a context that has not failed */
  CHECK(value == 1);
  OK(cuGraphExecDestroy(exec));
  OK(cuGraphDestroy(graph));
  OK(cuCtxDestroy(context));
  OK(cuCtxDestroy(other));
}

int main(void) {
  OK(cuInit(0));
  begin();
  capture();
  chain();
  OK(cuCtxDestroy(context));
  begin();
  blocks_later();
  OK(cuCtxDestroy(context));
  begin();
  failure();
  return 0;
}
