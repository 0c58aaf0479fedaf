/* Copies in all their forms. Devices are an A100-80G and an L40S. */
#define __CUDA_API_VERSION_INTERNAL /* the first forms too */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

enum { WIDE = 40, HIGH = 7, DEEP = 5, BYTES = WIDE * HIGH * DEEP };

static unsigned char from[BYTES], to[BYTES], expected[BYTES];
static CUdeviceptr a, b;
static CUstream stream;

static void fresh(void) {
  for (int i = 0; i < BYTES; i++) from[i] = (unsigned char)(i * 7 + i / 251 + 1);
  memset(to, 0, BYTES);
  memset(expected, 0, BYTES);
  OK(cuMemsetD8_v2(a, 0, BYTES));
  OK(cuMemsetD8_v2(b, 0, BYTES));
}

static int same(CUdeviceptr device) {
  OK(cuStreamSynchronize(stream));
  OK(cuMemcpyDtoH_v2(to, device, BYTES));
  return !memcmp(to, expected, BYTES);
}

static void planes(void) {
  CUDA_MEMCPY2D copy = {
      .srcMemoryType = CU_MEMORYTYPE_HOST, .srcHost = from, .srcXInBytes = 3, .srcY = 2, .srcPitch = WIDE,
      .dstMemoryType = CU_MEMORYTYPE_DEVICE, .dstDevice = a, .dstXInBytes = 1, .dstY = 1, .dstPitch = 32,
      .WidthInBytes = 11, .Height = 4,
  };
  for (int form = 0; form < 4; form++) {
    fresh();
    for (int y = 0; y < 4; y++) memcpy(expected + (1 + y) * 32 + 1, from + (2 + y) * WIDE + 3, 11);
    if (form == 0) OK(cuMemcpy2D_v2(&copy));
    if (form == 1) OK(cuMemcpy2DUnaligned_v2(&copy));
    if (form == 2) OK(cuMemcpy2DAsync_v2(&copy, stream));
    if (form == 3) OK(cuMemcpy2D_v2_ptds(&copy));
    CHECK(same(a));
  }
  CUDA_MEMCPY2D back = {
      .srcMemoryType = CU_MEMORYTYPE_UNIFIED, .srcDevice = a, .srcXInBytes = 1, .srcY = 1, .srcPitch = 32,
      .dstMemoryType = CU_MEMORYTYPE_UNIFIED, .dstDevice = (CUdeviceptr)to, .dstPitch = 11, .WidthInBytes = 11, .Height = 4,
  };
  memset(to, 0, BYTES);
  OK(cuMemcpy2DAsync_v2(&back, stream));
  for (int y = 0; y < 4; y++) CHECK(!memcmp(to + 11 * y, from + (2 + y) * WIDE + 3, 11));
  CHECK(!to[44]);
  /* Rows without pitches follow each other; rows as wide as both pitches are one run. */
  copy.srcPitch = copy.dstPitch = copy.srcXInBytes = copy.dstXInBytes = 0;
  fresh();
  memcpy(expected + 11, from + 22, 44);
  OK(cuMemcpy2D_v2(&copy));
  CHECK(same(a));
  copy.WidthInBytes = 0;
  OK(cuMemcpy2D_v2(&copy));
  copy.WidthInBytes = 11;
  copy.Height = 0;
  OK(cuMemcpy2D_v2(&copy));
  copy.Height = 4;
#define BAD(field, value)                                             \
  do {                                                                \
    CUDA_MEMCPY2D bad = copy;                                         \
    bad.field = value;                                                \
    GIVES(CUDA_ERROR_INVALID_VALUE, cuMemcpy2D_v2(&bad));             \
    GIVES(CUDA_ERROR_INVALID_VALUE, cuMemcpy2DAsync_v2(&bad, stream)); \
  } while (0)
  BAD(srcPitch, 10);
  BAD(dstPitch, 1ull << 31);
  BAD(dstPitch, 400);
  BAD(dstDevice, a + BYTES - 54);
  BAD(dstDevice, 0);
  BAD(srcHost, NULL);
  BAD(srcMemoryType, 0);
  BAD(srcMemoryType, CU_MEMORYTYPE_DEVICE);
  BAD(dstMemoryType, 5);
  BAD(Height, SIZE_MAX);
  BAD(dstY, SIZE_MAX / 8);
  BAD(WidthInBytes, SIZE_MAX - 2);
#undef BAD
  GIVES(CUDA_ERROR_INVALID_VALUE, cuMemcpy2D_v2(NULL));
  GIVES(CUDA_ERROR_INVALID_HANDLE, cuMemcpy2DAsync_v2(&copy, (CUstream)&copy));
  CUDA_MEMCPY2D_v1 old = {.srcMemoryType = CU_MEMORYTYPE_HOST, .srcHost = from, .dstMemoryType = CU_MEMORYTYPE_HOST,
                          .dstHost = to, .WidthInBytes = 5, .Height = 2, .srcPitch = 6};
  memset(to, 0, BYTES);
  OK(cuMemcpy2D(&old));
  CHECK(!memcmp(to, from, 5) && !memcmp(to + 5, from + 6, 5) && !to[10]);
  old.dstMemoryType = CU_MEMORYTYPE_DEVICE; /* no memory has an address of 32 bits */
  old.dstDevice = 4096;
  GIVES(CUDA_ERROR_INVALID_VALUE, cuMemcpy2D(&old));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD(4096, from, 4));
}

