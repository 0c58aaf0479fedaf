/* Work by every route, and what the instrument is to say of it: the lines, in order, as this program expects them. What
 * is delivered to the host and parameters are in full here. */
#include "graphs.h"

/* put(tag, p, value): *p = value; seven bytes lie between the first two. */
static const char PTX[] =
    ".version 8.1\n.target sm_70\n.address_size 64\n"
    ".visible .entry put(.param .u8 tag, .param .u64 pp, .param .u32 pv)\n"
    "{ .reg .b32 %r<2>; .reg .b64 %d<2>;\n"
    "  ld.param.u64 %d1, [pp]; ld.param.u32 %r1, [pv]; st.global.u32 [%d1], %r1; ret; }\n"
    ".visible .entry large(.param .align 4 .b8 block[4100]) { ret; }\n"
    ".visible .entry none() { ret; }\n";

enum { ROOM = 4096 };

struct parameters {
  unsigned char tag, unused[7];
  CUdeviceptr pointer;
  unsigned value;
};

static CUfunction put, large, none;
static CUkernel kernel;
static CUdeviceptr memory, other; /* of this device; of the other one */
static CUcontext other_context;
static unsigned char host[ROOM], pattern[ROOM]; /* pageable */
static atomic_uint *flags;                       /* pinned */

/* What is expected. */

static CUstream where = CU_STREAM_LEGACY;
static const char *by_graph = "false", *outcome = "CUDA_SUCCESS";

static void begin(const char *work) {
  printf("{\"work\": \"%s\", \"graph\": %s, \"result\": \"%s\", \"stream\": \"%#zx\"", work, by_graph, outcome,
         (size_t)where);
}

static void bytes_are(const char *name, const void *bytes, size_t count) {
  printf(", \"%s\": \"", name);
  for (size_t n = 0; n < count; n++) printf("%02x", ((const unsigned char *)bytes)[n]);
  printf("\"");
}

static void kernel_is(const char *name, unsigned blocks, unsigned threads, unsigned shared, const char *cooperative,
                      const void *parameters, size_t bytes) {
  begin("kernel");
  printf(", \"kernel\": \"%s\", \"device\": 0, \"grid\": [%u, 1, 1], \"block\": [%u, 1, 1], \"shared\": %u, "
         "\"cooperative\": %s, \"parameter_bytes\": %zu", name, blocks, threads, shared, cooperative, bytes);
  bytes_are("parameters", parameters, bytes);
  puts("}");
}

static void put_is(unsigned char tag, unsigned value, const char *cooperative) {
  struct parameters parameters = {tag, {0}, memory, value};
  kernel_is("put", 2, 3, 0, cooperative, &parameters, 20);
}

struct side {
  const char *memory;
  size_t address, pitch, slice;
  int device; /* -1: none */
};

static struct side on(int device, CUdeviceptr address, size_t bytes) {
  return (struct side){"device", address, bytes, bytes, device};
}
static struct side at(const void *address, size_t bytes) {
  return (struct side){"host", (size_t)address, bytes, bytes, -1};
}
static struct side in(CUarray array, size_t x, size_t y) { return (struct side){"array", (size_t)array, x, y, -1}; }

static void side_is(const char *name, struct side side) {
  if (!strcmp(side.memory, "array")) {
    printf(", \"%s\": {\"memory\": \"array\", \"array\": \"%#zx\", \"at\": [%zu, %zu, 0]}", name, side.address,
           side.pitch, side.slice);
    return;
  }
  printf(", \"%s\": {\"memory\": \"%s\", \"address\": \"0x%zx\", \"pitch\": %zu, \"slice\": %zu", name, side.memory,
         side.address, side.pitch, side.slice);
  if (side.device >= 0) printf(", \"device\": %d", side.device);
  printf("}");
}

static void shaped_copy_is(struct side from, struct side into, size_t row, size_t rows, size_t slices,
                           const void *delivered) {
  begin("copy");
  printf(", \"row\": %zu, \"rows\": %zu, \"slices\": %zu, \"bytes\": %zu", row, rows, slices, row * rows * slices);
  if (row) {
    side_is("source", from);
    side_is("destination", into);
  }
  if (delivered) bytes_are("delivered", delivered, row * rows * slices);
  puts("}");
}

