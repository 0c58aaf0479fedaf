/* The functions that copy; what they do is in `copy.c`. */
#include <stdlib.h>

#include "array.h"
#include "copy.h"
#include "driver.h"

/* Bytes in one run. A type of memory of 0 is that which the address has. */

#define ADDRESS(pointer) ((CUdeviceptr)(uintptr_t)(pointer))

static CUresult linear(struct way way, uint64_t target, CUmemorytype target_type, uint64_t source,
                       CUmemorytype source_type, size_t bytes) {
  CUDA_MEMCPY3D params = {
      .srcMemoryType = source_type, .srcDevice = source, .srcHost = (const void *)(uintptr_t)source,
      .dstMemoryType = target_type, .dstDevice = target, .dstHost = (void *)(uintptr_t)target,
      .WidthInBytes = bytes, .Height = 1, .Depth = 1,
  };
  return copy_call(way, &params);
}

#define HOST CU_MEMORYTYPE_HOST
#define DEVICE CU_MEMORYTYPE_DEVICE
#define EITHER CU_MEMORYTYPE_UNIFIED

#define LINEAR(symbol, way, parameters, target_type, source_type)                          \
  EXPORTED CUresult symbol parameters {                                                    \
    return linear(way, ADDRESS(target), target_type, ADDRESS(source), source_type, bytes); \
  }