static void solids(void) {
  CUDA_MEMCPY3D copy = {
      .srcMemoryType = CU_MEMORYTYPE_HOST, .srcHost = from, .srcXInBytes = 4, .srcY = 1, .srcZ = 1, .srcPitch = WIDE,
      .srcHeight = HIGH, .dstMemoryType = CU_MEMORYTYPE_DEVICE, .dstDevice = a, .dstXInBytes = 2, .dstY = 1, .dstZ = 1,
      .dstPitch = 20, .dstHeight = 6, .WidthInBytes = 15, .Height = 3, .Depth = 4,
  };
  for (int form = 0; form < 3; form++) {
    fresh();
    for (int z = 0; z < 4; z++)
      for (int y = 0; y < 3; y++)
        memcpy(expected + ((1 + z) * 6 + 1 + y) * 20 + 2, from + ((1 + z) * HIGH + 1 + y) * WIDE + 4, 15);
    if (form == 0) OK(cuMemcpy3D_v2(&copy));
    if (form == 1) OK(cuMemcpy3DAsync_v2(&copy, stream));
    if (form == 2) OK(cuMemcpy3DAsync_v2_ptsz(&copy, NULL));
    CHECK(same(a));
  }
  /* Layers that follow each other on both sides. */
  fresh();
  memcpy(expected, from, BYTES);
  CUDA_MEMCPY3D whole = {.srcMemoryType = CU_MEMORYTYPE_HOST, .srcHost = from, .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                         .dstDevice = b, .WidthInBytes = WIDE, .Height = HIGH, .Depth = DEEP};
  OK(cuMemcpy3D_v2(&whole));
  CHECK(same(b));
  /* And of which one has a gap after each layer. */
  fresh();
  for (int z = 0; z < 3; z++) memcpy(expected + z * HIGH * WIDE, from + z * 2 * WIDE, 2 * WIDE);
  CUDA_MEMCPY3D gaps = {.srcMemoryType = CU_MEMORYTYPE_HOST, .srcHost = from, .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                        .dstDevice = b, .dstHeight = HIGH, .WidthInBytes = WIDE, .Height = 2, .Depth = 3};
  OK(cuMemcpy3D_v2(&gaps));
  CHECK(same(b));
  whole.Depth = DEEP + 1;
  GIVES(CUDA_ERROR_INVALID_VALUE, cuMemcpy3D_v2(&whole));
  whole.Depth = 0;
  OK(cuMemcpy3D_v2(&whole));
  whole.Depth = 1;
  whole.srcLOD = 1;
  GIVES(CUDA_ERROR_INVALID_VALUE, cuMemcpy3D_v2(&whole));
  whole.srcLOD = 0;
  whole.reserved1 = from;
  GIVES(CUDA_ERROR_INVALID_VALUE, cuMemcpy3D_v2(&whole));
  whole.reserved1 = NULL;
  whole.srcHeight = HIGH - 1;
  GIVES(CUDA_ERROR_INVALID_VALUE, cuMemcpy3D_v2(&whole));
  CUDA_MEMCPY3D_v1 old = {.srcMemoryType = CU_MEMORYTYPE_HOST, .srcHost = from, .dstMemoryType = CU_MEMORYTYPE_HOST,
                          .dstHost = to, .WidthInBytes = 3, .Height = 2, .Depth = 2, .srcPitch = 10, .srcHeight = 3};
  memset(to, 0, BYTES);
  OK(cuMemcpy3D(&old));
  CHECK(!memcmp(to + 6, from + 30, 3) && !memcmp(to + 9, from + 40, 3) && !to[12]);
  old.reserved0 = from;
  GIVES(CUDA_ERROR_INVALID_VALUE, cuMemcpy3D(&old));
}