static void copy_is(struct side from, struct side into, size_t bytes, const void *delivered) {
  shaped_copy_is(from, into, bytes, 1, 1, delivered);
}

static void fill_is(CUdeviceptr address, size_t pitch, size_t element, unsigned value, size_t width, size_t rows) {
  begin("memset");
  printf(", \"address\": \"0x%llx\", \"pitch\": %zu, \"element\": %zu, \"value\": %u, \"width\": %zu, \"rows\": %zu, "
         "\"bytes\": %zu}\n", address, pitch, element, value, width, rows, element * width * rows);
}

static void function_is(void *function, const void *data) {
  begin("host function");
  printf(", \"function\": \"%#zx\", \"data\": \"0x%zx\"}\n", (size_t)function, (size_t)data);
}

static void operation_is(const char *operation, int bits, CUdeviceptr address, unsigned long long value,
                         const char *condition) {
  begin("memory operation");
  printf(", \"operation\": \"%s\"", operation);
  if (bits) printf(", \"bits\": %d, \"address\": \"0x%llx\", \"value\": %llu", bits, address, value);
  if (condition) printf(", \"condition\": \"%s\"", condition);
  puts("}");
}

/* Routes. */

static void kernels(void) {
  struct parameters packed = {9, {0}, memory, 2};
  size_t size = sizeof packed;
  void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END};
  unsigned char tag = 7;
  unsigned value = 1;
  void *arguments[] = {&tag, &memory, &value}, *of_large[] = {pattern};
  CUlaunchAttribute attribute = {.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE, .value = {.cooperative = 1}};
  CUlaunchConfig config = {.gridDimX = 2, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 3, .blockDimY = 1, .blockDimZ = 1,
                           .hStream = stream, .attrs = &attribute, .numAttrs = 1};
  static unsigned char block[4100];
  CUresult (*of_thread)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream,
                        void **, void **);
  OK(cuGetProcAddress("cuLaunchKernel", (void **)&of_thread, 12000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM,
                      NULL));
  OK(cuLaunchKernel(put, 2, 1, 1, 3, 1, 1, 0, NULL, arguments, NULL));
  put_is(7, 1, "false");
  OK(cuCtxSynchronize());
  where = CU_STREAM_PER_THREAD;
  OK(of_thread(none, 1, 1, 1, 1, 1, 1, 64, NULL, NULL, NULL));
  kernel_is("none", 1, 1, 64, "false", NULL, 0);
  OK(cuStreamSynchronize(CU_STREAM_PER_THREAD));
  where = stream;
  OK(cuLaunchKernel(put, 2, 1, 1, 3, 1, 1, 0, stream, NULL, extra));
  put_is(9, 2, "false");
  OK(cuLaunchKernel((CUfunction)kernel, 2, 1, 1, 3, 1, 1, 0, stream, arguments, NULL));
  put_is(7, 1, "false");
  OK(cuLaunchCooperativeKernel(put, 2, 1, 1, 3, 1, 1, 0, stream, arguments));
  put_is(7, 1, "true");
  OK(cuLaunchKernelEx(&config, put, arguments, NULL));
  put_is(7, 1, "true");
  memset(block, 5, sizeof block);
  of_large[0] = block;
  OK(cuLaunchKernel(large, 1, 1, 1, 1, 1, 1, 0, stream, of_large, NULL));
  kernel_is("large", 1, 1, 0, "false", block, sizeof block);
  OK(cuStreamSynchronize(stream));
}

