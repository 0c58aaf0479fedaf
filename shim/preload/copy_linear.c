/* The functions that copy bytes in one run. */
#include "copying.h"
#include "hooks.h"
#include "session.h"

/* Hooks that all have the same body: what differs is in the parameters. */
#define HOOK(symbol, way, params, parameters, names)  \
  CUresult hook_##symbol parameters {                 \
    if (!recording()) return real.symbol names;       \
    CUDA_MEMCPY3D_PEER copy = params;                 \
    struct copies copies;                             \
    copy_begin(&copies, NUMBER_##symbol, way, &copy); \
    return copies_end(&copies, real.symbol names);    \
  }

#define RUN(...) {__VA_ARGS__, .WidthInBytes = bytes, .Height = 1, .Depth = 1}
#define TO_HOST .dstMemoryType = CU_MEMORYTYPE_HOST, .dstHost = to
#define TO_DEVICE .dstMemoryType = CU_MEMORYTYPE_DEVICE, .dstDevice = to
#define TO_EITHER .dstMemoryType = CU_MEMORYTYPE_UNIFIED, .dstDevice = to
#define TO_ARRAY .dstMemoryType = CU_MEMORYTYPE_ARRAY, .dstArray = to, .dstXInBytes = to_offset
#define FROM_HOST .srcMemoryType = CU_MEMORYTYPE_HOST, .srcHost = from
#define FROM_DEVICE .srcMemoryType = CU_MEMORYTYPE_DEVICE, .srcDevice = from
#define FROM_EITHER .srcMemoryType = CU_MEMORYTYPE_UNIFIED, .srcDevice = from
#define FROM_ARRAY .srcMemoryType = CU_MEMORYTYPE_ARRAY, .srcArray = from, .srcXInBytes = from_offset
#define LEGACY AT_ONCE(false)
#define OWN AT_ONCE(true)
#define IN IN_STREAM(stream, false)
#define IN_OWN IN_STREAM(stream, true)

#define BOTH(a, b) a, b /* one argument of a macro */