/* A source and a target that overlap: one run is as if it were copied elsewhere first. */
static void overlap(void) {
  fresh();
  OK(cuMemcpyHtoD_v2(a, from, BYTES));
  OK(cuMemcpyDtoD_v2(a + 100, a, 1000));
  memcpy(expected, from, BYTES);
  memmove(expected + 100, expected, 1000);
  CHECK(same(a));
  CUDA_MEMCPY2D rows = {.srcMemoryType = CU_MEMORYTYPE_DEVICE, .srcDevice = a, .srcPitch = 50,
                        .dstMemoryType = CU_MEMORYTYPE_DEVICE, .dstDevice = a + 5, .dstPitch = 30, .WidthInBytes = 30,
                        .Height = 20};
  OK(cuMemcpy2D_v2(&rows));
}

static void peers(void) {
  CUcontext first, second;
  CUdeviceptr other;
  OK(cuCtxGetCurrent(&first));
  OK(cuCtxCreate_v2(&second, 0, 1));
  OK(cuMemAlloc_v2(&other, BYTES));
  OK(cuCtxPopCurrent_v2(NULL));
  fresh();
  memcpy(expected, from, BYTES);
  OK(cuMemcpyHtoD_v2(a, from, BYTES));
  OK(cuMemcpyPeer(other, second, a, first, BYTES));
  OK(cuMemcpyPeerAsync(b, first, other, second, BYTES, stream));
  CHECK(same(b));
  CUDA_MEMCPY3D_PEER copy = {.srcMemoryType = CU_MEMORYTYPE_DEVICE, .srcDevice = other, .srcContext = second,
                             .dstMemoryType = CU_MEMORYTYPE_DEVICE, .dstDevice = b, .dstContext = first,
                             .WidthInBytes = WIDE, .Height = 2, .Depth = 2, .srcPitch = WIDE, .srcHeight = 3};
  OK(cuMemsetD8_v2(b, 0, BYTES));
  OK(cuMemcpy3DPeer(&copy));
  memset(expected, 0, BYTES);
  memcpy(expected, from, 2 * WIDE);
  memcpy(expected + 2 * WIDE, from + 3 * WIDE, 2 * WIDE);
  CHECK(same(b));
  OK(cuMemsetD8_v2(b, 0, BYTES));
  OK(cuMemcpy3DPeerAsync(&copy, stream));
  CHECK(same(b));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuMemcpyPeer(other, second, a, first, BYTES + 1));
  GIVES(CUDA_ERROR_INVALID_CONTEXT, cuMemcpyPeer(other, NULL, a, first, 4));
  OK(cuCtxDestroy_v2(second));
  GIVES(CUDA_ERROR_INVALID_CONTEXT, cuMemcpyPeer(a, second, b, first, 4));
  GIVES(CUDA_ERROR_INVALID_CONTEXT, cuMemcpy3DPeerAsync(&copy, stream));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoD_v2(b, other, 4));
}

