/* The functions that copy rows, and slices of rows. */
#include "copying.h"
#include "hooks.h"
#include "session.h"

/* Members that all structures have. */
#define FLAT                                                                                              \
  .srcXInBytes = copy->srcXInBytes, .srcY = copy->srcY, .srcMemoryType = copy->srcMemoryType,             \
  .srcHost = copy->srcHost, .srcDevice = copy->srcDevice, .srcArray = copy->srcArray,                     \
  .srcPitch = copy->srcPitch, .dstXInBytes = copy->dstXInBytes, .dstY = copy->dstY,                       \
  .dstMemoryType = copy->dstMemoryType, .dstHost = copy->dstHost, .dstDevice = copy->dstDevice,           \
  .dstArray = copy->dstArray, .dstPitch = copy->dstPitch, .WidthInBytes = copy->WidthInBytes,             \
  .Height = copy->Height

#define PLANE ((CUDA_MEMCPY3D_PEER){FLAT, .Depth = 1})
#define SOLID                                                                                             \
  ((CUDA_MEMCPY3D_PEER){                                                                                  \
      FLAT, .srcZ = copy->srcZ, .srcLOD = copy->srcLOD, .srcHeight = copy->srcHeight, .dstZ = copy->dstZ,    \
      .dstLOD = copy->dstLOD, .dstHeight = copy->dstHeight, .Depth = copy->Depth})
#define BETWEEN *copy

#define HOOK(symbol, way, type, params, parameters, names)    \
  CUresult hook_##symbol parameters {                         \
    if (!copy || !recording()) return real.symbol names;      \
    CUDA_MEMCPY3D_PEER whole = params;                        \
    struct copies copies;                                     \
    copy_begin(&copies, NUMBER_##symbol, way, &whole);        \
    return copies_end(&copies, real.symbol names);            \
  }

#define NOW(symbol, way, type, params) HOOK(symbol, way, type, params, (const type *copy), (copy))
#define ASYNC(symbol, way, type, params) \
  HOOK(symbol, way, type, params, (const type *copy, CUstream stream), (copy, stream))

NOW(cuMemcpy2D, AT_ONCE(false), CUDA_MEMCPY2D_v1, PLANE)
NOW(cuMemcpy2D_v2, AT_ONCE(false), CUDA_MEMCPY2D_v2, PLANE)
NOW(cuMemcpy2D_v2_ptds, AT_ONCE(true), CUDA_MEMCPY2D_v2, PLANE)
NOW(cuMemcpy2DUnaligned, AT_ONCE(false), CUDA_MEMCPY2D_v1, PLANE)
NOW(cuMemcpy2DUnaligned_v2, AT_ONCE(false), CUDA_MEMCPY2D_v2, PLANE)
NOW(cuMemcpy2DUnaligned_v2_ptds, AT_ONCE(true), CUDA_MEMCPY2D_v2, PLANE)
ASYNC(cuMemcpy2DAsync, IN_STREAM(stream, false), CUDA_MEMCPY2D_v1, PLANE)
ASYNC(cuMemcpy2DAsync_v2, IN_STREAM(stream, false), CUDA_MEMCPY2D_v2, PLANE)
ASYNC(cuMemcpy2DAsync_v2_ptsz, IN_STREAM(stream, true), CUDA_MEMCPY2D_v2, PLANE)
NOW(cuMemcpy3D, AT_ONCE(false), CUDA_MEMCPY3D_v1, SOLID)
NOW(cuMemcpy3D_v2, AT_ONCE(false), CUDA_MEMCPY3D_v2, SOLID)
NOW(cuMemcpy3D_v2_ptds, AT_ONCE(true), CUDA_MEMCPY3D_v2, SOLID)
ASYNC(cuMemcpy3DAsync, IN_STREAM(stream, false), CUDA_MEMCPY3D_v1, SOLID)
ASYNC(cuMemcpy3DAsync_v2, IN_STREAM(stream, false), CUDA_MEMCPY3D_v2, SOLID)
ASYNC(cuMemcpy3DAsync_v2_ptsz, IN_STREAM(stream, true), CUDA_MEMCPY3D_v2, SOLID)
NOW(cuMemcpy3DPeer, AT_ONCE_BETWEEN(false), CUDA_MEMCPY3D_PEER_v1, BETWEEN)
NOW(cuMemcpy3DPeer_ptds, AT_ONCE_BETWEEN(true), CUDA_MEMCPY3D_PEER_v1, BETWEEN)
ASYNC(cuMemcpy3DPeerAsync, IN_STREAM_BETWEEN(stream, false), CUDA_MEMCPY3D_PEER_v1, BETWEEN)
ASYNC(cuMemcpy3DPeerAsync_ptsz, IN_STREAM_BETWEEN(stream, true), CUDA_MEMCPY3D_PEER_v1, BETWEEN)