/* A function with its twin and its asynchronous forms; and those with addresses and sizes of 32 bits. */
#define COPIES(name, suffix, target_t, target_type, source_t, source_type)                                     \
  LINEAR(name##suffix, LEGACY, (target_t target, source_t source, size_t bytes), target_type, source_type)     \
  LINEAR(name##suffix##_ptds, OWN, (target_t target, source_t source, size_t bytes), target_type, source_type) \
  LINEAR(name##Async##suffix, IN(stream), (target_t target, source_t source, size_t bytes, CUstream stream),   \
         target_type, source_type)                                                                             \
  LINEAR(name##Async##suffix##_ptsz, IN_OWN(stream),                                                           \
         (target_t target, source_t source, size_t bytes, CUstream stream), target_type, source_type)

#define COPIES_OLD(name, target_t, target_type, source_t, source_type)                                     \
  LINEAR(name, LEGACY, (target_t target, source_t source, unsigned int bytes), target_type, source_type)   \
  LINEAR(name##Async, IN(stream), (target_t target, source_t source, unsigned int bytes, CUstream stream), \
         target_type, source_type)

COPIES(cuMemcpy, , CUdeviceptr, EITHER, CUdeviceptr, EITHER)
COPIES(cuMemcpyHtoD, _v2, CUdeviceptr, DEVICE, const void *, HOST)
COPIES(cuMemcpyDtoH, _v2, void *, HOST, CUdeviceptr, DEVICE)
COPIES(cuMemcpyDtoD, _v2, CUdeviceptr, DEVICE, CUdeviceptr, DEVICE)
COPIES_OLD(cuMemcpyHtoD, CUdeviceptr_v1, DEVICE, const void *, HOST)
COPIES_OLD(cuMemcpyDtoH, void *, HOST, CUdeviceptr_v1, DEVICE)
COPIES_OLD(cuMemcpyDtoD, CUdeviceptr_v1, DEVICE, CUdeviceptr_v1, DEVICE)

/* To and from the first row of an array, whose addresses are offsets in bytes. */

static CUresult in_array(struct way way, CUDA_MEMCPY3D params, size_t bytes) {
  params.WidthInBytes = bytes;
  params.Height = params.Depth = 1;
  return copy_call(way, &params);
}

#define TO_ARRAY .dstMemoryType = CU_MEMORYTYPE_ARRAY, .dstArray = target, .dstXInBytes = target_offset
#define FROM_ARRAY .srcMemoryType = CU_MEMORYTYPE_ARRAY, .srcArray = source, .srcXInBytes = source_offset
#define TO_HOST .dstMemoryType = HOST, .dstHost = target
#define FROM_HOST .srcMemoryType = HOST, .srcHost = source
#define TO_DEVICE .dstMemoryType = DEVICE, .dstDevice = target
#define FROM_DEVICE .srcMemoryType = DEVICE, .srcDevice = source

#define WITH_ARRAY(symbol, way, to, from, ...)              \
  EXPORTED CUresult symbol(__VA_ARGS__) {                   \
    return in_array(way, (CUDA_MEMCPY3D){to, from}, bytes); \
  }

#define ARRAYS(suffix, way, device_t, size)                                                                       \
  WITH_ARRAY(cuMemcpyHtoA##suffix, way, TO_ARRAY, FROM_HOST, CUarray target, size target_offset,                  \
             const void *source, size bytes)                                                                      \
  WITH_ARRAY(cuMemcpyAtoH##suffix, way, TO_HOST, FROM_ARRAY, void *target, CUarray source, size source_offset,    \
             size bytes)                                                                                          \
  WITH_ARRAY(cuMemcpyDtoA##suffix, way, TO_ARRAY, FROM_DEVICE, CUarray target, size target_offset,                \
             device_t source, size bytes)                                                                         \
  WITH_ARRAY(cuMemcpyAtoD##suffix, way, TO_DEVICE, FROM_ARRAY, device_t target, CUarray source,                   \
             size source_offset, size bytes)                                                                      \
  WITH_ARRAY(cuMemcpyAtoA##suffix, way, TO_ARRAY, FROM_ARRAY, CUarray target, size target_offset, CUarray source, \
             size source_offset, size bytes)

#define ARRAYS_ASYNC(suffix, way, size)                                                               \
  WITH_ARRAY(cuMemcpyHtoAAsync##suffix, way, TO_ARRAY, FROM_HOST, CUarray target, size target_offset, \
             const void *source, size bytes, CUstream stream)                                         \
  WITH_ARRAY(cuMemcpyAtoHAsync##suffix, way, TO_HOST, FROM_ARRAY, void *target, CUarray source,       \
             size source_offset, size bytes, CUstream stream)

ARRAYS(, LEGACY, CUdeviceptr_v1, unsigned int)
ARRAYS(_v2, LEGACY, CUdeviceptr, size_t)
ARRAYS(_v2_ptds, OWN, CUdeviceptr, size_t)
ARRAYS_ASYNC(, IN(stream), unsigned int)
ARRAYS_ASYNC(_v2, IN(stream), size_t)
ARRAYS_ASYNC(_v2_ptsz, IN_OWN(stream), size_t)

/* Rows, and layers of rows. */

#define PLANE(from)                                                                                       \
  ((CUDA_MEMCPY3D){                                                                                       \
      .srcXInBytes = (from)->srcXInBytes, .srcY = (from)->srcY, .srcMemoryType = (from)->srcMemoryType,   \
      .srcHost = (from)->srcHost, .srcDevice = (from)->srcDevice, .srcArray = (from)->srcArray,           \
      .srcPitch = (from)->srcPitch, .dstXInBytes = (from)->dstXInBytes, .dstY = (from)->dstY,             \
      .dstMemoryType = (from)->dstMemoryType, .dstHost = (from)->dstHost, .dstDevice = (from)->dstDevice, \
      .dstArray = (from)->dstArray, .dstPitch = (from)->dstPitch, .WidthInBytes = (from)->WidthInBytes,   \
      .Height = (from)->Height, .Depth = 1,                                                               \
  })

#define SOLID(from, ...)                                                                                        \
  ((CUDA_MEMCPY3D){                                                                                             \
      .srcXInBytes = (from)->srcXInBytes, .srcY = (from)->srcY, .srcZ = (from)->srcZ, .srcLOD = (from)->srcLOD, \
      .srcMemoryType = (from)->srcMemoryType, .srcHost = (from)->srcHost, .srcDevice = (from)->srcDevice,       \
      .srcArray = (from)->srcArray, .srcPitch = (from)->srcPitch, .srcHeight = (from)->srcHeight,               \
      .dstXInBytes = (from)->dstXInBytes, .dstY = (from)->dstY, .dstZ = (from)->dstZ, .dstLOD = (from)->dstLOD, \
      .dstMemoryType = (from)->dstMemoryType, .dstHost = (from)->dstHost, .dstDevice = (from)->dstDevice,       \
      .dstArray = (from)->dstArray, .dstPitch = (from)->dstPitch, .dstHeight = (from)->dstHeight,               \
      .WidthInBytes = (from)->WidthInBytes, .Height = (from)->Height, .Depth = (from)->Depth, __VA_ARGS__       \
  })

#define SOLID_OLD(from) SOLID(from, .reserved0 = (from)->reserved0, .reserved1 = (from)->reserved1)

#define SHAPED(symbol, way, type, as)           \
  EXPORTED CUresult symbol(const type *copy) {  \
    CHECK(ready());                             \
    if (!copy) return CUDA_ERROR_INVALID_VALUE; \
    CUDA_MEMCPY3D params = as(copy);            \
    return copy_call(way, &params);             \
  }

#define SHAPED_ASYNC(symbol, way, type, as)                     \
  EXPORTED CUresult symbol(const type *copy, CUstream stream) { \
    CHECK(ready());                                             \
    if (!copy) return CUDA_ERROR_INVALID_VALUE;                 \
    CUDA_MEMCPY3D params = as(copy);                            \
    return copy_call(way, &params);                             \
  }

SHAPED(cuMemcpy2D, LEGACY, CUDA_MEMCPY2D_v1, PLANE)
SHAPED(cuMemcpy2D_v2, LEGACY, CUDA_MEMCPY2D, PLANE)
SHAPED(cuMemcpy2D_v2_ptds, OWN, CUDA_MEMCPY2D, PLANE)
SHAPED(cuMemcpy2DUnaligned, LEGACY, CUDA_MEMCPY2D_v1, PLANE)
SHAPED(cuMemcpy2DUnaligned_v2, LEGACY, CUDA_MEMCPY2D, PLANE)
SHAPED(cuMemcpy2DUnaligned_v2_ptds, OWN, CUDA_MEMCPY2D, PLANE)
SHAPED_ASYNC(cuMemcpy2DAsync, IN(stream), CUDA_MEMCPY2D_v1, PLANE)
SHAPED_ASYNC(cuMemcpy2DAsync_v2, IN(stream), CUDA_MEMCPY2D, PLANE)
SHAPED_ASYNC(cuMemcpy2DAsync_v2_ptsz, IN_OWN(stream), CUDA_MEMCPY2D, PLANE)
SHAPED(cuMemcpy3D, LEGACY, CUDA_MEMCPY3D_v1, SOLID_OLD)
SHAPED(cuMemcpy3D_v2, LEGACY, CUDA_MEMCPY3D, *)
SHAPED(cuMemcpy3D_v2_ptds, OWN, CUDA_MEMCPY3D, *)
SHAPED_ASYNC(cuMemcpy3DAsync, IN(stream), CUDA_MEMCPY3D_v1, SOLID_OLD)
SHAPED_ASYNC(cuMemcpy3DAsync_v2, IN(stream), CUDA_MEMCPY3D, *)
SHAPED_ASYNC(cuMemcpy3DAsync_v2_ptsz, IN_OWN(stream), CUDA_MEMCPY3D, *)

/* Between contexts. Addresses say whose memory they are, so that contexts are only checked, and those of arrays are not
 * looked at; devices need no access to each other's memory. What is synchronous comes after all work of both
 * contexts. */

static CUresult check_context(CUcontext context) {
  unsigned long long id;
  return context ? cuCtxGetId(context, &id) : CUDA_ERROR_INVALID_CONTEXT;
}

/* Without contexts of arrays. */
static CUresult check_peer(const CUcontext *target, const CUcontext *source, bool synchronous) {
  CHECK(ready());
  if (target) CHECK(check_context(*target));
  if (source) CHECK(check_context(*source));
  if (synchronous && target) work_wait(*target);
  if (synchronous && source) work_wait(*source);
  return CUDA_SUCCESS;
}

static CUresult peer(struct way way, CUdeviceptr target, CUcontext target_context, CUdeviceptr source,
                     CUcontext source_context, size_t bytes) {
  CHECK(check_peer(&target_context, &source_context, way.synchronous));
  return linear(way, target, DEVICE, source, DEVICE, bytes);
}

EXPORTED CUresult cuMemcpyPeer(CUdeviceptr target, CUcontext target_context, CUdeviceptr source,
                               CUcontext source_context, size_t bytes) {
  return peer(LEGACY, target, target_context, source, source_context, bytes);
}

EXPORTED CUresult cuMemcpyPeer_ptds(CUdeviceptr target, CUcontext target_context, CUdeviceptr source,
                                    CUcontext source_context, size_t bytes) {
  return peer(OWN, target, target_context, source, source_context, bytes);
}

EXPORTED CUresult cuMemcpyPeerAsync(CUdeviceptr target, CUcontext target_context, CUdeviceptr source,
                                    CUcontext source_context, size_t bytes, CUstream stream) {
  return peer(IN(stream), target, target_context, source, source_context, bytes);
}

EXPORTED CUresult cuMemcpyPeerAsync_ptsz(CUdeviceptr target, CUcontext target_context, CUdeviceptr source,
                                         CUcontext source_context, size_t bytes, CUstream stream) {
  return peer(IN_OWN(stream), target, target_context, source, source_context, bytes);
}

static CUresult peer_3d(struct way way, const CUDA_MEMCPY3D_PEER *copy) {
  CHECK(ready());
  if (!copy) return CUDA_ERROR_INVALID_VALUE;
  bool to_array = copy->dstMemoryType == CU_MEMORYTYPE_ARRAY, from_array = copy->srcMemoryType == CU_MEMORYTYPE_ARRAY;
  CHECK(check_peer(to_array ? NULL : &copy->dstContext, from_array ? NULL : &copy->srcContext, way.synchronous));
  CUDA_MEMCPY3D params = SOLID(copy);
  return copy_call(way, &params);
}

EXPORTED CUresult cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER *copy) { return peer_3d(LEGACY, copy); }
EXPORTED CUresult cuMemcpy3DPeer_ptds(const CUDA_MEMCPY3D_PEER *copy) { return peer_3d(OWN, copy); }

EXPORTED CUresult cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER *copy, CUstream stream) {
  return peer_3d(IN(stream), copy);
}

