/* Captures: what becomes a node, what is not allowed, and what becomes of a capture then. */
#include <pthread.h>
#include <stdatomic.h>

#include "check.h"

static CUcontext context;
static CUstream a, b, blocking; /* the first two do not wait for the default stream */
static CUevent event, other_event, old_event;
static CUdeviceptr memory;
static CUgraphExec exec;
static unsigned char pageable[64];

static void begin(CUstream stream) { OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL)); }

static CUgraph end(CUstream stream) {
  CUgraph graph;
  OK(cuStreamEndCapture(stream, &graph));
  return graph;
}

static CUstreamCaptureStatus status_of(CUstream stream) {
  CUstreamCaptureStatus status;
  OK(cuStreamIsCapturing(stream, &status));
  return status;
}

static void ends_with(CUresult expected, CUstream stream) {
  CUgraph graph = (CUgraph)stream;
  GIVES(expected, cuStreamEndCapture(stream, &graph));
  CHECK(!graph && status_of(stream) == CU_STREAM_CAPTURE_STATUS_NONE);
}

static size_t count_nodes(CUgraph graph) {
  size_t count;
  OK(cuGraphGetNodes(graph, NULL, &count));
  return count;
}

static size_t count_edges(CUgraph graph) {
  size_t count;
  OK(cuGraphGetEdges(graph, NULL, NULL, NULL, &count));
  return count;
}

static CUgraphNodeType type_of(CUgraph graph, size_t number) {
  CUgraphNode nodes[16];
  CUgraphNodeType type;
  size_t count = 16;
  OK(cuGraphGetNodes(graph, nodes, &count));
  OK(cuGraphNodeGetType(nodes[number], &type));
  return type;
}

static atomic_int called;

static void call(void *given) { called += given ? *(int *)given : 1; }

static void CUDA_CB callback(CUstream stream, CUresult status, void *given) {
  (void)stream;
  (void)status;
  (void)given;
}

/* Each kind of work becomes its kind of node; nothing is done before a launch. */
static void nodes(void) {
  unsigned char back[64] = {0};
  CUgraph graph;
  OK(cuMemsetD8(memory, 0, 64));
  memset(pageable, 1, sizeof pageable);
  begin(a);
  CHECK(status_of(a) == CU_STREAM_CAPTURE_STATUS_ACTIVE && status_of(b) == CU_STREAM_CAPTURE_STATUS_NONE);
  OK(cuMemcpyHtoDAsync(memory, pageable, 32, a)); /* reads when it is launched */
  OK(cuMemsetD8Async(memory + 32, 5, 8, a));
  OK(cuLaunchHostFunc(a, call, NULL));
  OK(cuMemcpyDtoHAsync(back, memory, 64, a)); /* writes when it is launched */
  OK(cuEventRecordWithFlags(event, a, CU_EVENT_RECORD_EXTERNAL));
  OK(cuStreamWaitEvent(a, old_event, CU_EVENT_WAIT_EXTERNAL));
  OK(cuGraphLaunch(exec, a));
  OK(cuStreamWriteValue32(a, memory + 60, 77, 0));
  graph = end(a);
  static const CUgraphNodeType types[] = {
      CU_GRAPH_NODE_TYPE_MEMCPY, CU_GRAPH_NODE_TYPE_MEMSET, CU_GRAPH_NODE_TYPE_HOST, CU_GRAPH_NODE_TYPE_MEMCPY,
      CU_GRAPH_NODE_TYPE_EVENT_RECORD, CU_GRAPH_NODE_TYPE_WAIT_EVENT, CU_GRAPH_NODE_TYPE_GRAPH,
      CU_GRAPH_NODE_TYPE_BATCH_MEM_OP};
  CHECK(count_nodes(graph) == 8 && count_edges(graph) == 7);
  for (size_t n = 0; n < 8; n++) CHECK(type_of(graph, n) == types[n]);
  CHECK(!called && !back[0]);
  memset(pageable, 2, sizeof pageable);
  CUgraphExec made;
  OK(cuGraphInstantiate(&made, graph, 0));
  OK(cuGraphLaunch(made, a));
  OK(cuEventSynchronize(event));
  OK(cuStreamSynchronize(a));
  CHECK(called == 2 && back[0] == 2 && back[31] == 2 && back[32] == 5 && !back[40]); /* twice: the graph in the graph too */
  OK(cuMemcpyDtoH(back, memory, 64));
  CHECK(back[60] == 77);
  OK(cuGraphExecDestroy(made));
  OK(cuGraphDestroy(graph));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuEventRecordWithFlags(event, a, CU_EVENT_RECORD_EXTERNAL)); /* not captured */
  GIVES(CUDA_ERROR_INVALID_VALUE, cuStreamWaitEvent(a, event, CU_EVENT_WAIT_EXTERNAL));
}