/* Between addresses: a function with its twin and its asynchronous forms. */
#define LINEAR(name, suffix, params, to_type, from_type)                                                          \
  HOOK(name##suffix, LEGACY, RUN(params), (to_type to, from_type from, size_t bytes), (to, from, bytes))          \
  HOOK(name##suffix##_ptds, OWN, RUN(params), (to_type to, from_type from, size_t bytes), (to, from, bytes))      \
  HOOK(name##Async##suffix, IN, RUN(params), (to_type to, from_type from, size_t bytes, CUstream stream),         \
       (to, from, bytes, stream))                                                                                 \
  HOOK(name##Async##suffix##_ptsz, IN_OWN, RUN(params), (to_type to, from_type from, size_t bytes, CUstream stream), \
       (to, from, bytes, stream))

/* With addresses and sizes of 32 bits. */
#define LINEAR_OLD(name, params, to_type, from_type)                                                             \
  HOOK(name, LEGACY, RUN(params), (to_type to, from_type from, unsigned int bytes), (to, from, bytes))           \
  HOOK(name##Async, IN, RUN(params), (to_type to, from_type from, unsigned int bytes, CUstream stream),          \
       (to, from, bytes, stream))

LINEAR(cuMemcpy, , BOTH(TO_EITHER, FROM_EITHER), CUdeviceptr_v2, CUdeviceptr_v2)
LINEAR(cuMemcpyHtoD, _v2, BOTH(TO_DEVICE, FROM_HOST), CUdeviceptr_v2, const void *)
LINEAR(cuMemcpyDtoH, _v2, BOTH(TO_HOST, FROM_DEVICE), void *, CUdeviceptr_v2)
LINEAR(cuMemcpyDtoD, _v2, BOTH(TO_DEVICE, FROM_DEVICE), CUdeviceptr_v2, CUdeviceptr_v2)
LINEAR_OLD(cuMemcpyHtoD, BOTH(TO_DEVICE, FROM_HOST), CUdeviceptr_v1, const void *)
LINEAR_OLD(cuMemcpyDtoH, BOTH(TO_HOST, FROM_DEVICE), void *, CUdeviceptr_v1)
LINEAR_OLD(cuMemcpyDtoD, BOTH(TO_DEVICE, FROM_DEVICE), CUdeviceptr_v1, CUdeviceptr_v1)

/* To and from the first row of an array, by offsets in bytes. */
#define ARRAYS(suffix, way, device_type, size)                                                                        \
  HOOK(cuMemcpyHtoA##suffix, way, RUN(TO_ARRAY, FROM_HOST),                                                           \
       (CUarray to, size to_offset, const void *from, size bytes), (to, to_offset, from, bytes))                      \
  HOOK(cuMemcpyAtoH##suffix, way, RUN(TO_HOST, FROM_ARRAY), (void *to, CUarray from, size from_offset, size bytes),   \
       (to, from, from_offset, bytes))                                                                                \
  HOOK(cuMemcpyDtoA##suffix, way, RUN(TO_ARRAY, FROM_DEVICE),                                                         \
       (CUarray to, size to_offset, device_type from, size bytes), (to, to_offset, from, bytes))                      \
  HOOK(cuMemcpyAtoD##suffix, way, RUN(TO_DEVICE, FROM_ARRAY),                                                         \
       (device_type to, CUarray from, size from_offset, size bytes), (to, from, from_offset, bytes))                  \
  HOOK(cuMemcpyAtoA##suffix, way, RUN(TO_ARRAY, FROM_ARRAY),                                                          \
       (CUarray to, size to_offset, CUarray from, size from_offset, size bytes),                                      \
       (to, to_offset, from, from_offset, bytes))

#define ARRAYS_ASYNC(suffix, way, size)                                                                    \
  HOOK(cuMemcpyHtoAAsync##suffix, way, RUN(TO_ARRAY, FROM_HOST),                                           \
       (CUarray to, size to_offset, const void *from, size bytes, CUstream stream),                        \
       (to, to_offset, from, bytes, stream))                                                               \
  HOOK(cuMemcpyAtoHAsync##suffix, way, RUN(TO_HOST, FROM_ARRAY),                                           \
       (void *to, CUarray from, size from_offset, size bytes, CUstream stream), (to, from, from_offset, bytes, stream))

ARRAYS(, LEGACY, CUdeviceptr_v1, unsigned int)
ARRAYS(_v2, LEGACY, CUdeviceptr_v2, size_t)
ARRAYS(_v2_ptds, OWN, CUdeviceptr_v2, size_t)
ARRAYS_ASYNC(, IN, unsigned int)
ARRAYS_ASYNC(_v2, IN, size_t)
ARRAYS_ASYNC(_v2_ptsz, IN_OWN, size_t)

/* Between contexts. */
#define BETWEEN RUN(BOTH(TO_DEVICE, FROM_DEVICE), .dstContext = to_context, .srcContext = from_context)
#define SIDES CUdeviceptr_v2 to, CUcontext to_context, CUdeviceptr_v2 from, CUcontext from_context, size_t bytes

HOOK(cuMemcpyPeer, AT_ONCE_BETWEEN(false), BETWEEN, (SIDES), (to, to_context, from, from_context, bytes))
HOOK(cuMemcpyPeer_ptds, AT_ONCE_BETWEEN(true), BETWEEN, (SIDES), (to, to_context, from, from_context, bytes))
HOOK(cuMemcpyPeerAsync, IN_STREAM_BETWEEN(stream, false), BETWEEN, (SIDES, CUstream stream),
     (to, to_context, from, from_context, bytes, stream))
HOOK(cuMemcpyPeerAsync_ptsz, IN_STREAM_BETWEEN(stream, true), BETWEEN, (SIDES, CUstream stream),
     (to, to_context, from, from_context, bytes, stream))