static atomic_uint *gate; /* pinned: streams wait for numbers in it */

static void close_gate(unsigned number) { OK(cuStreamWaitValue32_v2(stream, (CUdeviceptr)gate, number, 0)); }

/* Whether the stream still waits. */
static int is_closed(void) { return cuStreamQuery(stream) == CUDA_ERROR_NOT_READY; }

static void *open_gate(void *given) {
  usleep(20000);
  *gate = *(unsigned *)given;
  return NULL;
}

/* What returns at once, and what only when it is done. */
static void waits(void) {
  unsigned char *pinned;
  CUDA_MEMCPY2D rows = {.srcMemoryType = CU_MEMORYTYPE_HOST, .srcHost = from, .srcPitch = WIDE,
                        .dstMemoryType = CU_MEMORYTYPE_DEVICE, .dstDevice = b, .WidthInBytes = 10, .Height = 3};
  pthread_t thread;
  unsigned number = 2;
  OK(cuMemAllocHost_v2((void **)&pinned, BYTES));
  fresh();
  close_gate(1);
  OK(cuMemcpyHtoDAsync_v2(a, from, BYTES, stream));
  OK(cuMemcpy2DAsync_v2(&rows, stream));
  OK(cuMemcpyDtoDAsync_v2(b + 100, a, 100, stream));
  OK(cuMemcpyDtoHAsync_v2(pinned, a, BYTES, stream));
  OK(cuMemcpyHtoDAsync_v2(b + 200, pinned, 100, stream));
  memcpy(expected, from, BYTES);
  memset(from, 0xee, BYTES); /* it has been read, but for pinned memory */
  CHECK(is_closed() && !pinned[0]);
  *gate = 1;
  OK(cuStreamSynchronize(stream));
  CHECK(!memcmp(pinned, expected, BYTES));
  OK(cuMemcpyDtoH_v2(to, b, 300));
  for (int y = 0; y < 3; y++) CHECK(!memcmp(to + 10 * y, expected + WIDE * y, 10));
  CHECK(!memcmp(to + 100, expected, 100) && !memcmp(to + 200, expected, 100));

  close_gate(2);
  CHECK(!pthread_create(&thread, NULL, open_gate, &number));
  OK(cuMemcpyDtoHAsync_v2(to, a, BYTES, stream)); /* into pageable memory */
  CHECK(*gate == 2 && !memcmp(to, expected, BYTES));
  CHECK(!pthread_join(thread, NULL));
  number = 3;
  close_gate(3);
  CHECK(!pthread_create(&thread, NULL, open_gate, &number));
  OK(cuMemcpyAsync((CUdeviceptr)pinned, (CUdeviceptr)from, 10, stream)); /* from host to host */
  CHECK(*gate == 3 && pinned[9] == 0xee && pinned[10] == expected[10]);
  CHECK(!pthread_join(thread, NULL));
  /* A fill of host memory is there when the synchronous call returns. */
  OK(cuMemsetD32_v2((CUdeviceptr)pinned, 7, 4));
  CHECK(pinned[12] == 7 && pinned[16] == expected[16]);
  OK(cuMemFreeHost(pinned));
}

