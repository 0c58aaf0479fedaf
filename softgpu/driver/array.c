/* Arrays. They can be copied to and from; there are no textures and surfaces. */
#include "array.h"

#include <stdlib.h>

#include "driver.h"
#include "handles.h"
#include "memory.h"
#include "stream.h"

static const unsigned FLAGS =
    CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_SURFACE_LDST | CUDA_ARRAY3D_CUBEMAP | CUDA_ARRAY3D_TEXTURE_GATHER;
static const unsigned OTHER_FLAGS = CUDA_ARRAY3D_DEPTH_TEXTURE | CUDA_ARRAY3D_COLOR_ATTACHMENT | CUDA_ARRAY3D_SPARSE |
                                    CUDA_ARRAY3D_DEFERRED_MAPPING | CUDA_ARRAY3D_VIDEO_ENCODE_DECODE;

struct array {
  CUcontext context; /* first: `handles_end` */
  CUDA_ARRAY3D_DESCRIPTOR descriptor;
  struct array_rows rows;
};

/* Bytes of a channel; 0 for formats that are packed otherwise, or that do not exist. */
static size_t channel(CUarray_format format) {
  switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8: return 1;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF: return 2;
    case CU_AD_FORMAT_UNSIGNED_INT32:
    case CU_AD_FORMAT_SIGNED_INT32:
    case CU_AD_FORMAT_FLOAT: return 4;
    default: return 0;
  }
}