/* An event takes another stream along, and brings it back. */
static void forks(void) {
  CUgraph graph;
  begin(a);
  OK(cuMemsetD8Async(memory, 1, 1, a));
  OK(cuEventRecord(event, a));
  OK(cuStreamWaitEvent(b, event, 0));
  CHECK(status_of(b) == CU_STREAM_CAPTURE_STATUS_ACTIVE);
  OK(cuMemsetD8Async(memory + 1, 1, 1, a));
  OK(cuMemsetD8Async(memory + 2, 1, 1, b));
  OK(cuEventRecord(other_event, b));
  OK(cuStreamWaitEvent(a, other_event, 0));
  OK(cuMemsetD8Async(memory + 3, 1, 1, a));
  graph = end(a);
  CHECK(status_of(b) == CU_STREAM_CAPTURE_STATUS_NONE && count_nodes(graph) == 4 && count_edges(graph) == 4);
  OK(cuGraphDestroy(graph));
  GIVES(CUDA_ERROR_CAPTURED_EVENT, cuEventQuery(event)); /* still */
  GIVES(CUDA_ERROR_STREAM_CAPTURE_ISOLATION, cuStreamWaitEvent(a, event, 0));
  OK(cuEventRecord(event, a));
  OK(cuEventSynchronize(event));
  /* A stream that was taken along and has done nothing needs not to come back. */
  begin(a);
  OK(cuEventRecord(event, a));
  OK(cuStreamWaitEvent(b, event, 0));
  OK(cuGraphDestroy(end(a)));
  /* One that has done something does. */
  begin(a);
  OK(cuEventRecord(event, a));
  OK(cuStreamWaitEvent(b, event, 0));
  OK(cuMemsetD8Async(memory + 2, 1, 1, b));
  CUgraph none;
  GIVES(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, cuStreamEndCapture(b, &none));
  ends_with(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, a);
  CHECK(status_of(b) == CU_STREAM_CAPTURE_STATUS_NONE);
  begin(a);
  OK(cuEventRecord(event, a));
  OK(cuStreamWaitEvent(b, event, 0));
  OK(cuMemsetD8Async(memory + 2, 1, 1, b));
  ends_with(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, a);
  CUstream short_lived;
  OK(cuStreamCreate(&short_lived, CU_STREAM_NON_BLOCKING));
  begin(a);
  OK(cuEventRecord(event, a));
  OK(cuStreamWaitEvent(short_lived, event, 0));
  OK(cuMemsetD8Async(memory + 2, 1, 1, short_lived));
  OK(cuStreamDestroy(short_lived));
  ends_with(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, a);
  OK(cuStreamCreate(&short_lived, CU_STREAM_NON_BLOCKING));
  begin(short_lived);
  OK(cuEventRecord(event, short_lived));
  OK(cuStreamWaitEvent(a, event, 0));
  OK(cuStreamDestroy(short_lived)); /* with the capture */
  CHECK(status_of(a) == CU_STREAM_CAPTURE_STATUS_NONE);
}

/* Calls that a capture does not survive. */

static CUresult synchronize_stream(void) { return cuStreamSynchronize(a); }
static CUresult query_stream(void) { return cuStreamQuery(a); }
static CUresult synchronize_context(void) { return cuCtxSynchronize(); }
static CUresult query_event(void) { return cuEventQuery(event); }
static CUresult synchronize_event(void) { return cuEventSynchronize(event); }
static CUresult elapsed(void) {
  float milliseconds;
  return cuEventElapsedTime(&milliseconds, event, old_event);
}
static CUresult add_callback(void) { return cuStreamAddCallback(a, callback, NULL, 0); }
static CUresult wait_outside(void) { return cuStreamWaitEvent(a, old_event, 0); }
static CUresult end_other(void) {
  CUgraph graph;
  return cuStreamEndCapture(b, &graph);
}
static CUresult upload(void) { return cuGraphUpload(exec, a); }