static void linear_copies(void) {
  CUdeviceptr managed, both[] = {memory + 64, (CUdeviceptr)(size_t)host}, from[] = {memory, memory + 1};
  size_t sizes[] = {8, 9}, first = 0;
  CUmemcpyAttributes attributes = {.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM};
  where = CU_STREAM_LEGACY;
  OK(cuMemcpyHtoD(memory, pattern, ROOM));
  copy_is(at(pattern, ROOM), on(0, memory, ROOM), ROOM, NULL);
  OK(cuMemcpyHtoD(memory, pattern, 0)); /* nothing is done */
  OK(cuMemcpyDtoH(host, memory + 3, 100));
  copy_is(on(0, memory + 3, 100), at(host, 100), 100, pattern + 3);
  OK(cuMemcpy((CUdeviceptr)(size_t)host, memory + 4, 10));
  copy_is(on(0, memory + 4, 10), at(host, 10), 10, pattern + 4);
  OK(cuMemcpyDtoD(memory, memory + 1024, 32));
  copy_is(on(0, memory + 1024, 32), on(0, memory, 32), 32, NULL);
  OK(cuMemcpyPeer(other, other_context, memory, context, 16));
  copy_is(on(0, memory, 16), on(1, other, 16), 16, NULL);
  OK(cuMemAllocManaged(&managed, 64, CU_MEM_ATTACH_GLOBAL));
  OK(cuMemcpyHtoD(managed, pattern, 6));
  copy_is(at(pattern, 6), (struct side){"managed", managed, 6, 6, -1}, 6, pattern);
  OK(cuMemFree(managed));
  where = stream;
  OK(cuMemcpyHtoDAsync(memory, pattern, 64, stream));
  copy_is(at(pattern, 64), on(0, memory, 64), 64, NULL);
  OK(cuMemcpyPeerAsync(other, other_context, memory, context, 12, stream));
  copy_is(on(0, memory, 12), on(1, other, 12), 12, NULL);
  OK(cuMemcpyBatchAsync(both, from, sizes, 2, &attributes, &first, 1, stream));
  copy_is(on(0, memory, 8), on(0, memory + 64, 8), 8, NULL);
  copy_is(on(0, memory + 1, 9), at(host, 9), 9, pattern + 1);
  OK(cuStreamSynchronize(stream));
}

static void shaped_copies(void) {
  CUarray array;
  CUDA_ARRAY_DESCRIPTOR description = {.Width = 16, .Height = 4, .Format = CU_AD_FORMAT_UNSIGNED_INT8,
                                       .NumChannels = 1};
  CUDA_MEMCPY2D plane = {.srcMemoryType = CU_MEMORYTYPE_DEVICE, .srcDevice = memory, .srcPitch = 32, .srcXInBytes = 1,
                         .dstMemoryType = CU_MEMORYTYPE_HOST, .dstHost = host, .dstPitch = 16, .WidthInBytes = 5,
                         .Height = 3};
  CUDA_MEMCPY3D solid = {.srcMemoryType = CU_MEMORYTYPE_DEVICE, .srcDevice = memory, .srcPitch = 8, .srcHeight = 4,
                         .dstMemoryType = CU_MEMORYTYPE_HOST, .dstHost = host, .dstPitch = 8, .dstHeight = 2,
                         .WidthInBytes = 8, .Height = 2, .Depth = 2};
  CUDA_MEMCPY3D_PEER peer = {.srcMemoryType = CU_MEMORYTYPE_DEVICE, .srcDevice = memory, .srcContext = context,
                             .dstMemoryType = CU_MEMORYTYPE_DEVICE, .dstDevice = other, .dstContext = other_context,
                             .WidthInBytes = 4, .Height = 2, .Depth = 1};
  CUDA_MEMCPY3D_BATCH_OP batch = {
      .src = {.type = CU_MEMCPY_OPERAND_TYPE_POINTER, .op.ptr = {.ptr = memory, .rowLength = 8, .layerHeight = 4}},
      .dst = {.type = CU_MEMCPY_OPERAND_TYPE_POINTER, .op.ptr = {.ptr = memory + 512}},
      .extent = {4, 2, 2}, .srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM};
  unsigned char rows[32];
  where = CU_STREAM_LEGACY;
  OK(cuMemcpyHtoD(memory, pattern, ROOM));
  copy_is(at(pattern, ROOM), on(0, memory, ROOM), ROOM, NULL);
  for (int n = 0; n < 3; n++) memcpy(rows + 5 * n, pattern + 1 + 32 * n, 5);
  OK(cuMemcpy2D(&plane));
  shaped_copy_is((struct side){"device", memory + 1, 32, 96, 0}, (struct side){"host", (size_t)host, 16, 48, -1}, 5, 3,
                 1, rows);
  for (int n = 0; n < 2; n++) memcpy(rows + 16 * n, pattern + 32 * n, 16);
  OK(cuMemcpy3D(&solid));
  shaped_copy_is((struct side){"device", memory, 8, 32, 0}, (struct side){"host", (size_t)host, 8, 16, -1}, 8, 2, 2,
                 rows);
  OK(cuArrayCreate(&array, &description));
  OK(cuMemcpyHtoA(array, 2, pattern, 6));
  copy_is(at(pattern, 6), in(array, 2, 0), 6, NULL);
  OK(cuMemcpyAtoD(memory + 100, array, 2, 6));
  copy_is(in(array, 2, 0), on(0, memory + 100, 6), 6, NULL);
  OK(cuMemcpyAtoA(array, 9, array, 2, 6));
  copy_is(in(array, 2, 0), in(array, 9, 0), 6, NULL);
  OK(cuMemcpyDtoA(array, 0, memory, 4));
  copy_is(on(0, memory, 4), in(array, 0, 0), 4, NULL);
  OK(cuMemcpyAtoH(host, array, 9, 6));
  copy_is(in(array, 9, 0), at(host, 6), 6, pattern);
  plane = (CUDA_MEMCPY2D){.srcMemoryType = CU_MEMORYTYPE_HOST, .srcHost = pattern, .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                          .dstArray = array, .dstXInBytes = 1, .dstY = 2, .WidthInBytes = 4, .Height = 2};
  where = stream;
  OK(cuMemcpy2DAsync(&plane, stream));
  shaped_copy_is((struct side){"host", (size_t)pattern, 4, 8, -1}, in(array, 1, 2), 4, 2, 1, NULL);
  OK(cuMemcpy3DPeerAsync(&peer, stream));
  shaped_copy_is((struct side){"device", memory, 4, 8, 0}, (struct side){"device", other, 4, 8, 1}, 4, 2, 1, NULL);
  OK(cuMemcpy3DBatchAsync(1, &batch, 0, stream));
  shaped_copy_is((struct side){"device", memory, 8, 32, 0}, (struct side){"device", memory + 512, 4, 8, 0}, 4, 2, 2,
                 NULL);
  OK(cuStreamSynchronize(stream));
  OK(cuArrayDestroy(array));
}

