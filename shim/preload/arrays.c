/* Arrays, and what is mapped in those that are sparse. */
#include "elements.h"
#include "hooks.h"
#include "things.h"
#include "work.h"

unsigned element_bytes(CUarray_format format, unsigned channels) {
  switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8: return channels;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF: return 2 * channels;
    case CU_AD_FORMAT_UNSIGNED_INT32:
    case CU_AD_FORMAT_SIGNED_INT32:
    case CU_AD_FORMAT_FLOAT: return 4 * channels;
    case CU_AD_FORMAT_UNORM_INT8X1:
    case CU_AD_FORMAT_SNORM_INT8X1: return 1;
    case CU_AD_FORMAT_UNORM_INT8X2:
    case CU_AD_FORMAT_SNORM_INT8X2:
    case CU_AD_FORMAT_UNORM_INT16X1:
    case CU_AD_FORMAT_SNORM_INT16X1: return 2;
    case CU_AD_FORMAT_UNORM_INT8X4:
    case CU_AD_FORMAT_SNORM_INT8X4:
    case CU_AD_FORMAT_UNORM_INT16X2:
    case CU_AD_FORMAT_SNORM_INT16X2:
    case CU_AD_FORMAT_UNORM_INT_101010_2: return 4;
    case CU_AD_FORMAT_UNORM_INT16X4:
    case CU_AD_FORMAT_SNORM_INT16X4: return 8;
    default: return 0;
  }
}

/* Both descriptors of 1 and 2 dimensions, and both of 3. */
#define FLAT(d) (struct wire_array){.width = (d)->Width, .height = (d)->Height, .format = (d)->Format, \
                                    .channels = (d)->NumChannels}
#define DEEP(d) (struct wire_array){.width = (d)->Width, .height = (d)->Height, .depth = (d)->Depth, \
                                    .format = (d)->Format, .channels = (d)->NumChannels, .flags = (d)->Flags}

static CUresult made(unsigned function, const void *handle, struct wire_array what) {
  if (!handle) return CUDA_SUCCESS;
  what.handle = number_of(handle);
  what.context = context_here();
  what.element_bytes = element_bytes((CUarray_format)what.format, what.channels);
  record_thing(WIRE_ARRAY, function, 0, &what, sizeof what);
  return CUDA_SUCCESS;
}

#define CREATE(symbol, what)                                                                         \
  if (!recording()) return real.symbol(handle, descriptor);                                          \
  CUresult result = DRIVER(real.symbol(handle, descriptor));                                         \
  return result || !handle || !descriptor ? result : made(NUMBER_##symbol, *handle, what(descriptor))

CUresult hook_cuArrayCreate(CUarray *handle, const CUDA_ARRAY_DESCRIPTOR_v1 *descriptor) {
  CREATE(cuArrayCreate, FLAT);
}

CUresult hook_cuArrayCreate_v2(CUarray *handle, const CUDA_ARRAY_DESCRIPTOR_v2 *descriptor) {
  CREATE(cuArrayCreate_v2, FLAT);
}

CUresult hook_cuArray3DCreate(CUarray *handle, const CUDA_ARRAY3D_DESCRIPTOR_v1 *descriptor) {
  CREATE(cuArray3DCreate, DEEP);
}

CUresult hook_cuArray3DCreate_v2(CUarray *handle, const CUDA_ARRAY3D_DESCRIPTOR_v2 *descriptor) {
  CREATE(cuArray3DCreate_v2, DEEP);
}

CUresult hook_cuMipmappedArrayCreate(CUmipmappedArray *handle, const CUDA_ARRAY3D_DESCRIPTOR_v2 *descriptor,
                                     unsigned levels) {
  if (!recording()) return real.cuMipmappedArrayCreate(handle, descriptor, levels);
  CUresult result = DRIVER(real.cuMipmappedArrayCreate(handle, descriptor, levels));
  if (result || !handle || !descriptor) return result;
  struct wire_array what = DEEP(descriptor);
  what.levels = levels;
  return made(NUMBER_cuMipmappedArrayCreate, *handle, what);
}

/* A level is an array of its own, which ends with the whole. */
CUresult hook_cuMipmappedArrayGetLevel(CUarray *level, CUmipmappedArray whole, unsigned number) {
  if (!recording()) return real.cuMipmappedArrayGetLevel(level, whole, number);
  CUresult result = DRIVER(real.cuMipmappedArrayGetLevel(level, whole, number));
  if (result || !level || is_announced(WIRE_ARRAY, number_of(*level))) return result;
  CUDA_ARRAY3D_DESCRIPTOR_v2 found = {0}, *descriptor = &found;
  if (real.cuArray3DGetDescriptor_v2 && ASK(real.cuArray3DGetDescriptor_v2(&found, *level)))
    found = (CUDA_ARRAY3D_DESCRIPTOR_v2){0};
  struct wire_array what = DEEP(descriptor);
  what.of = number_of(whole);
  what.level = number;
  return made(NUMBER_cuMipmappedArrayGetLevel, *level, what);
}

static struct ending begin(const void *handle, unsigned function) {
  return ending_begin(function, (struct wire_end){.kind = WIRE_ARRAY, .handle = number_of(handle)});
}

CUresult hook_cuArrayDestroy(CUarray array) {
  if (!array || !recording()) return real.cuArrayDestroy(array);
  struct ending ending = begin(array, NUMBER_cuArrayDestroy);
  return ending_done(&ending, real.cuArrayDestroy(array));
}

CUresult hook_cuMipmappedArrayDestroy(CUmipmappedArray array) {
  if (!array || !recording()) return real.cuMipmappedArrayDestroy(array);
  struct ending ending = begin(array, NUMBER_cuMipmappedArrayDestroy);
  return ending_done(&ending, real.cuMipmappedArrayDestroy(array));
}

#define MAP(symbol, per_thread)                                                                                  \
  if (!recording()) return real.symbol(list, count, stream);                                                     \
  struct work work;                                                                                              \
  size_t bytes = sizeof(struct wire_other_work);                                                                 \
  work_call(&work, work_begin(&work, WIRE_OTHER_WORK, NUMBER_##symbol, bytes, stream_of(stream, per_thread)));   \
  return work_end(&work, real.symbol(list, count, stream))

CUresult hook_cuMemMapArrayAsync(CUarrayMapInfo_v1 *list, unsigned count, CUstream stream) {
  MAP(cuMemMapArrayAsync, false);
}

CUresult hook_cuMemMapArrayAsync_ptsz(CUarrayMapInfo_v1 *list, unsigned count, CUstream stream) {
  MAP(cuMemMapArrayAsync_ptsz, true);
}