/* Calls that are not safe, unless one knows what one does. */
static CUresult allocate(void) {
  CUdeviceptr pointer;
  CUresult result = cuMemAlloc(&pointer, 4);
  if (result == CUDA_SUCCESS) OK(cuMemFree(pointer));
  return result;
}
static CUresult allocate_host(void) {
  void *pointer;
  CUresult result = cuMemAllocHost(&pointer, 4);
  if (result == CUDA_SUCCESS) OK(cuMemFreeHost(pointer));
  return result;
}
static CUresult copy_now(void) { return cuMemcpyDtoH(pageable, memory, 4); }
static CUresult set_now(void) { return cuMemsetD8(memory, 1, 4); }
static CUresult query_old(void) { return cuEventQuery(old_event); }
static CUresult synchronize_old(void) { return cuEventSynchronize(old_event); }
static CUresult synchronize_other(void) { return cuStreamSynchronize(b); }

static const struct {
  const char *name;
  CUresult (*call)(void);
  CUresult result;
  int unsafe; /* only that */
} CALLS[] = {
    {"cuStreamSynchronize", synchronize_stream, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, 0},
    {"cuStreamQuery", query_stream, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, 0},
    {"cuCtxSynchronize", synchronize_context, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, 0},
    {"cuEventQuery", query_event, CUDA_ERROR_CAPTURED_EVENT, 0},
    {"cuEventSynchronize", synchronize_event, CUDA_ERROR_CAPTURED_EVENT, 0},
    {"cuEventElapsedTime", elapsed, CUDA_ERROR_CAPTURED_EVENT, 0},
    {"cuStreamAddCallback", add_callback, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, 0},
    {"cuGraphUpload", upload, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, 0},
    {"cuStreamWaitEvent, an event from outside", wait_outside, CUDA_ERROR_STREAM_CAPTURE_ISOLATION, 0},
    {"cuStreamEndCapture, another stream", end_other, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, 0},
    {"cuMemAlloc", allocate, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, 1},
    {"cuMemAllocHost", allocate_host, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, 1},
    {"cuMemcpyDtoH", copy_now, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, 1},
    {"cuMemsetD8", set_now, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, 1},
    {"cuEventQuery, an event from outside", query_old, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, 1},
    {"cuEventSynchronize, an event from outside", synchronize_old, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, 1},
    {"cuStreamSynchronize, another stream", synchronize_other, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, 1},
};
enum { CALL_COUNT = sizeof CALLS / sizeof *CALLS };

static size_t asked;
static CUstreamCaptureMode thread_mode;

static CUresult call_here(void) {
  CUstreamCaptureMode mode = thread_mode;
  OK(cuThreadExchangeStreamCaptureMode(&mode));
  CUresult result = CALLS[asked].call();
  OK(cuThreadExchangeStreamCaptureMode(&mode));
  CHECK(mode == thread_mode);
  return result;
}

static void *call_there(void *result) {
  OK(cuCtxSetCurrent(context));
  *(CUresult *)result = call_here();
  return NULL;
}

/* Every call in every mode of a capture, from its own thread and from another one in every mode of that. */
static void legality(void) {
  for (int mode = 0; mode < 3; mode++)
    for (int elsewhere = 0; elsewhere < 2; elsewhere++)
      for (int of_thread = 0; of_thread < 3; of_thread++)
        for (asked = 0; asked < CALL_COUNT; asked++) {
          int joined = CALLS[asked].call == end_other;
          OK(cuStreamBeginCapture(a, (CUstreamCaptureMode)mode));
          OK(cuEventRecord(event, a));
          if (joined) OK(cuStreamWaitEvent(b, event, 0));
          CUresult result, wanted = CALLS[asked].result;
          pthread_t thread;
          thread_mode = (CUstreamCaptureMode)of_thread;
          if (elsewhere) {
            CHECK(!pthread_create(&thread, NULL, call_there, &result));
            CHECK(!pthread_join(thread, NULL));
          } else {
            result = call_here();
          }
          int safe = of_thread == CU_STREAM_CAPTURE_MODE_RELAXED ||
                     (elsewhere ? mode != CU_STREAM_CAPTURE_MODE_GLOBAL || of_thread != CU_STREAM_CAPTURE_MODE_GLOBAL
                                : mode == CU_STREAM_CAPTURE_MODE_RELAXED);
          if (CALLS[asked].unsafe && safe) wanted = CUDA_SUCCESS;
          CUgraph graph = NULL;
          CUresult ended = cuStreamEndCapture(a, &graph);
          CUresult end_wanted = wanted == CUDA_SUCCESS ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
          if (result != wanted || ended != end_wanted) {
            fprintf(stderr, "%s, capture mode %d, %s thread of mode %d: %d, not %d; the end: %d, not %d\n",
                    CALLS[asked].name, mode, elsewhere ? "another" : "its own", of_thread, result, wanted, ended,
                    end_wanted);
            exit(1);
          }
          CHECK(!graph == (wanted != CUDA_SUCCESS));
          if (graph) OK(cuGraphDestroy(graph));
        }
}