static void batches(void) {
  CUdeviceptr targets[3] = {a, a + 100, a + 200}, sources[3] = {(CUdeviceptr)from, (CUdeviceptr)(from + 300), b};
  size_t sizes[3] = {50, 60, 70}, from_index[2] = {0, 2}, failed = 77;
  CUmemcpyAttributes attributes[2] = {{.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL},
                                      {.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM, .flags = 1}};
  fresh();
  OK(cuMemsetD8_v2(b, 9, 100));
  OK(cuStreamSynchronize(NULL));
  close_gate(4);
  OK(cuMemcpyBatchAsync_v2(targets, sources, sizes, 3, attributes, from_index, 2, stream));
  memcpy(expected, from, 50);
  memcpy(expected + 100, from + 300, 60);
  memset(expected + 200, 9, 70);
  memset(from, 0, BYTES);
  CHECK(is_closed());
  *gate = 4;
  CHECK(same(a));
  /* In its turn: what is there then. */
  fresh();
  attributes[0].srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
  close_gate(5);
  OK(cuMemcpyBatchAsync(targets, sources, sizes, 3, attributes, from_index, 1, &failed, stream));
  memset(from, 5, BYTES);
  *gate = 5;
  memset(expected, 5, 50);
  memset(expected + 100, 5, 60);
  CHECK(same(a));
  sizes[1] = BYTES;
  GIVES(CUDA_ERROR_INVALID_VALUE, cuMemcpyBatchAsync(targets, sources, sizes, 3, attributes, from_index, 1, &failed, stream));
  CHECK(failed == 1);
  CHECK(same(a)); /* and the first one was not done */
  sizes[1] = 0;
  OK(cuMemcpyBatchAsync(targets, sources, sizes, 3, attributes, from_index, 1, &failed, CU_STREAM_PER_THREAD));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuMemcpyBatchAsync_v2(targets, sources, sizes, 3, attributes, from_index, 1, NULL));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuMemcpyBatchAsync_v2(targets, sources, sizes, 0, attributes, from_index, 1, stream));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuMemcpyBatchAsync(targets, sources, sizes, 3, attributes, from_index, 0, &failed, stream));
  CHECK(failed == SIZE_MAX);
  from_index[1] = 3;
  GIVES(CUDA_ERROR_INVALID_VALUE, cuMemcpyBatchAsync_v2(targets, sources, sizes, 3, attributes, from_index, 2, stream));
  attributes[0].srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_INVALID;
  GIVES(CUDA_ERROR_INVALID_VALUE, cuMemcpyBatchAsync_v2(targets, sources, sizes, 3, attributes, from_index, 1, stream));

  CUDA_MEMCPY3D_BATCH_OP solids[2] = {{
      .src = {.type = CU_MEMCPY_OPERAND_TYPE_POINTER, .op.ptr = {.ptr = (CUdeviceptr)from, .rowLength = WIDE}},
      .dst = {.type = CU_MEMCPY_OPERAND_TYPE_POINTER, .op.ptr = {.ptr = a}},
      .extent = {10, 2, 2}, .srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_ANY,
  }};
  solids[1] = solids[0];
  solids[1].dst.op.ptr.ptr = a + 500;
  solids[1].src.op.ptr.layerHeight = 3;
  fresh();
  for (int y = 0; y < 4; y++) memcpy(expected + 10 * y, from + y * WIDE, 10);
  for (int y = 0; y < 4; y++) memcpy(expected + 500 + 10 * y, from + (y + (y > 1)) * WIDE, 10);
  OK(cuStreamSynchronize(NULL));
  OK(cuMemcpy3DBatchAsync_v2(2, solids, 0, stream));
  CHECK(same(a));
  solids[1].src.type = CU_MEMCPY_OPERAND_TYPE_ARRAY;
  GIVES(CUDA_ERROR_INVALID_VALUE, cuMemcpy3DBatchAsync(2, solids, &failed, 0, stream));
  CHECK(failed == 1);
  solids[1] = solids[0];
  solids[1].extent.height = 0;
  GIVES(CUDA_ERROR_INVALID_VALUE, cuMemcpy3DBatchAsync_v2(2, solids, 0, stream));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuMemcpy3DBatchAsync_v2(1, solids, 1, stream));
}

