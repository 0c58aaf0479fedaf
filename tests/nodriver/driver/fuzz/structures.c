/* Structures that calls take: each in a room of the thread. */
#include <string.h>

#include "fuzz.h"

/* Addresses of 32 bits, as the first forms have them, are those of nothing: without a word of what they are, pageable
 * memory would be meant. */
static CUmemorytype side(struct fuzzer *f, size_t bytes) {
  CUmemorytype found = (CUmemorytype)ONE_OF(f, 1, 2, 2, 4, 4, 3, 0);
  return found == CU_MEMORYTYPE_UNIFIED && bytes < 8 ? CU_MEMORYTYPE_DEVICE : found;
}

/* Extents stay small where pageable memory takes part, of which there is only so much. */
#define COPY_2D(name, type)                                                                                           \
  void *name(struct fuzzer *f) {                                                                                      \
    type *copy = room(f);                                                                                             \
    if (!copy) return NULL;                                                                                           \
    bool large = one_in(f, 20);                                                                                       \
    copy->srcMemoryType = large ? CU_MEMORYTYPE_DEVICE : side(f, sizeof copy->srcDevice);                \
    copy->dstMemoryType = large ? CU_MEMORYTYPE_DEVICE : side(f, sizeof copy->srcDevice);                \
    copy->srcArray = (CUarray)(uintptr_t)some_handle(f, P_CUarray);                                                   \
    copy->dstArray = (CUarray)(uintptr_t)some_handle(f, P_CUarray);                                                   \
    copy->srcHost = some_host(f);                                                                                     \
    copy->dstHost = some_host(f);                                                                                     \
    copy->srcDevice = (copy->srcMemoryType == CU_MEMORYTYPE_UNIFIED ? living_address : some_address)(f);             \
    copy->dstDevice = (copy->dstMemoryType == CU_MEMORYTYPE_UNIFIED ? living_address : some_address)(f);             \
    copy->srcPitch = copy->dstPitch = (unsigned)ONE_OF(f, 0, 512, 1000, 4096);                                        \
    copy->srcXInBytes = below(f, 2) * below(f, 90);                                                                   \
    copy->dstXInBytes = below(f, 2) * below(f, 90);                                                                   \
    copy->srcY = below(f, 2) * below(f, 4);                                                                           \
    copy->dstY = below(f, 2) * below(f, 4);                                                                           \
    copy->WidthInBytes = large ? (unsigned)ONE_OF(f, UINT32_MAX, 1u << 31, 4096) : below(f, 500);                     \
    copy->Height = large ? (unsigned)ONE_OF(f, UINT32_MAX, 1, 100000) : below(f, 5);                                  \
    return copy;                                                                                                      \
  }