/* The default stream of a context cannot be used while a stream that it waits for is captured. */
static void default_stream(void) {
  CUstreamCaptureStatus status;
  CUgraph none;
  GIVES(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuStreamBeginCapture(NULL, CU_STREAM_CAPTURE_MODE_GLOBAL));
  GIVES(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuStreamBeginCapture(CU_STREAM_LEGACY, CU_STREAM_CAPTURE_MODE_GLOBAL));
  begin(blocking);
  GIVES(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, cuStreamIsCapturing(NULL, &status));
  CHECK(status_of(blocking) == CU_STREAM_CAPTURE_STATUS_ACTIVE);
  OK(cuMemsetD8Async(memory, 1, 1, b)); /* another one */
  GIVES(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, cuMemsetD8Async(memory, 1, 1, NULL));
  CHECK(status_of(blocking) == CU_STREAM_CAPTURE_STATUS_INVALIDATED);
  GIVES(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuMemsetD8Async(memory, 1, 1, blocking));
  GIVES(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuEventRecord(event, blocking));
  ends_with(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, blocking);
  begin(blocking);
  GIVES(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, cuMemcpyDtoH(pageable, memory, 1));
  ends_with(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, blocking);
  OK(cuMemsetD8Async(memory, 1, 1, blocking));
  begin(a);
  OK(cuStreamIsCapturing(NULL, &status));
  CHECK(status == CU_STREAM_CAPTURE_STATUS_NONE);
  OK(cuMemsetD8Async(memory, 1, 1, NULL));
  OK(cuEventRecord(event, a));
  GIVES(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, cuStreamWaitEvent(NULL, event, 0));
  ends_with(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, a);
  /* That of a thread is as any other. */
  begin(CU_STREAM_PER_THREAD);
  OK(cuMemsetD8Async(memory, 1, 1, CU_STREAM_PER_THREAD));
  GIVES(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, cuStreamSynchronize(NULL));
  GIVES(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(CU_STREAM_PER_THREAD, &none));
}

static void merges(void) {
  begin(a);
  begin(b);
  GIVES(CUDA_ERROR_ILLEGAL_STATE, cuStreamBeginCapture(a, CU_STREAM_CAPTURE_MODE_GLOBAL));
  OK(cuEventRecord(event, a));
  GIVES(CUDA_ERROR_STREAM_CAPTURE_MERGE, cuStreamWaitEvent(b, event, 0));
  ends_with(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, a);
  ends_with(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, b);
  CUgraph none;
  GIVES(CUDA_ERROR_ILLEGAL_STATE, cuStreamEndCapture(a, &none));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuStreamEndCapture(a, NULL));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuStreamBeginCapture(a, (CUstreamCaptureMode)3));
}

static void *end_elsewhere(void *result) {
  CUgraph graph = NULL;
  OK(cuCtxSetCurrent(context));
  *(CUresult *)result = cuStreamEndCapture(a, &graph);
  if (graph) OK(cuGraphDestroy(graph));
  return NULL;
}

static CUresult ended_elsewhere(void) {
  CUresult result;
  pthread_t thread;
  CHECK(!pthread_create(&thread, NULL, end_elsewhere, &result));
  CHECK(!pthread_join(thread, NULL));
  return result;
}

