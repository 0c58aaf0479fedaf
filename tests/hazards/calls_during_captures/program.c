/* Calls much while a stream is captured, in each mode: kernels that were never met, streams, events, memory, graphs,
 * modules. Prints what each answers, and whether the capture is still good. */
#include "hazard.h"

static const char PTX[] = ".version 7.5\n.target sm_75\n.address_size 64\n"
    ".visible .entry first(.param .u64 to) { ret; }\n.visible .entry second(.param .u64 to) { ret; }\n"
    ".visible .entry third(.param .u64 to) { ret; }\n";

static CUstream stream, other;
static CUdeviceptr memory;
static char *host;

#define SAY(call) printf("%s %d\n", #call, call)

static void calls(CUmodule module, const char *name) {
  CUfunction kernel;
  CUevent event, joined;
  CUcontext now;
  CUstream created;
  CUdeviceptr more = 0;
  size_t bytes, total;
  void *parameters[] = {&memory};
  SAY(cuModuleGetFunction(&kernel, module, name));
  SAY(cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL));
  SAY(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  SAY(cuEventCreate(&joined, CU_EVENT_DISABLE_TIMING));
  SAY(cuEventRecord(event, stream));
  SAY(cuStreamWaitEvent(other, event, 0)); /* the capture takes the other stream in */
  SAY(cuLaunchKernel(kernel, 2, 1, 1, 1, 1, 1, 0, other, parameters, NULL));
  SAY(cuMemsetD8Async(memory, 1, 64, other));
  SAY(cuEventRecord(joined, other));
  SAY(cuStreamWaitEvent(stream, joined, 0));
  SAY(cuMemcpyHtoDAsync(memory, host, 64, stream));
  SAY(cuMemcpyDtoDAsync(memory + 128, memory, 64, stream));
  SAY(cuMemcpyDtoHAsync(host + 64, memory, 64, stream));
  SAY(cuMemAllocAsync(&more, 64, stream));
  SAY(cuMemFreeAsync(more, stream));
  SAY(cuCtxGetCurrent(&now));
  SAY(cuMemGetInfo(&bytes, &total));
  SAY(cuStreamCreate(&created, CU_STREAM_NON_BLOCKING));
  SAY(cuStreamDestroy(created));
  SAY(cuEventDestroy(event));
  SAY(cuEventDestroy(joined));
}

int main(void) {
  CUcontext context;
  CUmodule module;
  const CUstreamCaptureMode modes[] = {CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
                                       CU_STREAM_CAPTURE_MODE_RELAXED};
  const char *const names[] = {"first", "second", "third"};
  CHECK(cuInit(0));
  CHECK(cuDevicePrimaryCtxRetain(&context, 0));
  CHECK(cuCtxSetCurrent(context));
  CHECK(cuModuleLoadData(&module, PTX));
  CHECK(cuMemAlloc(&memory, 4096));
  CHECK(cuMemHostAlloc((void **)&host, 4096, 0));
  for (int i = 0; i < 3; i++) {
    CUgraph graph = NULL;
    CUgraphExec exec;
    CUstreamCaptureStatus status;
    CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING)); /* which nobody has met before the capture */
    CHECK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    SAY(cuStreamBeginCapture(stream, modes[i]));
    calls(module, names[i]);
    SAY(cuStreamIsCapturing(stream, &status));
    printf("%d\n", status);
    SAY(cuStreamEndCapture(stream, &graph));
    size_t nodes = 0;
    SAY(cuGraphGetNodes(graph, NULL, &nodes));
    printf("%zu nodes\n", nodes);
    SAY(cuGraphInstantiate(&exec, graph, 0));
    SAY(cuGraphLaunch(exec, stream));
    SAY(cuStreamSynchronize(stream));
    SAY(cuGraphExecDestroy(exec));
    SAY(cuGraphDestroy(graph));
    SAY(cuStreamDestroy(other));
    SAY(cuStreamDestroy(stream));
  }
  return 0;
}
