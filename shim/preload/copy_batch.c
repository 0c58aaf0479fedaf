/* Batches of copies: a record for each, all of them before the call. */
#include "ask.h"
#include "copying.h"
#include "doors.h"
#include "elements.h"
#include "hooks.h"
#include "session.h"

enum { MOST = 1 << 20 };

/* Which attributes a copy has: those of the last entry whose index is not behind it. */
static bool set_orders(struct copy *list, size_t count, const CUmemcpyAttributes_v1 *attributes, const size_t *from,
                       size_t attribute_count) {
  if (!attributes || !from || !attribute_count || attribute_count > count || from[0]) return false;
  for (size_t n = 0; n < attribute_count; n++) {
    size_t end = n + 1 < attribute_count ? from[n + 1] : count;
    CUmemcpySrcAccessOrder order = attributes[n].srcAccessOrder;
    if (end <= from[n] || end > count || order < CU_MEMCPY_SRC_ACCESS_ORDER_STREAM ||
        order > CU_MEMCPY_SRC_ACCESS_ORDER_ANY)
      return false;
    for (size_t each = from[n]; each < end; each++) list[each].order = order;
  }
  return true;
}

static bool describe(struct copies *copies, const CUdeviceptr_v2 *to, const CUdeviceptr_v2 *from, const size_t *sizes,
                     size_t count, const CUmemcpyAttributes_v1 *attributes, const size_t *attribute_from,
                     size_t attribute_count) {
  if (!to || !from || !sizes || !count || count > MOST) return false;
  struct copy *list = copies_list(copies, count);
  if (!list) return false;
  bool good = set_orders(list, count, attributes, attribute_from, attribute_count);
  for (size_t n = 0; good && n < count; n++) {
    CUDA_MEMCPY3D_PEER params = {.srcMemoryType = CU_MEMORYTYPE_UNIFIED, .srcDevice = from[n],
                                 .dstMemoryType = CU_MEMORYTYPE_UNIFIED, .dstDevice = to[n],
                                 .WidthInBytes = sizes[n], .Height = 1, .Depth = 1};
    good = copy_describe(&params, &list[n].body, &list[n].sides);
  }
  if (!good) copies_forget(copies);
  return good;
}

static size_t element_of(CUarray array) {
  CUDA_ARRAY3D_DESCRIPTOR_v2 found;
  if (!real.cuArray3DGetDescriptor_v2) return 0;
  struct asking asking = ask_begin();
  CUresult result = real.cuArray3DGetDescriptor_v2(&found, array);
  ask_end(asking);
  return result == CUDA_SUCCESS ? element_bytes(found.Format, found.NumChannels) : 0;
}

/* One side: elements become bytes. */
#define OPERAND(operand, element, params, side)                                                           \
  do {                                                                                                    \
    if ((operand)->type == CU_MEMCPY_OPERAND_TYPE_ARRAY) {                                                \
      (params)->side##MemoryType = CU_MEMORYTYPE_ARRAY;                                                   \
      (params)->side##Array = (operand)->op.array.array;                                                  \
      (params)->side##XInBytes = (operand)->op.array.offset.x * (element);                                \
      (params)->side##Y = (operand)->op.array.offset.y;                                                   \
      (params)->side##Z = (operand)->op.array.offset.z;                                                   \
    } else {                                                                                              \
      (params)->side##MemoryType = CU_MEMORYTYPE_UNIFIED;                                                 \
      (params)->side##Device = (operand)->op.ptr.ptr;                                                     \
      (params)->side##Pitch = (operand)->op.ptr.rowLength * (element);                                    \
      (params)->side##Height = (operand)->op.ptr.layerHeight;                                             \
    }                                                                                                     \
  } while (0)

/* Elements are those of the array on either side; without one they are bytes. */
static bool describe_one(const CUDA_MEMCPY3D_BATCH_OP_v1 *given, struct copy *copy) {
  size_t element = 1;
  const CUmemcpy3DOperand_v1 *sides[] = {&given->dst, &given->src};
  for (int n = 0; n < 2; n++) {
    if (sides[n]->type == CU_MEMCPY_OPERAND_TYPE_ARRAY)
      element = element_of(sides[n]->op.array.array);
    else if (sides[n]->type != CU_MEMCPY_OPERAND_TYPE_POINTER)
      return false;
    if (!element) return false;
  }
  CUDA_MEMCPY3D_PEER params = {.WidthInBytes = given->extent.width * element, .Height = given->extent.height,
                               .Depth = given->extent.depth};
  OPERAND(&given->src, element, &params, src);
  OPERAND(&given->dst, element, &params, dst);
  copy->order = given->srcAccessOrder;
  return copy->order >= CU_MEMCPY_SRC_ACCESS_ORDER_STREAM && copy->order <= CU_MEMCPY_SRC_ACCESS_ORDER_ANY &&
         copy_describe(&params, &copy->body, &copy->sides);
}

static bool describe_3d(struct copies *copies, const CUDA_MEMCPY3D_BATCH_OP_v1 *given, size_t count) {
  if (!given || !count || count > MOST) return false;
  struct copy *list = copies_list(copies, count);
  if (!list) return false;
  bool good = true;
  for (size_t n = 0; good && n < count; n++) good = describe_one(&given[n], &list[n]);
  if (!good) copies_forget(copies);
  return good;
}

#define HOOK(symbol, per_thread, described, parameters, names)                                     \
  CUresult hook_##symbol parameters {                                                              \
    if (!recording()) return real.symbol names;                                                    \
    struct copies copies;                                                                          \
    if (described)                                                                                 \
      copies_begin(&copies, NUMBER_##symbol, IN_STREAM(stream, per_thread));                       \
    else                                                                                           \
      copies_unknown(&copies, NUMBER_##symbol, IN_STREAM(stream, per_thread));                     \
    return copies_end(&copies, real.symbol names);                                                 \
  }

#define LINEAR describe(&copies, to, from, sizes, count, attributes, attribute_from, attribute_count)
#define LISTS                                                                                      \
  CUdeviceptr_v2 *to, CUdeviceptr_v2 *from, size_t *sizes, size_t count,                           \
      CUmemcpyAttributes_v1 *attributes, size_t *attribute_from, size_t attribute_count
#define LIST_NAMES to, from, sizes, count, attributes, attribute_from, attribute_count
#define SHAPED describe_3d(&copies, list, count)
#define SHAPES size_t count, CUDA_MEMCPY3D_BATCH_OP_v1 *list
#define FLAGS unsigned long long flags, CUstream stream

#define HOOKS(suffix, per_thread)                                                                                    \
  HOOK(cuMemcpyBatchAsync##suffix, per_thread, LINEAR, (LISTS, size_t *failed, CUstream stream),                     \
       (LIST_NAMES, failed, stream))                                                                                 \
  HOOK(cuMemcpyBatchAsync_v2##suffix, per_thread, LINEAR, (LISTS, CUstream stream), (LIST_NAMES, stream))            \
  HOOK(cuMemcpy3DBatchAsync##suffix, per_thread, SHAPED, (SHAPES, size_t *failed, FLAGS),                            \
       (count, list, failed, flags, stream))                                                                         \
  HOOK(cuMemcpy3DBatchAsync_v2##suffix, per_thread, SHAPED, (SHAPES, FLAGS), (count, list, flags, stream))

HOOKS(, false)
HOOKS(_ptsz, true)