static void wrong_thread(void) {
  begin(a);
  CHECK(ended_elsewhere() == CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
  OK(cuGraphDestroy(end(a)));
  OK(cuStreamBeginCapture(a, CU_STREAM_CAPTURE_MODE_RELAXED));
  CHECK(ended_elsewhere() == CUDA_SUCCESS);
}

/* What a capture is about can be asked for and changed meanwhile. */
static void information(void) {
  CUstreamCaptureStatus status;
  cuuint64_t id, next_id;
  CUgraph graph, same;
  CUgraphNode mine, kept;
  const CUgraphNode *found;
  const CUgraphEdgeData *edges;
  size_t count;
  OK(cuGraphCreate(&graph, 0));
  OK(cuGraphAddEmptyNode(&mine, graph, NULL, 0));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuStreamBeginCaptureToGraph(a, NULL, NULL, NULL, 0, CU_STREAM_CAPTURE_MODE_GLOBAL));
  GIVES(CUDA_ERROR_INVALID_VALUE,
        cuStreamBeginCaptureToGraph(a, (CUgraph)mine, NULL, NULL, 0, CU_STREAM_CAPTURE_MODE_GLOBAL));
  OK(cuStreamBeginCaptureToGraph(a, graph, &mine, NULL, 1, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  OK(cuStreamGetCaptureInfo(a, &status, &id, &same, &found, &edges, &count));
  CHECK(status == CU_STREAM_CAPTURE_STATUS_ACTIVE && same == graph && count == 1 && found[0] == mine && !edges[0].type);
  GIVES(CUDA_ERROR_INVALID_VALUE, cuGraphDestroy(graph));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuGraphDestroyNode(mine));
  OK(cuMemsetD8Async(memory, 1, 1, a));
  OK(cuStreamGetCaptureInfo(a, &status, NULL, NULL, &found, NULL, &count));
  CHECK(count == 1 && found[0] != mine);
  kept = found[0];
  OK(cuStreamUpdateCaptureDependencies(a, &mine, NULL, 1, CU_STREAM_ADD_CAPTURE_DEPENDENCIES));
  OK(cuStreamGetCaptureInfo(a, &status, NULL, NULL, &found, NULL, &count));
  CHECK(count == 2 && found[0] == kept && found[1] == mine);
  OK(cuStreamUpdateCaptureDependencies(a, &mine, NULL, 1, CU_STREAM_SET_CAPTURE_DEPENDENCIES));
  OK(cuMemsetD8Async(memory, 1, 1, a));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuStreamUpdateCaptureDependencies(a, &mine, NULL, 1, 2));
  GIVES(CUDA_ERROR_ILLEGAL_STATE, cuStreamUpdateCaptureDependencies(b, &mine, NULL, 1, 0));
  same = end(a); /* the first fill needs not to be joined: that was the program's wish */
  CHECK(same == graph && count_nodes(graph) == 3 && count_edges(graph) == 2);
  OK(cuGraphDestroy(graph));
  begin(a);
  OK(cuStreamGetCaptureInfo(a, &status, &next_id, NULL, NULL, NULL, NULL));
  CHECK(next_id != id);
  GIVES(CUDA_ERROR_INVALID_VALUE, cuStreamGetCaptureInfo(a, NULL, NULL, NULL, NULL, NULL, NULL));
  OK(cuGraphDestroy(end(a)));
  CUstreamCaptureMode bad = (CUstreamCaptureMode)3;
  GIVES(CUDA_ERROR_INVALID_VALUE, cuThreadExchangeStreamCaptureMode(&bad));
}

/* Questions that a library between a program and the driver asks about work that is captured: they are answered in
 * every mode, and nothing becomes of the capture. */

