/* Captures three launches, copies and fills into a graph, and launches that ten times; makes another by hand. */
#include "hazard.h"

static const char PTX[] = ".version 7.5\n.target sm_75\n.address_size 64\n"
    ".visible .entry add(.param .u64 to, .param .u32 what) { .reg .b64 %a<3>; .reg .b32 %r<3>;\n"
    "ld.param.u64 %a1, [to];\n"
    "cvta.to.global.u64 %a2, %a1; ld.param.u32 %r1, [what]; atom.global.add.u32 %r2, [%a2], %r1; ret; }\n";

int main(void) {
  CUcontext context;
  CUmodule module;
  CUfunction add;
  CUstream stream;
  CUdeviceptr memory;
  CUgraph graph, other;
  CUgraphExec exec;
  CUgraphNode node;
  unsigned value = 0, what = 1;
  CHECK(cuInit(0));
  CHECK(cuDevicePrimaryCtxRetain(&context, 0));
  CHECK(cuCtxSetCurrent(context));
  CHECK(cuModuleLoadData(&module, PTX));
  CHECK(cuModuleGetFunction(&add, module, "add"));
  CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CHECK(cuMemAlloc(&memory, 4));
  CHECK(cuMemsetD32(memory, 0, 1));
  void *parameters[] = {&memory, &what};
  CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  for (what = 1; what < 4; what++) CHECK(cuLaunchKernel(add, what, 1, 1, 1, 1, 1, 0, stream, parameters, NULL));
  CHECK(cuStreamEndCapture(stream, &graph));
  CHECK(cuGraphInstantiate(&exec, graph, 0));
  for (int i = 0; i < 10; i++) CHECK(cuGraphLaunch(exec, stream));
  CHECK(cuStreamSynchronize(stream));
  CHECK(cuGraphExecDestroy(exec));
  CHECK(cuGraphCreate(&other, 0));
  CUDA_KERNEL_NODE_PARAMS given = {.func = add, .gridDimX = 1, .gridDimY = 1, .gridDimZ = 1,
                                   .blockDimX = 1, .blockDimY = 1, .blockDimZ = 1, .kernelParams = parameters};
  what = 100;
  CHECK(cuGraphAddKernelNode(&node, other, NULL, 0, &given));
  CHECK(cuGraphInstantiate(&exec, other, 0));
  CHECK(cuGraphLaunch(exec, stream));
  CHECK(cuStreamSynchronize(stream));
  CHECK(cuMemcpyDtoH(&value, memory, sizeof value));
  printf("%u\n", value);
  return 0;
}