/* Layers are the depth of layered arrays, and six, or six for each layer, of cubes. */
static CUresult check(const CUDA_ARRAY3D_DESCRIPTOR *wanted) {
  if (!wanted->Width || (wanted->NumChannels != 1 && wanted->NumChannels != 2 && wanted->NumChannels != 4))
    return CUDA_ERROR_INVALID_VALUE;
  if (wanted->Flags & ~(FLAGS | OTHER_FLAGS)) return CUDA_ERROR_INVALID_VALUE;
  if (wanted->Flags & OTHER_FLAGS || wanted->Format > CU_AD_FORMAT_FLOAT) return CUDA_ERROR_NOT_SUPPORTED;
  if (!channel(wanted->Format)) return CUDA_ERROR_INVALID_VALUE;
  bool layered = wanted->Flags & CUDA_ARRAY3D_LAYERED, cube = wanted->Flags & CUDA_ARRAY3D_CUBEMAP;
  if (layered && !wanted->Depth) return CUDA_ERROR_INVALID_VALUE;
  if (!layered && wanted->Depth && !wanted->Height) return CUDA_ERROR_INVALID_VALUE;
  bool faces = wanted->Width == wanted->Height && wanted->Depth && wanted->Depth % 6 == 0;
  if (cube && (!faces || (!layered && wanted->Depth != 6))) return CUDA_ERROR_INVALID_VALUE;
  bool plane = wanted->Height && !wanted->Depth;
  return wanted->Flags & CUDA_ARRAY3D_TEXTURE_GATHER && !plane ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

static CUresult create(CUarray *handle, const CUDA_ARRAY3D_DESCRIPTOR *wanted) {
  struct here here;
  size_t layer, bytes;
  CHECK(current(&here));
  if (!handle) return CUDA_ERROR_INVALID_VALUE;
  CHECK(check(wanted));
  struct array_rows rows = {.height = wanted->Height ? wanted->Height : 1, .depth = wanted->Depth ? wanted->Depth : 1,
                            .element = channel(wanted->Format) * wanted->NumChannels};
  if (__builtin_mul_overflow(wanted->Width, rows.element, &rows.row) ||
      __builtin_mul_overflow(rows.row, rows.height, &layer) || __builtin_mul_overflow(layer, rows.depth, &bytes))
    return CUDA_ERROR_INVALID_VALUE;
  struct array *array = malloc(sizeof *array);
  if (!array) return CUDA_ERROR_OUT_OF_MEMORY;
  CUresult result = variable_make(here.context, here.device, bytes, 0, &rows.address);
  *array = (struct array){here.context, *wanted, rows};
  bool added = result == CUDA_SUCCESS && handle_add(ARRAY, array);
  if (added) {
    *handle = (CUarray)array;
    return CUDA_SUCCESS;
  }
  if (result == CUDA_SUCCESS) variable_end(rows.address);
  free(array);
  return CUDA_ERROR_OUT_OF_MEMORY;
}

static void end(void *given) {
  struct array *array = given;
  variable_end(array->rows.address);
  free(array);
}

void arrays_end(CUcontext context) { handles_end(ARRAY, context, end); }

bool array_rows(CUarray handle, struct array_rows *rows) {
  if (!handle_is(ARRAY, handle, false)) return false;
  *rows = ((const struct array *)handle)->rows;
  return true;
}

EXPORTED CUresult cuArrayDestroy(CUarray handle) {
  CHECK(ready());
  if (!handle_is(ARRAY, handle, true)) return CUDA_ERROR_INVALID_HANDLE;
  work_wait(((struct array *)handle)->context);
  end(handle);
  return CUDA_SUCCESS;
}

static CUresult describe(CUarray handle, CUDA_ARRAY3D_DESCRIPTOR *descriptor) {
  CHECK(ready());
  if (!handle_is(ARRAY, handle, false)) return CUDA_ERROR_INVALID_HANDLE;
  *descriptor = ((const struct array *)handle)->descriptor;
  return CUDA_SUCCESS;
}

/* The four descriptors have members in common; the first forms are of 32 bits. */

#define PLANE(symbol, get, type, width_t)                                                              \
  EXPORTED CUresult symbol(CUarray *handle, const type *wanted) {                                      \
    CHECK(ready());                                                                                    \
    if (!wanted) return CUDA_ERROR_INVALID_VALUE;                                                      \
    return create(handle, &(CUDA_ARRAY3D_DESCRIPTOR){.Width = wanted->Width, .Height = wanted->Height, \
                                                     .Format = wanted->Format,                         \
                                                     .NumChannels = wanted->NumChannels});             \
  }                                                                                                    \
  EXPORTED CUresult get(type *found, CUarray handle) {                                                 \
    CUDA_ARRAY3D_DESCRIPTOR is;                                                                        \
    if (!found) return CUDA_ERROR_INVALID_VALUE;                                                       \
    CHECK(describe(handle, &is));                                                                      \
    *found = (type){(width_t)is.Width, (width_t)is.Height, is.Format, is.NumChannels};                 \
    return CUDA_SUCCESS;                                                                               \
  }

#define SOLID(symbol, get, type, width_t)                                                                           \
  EXPORTED CUresult symbol(CUarray *handle, const type *wanted) {                                                   \
    CHECK(ready());                                                                                                 \
    if (!wanted) return CUDA_ERROR_INVALID_VALUE;                                                                   \
    return create(handle, &(CUDA_ARRAY3D_DESCRIPTOR){wanted->Width, wanted->Height, wanted->Depth,                  \
                                                     wanted->Format, wanted->NumChannels, wanted->Flags});          \
  }                                                                                                                 \
  EXPORTED CUresult get(type *found, CUarray handle) {                                                              \
    CUDA_ARRAY3D_DESCRIPTOR is;                                                                                     \
    if (!found) return CUDA_ERROR_INVALID_VALUE;                                                                    \
    CHECK(describe(handle, &is));                                                                                   \
    *found = (type){(width_t)is.Width, (width_t)is.Height, (width_t)is.Depth, is.Format, is.NumChannels, is.Flags}; \
    return CUDA_SUCCESS;                                                                                            \
  }

PLANE(cuArrayCreate, cuArrayGetDescriptor, CUDA_ARRAY_DESCRIPTOR_v1, unsigned int)
PLANE(cuArrayCreate_v2, cuArrayGetDescriptor_v2, CUDA_ARRAY_DESCRIPTOR, size_t)
SOLID(cuArray3DCreate, cuArray3DGetDescriptor, CUDA_ARRAY3D_DESCRIPTOR_v1, unsigned int)
SOLID(cuArray3DCreate_v2, cuArray3DGetDescriptor_v2, CUDA_ARRAY3D_DESCRIPTOR, size_t)