static const char PTX[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry put(.param .u64 pp, .param .u32 pv)\n"
    "{ .reg .b32 %r<2>; .reg .b64 %d<2>;\n"
    "  ld.param.u64 %d1, [pp]; ld.param.u32 %r1, [pv]; st.global.u32 [%d1], %r1; ret; }\n";

typedef CUresult (*ask_t)(CUstream, CUstreamCaptureStatus *, cuuint64_t *, CUgraph *, const CUgraphNode **, size_t *);

static CUfunction put;
static CUlibrary library;
static CUkernel kernel;
static ask_t inform_v2; /* the header names only the third form */

static void ask_parameters(CUfunction function) {
  size_t offset, size;
  const char *name;
  CUmodule module;
  int threads;
  OK(cuFuncGetParamInfo(function, 1, &offset, &size));
  CHECK(offset == 8 && size == 4);
  GIVES(CUDA_ERROR_INVALID_VALUE, cuFuncGetParamInfo(function, 2, &offset, &size));
  OK(cuFuncGetName(&name, function));
  CHECK(!strcmp(name, "put"));
  OK(cuFuncGetModule(&module, function));
  OK(cuFuncGetAttribute(&threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, function));
  CHECK(threads == 1024);
}

static void ask_functions(void) {
  size_t offset, size;
  const char *name;
  CUfunction function;
  CUmodule module, loaded;
  CUlibrary of;
  ask_parameters(put);
  ask_parameters((CUfunction)kernel);
  OK(cuKernelGetParamInfo(kernel, 0, &offset, &size));
  CHECK(offset == 0 && size == 8);
  OK(cuKernelGetName(&name, kernel));
  CHECK(!strcmp(name, "put"));
  OK(cuKernelGetLibrary(&of, kernel));
  OK(cuKernelGetFunction(&function, kernel));
  ask_parameters(function);
  OK(cuLibraryGetModule(&module, library));
  OK(cuModuleLoadData(&loaded, PTX));
  OK(cuModuleGetFunction(&function, loaded, "put"));
  ask_parameters(function);
  CHECK(of == library && module != loaded);
  OK(cuModuleUnload(loaded));
}

static void ask_pointers(void) {
  CUcontext of, now;
  CUdevice device;
  CUdeviceptr base;
  unsigned type;
  size_t bytes;
  CUpointer_attribute which[] = {CU_POINTER_ATTRIBUTE_CONTEXT, CU_POINTER_ATTRIBUTE_MEMORY_TYPE};
  void *answers[] = {&of, &type};
  OK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, memory));
  OK(cuPointerGetAttributes(2, which, answers, memory));
  CHECK(of == context && type == CU_MEMORYTYPE_DEVICE);
  OK(cuPointerGetAttributes(2, which, answers, (CUdeviceptr)(size_t)pageable));
  OK(cuMemGetAddressRange(&base, &bytes, memory + 5));
  CHECK(base == memory && bytes == 128);
  OK(cuCtxGetCurrent(&now));
  OK(cuCtxGetDevice(&device));
  CHECK(now == context && device == 0);
}

static void ask_stream(CUstream stream) {
  CUstreamCaptureStatus status;
  CUcontext of;
  CUgraph graph, same;
  CUgraphNode nodes[2], from[1], to[1];
  CUgraphEdgeData edge[1];
  CUDA_KERNEL_NODE_PARAMS params;
  cuuint64_t id, same_id;
  const CUgraphNode *last;
  size_t count, edges = 1;
  OK(cuStreamIsCapturing(stream, &status));
  CHECK(status == CU_STREAM_CAPTURE_STATUS_ACTIVE);
  OK(cuStreamGetCtx(stream, &of));
  CHECK(of == context);
  OK(cuStreamGetCaptureInfo(stream, &status, &id, &graph, &last, NULL, &count));
  OK(inform_v2(stream, &status, &same_id, &same, &last, &count));
  CHECK(status == CU_STREAM_CAPTURE_STATUS_ACTIVE && id == same_id && graph == same && count == 1);
  count = 2;
  OK(cuGraphGetNodes(graph, nodes, &count));
  CHECK(count == 2 && nodes[1] == last[0] && type_of(graph, 0) == CU_GRAPH_NODE_TYPE_MEMSET);
  CHECK(type_of(graph, 1) == CU_GRAPH_NODE_TYPE_KERNEL);
  OK(cuGraphGetEdges(graph, from, to, edge, &edges));
  CHECK(edges == 1 && from[0] == nodes[0] && to[0] == nodes[1]);
  OK(cuGraphKernelNodeGetParams(nodes[1], &params));
  CHECK(params.func == put && params.gridDimX == 1 && *(CUdeviceptr *)params.kernelParams[0] == memory);
}

static void *ask_all(void *stream) {
  OK(cuCtxSetCurrent(context));
  for (int mode = 0; mode < 3; mode++) {
    CUstreamCaptureMode other = (CUstreamCaptureMode)mode;
    OK(cuThreadExchangeStreamCaptureMode(&other));
    ask_functions();
    ask_pointers();
    ask_stream(stream);
    OK(cuThreadExchangeStreamCaptureMode(&other));
  }
  return NULL;
}