static void arrays(void) {
  CUarray line, plane, solid;
  CUDA_ARRAY_DESCRIPTOR wanted = {.Width = 10, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 2}, is;
  CUDA_ARRAY3D_DESCRIPTOR wanted_3d = {.Width = 8, .Height = 6, .Depth = 5, .Format = CU_AD_FORMAT_UNSIGNED_INT8,
                                       .NumChannels = 1, .Flags = CUDA_ARRAY3D_SURFACE_LDST}, is_3d;
  CUDA_ARRAY3D_DESCRIPTOR_v1 old;
  OK(cuArrayCreate_v2(&line, &wanted));
  wanted.Height = 4;
  OK(cuArrayCreate_v2(&plane, &wanted));
  OK(cuArray3DCreate_v2(&solid, &wanted_3d));
  OK(cuArrayGetDescriptor_v2(&is, plane));
  CHECK(is.Width == 10 && is.Height == 4 && is.Format == CU_AD_FORMAT_FLOAT && is.NumChannels == 2);
  OK(cuArray3DGetDescriptor_v2(&is_3d, line));
  CHECK(is_3d.Width == 10 && !is_3d.Height && !is_3d.Depth && !is_3d.Flags);
  OK(cuArray3DGetDescriptor(&old, solid));
  CHECK(old.Width == 8 && old.Height == 6 && old.Depth == 5 && old.Flags == CUDA_ARRAY3D_SURFACE_LDST);

  fresh();
  OK(cuMemcpyHtoA_v2(line, 8, from, 72));
  OK(cuMemcpyAtoHAsync_v2(to, line, 0, 80, stream));
  memcpy(expected + 8, from, 72);
  CHECK(!memcmp(to, expected, 80)); /* new memory is zero */
  OK(cuMemcpyAtoA_v2(plane, 0, line, 8, 72));
  OK(cuMemcpyAtoD_v2(a, plane, 0, 80));
  OK(cuMemcpyDtoA_v2(line, 40, a + 8, 40));
  OK(cuMemcpyAtoH(to, line, 40, 40));
  CHECK(!memcmp(to, from + 8, 40));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoA_v2(line, 16, from, 72));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoA_v2(line, 4, from, 8)); /* half an element */
  GIVES(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoA_v2(line, 8, from, 12));
  GIVES(CUDA_ERROR_INVALID_HANDLE, cuMemcpyHtoA_v2((CUarray)from, 0, from, 8));

  CUDA_MEMCPY2D rows = {.srcMemoryType = CU_MEMORYTYPE_HOST, .srcHost = from, .srcPitch = WIDE,
                        .dstMemoryType = CU_MEMORYTYPE_ARRAY, .dstArray = plane, .dstXInBytes = 16, .dstY = 1,
                        .WidthInBytes = 24, .Height = 3};
  CUDA_MEMCPY2D back = {.srcMemoryType = CU_MEMORYTYPE_ARRAY, .srcArray = plane, .srcXInBytes = 16, .srcY = 1,
                        .dstMemoryType = CU_MEMORYTYPE_HOST, .dstHost = to, .dstPitch = 30, .WidthInBytes = 24,
                        .Height = 3};
  OK(cuMemcpy2D_v2(&rows));
  OK(cuMemcpy2D_v2(&back));
  for (int y = 0; y < 3; y++) CHECK(!memcmp(to + 30 * y, from + WIDE * y, 24));
  rows.Height = 4;
  GIVES(CUDA_ERROR_INVALID_VALUE, cuMemcpy2D_v2(&rows));

  CUDA_MEMCPY3D_BATCH_OP in_3d = {
      .src = {.type = CU_MEMCPY_OPERAND_TYPE_POINTER, .op.ptr = {.ptr = (CUdeviceptr)from, .rowLength = 7}},
      .dst = {.type = CU_MEMCPY_OPERAND_TYPE_ARRAY, .op.array = {.array = solid, .offset = {1, 2, 3}}},
      .extent = {7, 4, 2}, .srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL,
  };
  OK(cuMemcpy3DBatchAsync_v2(1, &in_3d, 0, stream));
  CUDA_MEMCPY3D_PEER out = {.srcMemoryType = CU_MEMORYTYPE_ARRAY, .srcArray = solid, .srcZ = 3, .srcY = 2, .srcXInBytes = 1,
                            .dstMemoryType = CU_MEMORYTYPE_DEVICE, .dstDevice = b, .WidthInBytes = 7, .Height = 4, .Depth = 2};
  OK(cuCtxGetCurrent(&out.dstContext));
  OK(cuMemsetD8_v2(b, 0, BYTES));
  OK(cuStreamSynchronize(NULL));
  OK(cuMemcpy3DPeerAsync(&out, stream));
  memset(expected, 0, BYTES);
  memcpy(expected, from, 56);
  CHECK(same(b));
  in_3d.dst.op.array.offset.z = 4;
  GIVES(CUDA_ERROR_INVALID_VALUE, cuMemcpy3DBatchAsync_v2(1, &in_3d, 0, stream));

  wanted.NumChannels = 3;
  GIVES(CUDA_ERROR_INVALID_VALUE, cuArrayCreate_v2(&line, &wanted));
  wanted = (CUDA_ARRAY_DESCRIPTOR){.Width = 8, .Format = CU_AD_FORMAT_NV12, .NumChannels = 1};
  GIVES(CUDA_ERROR_NOT_SUPPORTED, cuArrayCreate_v2(&line, &wanted));
  wanted_3d.Flags = CUDA_ARRAY3D_CUBEMAP;
  GIVES(CUDA_ERROR_INVALID_VALUE, cuArray3DCreate_v2(&line, &wanted_3d));
  wanted_3d.Flags = 1u << 20;
  GIVES(CUDA_ERROR_INVALID_VALUE, cuArray3DCreate_v2(&line, &wanted_3d));
  OK(cuArrayDestroy(plane));
  GIVES(CUDA_ERROR_INVALID_HANDLE, cuArrayDestroy(plane));
  GIVES(CUDA_ERROR_INVALID_HANDLE, cuArrayGetDescriptor_v2(&is, plane));
  OK(cuArrayDestroy(line)); /* the third one ends with its context */
}

