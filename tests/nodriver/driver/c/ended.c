/* What random calls have found: work for what is no more, or for nothing at all. */
#include <time.h>

#include "check.h"

static const char PTX[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry put(.param .u64 p)\n"
    "{ .reg .b64 %d<3>; ld.param.u64 %d1, [p]; mov.u64 %d2, 7; st.global.u64 [%d1], %d2; ret; }\n";

/* The context of a kernel ends before the graph that has it is launched. */
static void context_of_a_graph(void) {
  CUcontext own, other;
  CUmodule module;
  CUdeviceptr memory;
  CUgraph graph;
  CUgraphNode node;
  CUgraphExec exec;
  OK(cuCtxCreate(&other, NULL, 0, 0));
  OK(cuCtxCreate(&own, NULL, 0, 0));
  OK(cuMemAlloc(&memory, 64));
  OK(cuModuleLoadData(&module, PTX));
  CUDA_KERNEL_NODE_PARAMS params = {.gridDimX = 1, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 1, .blockDimY = 1,
                                    .blockDimZ = 1, .kernelParams = (void *[]){&memory}};
  OK(cuModuleGetFunction(&params.func, module, "put"));
  OK(cuGraphCreate(&graph, 0));
  OK(cuGraphAddKernelNode(&node, graph, NULL, 0, &params));
  OK(cuGraphInstantiate(&exec, graph, 0));
  OK(cuGraphLaunch(exec, NULL));
  OK(cuCtxDestroy(own));
  for (int n = 0; n < 3; n++) cuGraphLaunch(exec, NULL); /* whatever comes of it, it is no crash */
  OK(cuCtxSynchronize());
  OK(cuGraphExecDestroy(exec));
  OK(cuGraphDestroy(graph));
  OK(cuCtxDestroy(other));
}

static void CUDA_CB wait_a_moment(void *unused) {
  (void)unused;
  nanosleep(&(struct timespec){0, 20000000}, NULL);
}

/* Memory is freed while kernels that use it are queued: they are done first, whatever kind of memory it is. */
static void memory_in_use(void) {
  CUcontext context;
  CUmodule module;
  CUfunction put;
  CUdeviceptr memory[3];
  void *pinned;
  static char own[4096] __attribute__((aligned(4096)));
  OK(cuCtxCreate(&context, NULL, 0, 0));
  OK(cuModuleLoadData(&module, PTX));
  OK(cuModuleGetFunction(&put, module, "put"));
  OK(cuMemAlloc(&memory[0], 64));
  OK(cuMemHostAlloc(&pinned, 64, CU_MEMHOSTALLOC_DEVICEMAP));
  OK(cuMemHostGetDevicePointer(&memory[1], pinned, 0));
  OK(cuMemHostRegister(own, sizeof own, CU_MEMHOSTREGISTER_DEVICEMAP));
  OK(cuMemHostGetDevicePointer(&memory[2], own, 0));
  for (int kind = 0; kind < 3; kind++) {
    OK(cuLaunchHostFunc(NULL, wait_a_moment, NULL));
    OK(cuLaunchKernel(put, 1, 1, 1, 1, 1, 1, 0, NULL, (void *[]){&memory[kind]}, NULL));
    if (kind == 0) { OK(cuMemFree(memory[0])); }
    if (kind == 1) { OK(cuMemFreeHost(pinned)); }
    if (kind == 2) { OK(cuMemHostUnregister(own)); }
    OK(cuCtxSynchronize());
  }
  CHECK(own[0] == 7);
  OK(cuCtxDestroy(context));
}

/* Nodes that copy and fill nothing leave what is there. */
static void nothing(void) {
  CUcontext context;
  CUdeviceptr memory;
  CUgraph graph;
  CUgraphNode node;
  CUgraphExec exec;
  unsigned found = 9;
  OK(cuCtxCreate(&context, NULL, 0, 0));
  OK(cuMemAlloc(&memory, 64));
  OK(cuGraphCreate(&graph, 0));
  CUDA_MEMSET_NODE_PARAMS fill = {.dst = memory, .value = 0x01020304, .elementSize = 4, .width = 0, .height = 1};
  CUDA_MEMCPY3D copy = {.srcMemoryType = CU_MEMORYTYPE_DEVICE, .srcDevice = memory, .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                        .dstDevice = memory + 32, .WidthInBytes = 0, .Height = 1, .Depth = 1};
  CUresult filled = cuGraphAddMemsetNode(&node, graph, NULL, 0, &fill, context);
  CUresult copied = cuGraphAddMemcpyNode(&node, graph, NULL, 0, &copy, context);
  CHECK(filled == CUDA_SUCCESS || filled == CUDA_ERROR_INVALID_VALUE);
  CHECK(copied == CUDA_SUCCESS || copied == CUDA_ERROR_INVALID_VALUE);
  OK(cuGraphInstantiate(&exec, graph, 0));
  OK(cuGraphLaunch(exec, NULL));
  OK(cuMemcpyDtoH(&found, memory, sizeof found));
  CHECK(found == 0);
  OK(cuGraphExecDestroy(exec));
  OK(cuGraphDestroy(graph));
  OK(cuCtxDestroy(context));
}

/* A copy that begins in memory that the driver knows, and is told to go on outside of it. */
static void outside(void) {
  CUcontext context;
  void *pinned;
  OK(cuCtxCreate(&context, NULL, 0, 0));
  OK(cuMemAllocHost(&pinned, 4096));
  CUDA_MEMCPY2D copy = {.srcMemoryType = CU_MEMORYTYPE_UNIFIED, .srcDevice = (CUdeviceptr)pinned,
                        .dstMemoryType = CU_MEMORYTYPE_UNIFIED, .dstDevice = (CUdeviceptr)pinned, .dstPitch = 1 << 20,
                        .srcPitch = 1 << 20, .dstY = 1 << 20, .WidthInBytes = 16, .Height = 1};
  GIVES(CUDA_ERROR_INVALID_VALUE, cuMemcpy2D(&copy));
  copy.dstY = 0;
  OK(cuMemcpy2D(&copy));
  OK(cuCtxDestroy(context));
}

/* Addresses of devices with nothing at them are no pageable memory. */
static void nothing_there(void) {
  CUcontext context;
  CUdeviceptr freed, living, reserved;
  int here[4];
  OK(cuCtxCreate(&context, NULL, 0, 0));
  OK(cuMemAlloc(&living, 64));
  OK(cuMemAlloc(&freed, 64));
  OK(cuMemFree(freed));
  OK(cuMemAddressReserve(&reserved, 2 << 20, 0, 0, 0));
  for (int n = 0; n < 2; n++) {
    CUdeviceptr there = n ? reserved : freed;
    GIVES(CUDA_ERROR_INVALID_VALUE, cuMemcpy(there, (CUdeviceptr)here, sizeof here));
    GIVES(CUDA_ERROR_INVALID_VALUE, cuMemcpy((CUdeviceptr)here, there, sizeof here));
    GIVES(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD(living, (void *)there, sizeof here));
    GIVES(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoH((void *)there, living, sizeof here));
  }
  OK(cuMemAddressFree(reserved, 2 << 20));
  OK(cuCtxDestroy(context));
}

int main(void) {
  OK(cuInit(0));
  context_of_a_graph();
  memory_in_use();
  nothing();
  outside();
  nothing_there();
  return 0;
}
