/* Every function that copies or fills, in all its forms, one call after the other. What is copied is always a part of
 * memory that holds `pattern`, whose place is printed, so that it can be worked out what was copied. */
#define __CUDA_API_VERSION_INTERNAL
#include "copies.h"

#include <sys/mman.h>

static CUstream stream;
static CUcontext context, other_context;
static CUdeviceptr_v2 to, from, to_other, from_other; /* memory of the devices */
static unsigned char *page_to, *page_from, *pin_to, *pin_from;
static CUarray array_to, array_from, solid_to, solid_from;

/* One call, and all that it does. */
#define DO(call)                \
  do {                          \
    OK(call);                   \
    OK(cuCtxSynchronize());     \
  } while (0)

#define REFUSED(call) GIVES(CUDA_ERROR_INVALID_VALUE, call)

#define LINEAR(name, suffix, to, from, bytes)                   \
  DO(name##suffix(to, from, bytes));                            \
  DO(name##suffix##_ptds(to, from, bytes));                     \
  DO(name##Async##suffix(to, from, bytes, stream));             \
  DO(name##Async##suffix(to, from, bytes, NULL));               \
  DO(name##Async##suffix##_ptsz(to, from, bytes, stream));      \
  DO(name##Async##suffix##_ptsz(to, from, bytes, NULL))

static void linear(size_t bytes, size_t at) {
  LINEAR(cuMemcpyHtoD, _v2, to + at, page_from + at, bytes);
  LINEAR(cuMemcpyHtoD, _v2, to + at, pin_from + at, bytes);
  LINEAR(cuMemcpyDtoH, _v2, page_to + at, from + at, bytes);
  LINEAR(cuMemcpyDtoH, _v2, pin_to + at, from + at, bytes);
  LINEAR(cuMemcpyDtoD, _v2, to + at, from + at, bytes);
  LINEAR(cuMemcpy, , to + at, from + at, bytes);
  LINEAR(cuMemcpy, , to + at, ADDRESS(page_from) + at, bytes);
  LINEAR(cuMemcpy, , ADDRESS(pin_to) + at, ADDRESS(page_from) + at, bytes);
  LINEAR(cuMemcpy, , ADDRESS(page_to) + at, ADDRESS(pin_from) + at, bytes);
  /* what memory is, whatever it is called */
  LINEAR(cuMemcpyHtoD, _v2, to + at, (void *)(uintptr_t)(from + at), bytes);
  LINEAR(cuMemcpyDtoD, _v2, ADDRESS(pin_to) + at, ADDRESS(pin_from) + at, bytes);
  LINEAR(cuMemcpyDtoH, _v2, (void *)(uintptr_t)(to + at), ADDRESS(pin_from) + at, bytes);
}

/* Addresses of 32 bits are none of the memory here. */
static void linear_old(void) {
  REFUSED(cuMemcpyHtoD(16, page_from, 32));
  REFUSED(cuMemcpyHtoDAsync(16, page_from, 32, stream));
  REFUSED(cuMemcpyDtoH(page_to, 16, 32));
  REFUSED(cuMemcpyDtoHAsync(page_to, 16, 32, stream));
  REFUSED(cuMemcpyDtoD(16, 4096, 32));
  REFUSED(cuMemcpyDtoDAsync(16, 4096, 32, stream));
}

#define ARRAYS(suffix)                                           \
  DO(cuMemcpyHtoA##suffix(array_to, 8, page_from + 5, 64));      \
  DO(cuMemcpyAtoH##suffix(page_to + 3, array_from, 12, 64));     \
  DO(cuMemcpyAtoA##suffix(array_to, 4, array_from, 8, 64))
#define ARRAYS_DEVICE(suffix)                                    \
  DO(cuMemcpyDtoA##suffix(array_to, 8, from + 5, 64));           \
  DO(cuMemcpyAtoD##suffix(to + 3, array_from, 12, 64))
#define ARRAYS_ASYNC(suffix)                                             \
  DO(cuMemcpyHtoAAsync##suffix(array_to, 8, page_from + 5, 64, stream)); \
  DO(cuMemcpyHtoAAsync##suffix(array_to, 8, pin_from + 5, 64, stream));  \
  DO(cuMemcpyAtoHAsync##suffix(page_to + 3, array_from, 12, 64, stream)); \
  DO(cuMemcpyAtoHAsync##suffix(pin_to + 3, array_from, 12, 64, NULL))

static void arrays(void) {
  ARRAYS();
  ARRAYS(_v2);
  ARRAYS(_v2_ptds);
  ARRAYS_DEVICE(_v2);
  ARRAYS_DEVICE(_v2_ptds);
  REFUSED(cuMemcpyDtoA(array_to, 8, 16, 64));
  REFUSED(cuMemcpyAtoD(16, array_from, 8, 64));
  ARRAYS_ASYNC();
  ARRAYS_ASYNC(_v2);
  ARRAYS_ASYNC(_v2_ptsz);
}

#define H(side, pointer) .side##MemoryType = CU_MEMORYTYPE_HOST, .side##Host = pointer
#define D(side, pointer) .side##MemoryType = CU_MEMORYTYPE_DEVICE, .side##Device = pointer
#define U(side, pointer) .side##MemoryType = CU_MEMORYTYPE_UNIFIED, .side##Device = pointer
#define A(side, array) .side##MemoryType = CU_MEMORYTYPE_ARRAY, .side##Array = array

#define PLANE(type, ...)                                                                                    \
  ((type){.srcXInBytes = 4, .srcY = 2, .srcPitch = 96, .dstXInBytes = 8, .dstY = 1, .dstPitch = 80,         \
          .WidthInBytes = 60, .Height = 5, __VA_ARGS__})
#define PLANE_NOW(symbol, type, ...) DO(symbol(&PLANE(type, __VA_ARGS__)))
#define PLANE_ASYNC(symbol, type, stream, ...) DO(symbol(&PLANE(type, __VA_ARGS__), stream))

#define PLANES(...)                                                   \
  PLANE_NOW(cuMemcpy2D_v2, CUDA_MEMCPY2D_v2, __VA_ARGS__);             \
  PLANE_NOW(cuMemcpy2D_v2_ptds, CUDA_MEMCPY2D_v2, __VA_ARGS__);        \
  PLANE_NOW(cuMemcpy2DUnaligned_v2, CUDA_MEMCPY2D_v2, __VA_ARGS__);    \
  PLANE_NOW(cuMemcpy2DUnaligned_v2_ptds, CUDA_MEMCPY2D_v2, __VA_ARGS__); \
  PLANE_ASYNC(cuMemcpy2DAsync_v2, CUDA_MEMCPY2D_v2, stream, __VA_ARGS__); \
  PLANE_ASYNC(cuMemcpy2DAsync_v2, CUDA_MEMCPY2D_v2, NULL, __VA_ARGS__); \
  PLANE_ASYNC(cuMemcpy2DAsync_v2_ptsz, CUDA_MEMCPY2D_v2, NULL, __VA_ARGS__)
#define PLANES_OLD(...)                                               \
  PLANE_NOW(cuMemcpy2D, CUDA_MEMCPY2D_v1, __VA_ARGS__);                \
  PLANE_NOW(cuMemcpy2DUnaligned, CUDA_MEMCPY2D_v1, __VA_ARGS__);       \
  PLANE_ASYNC(cuMemcpy2DAsync, CUDA_MEMCPY2D_v1, stream, __VA_ARGS__)

#define SOLID(type, ...)                                                                                    \
  ((type){.srcXInBytes = 4, .srcY = 1, .srcZ = 1, .srcPitch = 64, .srcHeight = 8, .dstXInBytes = 8,         \
          .dstZ = 1, .dstPitch = 72, .dstHeight = 9, .WidthInBytes = 52, .Height = 6, .Depth = 2, __VA_ARGS__})
#define SOLID_NOW(symbol, type, ...) DO(symbol(&SOLID(type, __VA_ARGS__)))
#define SOLID_ASYNC(symbol, type, stream, ...) DO(symbol(&SOLID(type, __VA_ARGS__), stream))

#define SOLIDS(...)                                                   \
  SOLID_NOW(cuMemcpy3D_v2, CUDA_MEMCPY3D_v2, __VA_ARGS__);             \
  SOLID_NOW(cuMemcpy3D_v2_ptds, CUDA_MEMCPY3D_v2, __VA_ARGS__);        \
  SOLID_ASYNC(cuMemcpy3DAsync_v2, CUDA_MEMCPY3D_v2, stream, __VA_ARGS__); \
  SOLID_ASYNC(cuMemcpy3DAsync_v2_ptsz, CUDA_MEMCPY3D_v2, NULL, __VA_ARGS__)
#define SOLIDS_OLD(...)                                               \
  SOLID_NOW(cuMemcpy3D, CUDA_MEMCPY3D_v1, __VA_ARGS__);                \
  SOLID_ASYNC(cuMemcpy3DAsync, CUDA_MEMCPY3D_v1, stream, __VA_ARGS__)
#define BETWEEN .dstContext = context, .srcContext = other_context
#define SOLIDS_BETWEEN(...)                                                            \
  SOLID_NOW(cuMemcpy3DPeer, CUDA_MEMCPY3D_PEER_v1, BETWEEN, __VA_ARGS__);                \
  SOLID_NOW(cuMemcpy3DPeer_ptds, CUDA_MEMCPY3D_PEER_v1, BETWEEN, __VA_ARGS__);           \
  SOLID_ASYNC(cuMemcpy3DPeerAsync, CUDA_MEMCPY3D_PEER_v1, stream, BETWEEN, __VA_ARGS__); \
  SOLID_ASYNC(cuMemcpy3DPeerAsync_ptsz, CUDA_MEMCPY3D_PEER_v1, NULL, BETWEEN, __VA_ARGS__)

static void shapes(void) {
  PLANES(D(dst, to), H(src, page_from));
  PLANES(D(dst, to), H(src, pin_from));
  PLANES(H(dst, page_to), D(src, from));
  PLANES(H(dst, pin_to), U(src, from));
  PLANES(U(dst, ADDRESS(page_to)), U(src, ADDRESS(pin_from)));
  PLANES(A(dst, array_to), H(src, pin_from));
  PLANES(D(dst, to), H(src, page_from), .Height = 1, .srcPitch = 0, .dstPitch = 0, .srcY = 0, .dstY = 0);
  PLANES_OLD(A(dst, array_to), H(src, page_from));
  PLANES_OLD(H(dst, page_to), A(src, array_from));
  SOLIDS(D(dst, to), H(src, page_from));
  SOLIDS(D(dst, to), H(src, pin_from));
  SOLIDS(H(dst, page_to), D(src, from));
  SOLIDS(H(dst, pin_to), A(src, solid_from));
  SOLIDS(A(dst, solid_to), A(src, solid_from));
  SOLIDS(D(dst, to), H(src, page_from), .srcXInBytes = 0, .srcPitch = 0, .srcHeight = 0, .srcY = 0);
  SOLIDS_OLD(A(dst, solid_to), H(src, page_from));
  SOLIDS_OLD(H(dst, page_to), A(src, solid_from));
  SOLIDS_BETWEEN(D(dst, to), D(src, from_other));
  SOLIDS_BETWEEN(D(dst, to), H(src, page_from));
  SOLIDS_BETWEEN(H(dst, pin_to), D(src, from_other));
  DO(cuMemcpyPeer(to, context, from_other, other_context, 100));
  DO(cuMemcpyPeer_ptds(to, context, from_other, other_context, 100));
  DO(cuMemcpyPeerAsync(to, context, from_other, other_context, 100, stream));
  DO(cuMemcpyPeerAsync_ptsz(to, context, from_other, other_context, 100, NULL));
  /* larger than what stands in a record */
  PLANES(D(dst, to), H(src, page_from), .WidthInBytes = 90, .Height = 100, .srcXInBytes = 0, .dstPitch = 100);
  PLANES(H(dst, pin_to), D(src, from), .WidthInBytes = 90, .Height = 100, .srcXInBytes = 0, .dstPitch = 100);
  PLANES(D(dst, to), H(src, pin_from), .WidthInBytes = 96, .Height = 100, .srcXInBytes = 0, .dstPitch = 200);
}

static void batches(void) {
  CUdeviceptr_v2 targets[] = {to, to + 5000, ADDRESS(page_to), ADDRESS(pin_to), to + 9000, to + 20000};
  CUdeviceptr_v2 sources[] = {ADDRESS(page_from), ADDRESS(pin_from) + 7, from, from + 20, from, ADDRESS(page_from) + 9};
  size_t sizes[] = {100, 5000, 300, 400, 500, 6000}, failed = 0;
  for (int order = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM; order <= CU_MEMCPY_SRC_ACCESS_ORDER_ANY; order++) {
    CUmemcpyAttributes_v1 attributes[] = {{.srcAccessOrder = order},
                                          {.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_ANY}};
    size_t begin[] = {0, 4};
    DO(cuMemcpyBatchAsync(targets, sources, sizes, 6, attributes, begin, 1, &failed, stream));
    DO(cuMemcpyBatchAsync_ptsz(targets, sources, sizes, 6, attributes, begin, 2, &failed, NULL));
    DO(cuMemcpyBatchAsync_v2(targets, sources, sizes, 6, attributes, begin, 2, stream));
    DO(cuMemcpyBatchAsync_v2_ptsz(targets, sources, sizes, 6, attributes, begin, 1, stream));
    CUDA_MEMCPY3D_BATCH_OP_v1 list[] = {
        {.dst = {CU_MEMCPY_OPERAND_TYPE_POINTER, {.ptr = {.ptr = to, .rowLength = 40, .layerHeight = 5}}},
         .src = {CU_MEMCPY_OPERAND_TYPE_POINTER, {.ptr = {.ptr = ADDRESS(pin_from)}}},
         .extent = {30, 4, 2}, .srcAccessOrder = order},
        {.dst = {CU_MEMCPY_OPERAND_TYPE_ARRAY, {.array = {.array = solid_to, .offset = {1, 2, 1}}}},
         .src = {CU_MEMCPY_OPERAND_TYPE_POINTER, {.ptr = {.ptr = ADDRESS(page_from), .rowLength = 12}}},
         .extent = {10, 3, 2}, .srcAccessOrder = order},
        {.dst = {CU_MEMCPY_OPERAND_TYPE_POINTER, {.ptr = {.ptr = ADDRESS(pin_to)}}},
         .src = {CU_MEMCPY_OPERAND_TYPE_ARRAY, {.array = {.array = solid_from, .offset = {2, 1, 0}}}},
         .extent = {9, 3, 2}, .srcAccessOrder = order},
    };
    DO(cuMemcpy3DBatchAsync(3, list, &failed, 0, stream));
    DO(cuMemcpy3DBatchAsync_ptsz(3, list, &failed, 0, NULL));
    DO(cuMemcpy3DBatchAsync_v2(3, list, 0, stream));
    DO(cuMemcpy3DBatchAsync_v2_ptsz(3, list, 0, stream));
  }
}

#define FILLS(bits, value)                                                       \
  DO(cuMemsetD##bits##_v2(to, value, 100));                                      \
  DO(cuMemsetD##bits##_v2_ptds(to, value, 100));                                 \
  DO(cuMemsetD##bits##Async(to, value, 100, stream));                            \
  DO(cuMemsetD##bits##Async_ptsz(to, value, 100, NULL));                         \
  DO(cuMemsetD##bits##_v2(ADDRESS(pin_to), value, 100));                         \
  REFUSED(cuMemsetD##bits(64, value, 100));                                      \
  DO(cuMemsetD2D##bits##_v2(to, 1024, value, 100, 7));                           \
  DO(cuMemsetD2D##bits##_v2_ptds(to, 1024, value, 100, 7));                      \
  DO(cuMemsetD2D##bits##Async(to, 1024, value, 100, 7, stream));                 \
  DO(cuMemsetD2D##bits##Async_ptsz(to, 1024, value, 100, 7, NULL));              \
  REFUSED(cuMemsetD2D##bits(64, 1024, value, 100, 7))

static void fills(void) {
  FILLS(8, 0xa5);
  FILLS(16, 0xa5b6);
  FILLS(32, 0xa5b6c7d8);
}

/* What the driver refuses, and what is nothing. */
static void refusals(void) {
  CUdeviceptr_v2 targets[] = {to, to}, sources[] = {from, from};
  size_t sizes[] = {10, ROOM + 1}, begin[] = {0}, failed;
  CUmemcpyAttributes_v1 attributes[] = {{.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM}};
  CUDA_MEMCPY3D_BATCH_OP_v1 wrong[] = {{.dst = {.type = 77}, .extent = {1, 1, 1}, .srcAccessOrder = 1}};
  CUdeviceptr_v2 null = 0;
  DO(cuMemcpyHtoD_v2(to, page_from, 0));
  DO(cuMemcpyHtoDAsync_v2(to, NULL, 0, stream));
  DO(cuMemcpyDtoH_v2(NULL, from, 0));
  DO(cuMemsetD8_v2(to, 1, 0));
  REFUSED(cuMemcpyHtoD_v2(to, NULL, 10));
  REFUSED(cuMemcpyHtoD_v2(null, page_from, 10));
  REFUSED(cuMemcpyDtoHAsync_v2(NULL, from, 10, stream));
  REFUSED(cuMemcpyHtoD_v2(16, (void *)4096, 100000)); /* before anybody reads what is not there */
  REFUSED(cuMemcpyHtoDAsync_v2(16, (void *)4096, 100, stream));
  unsigned char *half = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(half != MAP_FAILED && !mprotect(half + 4096, 4096, PROT_NONE));
  REFUSED(cuMemcpyHtoD_v2(16, half + 4000, 200));
  REFUSED(cuMemcpyHtoDAsync_v2(16, half + 1, 8191, stream));
  REFUSED(cuMemcpyDtoH_v2(page_to, from, (size_t)-1));
  REFUSED(cuMemcpyHtoD_v2(to, page_from, (size_t)-1));
  REFUSED(cuMemcpyHtoDAsync_v2(to, pin_from, (size_t)-1, stream));
  REFUSED(cuMemcpy2D_v2(NULL));
  REFUSED(cuMemcpy3DAsync_v2(NULL, stream));
  REFUSED(cuMemcpy3DPeer(NULL));
  REFUSED(cuMemcpy2D_v2(&PLANE(CUDA_MEMCPY2D_v2, D(dst, to), H(src, page_from), .srcMemoryType = 9)));
  REFUSED(cuMemcpy3D_v2(&SOLID(CUDA_MEMCPY3D_v2, D(dst, to), H(src, page_from), .Depth = (size_t)-1)));
  REFUSED(cuMemcpyBatchAsync_v2(targets, sources, sizes, 2, attributes, begin, 1, stream));
  REFUSED(cuMemcpyBatchAsync_v2(NULL, sources, sizes, 2, attributes, begin, 1, stream));
  REFUSED(cuMemcpyBatchAsync_v2(targets, sources, sizes, 2, NULL, begin, 1, stream));
  REFUSED(cuMemcpyBatchAsync_v2(targets, sources, sizes, 1, attributes, begin, 1, NULL));
  REFUSED(cuMemcpyBatchAsync(targets, sources, sizes, 2, attributes, begin, 1, &failed, stream));
  CHECK(failed == 1);
  REFUSED(cuMemcpy3DBatchAsync_v2(1, wrong, 0, stream));
  GIVES(CUDA_ERROR_NOT_SUPPORTED, cuMemDiscardBatchAsync(targets, sizes, 1, 0, stream));
  GIVES(CUDA_ERROR_NOT_SUPPORTED, cuMemDiscardBatchAsync_ptsz(targets, sizes, 1, 0, stream));
  GIVES(CUDA_ERROR_NOT_SUPPORTED, cuMemDiscardAndPrefetchBatchAsync(targets, sizes, 1, NULL, begin, 0, 0, stream));
  GIVES(CUDA_ERROR_NOT_SUPPORTED, cuMemDiscardAndPrefetchBatchAsync_ptsz(targets, sizes, 1, NULL, begin, 0, 0, stream));
  GIVES(CUDA_ERROR_NOT_SUPPORTED, cuMemBatchDecompressAsync(NULL, 0, 0, &failed, stream));
  GIVES(CUDA_ERROR_NOT_SUPPORTED, cuMemBatchDecompressAsync_ptsz(NULL, 0, 0, &failed, stream));
  CUcontext popped, before;
  OK(cuCtxPopCurrent_v2(&popped));
  OK(cuCtxPopCurrent_v2(&before));
  GIVES(CUDA_ERROR_INVALID_CONTEXT, cuMemcpyHtoD_v2(to, page_from, 10));
  GIVES(CUDA_ERROR_INVALID_CONTEXT, cuMemcpyDtoHAsync_v2(page_to, from, 10, NULL));
  GIVES(CUDA_ERROR_INVALID_CONTEXT, cuMemsetD8_v2(to, 1, 10));
  OK(cuCtxPushCurrent_v2(popped));
}

static void overlapping(void) {
  /* in memory that is no source elsewhere */
  memcpy(page_to, page_from, 20000);
  OK(cuMemcpy(ADDRESS(page_to) + 100, ADDRESS(page_to), 300));
  memcpy(page_to, page_from, 20000);
  OK(cuMemcpy(ADDRESS(page_to) + 100, ADDRESS(page_to), 6000));
}

static void make(void) {
  CUdevice device, other;
  OK(cuInit(0));
  OK(cuDeviceGet(&device, 0));
  OK(cuDeviceGet(&other, 1));
  OK(cuCtxCreate_v2(&other_context, 0, other));
  OK(cuMemAlloc_v2(&to_other, ROOM));
  OK(cuMemAlloc_v2(&from_other, ROOM));
  OK(cuCtxCreate_v2(&context, 0, device));
  OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  OK(cuMemAlloc_v2(&to, ROOM));
  OK(cuMemAlloc_v2(&from, ROOM));
  OK(cuMemHostAlloc((void **)&pin_from, ROOM, 0));
  page_to = aligned_alloc(4096, ROOM);
  page_from = aligned_alloc(4096, ROOM);
  pin_to = aligned_alloc(4096, ROOM);
  OK(cuMemHostRegister_v2(pin_to, ROOM, 0));
  put_pattern(page_from);
  put_pattern(pin_from);
  CUDA_ARRAY_DESCRIPTOR_v2 plane = {.Width = 32, .Height = 16, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1};
  CUDA_ARRAY3D_DESCRIPTOR_v2 solid = {.Width = 16, .Height = 16, .Depth = 4, .Format = CU_AD_FORMAT_FLOAT,
                                      .NumChannels = 1};
  OK(cuArrayCreate_v2(&array_to, &plane));
  OK(cuArrayCreate_v2(&array_from, &plane));
  OK(cuArray3DCreate_v2(&solid_to, &solid));
  OK(cuArray3DCreate_v2(&solid_from, &solid));
  /* these are in the log as well */
  DO(cuMemcpyHtoD_v2(from, page_from, ROOM));
  DO(cuMemcpyHtoD_v2(from_other, page_from, ROOM));
  DO(cuMemcpy2D_v2(&(CUDA_MEMCPY2D_v2){H(src, page_from), .srcPitch = 128, A(dst, array_from), .WidthInBytes = 128,
                                       .Height = 16}));
  DO(cuMemcpy3D_v2(&(CUDA_MEMCPY3D_v2){H(src, page_from), .srcPitch = 64, .srcHeight = 16, A(dst, solid_from),
                                       .WidthInBytes = 64, .Height = 16, .Depth = 4}));
  printf("{\"pageable\": %zu, \"pinned\": %zu, \"device\": %zu, \"other\": %zu, \"array\": %zu, \"solid\": %zu, "
         "\"page_to\": %zu, \"pin_to\": %zu, \"context\": %zu, \"other_context\": %zu}\n",
         (size_t)page_from, (size_t)pin_from, (size_t)from, (size_t)from_other, (size_t)array_from, (size_t)solid_from,
         (size_t)page_to, (size_t)pin_to, (size_t)context, (size_t)other_context);
}

int main(int count, char **words) {
  const char *part = count > 1 ? words[1] : "";
  make();
  errno = 77;
  if (!strcmp(part, "linear")) {
    linear(100, 0);
    linear(4096, 8);
    linear(4097, 1);
    linear(300000, 4096);
    linear_old();
  } else if (!strcmp(part, "arrays")) {
    arrays();
    shapes();
  } else if (!strcmp(part, "batches")) {
    batches();
  } else if (!strcmp(part, "fills")) {
    fills();
  } else if (!strcmp(part, "refusals")) {
    refusals();
  } else if (!strcmp(part, "overlapping")) {
    overlapping();
  } else {
    return 2;
  }
  OK(cuCtxSynchronize());
  CHECK(errno == 77);
  return 0;
}