EXPORTED CUresult cuMemcpy3DPeerAsync_ptsz(const CUDA_MEMCPY3D_PEER *copy, CUstream stream) {
  return peer_3d(IN_OWN(stream), copy);
}

/* Batches. The copies of one do not depend on each other; they are done in their order all the same. */

static CUresult check_order(CUmemcpySrcAccessOrder order, unsigned flags) {
  bool good = order >= CU_MEMCPY_SRC_ACCESS_ORDER_STREAM && order <= CU_MEMCPY_SRC_ACCESS_ORDER_ANY &&
              !(flags & ~(unsigned)CU_MEMCPY_FLAG_PREFER_OVERLAP_WITH_COMPUTE);
  return good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* The default stream of a context is not meant for them. */
static CUresult check_stream(struct way way) {
  bool legacy = way.stream == CU_STREAM_LEGACY || (!way.stream && !way.own);
  return legacy ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

/* With the attributes of each copy; those of one entry are for all from its index on. */
static CUresult add_orders(const CUmemcpyAttributes *attributes, const size_t *from, size_t attribute_count,
                           struct copy_order *orders, size_t count) {
  if (!attributes || !from || !attribute_count || attribute_count > count || from[0]) return CUDA_ERROR_INVALID_VALUE;
  for (size_t n = 0; n < attribute_count; n++) {
    size_t end = n + 1 < attribute_count ? from[n + 1] : count;
    if (end <= from[n] || end > count) return CUDA_ERROR_INVALID_VALUE;
    CHECK(check_order(attributes[n].srcAccessOrder, attributes[n].flags));
    for (size_t each = from[n]; each < end; each++) orders[each].source = attributes[n].srcAccessOrder;
  }
  return CUDA_SUCCESS;
}

static CUresult batch(struct way way, const CUdeviceptr *targets, const CUdeviceptr *sources, const size_t *sizes,
                      size_t count, const CUmemcpyAttributes *attributes, const size_t *from, size_t attribute_count,
                      size_t *failed) {
  CHECK(ready());
  CHECK(check_stream(way));
  if (!targets || !sources || !sizes || !count) return CUDA_ERROR_INVALID_VALUE;
  struct copy_order *orders = calloc(count, sizeof *orders);
  if (!orders) return CUDA_ERROR_OUT_OF_MEMORY;
  for (size_t n = 0; n < count; n++)
    orders[n].params = (CUDA_MEMCPY3D){.srcMemoryType = EITHER, .srcDevice = sources[n], .dstMemoryType = EITHER,
                                       .dstDevice = targets[n], .WidthInBytes = sizes[n], .Height = 1, .Depth = 1};
  CUresult result = add_orders(attributes, from, attribute_count, orders, count);
  if (result == CUDA_SUCCESS) result = copy_batch(way, orders, count, failed);
  free(orders);
  return result;
}

/* Bytes of an element of an operand's array; those of no array have the other operand's, or are bytes. */
static CUresult element_of(const CUmemcpy3DOperand *operand, size_t *element) {
  struct array_rows rows;
  if (operand->type == CU_MEMCPY_OPERAND_TYPE_POINTER) return CUDA_SUCCESS;
  if (operand->type != CU_MEMCPY_OPERAND_TYPE_ARRAY || !array_rows(operand->op.array.array, &rows))
    return CUDA_ERROR_INVALID_VALUE;
  if (*element && *element != rows.element) return CUDA_ERROR_INVALID_VALUE;
  *element = rows.element;
  return CUDA_SUCCESS;
}

/* One side of a copy of a batch. */
#define OPERAND(from, element, params, side)                                                \
  do {                                                                                      \
    bool is_array = (from)->type == CU_MEMCPY_OPERAND_TYPE_ARRAY;                           \
    size_t count = is_array ? (from)->op.array.offset.x : (from)->op.ptr.rowLength, length; \
    if (__builtin_mul_overflow(count, element, &length)) return CUDA_ERROR_INVALID_VALUE;   \
    (params)->side##MemoryType = is_array ? CU_MEMORYTYPE_ARRAY : EITHER;                   \
    if (is_array) {                                                                         \
      (params)->side##Array = (from)->op.array.array;                                       \
      (params)->side##XInBytes = length;                                                    \
      (params)->side##Y = (from)->op.array.offset.y;                                        \
      (params)->side##Z = (from)->op.array.offset.z;                                        \
    } else {                                                                                \
      (params)->side##Device = (from)->op.ptr.ptr;                                          \
      (params)->side##Pitch = length;                                                       \
      (params)->side##Height = (from)->op.ptr.layerHeight;                                  \
    }                                                                                       \
  } while (0)

static CUresult order_3d(const CUDA_MEMCPY3D_BATCH_OP *copy, struct copy_order *order) {
  CUDA_MEMCPY3D params = {.Height = copy->extent.height, .Depth = copy->extent.depth};
  size_t element = 0;
  CHECK(check_order(copy->srcAccessOrder, copy->flags));
  CHECK(element_of(&copy->src, &element));
  CHECK(element_of(&copy->dst, &element));
  if (!element) element = 1;
  if (!copy->extent.width || !params.Height || !params.Depth ||
      __builtin_mul_overflow(copy->extent.width, element, &params.WidthInBytes))
    return CUDA_ERROR_INVALID_VALUE;
  OPERAND(&copy->src, element, &params, src);
  OPERAND(&copy->dst, element, &params, dst);
  *order = (struct copy_order){params, copy->srcAccessOrder};
  return CUDA_SUCCESS;
}

static CUresult batch_3d(struct way way, size_t count, const CUDA_MEMCPY3D_BATCH_OP *copies, unsigned long long flags,
                         size_t *failed) {
  CHECK(ready());
  CHECK(check_stream(way));
  if (!count || !copies || flags) return CUDA_ERROR_INVALID_VALUE;
  struct copy_order *orders = calloc(count, sizeof *orders);
  CUresult result = orders ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
  for (size_t n = 0; n < count && result == CUDA_SUCCESS; n++) {
    result = order_3d(&copies[n], &orders[n]);
    if (result != CUDA_SUCCESS) *failed = n;
  }
  if (result == CUDA_SUCCESS) result = copy_batch(way, orders, count, failed);
  free(orders);
  return result;
}

/* The first forms say which copy was wrong, or SIZE_MAX when that is not what was. */

#define BATCHES(suffix, way)                                                                                   \
  EXPORTED CUresult cuMemcpyBatchAsync##suffix(CUdeviceptr *targets, CUdeviceptr *sources, size_t *sizes,      \
                                               size_t count, CUmemcpyAttributes *attributes, size_t *from,     \
                                               size_t attribute_count, size_t *failed, CUstream stream) {      \
    size_t unused, *at = failed ? failed : &unused;                                                            \
    *at = SIZE_MAX;                                                                                            \
    return batch(way, targets, sources, sizes, count, attributes, from, attribute_count, at);                  \
  }                                                                                                            \
  EXPORTED CUresult cuMemcpyBatchAsync_v2##suffix(CUdeviceptr *targets, CUdeviceptr *sources, size_t *sizes,   \
                                                  size_t count, CUmemcpyAttributes *attributes, size_t *from,  \
                                                  size_t attribute_count, CUstream stream) {                   \
    size_t unused;                                                                                             \
    return batch(way, targets, sources, sizes, count, attributes, from, attribute_count, &unused);             \
  }                                                                                                            \
  EXPORTED CUresult cuMemcpy3DBatchAsync##suffix(size_t count, CUDA_MEMCPY3D_BATCH_OP *copies, size_t *failed, \
                                                 unsigned long long flags, CUstream stream) {                  \
    size_t unused, *at = failed ? failed : &unused;                                                            \
    *at = SIZE_MAX;                                                                                            \
    return batch_3d(way, count, copies, flags, at);                                                            \
  }                                                                                                            \
  EXPORTED CUresult cuMemcpy3DBatchAsync_v2##suffix(size_t count, CUDA_MEMCPY3D_BATCH_OP *copies,              \
                                                    unsigned long long flags, CUstream stream) {               \
    size_t unused;                                                                                             \
    return batch_3d(way, count, copies, flags, &unused);                                                       \
  }

BATCHES(, IN(stream))
BATCHES(_ptsz, IN_OWN(stream))