static void fills(void) {
  where = CU_STREAM_LEGACY;
  OK(cuMemsetD8(memory, 7, 5));
  fill_is(memory, 0, 1, 7, 5, 1);
  OK(cuMemsetD2D16(memory, 8, 0x1234, 2, 3));
  fill_is(memory, 8, 2, 0x1234, 2, 3);
  OK(cuMemsetD8(memory, 7, 0)); /* nothing is done */
  OK(cuCtxSynchronize());
  where = stream;
  OK(cuMemsetD32Async(memory + 8, 0xfedcba98, 100, stream));
  fill_is(memory + 8, 0, 4, 0xfedcba98, 100, 1);
  OK(cuStreamSynchronize(stream));
}

static void count(void *given) { ++*(atomic_int *)given; }

static void CUDA_CB count_too(CUstream of, CUresult status, void *given) {
  (void)of;
  (void)status;
  ++*(atomic_int *)given;
}

static atomic_int counted;

static void functions_and_operations(void) {
  CUdeviceptr flag = (CUdeviceptr)(size_t)flags;
  CUstreamBatchMemOpParams batch[] = {
      {.writeValue = {.operation = CU_STREAM_MEM_OP_WRITE_VALUE_64, .address = flag + 8, .value64 = 1ull << 40}},
      {.flushRemoteWrites = {.operation = CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES}},
      {.memoryBarrier = {.operation = CU_STREAM_MEM_OP_BARRIER}},
      {.waitValue = {.operation = CU_STREAM_MEM_OP_WAIT_VALUE_64, .address = flag + 8, .value64 = 1ull << 40,
                     .flags = CU_STREAM_WAIT_VALUE_EQ}},
  };
  where = stream;
  OK(cuLaunchHostFunc(stream, count, &counted));
  function_is((void *)count, &counted);
  OK(cuStreamAddCallback(stream, count_too, &counted, 0));
  function_is((void *)count_too, &counted);
  OK(cuStreamBatchMemOp(stream, 4, batch, 0));
  operation_is("write", 64, flag + 8, 1ull << 40, NULL);
  operation_is("flush", 0, 0, 0, NULL);
  operation_is("barrier", 0, 0, 0, NULL);
  operation_is("wait", 64, flag + 8, 1ull << 40, "eq");
  /* What has to wait, and a source that is read before its turn. */
  OK(cuStreamWaitValue32(stream, flag, 5, CU_STREAM_WAIT_VALUE_GEQ));
  operation_is("wait", 32, flag, 5, "geq");
  memcpy(host, pattern, 8);
  OK(cuMemcpyHtoDAsync(memory, host, 8, stream));
  copy_is(at(host, 8), on(0, memory, 8), 8, NULL);
  memset(host, 0, 8);
  OK(cuStreamWriteValue32(stream, flag + 4, 77, 0));
  operation_is("write", 32, flag + 4, 77, NULL);
  flags[0] = 6;
  OK(cuStreamSynchronize(stream));
  CHECK(counted == 2 && flags[1] == 77);
}