#define COPY_3D(name, type)                                                                               \
  static type *fill_##name(struct fuzzer *f, bool large) {                                                \
    type *copy = room(f);                                                                                 \
    if (!copy) return NULL;                                                                               \
    copy->srcArray = (CUarray)(uintptr_t)some_handle(f, P_CUarray);                                                   \
    copy->dstArray = (CUarray)(uintptr_t)some_handle(f, P_CUarray);                                                   \
    copy->srcHost = some_host(f);                                                                         \
    copy->dstHost = some_host(f);                                                                         \
    copy->srcPitch = copy->dstPitch = (unsigned)ONE_OF(f, 0, 512, 1000, 4096);                            \
    copy->srcHeight = copy->dstHeight = below(f, 8);                                                      \
    copy->srcXInBytes = below(f, 2) * below(f, 90);                                                       \
    copy->dstY = below(f, 2) * below(f, 4);                                                               \
    copy->srcZ = below(f, 2) * below(f, 3);                                                               \
    copy->srcLOD = one_in(f, 40);                                                                         \
    copy->WidthInBytes = large ? (unsigned)ONE_OF(f, UINT32_MAX, 1u << 31, 4096) : below(f, 500);         \
    copy->Height = large ? (unsigned)ONE_OF(f, UINT32_MAX, 1, 100000) : below(f, 5);                      \
    copy->Depth = large ? (unsigned)ONE_OF(f, UINT32_MAX, 1, 1) : below(f, 4);                            \
    copy->srcMemoryType = large ? CU_MEMORYTYPE_DEVICE : side(f, sizeof copy->srcDevice);    \
    copy->dstMemoryType = large ? CU_MEMORYTYPE_DEVICE : side(f, sizeof copy->srcDevice);    \
    copy->srcDevice = (copy->srcMemoryType == CU_MEMORYTYPE_UNIFIED ? living_address : some_address)(f);  \
    copy->dstDevice = (copy->dstMemoryType == CU_MEMORYTYPE_UNIFIED ? living_address : some_address)(f);  \
    return copy;                                                                                          \
  }                                                                                                       \
  void *name(struct fuzzer *f) { return fill_##name(f, one_in(f, 20)); }

COPY_2D(copy_2d_v1, CUDA_MEMCPY2D_v1)
COPY_2D(copy_2d, CUDA_MEMCPY2D)
COPY_3D(copy_3d_v1, CUDA_MEMCPY3D_v1)
COPY_3D(copy_3d, CUDA_MEMCPY3D)
COPY_3D(copy_3d_peer_only, CUDA_MEMCPY3D_PEER)

void *copy_3d_peer(struct fuzzer *f) {
  CUDA_MEMCPY3D_PEER *copy = copy_3d_peer_only(f);
  if (!copy) return NULL;
  copy->srcContext = (CUcontext)(uintptr_t)some_handle(f, P_CUcontext);
  copy->dstContext = (CUcontext)(uintptr_t)some_handle(f, P_CUcontext);
  return copy;
}

static CUDA_MEMSET_NODE_PARAMS some_fill(struct fuzzer *f) {
  return (CUDA_MEMSET_NODE_PARAMS){.dst = some_address(f), .pitch = small_size(f), .value = below(f, 300),
                                   .elementSize = (unsigned)ONE_OF(f, 1, 2, 4, 4, 3, 0), .width = some_size(f),
                                   .height = ONE_OF(f, 1, 1, 2, 10, 0)};
}

void *fill_params(struct fuzzer *f) {
  CUDA_MEMSET_NODE_PARAMS *fill = room(f);
  if (fill) *fill = some_fill(f);
  return fill;
}

static CUDA_KERNEL_NODE_PARAMS some_launch(struct fuzzer *f) {
  return (CUDA_KERNEL_NODE_PARAMS){
      .func = (CUfunction)(uintptr_t)some_handle(f, one_in(f, 8) ? P_CUkernel : P_CUfunction),
      .gridDimX = extent(f, 8, 1u << 31), .gridDimY = extent(f, 2, 65536), .gridDimZ = 1,
      .blockDimX = extent(f, 64, 1025), .blockDimY = 1, .blockDimZ = 1,
      .sharedMemBytes = one_in(f, 8) ? (unsigned)ONE_OF(f, 16, 49153, UINT32_MAX) : 0, .kernelParams = some_parameters(f),
      .kern = one_in(f, 20) ? (CUkernel)(uintptr_t)some_handle(f, P_CUkernel) : NULL,
      .ctx = one_in(f, 4) ? (CUcontext)(uintptr_t)some_handle(f, P_CUcontext) : NULL};
}

void *kernel_params(struct fuzzer *f) { /* the first form is the beginning of the second */
  CUDA_KERNEL_NODE_PARAMS *params = room(f);
  if (params) *params = some_launch(f);
  return params;
}

void *host_params(struct fuzzer *f) {
  CUDA_HOST_NODE_PARAMS *params = room(f);
  if (params) *params = (CUDA_HOST_NODE_PARAMS){.fn = some_function(f), .userData = params};
  return params;
}

/* For whatever a node is to do. */
void *node_params(struct fuzzer *f) {
  CUgraphNodeParams *params = room(f);
  if (!params) return NULL;
  params->type = one_in(f, 12) ? (CUgraphNodeType)below(f, 20)
                               : (CUgraphNodeType)ONE_OF(f, CU_GRAPH_NODE_TYPE_KERNEL, CU_GRAPH_NODE_TYPE_MEMCPY,
                                                         CU_GRAPH_NODE_TYPE_MEMSET, CU_GRAPH_NODE_TYPE_HOST,
                                                         CU_GRAPH_NODE_TYPE_EMPTY, CU_GRAPH_NODE_TYPE_GRAPH,
                                                         CU_GRAPH_NODE_TYPE_WAIT_EVENT, CU_GRAPH_NODE_TYPE_EVENT_RECORD);
  switch ((int)params->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: {
      CUDA_KERNEL_NODE_PARAMS from = some_launch(f);
      params->kernel = (CUDA_KERNEL_NODE_PARAMS_v3){
          .func = from.func, .gridDimX = from.gridDimX, .gridDimY = from.gridDimY, .gridDimZ = from.gridDimZ,
          .blockDimX = from.blockDimX, .blockDimY = from.blockDimY, .blockDimZ = from.blockDimZ,
          .sharedMemBytes = from.sharedMemBytes, .kernelParams = from.kernelParams, .kern = from.kern, .ctx = from.ctx};
      break;
    }
    case CU_GRAPH_NODE_TYPE_MEMCPY: {
      const CUDA_MEMCPY3D *copy = copy_3d(f);
      if (copy) params->memcpy.copyParams = *copy;
      params->memcpy.copyCtx = (CUcontext)(uintptr_t)some_handle(f, P_CUcontext);
      break;
    }
    case CU_GRAPH_NODE_TYPE_MEMSET: {
      CUDA_MEMSET_NODE_PARAMS from = some_fill(f);
      params->memset = (CUDA_MEMSET_NODE_PARAMS_v2){
          .dst = from.dst, .pitch = from.pitch, .value = from.value, .elementSize = from.elementSize, .width = from.width,
          .height = from.height, .ctx = (CUcontext)(uintptr_t)some_handle(f, P_CUcontext)};
      break;
    }
    case CU_GRAPH_NODE_TYPE_HOST: params->host.fn = some_function(f); break;
    case CU_GRAPH_NODE_TYPE_GRAPH: params->graph.graph = (CUgraph)(uintptr_t)some_handle(f, P_CUgraph); break;
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
      params->eventWait.event = (CUevent)(uintptr_t)some_handle(f, P_CUevent); /* both begin with it */
      break;
    default: break;
  }
  return params;
}

void *edges(struct fuzzer *f) {
  CUgraphEdgeData *all = room(f);
  if (one_in(f, 3)) return NULL;
  for (int n = 0; all && n < 4; n++)
    if (one_in(f, 6)) all[n].type = (unsigned char)below(f, 3);
  return all;
}

static CUmemLocation location_in(struct fuzzer *f) {
  return (CUmemLocation){.type = one_in(f, 6) ? (CUmemLocationType)below(f, 6) : CU_MEM_LOCATION_TYPE_DEVICE,
                         .id = some_device(f)};
}

void *location(struct fuzzer *f) {
  CUmemLocation *where = room(f);
  if (where) *where = location_in(f);
  return where;
}

/* Where a structure itself is passed: never NULL. */
void *location_itself(struct fuzzer *f) {
  f->where = location_in(f);
  return &f->where;
}

void *allocation_properties(struct fuzzer *f) {
  CUmemAllocationProp *properties = room(f);
  if (!properties) return NULL;
  properties->type = one_in(f, 8) ? (CUmemAllocationType)below(f, 4) : CU_MEM_ALLOCATION_TYPE_PINNED;
  properties->requestedHandleTypes = (CUmemAllocationHandleType)ONE_OF(f, 0, 0, 1, 1, 8, 3);
  properties->location = location_in(f);
  properties->allocFlags.compressionType = one_in(f, 10);
  return properties;
}

void *pool_properties(struct fuzzer *f) {
  CUmemPoolProps *properties = room(f);
  if (!properties) return NULL;
  properties->allocType = one_in(f, 8) ? (CUmemAllocationType)below(f, 4) : CU_MEM_ALLOCATION_TYPE_PINNED;
  properties->handleTypes = (CUmemAllocationHandleType)ONE_OF(f, 0, 0, 1, 8);
  properties->location = location_in(f);
  properties->maxSize = ONE_OF(f, 0, 0, 0, 1 << 20, UINT64_MAX);
  return properties;
}

void *access_rights(struct fuzzer *f) {
  CUmemAccessDesc *all = room(f);
  for (int n = 0; all && n < 5; n++) {
    all[n].location = location_in(f);
    all[n].flags = (CUmemAccess_flags)ONE_OF(f, 3, 3, 1, 0, 2);
  }
  return all;
}

void *attribute_value(struct fuzzer *f) {
  uint8_t *value = room(f);
  if (value) memset(value, one_in(f, 4) ? 1 : 0, 64);
  return value;
}

/* Waits are for what is there already: an end of others no call could promise. */
void *memory_operations(struct fuzzer *f) {
  CUstreamBatchMemOpParams *all = room(f);
  for (int n = 0; all && n < 5; n++) {
    all[n].operation = (CUstreamBatchMemOpType)ONE_OF(f, 1, 2, 3, 4, 5, 6, 0);
    if (all[n].operation == CU_STREAM_MEM_OP_BARRIER || all[n].operation == CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES) continue;
    all[n].waitValue.address = zero_address(f);
    all[n].waitValue.flags = one_in(f, 12) ? 77 : 0;
  }
  return all;
}

void *batch_params(struct fuzzer *f) {
  CUDA_BATCH_MEM_OP_NODE_PARAMS *params = room(f);
  if (!params) return NULL;
  *params = (CUDA_BATCH_MEM_OP_NODE_PARAMS){.ctx = (CUcontext)(uintptr_t)some_handle(f, P_CUcontext), .count = below(f, 5),
                                            .paramArray = memory_operations(f), .flags = one_in(f, 12)};
  return params;
}

#define ARRAY(name, type)                                                                        \
  void *name(struct fuzzer *f) {                                                                 \
    type *array = room(f);                                                                       \
    if (!array) return NULL;                                                                     \
    array->Width = (unsigned)ONE_OF(f, 1, 16, 100, 1000, 0, UINT32_MAX);                         \
    array->Height = (unsigned)ONE_OF(f, 0, 0, 1, 8, 64, UINT32_MAX);                             \
    array->Format = (CUarray_format)ONE_OF(f, CU_AD_FORMAT_UNSIGNED_INT8, CU_AD_FORMAT_FLOAT, CU_AD_FORMAT_HALF, 99); \
    array->NumChannels = (unsigned)ONE_OF(f, 1, 2, 4, 4, 3, 0);                                  \
    return array;                                                                                \
  }

#define ARRAY_3D(name, type, flat)                                   \
  ARRAY(flat, type)                                                  \
  void *name(struct fuzzer *f) {                                     \
    type *array = flat(f);                                           \
    if (!array) return NULL;                                         \
    array->Depth = (unsigned)ONE_OF(f, 0, 0, 1, 4, UINT32_MAX);      \
    array->Flags = one_in(f, 3) ? 1u << below(f, 8) : 0;             \
    return array;                                                    \
  }

ARRAY(array_v1, CUDA_ARRAY_DESCRIPTOR_v1)
ARRAY(array, CUDA_ARRAY_DESCRIPTOR)
ARRAY_3D(array_3d_v1, CUDA_ARRAY3D_DESCRIPTOR_v1, flat_array_v1)
ARRAY_3D(array_3d, CUDA_ARRAY3D_DESCRIPTOR, flat_array)

void *copy_attributes(struct fuzzer *f) {
  CUmemcpyAttributes *all = room(f);
  for (int n = 0; all && n < 5; n++)
    all[n].srcAccessOrder = one_in(f, 12) ? (CUmemcpySrcAccessOrder)below(f, 5) : CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
  return all;
}

uint64_t *indices(struct fuzzer *f) {
  uint64_t *all = room(f);
  for (unsigned n = 0; all && n < 5; n++) all[n] = one_in(f, 20) ? below(f, 9) : n;
  return all;
}

uint64_t *copy_sizes(struct fuzzer *f) {
  uint64_t *all = room(f);
  for (int n = 0; all && n < 5; n++) all[n] = one_in(f, 20) ? 0 : 1 + below(f, 60);
  return all;
}

static CUmemcpy3DOperand operand(struct fuzzer *f) {
  if (one_in(f, 12))
    return (CUmemcpy3DOperand){.type = CU_MEMCPY_OPERAND_TYPE_ARRAY,
                               .op.array.array = (CUarray)(uintptr_t)some_handle(f, P_CUarray)};
  return (CUmemcpy3DOperand){.type = one_in(f, 20) ? (CUmemcpy3DOperandType)0 : CU_MEMCPY_OPERAND_TYPE_POINTER,
                             .op.ptr = {.ptr = living_address(f), .rowLength = ONE_OF(f, 0, 0, 64),
                                        .layerHeight = ONE_OF(f, 0, 0, 4)}};
}

void *copies_3d(struct fuzzer *f) {
  CUDA_MEMCPY3D_BATCH_OP *all = room(f);
  for (int n = 0; all && n < 5; n++)
    all[n] = (CUDA_MEMCPY3D_BATCH_OP){.src = operand(f), .dst = operand(f),
                                      .extent = {1 + below(f, 30), 1 + below(f, 3), one_in(f, 20) ? 0 : 1 + below(f, 2)},
                                      .srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM};
  return all;
}

void *allocation_params(struct fuzzer *f) {
  CUDA_MEM_ALLOC_NODE_PARAMS *params = room(f);
  const CUmemPoolProps *properties = pool_properties(f);
  if (!params || !properties) return NULL;
  *params = (CUDA_MEM_ALLOC_NODE_PARAMS){.poolProps = *properties, .bytesize = some_size(f)};
  if (one_in(f, 4)) params->poolProps.handleTypes = CU_MEM_HANDLE_TYPE_NONE;
  return params;
}

CUdeviceptr *addresses(struct fuzzer *f) {
  CUdeviceptr *all = room(f);
  for (int n = 0; all && n < 8; n++) all[n] = living_address(f);
  return all;
}