/* Sizes on both sides of those at which a copy is done differently. */
static void sizes(void) {
  enum { MOST = 5 << 20 };
  static unsigned char source[MOST + 1], target[MOST + 1];
  CUdeviceptr big[2];
  for (int i = 0; i < 2; i++) OK(cuMemAlloc_v2(&big[i], MOST));
  for (size_t i = 0; i < MOST; i++) source[i] = (unsigned char)(i * 31 + i / 977);
  const size_t lengths[] = {1, 4096, 262143, 262145, 1000001, MOST};
  for (int i = 0; i < 6; i++) {
    memset(target, 0, MOST + 1);
    OK(cuMemcpyHtoDAsync_v2(big[0], source, lengths[i], stream));
    OK(cuMemcpyDtoDAsync_v2(big[1], big[0], lengths[i], stream));
    OK(cuMemcpyDtoHAsync_v2(target, big[1], lengths[i], stream));
    CHECK(!memcmp(target, source, lengths[i]) && !target[lengths[i]]);
    OK(cuMemsetD16_v2(big[0], 0x0102, lengths[i] / 2));
    OK(cuMemcpyDtoD_v2(big[1], big[0], lengths[i]));
    OK(cuMemcpyDtoH_v2(target, big[1], lengths[i]));
    for (size_t n = 0; n < lengths[i] / 2 * 2; n++) CHECK(target[n] == (n % 2 ? 1 : 2));
  }
  for (int i = 0; i < 2; i++) OK(cuMemFree_v2(big[i]));
}

int main(void) {
  CUcontext context;
  alarm(60); /* nothing here may hang */
  GIVES(CUDA_ERROR_NOT_INITIALIZED, cuMemcpy2D_v2(NULL));
  OK(cuInit(0));
  OK(cuDevicePrimaryCtxRetain(&context, 0));
  OK(cuCtxSetCurrent(context));
  OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  OK(cuMemAlloc_v2(&a, BYTES));
  OK(cuMemAlloc_v2(&b, BYTES));
  OK(cuMemAllocHost_v2((void **)&gate, 4096));
  planes();
  solids();
  overlap();
  peers();
  waits();
  batches();
  arrays();
  sizes();
  OK(cuDevicePrimaryCtxRelease_v2(0));
  return 0;
}