/* Each node after the one before. */

static CUgraphNode last;
static int begun;

static void add(CUgraph graph, CUgraphNodeParams params) {
  CUgraphNode node;
  OK(cuGraphAddNode(&node, graph, begun ? &last : NULL, NULL, (size_t)begun, &params));
  last = node;
  begun = 1;
}

static CUgraphNodeParams put_params(void **arguments) {
  return (CUgraphNodeParams){
      .type = CU_GRAPH_NODE_TYPE_KERNEL,
      .kernel = {.func = put, .gridDimX = 2, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 3, .blockDimY = 1,
                 .blockDimZ = 1, .kernelParams = arguments}};
}

static CUgraphNodeParams fill_params(size_t width) {
  return (CUgraphNodeParams){.type = CU_GRAPH_NODE_TYPE_MEMSET,
                             .memset = {.dst = memory, .value = 0x1ff, .elementSize = 1, .width = width, .height = 1,
                                        .ctx = context}};
}

static CUgraphNodeParams copied(size_t bytes) {
  return (CUgraphNodeParams){
      .type = CU_GRAPH_NODE_TYPE_MEMCPY,
      .memcpy = {.copyCtx = context,
                 .copyParams = {.srcMemoryType = CU_MEMORYTYPE_DEVICE, .srcDevice = memory + 256, .Depth = 1,
                                .dstMemoryType = CU_MEMORYTYPE_HOST, .dstHost = host, .WidthInBytes = bytes,
                                .Height = 1}}};
}

static void launched_is(const unsigned char *tag, const unsigned *value) {
  put_is(*tag, *value, "false");
  fill_is(memory, 0, 1, 0xff, 3, 1);
}

static void nodes(void) {
  CUgraph graph = new_graph(), child = new_graph(), captured;
  CUdeviceptr flag = (CUdeviceptr)(size_t)flags;
  CUstreamBatchMemOpParams wait = {
      .waitValue = {.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32, .address = flag, .value = 5}};
  CUgraphExec exec;
  CUgraphNode disabled, cooperative;
  CUlaunchAttributeValue on_all = {.cooperative = 1};
  CUstream second;
  unsigned char tag = 3;
  unsigned value = 4;
  void *arguments[] = {&tag, &memory, &value};
  OK(cuMemcpyHtoD(memory, pattern, ROOM));
  where = CU_STREAM_LEGACY;
  copy_is(at(pattern, ROOM), on(0, memory, ROOM), ROOM, NULL);
  add(child, put_params(arguments));
  add(child, fill_params(3));
  begun = 0;
  add(graph, put_params(arguments));
  cooperative = last;
  OK(cuGraphKernelNodeSetAttribute(cooperative, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &on_all));
  add(graph, copied(50));
  add(graph, copied(0));
  add(graph, fill_params(0));
  add(graph, fill_params(9));
  disabled = last;
  add(graph, (CUgraphNodeParams){.type = CU_GRAPH_NODE_TYPE_HOST, .host = {.fn = count, .userData = &counted}});
  add(graph, (CUgraphNodeParams){.type = CU_GRAPH_NODE_TYPE_EMPTY});
  add(graph, (CUgraphNodeParams){.type = CU_GRAPH_NODE_TYPE_GRAPH, .graph = {.graph = child}});
  add(graph, (CUgraphNodeParams){.type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP,
                                 .memOp = {.ctx = context, .count = 1, .paramArray = &wait}});
  exec = instantiate(graph);
  OK(cuGraphNodeSetEnabled(exec, disabled, 0));
  by_graph = "true";
  where = stream;
  for (int times = 0; times < 2; times++) {
    flags[0] = 0;
    OK(cuGraphLaunch(exec, stream));
    put_is(3, 4, "true");
    copy_is(on(0, memory + 256, 50), at(host, 50), 50, pattern + 256);
    copy_is(on(0, memory, 0), at(host, 0), 0, NULL);
    fill_is(memory, 0, 1, 0xff, 0, 1);
    function_is((void *)count, &counted);
    launched_is(&tag, &value);
    operation_is("wait", 32, flag, 5, "geq");
    flags[0] = 5;
    OK(cuStreamSynchronize(stream));
  }
  OK(cuGraphExecDestroy(exec));
  /* A capture, and in it a launch of a graph. */
  exec = instantiate(child);
  OK(cuStreamCreate(&second, CU_STREAM_NON_BLOCKING));
  OK(cuStreamBeginCapture(second, CU_STREAM_CAPTURE_MODE_GLOBAL));
  OK(cuLaunchKernel(put, 2, 1, 1, 3, 1, 1, 0, second, arguments, NULL));
  OK(cuMemcpyDtoHAsync(host, memory + 64, 20, second));
  OK(cuGraphLaunch(exec, second));
  OK(cuStreamEndCapture(second, &captured));
  OK(cuGraphExecDestroy(exec));
  exec = instantiate(captured);
  launch(exec);
  put_is(3, 4, "false");
  copy_is(on(0, memory + 64, 20), at(host, 20), 20, pattern + 64);
  launched_is(&tag, &value);
  OK(cuGraphExecDestroy(exec));
  OK(cuGraphDestroy(captured));
  OK(cuGraphDestroy(graph));
  OK(cuGraphDestroy(child));
  OK(cuStreamDestroy(second));
  by_graph = "false";
}