static void questions(void) {
  CUstream streams[] = {a, blocking};
  unsigned value = 9;
  void *arguments[] = {&memory, &value};
  for (int n = 0; n < 2; n++)
    for (int mode = 0; mode < 3; mode++) {
      pthread_t thread;
      OK(cuStreamBeginCapture(streams[n], (CUstreamCaptureMode)mode));
      OK(cuMemsetD8Async(memory, 1, 1, streams[n]));
      OK(cuLaunchKernel(put, 1, 1, 1, 1, 1, 1, 0, streams[n], arguments, NULL));
      ask_all(streams[n]);
      CHECK(!pthread_create(&thread, NULL, ask_all, streams[n]));
      CHECK(!pthread_join(thread, NULL));
      OK(cuGraphDestroy(end(streams[n])));
    }
}

/* Threads capture and launch at the same time, each for itself. */
static void *thread(void *given) {
  static int one = 1;
  unsigned number = (unsigned)(size_t)given;
  CUstream own, helper;
  CUevent fork, join;
  OK(cuCtxSetCurrent(context));
  OK(cuStreamCreate(&own, CU_STREAM_NON_BLOCKING));
  OK(cuStreamCreate(&helper, 0));
  OK(cuEventCreate(&fork, CU_EVENT_DISABLE_TIMING));
  OK(cuEventCreate(&join, CU_EVENT_DISABLE_TIMING));
  for (unsigned i = 0; i < 60; i++) {
    unsigned back = 0;
    OK(cuStreamBeginCapture(own, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    OK(cuEventRecord(fork, own));
    OK(cuStreamWaitEvent(helper, fork, 0));
    OK(cuMemsetD32Async(memory + 64 + 4 * number, i, 1, own));
    OK(cuLaunchHostFunc(helper, call, &one));
    OK(cuEventRecord(join, helper));
    OK(cuStreamWaitEvent(own, join, 0));
    OK(cuMemcpyDtoHAsync(&back, memory + 64 + 4 * number, 4, own));
    CUgraph graph = end(own);
    CUgraphExec made;
    OK(cuGraphInstantiate(&made, graph, 0));
    OK(cuGraphDestroy(graph));
    OK(cuGraphLaunch(made, i % 2 ? own : helper));
    OK(cuGraphExecDestroy(made));
    OK(cuStreamSynchronize(i % 2 ? own : helper));
    CHECK(back == i);
  }
  OK(cuStreamDestroy(own));
  OK(cuStreamDestroy(helper));
  OK(cuEventDestroy(fork));
  OK(cuEventDestroy(join));
  return NULL;
}

int main(void) {
  CUgraph graph;
  CUmodule module;
  OK(cuInit(0));
  OK(cuDevicePrimaryCtxRetain(&context, 0));
  OK(cuCtxSetCurrent(context));
  OK(cuStreamCreate(&a, CU_STREAM_NON_BLOCKING));
  OK(cuStreamCreate(&b, CU_STREAM_NON_BLOCKING));
  OK(cuStreamCreate(&blocking, 0));
  OK(cuEventCreate(&event, 0));
  OK(cuEventCreate(&other_event, 0));
  OK(cuEventCreate(&old_event, 0));
  OK(cuEventRecord(old_event, a));
  OK(cuStreamSynchronize(a));
  OK(cuMemAlloc(&memory, 128));
  begin(a);
  OK(cuLaunchHostFunc(a, call, NULL));
  graph = end(a);
  OK(cuGraphInstantiate(&exec, graph, 0));
  OK(cuGraphDestroy(graph));
  OK(cuModuleLoadData(&module, PTX));
  OK(cuModuleGetFunction(&put, module, "put"));
  OK(cuLibraryLoadData(&library, PTX, NULL, NULL, 0, NULL, NULL, 0));
  OK(cuLibraryGetKernel(&kernel, library, "put"));
  OK(cuGetProcAddress("cuStreamGetCaptureInfo", (void **)&inform_v2, 11030, 0, NULL));
  nodes();
  forks();
  legality();
  default_stream();
  merges();
  wrong_thread();
  information();
  questions();
  called = 0;
  pthread_t threads[4];
  for (size_t i = 0; i < 4; i++) CHECK(!pthread_create(&threads[i], NULL, thread, (void *)i));
  for (int i = 0; i < 4; i++) CHECK(!pthread_join(threads[i], NULL));
  CHECK(called == 240);
  OK(cuGraphExecDestroy(exec));
  OK(cuMemFree(memory));
  OK(cuDevicePrimaryCtxRelease(0));
  return 0;
}
