#include "copy.h"

#include <string.h>

/* One side as the parameters name it. */
struct named {
  CUmemorytype type;
  const void *host;
  CUdeviceptr_v2 device;
  CUarray array;
  size_t x, y, z, level, pitch, height;
  CUcontext context;
};

/* Of a side that lies in memory: pitch and height that are 0 are the least that hold the copy. */
static void put_shape(struct wire_side *side, const struct named *named, const struct wire_copy_body *body) {
  bool planes = body->depth > 1 || named->z, lines = planes || body->height > 1 || named->y;
  if (lines) side->pitch = named->pitch ? named->pitch : named->x + body->width;
  if (planes) side->height = named->height ? named->height : named->y + body->height;
}

/* From the first byte that the side names to the last one that is copied; 0 if no memory is so large. */
static uint64_t reach(const struct wire_side *side, const struct wire_copy_body *body) {
  uint64_t slice, planes, lines, all;
  if (!body->width || !body->height || !body->depth || __builtin_mul_overflow(side->pitch, side->height, &slice) ||
      __builtin_mul_overflow(side->z + body->depth - 1, slice, &planes) ||
      __builtin_mul_overflow(side->y + body->height - 1, side->pitch, &lines) ||
      __builtin_add_overflow(planes, lines, &all) || __builtin_add_overflow(all, side->x, &all) ||
      __builtin_add_overflow(all, body->width, &all))
    return 0;
  return all;
}

/* The names of memory that the driver does not know are all there is to say of it. */
static uint32_t kind_of(CUmemorytype type, enum memory_kind kind) {
  if (kind == MEMORY_DEVICE) return WIRE_SIDE_DEVICE;
  if (kind == MEMORY_MANAGED) return WIRE_SIDE_MANAGED;
  if (kind == MEMORY_PINNED || type == CU_MEMORYTYPE_HOST) return WIRE_SIDE_HOST;
  if (type == CU_MEMORYTYPE_DEVICE) return WIRE_SIDE_DEVICE;
  return kind == MEMORY_PAGEABLE ? WIRE_SIDE_HOST : 0;
}

static bool put_side(struct wire_side *side, const struct named *named, const struct wire_copy_body *body,
                     struct memory *memory) {
  *side = (struct wire_side){.x = named->x, .y = named->y, .z = named->z, .level = (uint32_t)named->level,
                             .context = (uint64_t)(uintptr_t)named->context};
  if (named->type == CU_MEMORYTYPE_ARRAY) {
    *memory = (struct memory){.kind = MEMORY_ARRAY};
    side->address = (uint64_t)(uintptr_t)named->array;
    side->kind = WIRE_SIDE_ARRAY;
    return true;
  }
  if (named->type != CU_MEMORYTYPE_HOST && named->type != CU_MEMORYTYPE_DEVICE && named->type != CU_MEMORYTYPE_UNIFIED)
    return false;
  side->address = named->type == CU_MEMORYTYPE_HOST ? (uint64_t)(uintptr_t)named->host : named->device;
  put_shape(side, named, body);
  *memory = memory_at(side->address, reach(side, body));
  side->kind = kind_of(named->type, memory->kind);
  if (memory->kind == MEMORY_PAGEABLE && side->kind == WIRE_SIDE_DEVICE) memory->kind = MEMORY_UNKNOWN;
  return side->kind != 0;
}

bool copy_describe(const CUDA_MEMCPY3D_PEER *params, struct wire_copy_body *body, struct sides *sides) {
  memset(body, 0, sizeof *body);
  body->width = params->WidthInBytes;
  body->height = params->Height;
  body->depth = params->Depth;
  struct named to = {params->dstMemoryType, params->dstHost, params->dstDevice, params->dstArray,
                     params->dstXInBytes, params->dstY, params->dstZ, params->dstLOD, params->dstPitch,
                     params->dstHeight, params->dstContext};
  struct named from = {params->srcMemoryType, params->srcHost, params->srcDevice, params->srcArray,
                       params->srcXInBytes, params->srcY, params->srcZ, params->srcLOD, params->srcPitch,
                       params->srcHeight, params->srcContext};
  if (!put_side(&body->to, &to, body, &sides->to) || !put_side(&body->from, &from, body, &sides->from)) {
    memset(body, 0, sizeof *body);
    return false;
  }
  if (body->to.kind == WIRE_SIDE_HOST || body->from.kind == WIRE_SIDE_HOST) body->flags = WIRE_PINNED;
  return true;
}

bool copy_from_peer(const CUDA_MEMCPY3D_PEER *params, struct wire_copy_body *body) {
  struct sides sides;
  return copy_describe(params, body, &sides);
}

/* The structures differ in the contexts, which stand where the other has reserved members. */
bool copy_from_3d(const CUDA_MEMCPY3D *params, struct wire_copy_body *body) {
  CUDA_MEMCPY3D_PEER peer;
  _Static_assert(sizeof peer == sizeof *params, "the same members");
  memcpy(&peer, params, sizeof peer);
  peer.srcContext = peer.dstContext = NULL;
  return copy_from_peer(&peer, body);
}

void set_from_params(const CUDA_MEMSET_NODE_PARAMS_v2 *params, struct wire_set_body *body) {
  *body = (struct wire_set_body){
      .address = params->dst, .context = (uint64_t)(uintptr_t)params->ctx, .width = params->width,
      .height = params->height, .pitch = params->pitch, .element_bytes = params->elementSize, .value = params->value,
  };
}
