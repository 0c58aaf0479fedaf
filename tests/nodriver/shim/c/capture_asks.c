/* While a stream is captured, things are met for the first time about which the preload library has to ask the driver.
 * The capture goes on, whatever its mode is; and nobody is asked any more when it has ended, however it did. */
#include <pthread.h>
#include <stdint.h>

#include "graph_work.h"

static CUcontext second;
static CUstream in_second, joined;
static CUgraph ready;

static size_t count_nodes(CUgraph graph) {
  size_t count;
  OK(cuGraphGetNodes(graph, NULL, &count));
  return count;
}

static void check_mode(CUstreamCaptureMode wanted) {
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  OK(cuThreadExchangeStreamCaptureMode(&mode));
  CHECK(mode == wanted);
  OK(cuThreadExchangeStreamCaptureMode(&mode));
}

/* In a thread of its own, which has no context at first. */
static void *elsewhere(void *given) {
  (void)given;
  CUgraphExec exec = instantiate(ready);
  CUcontext now;
  OK(cuCtxGetCurrent(&now));
  CHECK(!now);
  OK(cuCtxSetCurrent(second));
  OK(cuGraphLaunch(exec, in_second));
  OK(cuGraphExecDestroy(exec));
  check_mode(CU_STREAM_CAPTURE_MODE_GLOBAL);
  return NULL;
}

static void run_elsewhere(void) {
  pthread_t thread;
  CHECK(!pthread_create(&thread, NULL, elsewhere, NULL));
  CHECK(!pthread_join(thread, NULL));
}

static void asks(CUstreamCaptureMode mode) {
  CUgraph graph;
  CUevent event;
  CUcontext now;
  int calls = 0;
  OK(cuCtxCreate(&second, NULL, 0, 1));
  OK(cuStreamCreate(&in_second, CU_STREAM_NON_BLOCKING));
  OK(cuCtxSetCurrent(context));
  OK(cuStreamCreate(&joined, CU_STREAM_NON_BLOCKING));
  OK(cuEventCreate(&event, 0));
  ready = new_graph();
  add_mix(ready, NULL, 0, 5);
  OK(cuStreamBeginCapture(a, mode));
  unsigned short value = 3;
  void *arguments[] = {&memory, &value};
  OK(cuLaunchKernel(other, 1, 1, 1, 1, 1, 1, 0, a, arguments, NULL));
  OK(cuEventRecord(event, a));
  OK(cuStreamWaitEvent(joined, event, 0));
  launch_mix(joined, 1);
  OK(cuEventRecord(event, joined));
  OK(cuStreamWaitEvent(a, event, 0));
  OK(cuStreamWriteValue32(in_second, memory, 1, 0)); /* another context's, and not captured */
  CUgraphExec exec = instantiate(ready);
  OK(cuGraphLaunch(exec, b));
  OK(cuGraphLaunch(exec, a));
  launch_mix(CU_STREAM_PER_THREAD, 7);
  run_elsewhere();
  OK(cuMemsetD8Async(memory, 1, 3, a));
  OK(cuMemcpyDtoDAsync(memory, memory + 64, 3, a));
  OK(cuMemcpyHtoDAsync(memory, &calls, 4, a));
  OK(cuMemcpyDtoHAsync(&calls, memory, 4, a));
  OK(cuStreamWriteValue32(a, memory, 1, 0));
  check_mode(CU_STREAM_CAPTURE_MODE_GLOBAL);
  OK(cuCtxGetCurrent(&now));
  CHECK(now == context);
  OK(cuStreamEndCapture(a, &graph));
  CHECK(count_nodes(graph) == 8);
}

static CUstream new_stream(void) {
  CUstream stream;
  OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  return stream;
}

static void *end_elsewhere(void *stream) {
  CUgraph graph;
  OK(cuCtxSetCurrent(context));
  GIVES(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, cuStreamEndCapture(stream, &graph));
  return NULL;
}

static void start(CUstream stream) { OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL)); }

/* Captures that come to nothing, each of a stream that no other capture is begun with. */
static void spoiled(void) {
  CUgraph graph;
  CUevent event;
  CUdeviceptr none;
  CUstream invalid = new_stream(), unjoined = new_stream(), unmatched = new_stream();
  OK(cuEventCreate(&event, 0));
  start(invalid);
  CHECK(cuMemAlloc(&none, 16) != CUDA_SUCCESS);
  GIVES(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(invalid, &graph));
  start(unjoined);
  OK(cuEventRecord(event, unjoined));
  OK(cuStreamWaitEvent(b, event, 0));
  launch_mix(b, 2);
  GIVES(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, cuStreamEndCapture(unjoined, &graph));
  start(unmatched); /* ended by the wrong stream first */
  OK(cuEventRecord(event, unmatched));
  OK(cuStreamWaitEvent(b, event, 0));
  GIVES(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, cuStreamEndCapture(b, &graph));
  GIVES(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(unmatched, &graph));
}

/* Ways in which captures end or go on. */
static void ends(void) {
  CUgraph graph;
  pthread_t thread;
  start(a); /* in vain */
  GIVES(CUDA_ERROR_ILLEGAL_STATE, cuStreamBeginCapture(a, CU_STREAM_CAPTURE_MODE_GLOBAL));
  CHECK(!pthread_create(&thread, NULL, end_elsewhere, a));
  CHECK(!pthread_join(thread, NULL));
  launch_mix(a, 1); /* captured still */
  OK(cuStreamEndCapture(a, &graph));
  GIVES(CUDA_ERROR_ILLEGAL_STATE, cuStreamEndCapture(a, &graph)); /* which has ended */
  GIVES(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuStreamBeginCapture(NULL, CU_STREAM_CAPTURE_MODE_GLOBAL));
  OK(cuStreamBeginCapture(CU_STREAM_PER_THREAD, CU_STREAM_CAPTURE_MODE_RELAXED));
  launch_mix(CU_STREAM_PER_THREAD, 3);
  start(a); /* two at a time */
  launch_mix(a, 4);
  OK(cuStreamEndCapture(CU_STREAM_PER_THREAD, &graph));
  launch_mix(a, 5);
  OK(cuStreamEndCapture(a, &graph));
  OK(cuStreamBeginCaptureToGraph(a, graph, NULL, NULL, 0, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  launch_mix(a, 6);
  OK(cuStreamEndCapture(a, &graph));
}

/* With their streams, or with the streams' context. */
static void destroyed(void) {
  CUcontext other_context;
  CUstream stream = new_stream();
  start(stream);
  launch_mix(stream, 7);
  OK(cuStreamDestroy(stream));
  OK(cuCtxCreate(&other_context, NULL, 0, 0));
  stream = new_stream();
  OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  OK(cuMemsetD8Async(memory, 1, 1, stream));
  OK(cuCtxDestroy(other_context));
  OK(cuCtxSetCurrent(context));
}

int main(int count, char **words) {
  int devices;
  CHECK(count == 2);
  begin();
  if (!strcmp(words[1], "ends")) ends();
  else if (!strcmp(words[1], "spoiled")) spoiled();
  else if (!strcmp(words[1], "destroyed")) destroyed();
  else asks((CUstreamCaptureMode)atoi(words[1]));
  OK(cuDeviceGetCount(&devices)); /* from here on nothing is captured */
  launch_mix(a, 9);
  launch_mix(b, 9);
  OK(cuCtxSynchronize());
  return 0;
}