/* After a kernel that fails only callbacks are done: they are told. */
static void failure(void) {
  unsigned char tag = 1;
  unsigned value = 1;
  CUdeviceptr nowhere = 0x1000;
  void *arguments[] = {&tag, &nowhere, &value};
  struct parameters packed = {tag, {0}, nowhere, value};
  where = stream;
  OK(cuStreamWaitValue32(stream, (CUdeviceptr)(size_t)flags, 9, CU_STREAM_WAIT_VALUE_EQ));
  operation_is("wait", 32, (CUdeviceptr)(size_t)flags, 9, "eq");
  OK(cuLaunchKernel(put, 2, 1, 1, 3, 1, 1, 0, stream, arguments, NULL));
  outcome = "CUDA_ERROR_ILLEGAL_ADDRESS";
  kernel_is("put", 2, 3, 0, "false", &packed, 20);
  OK(cuMemsetD8Async(memory, 1, 1, stream));
  OK(cuLaunchHostFunc(stream, count, &counted));
  OK(cuStreamAddCallback(stream, count_too, &counted, 0));
  function_is((void *)count_too, &counted);
  flags[0] = 9;
  GIVES(CUDA_ERROR_ILLEGAL_ADDRESS, cuStreamSynchronize(stream));
}

int main(void) {
  CUmodule module;
  CUlibrary library;
  void *pinned;
  for (int n = 0; n < ROOM; n++) pattern[n] = (unsigned char)(n * 7 + n / 256);
  OK(cuInit(0));
  OK(cuCtxCreate(&other_context, NULL, 0, 1));
  OK(cuMemAlloc(&other, ROOM));
  OK(cuCtxCreate(&context, NULL, 0, 0));
  OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  OK(cuMemAlloc(&memory, ROOM));
  OK(cuMemAllocHost(&pinned, 64));
  memset(pinned, 0, 64);
  flags = pinned;
  OK(cuModuleLoadData(&module, PTX));
  OK(cuModuleGetFunction(&put, module, "put"));
  OK(cuModuleGetFunction(&large, module, "large"));
  OK(cuModuleGetFunction(&none, module, "none"));
  OK(cuLibraryLoadData(&library, PTX, NULL, NULL, 0, NULL, NULL, 0));
  OK(cuLibraryGetKernel(&kernel, library, "put"));
  kernels();
  linear_copies();
  shaped_copies();
  fills();
  functions_and_operations();
  nodes();
  failure();
  return 0;
}
