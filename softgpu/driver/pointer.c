/* What the driver knows of an address. */
#include <string.h>

#include "allocations.h"
#include "driver.h"
#include "pool.h"
#include "vmm.h"

/* Ways to share it with other processes by a handle. */
static CUmemAllocationHandleType handle_types(const struct allocation *found) {
  if (found->kind == MAPPED) return piece_types(found->object);
  return found->kind == POOLED ? pool_of(found->object)->types : CU_MEM_HANDLE_TYPE_NONE;
}

/* What the device of the calling thread's context may do with it. */
static CUresult access_of(const struct allocation *found, unsigned *flags) {
  struct here here;
  *flags = CU_POINTER_ATTRIBUTE_ACCESS_FLAG_NONE;
  if (!found) return CUDA_SUCCESS;
  *flags = found->limits ? CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READ : CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE;
  if (!found->rights) return CUDA_SUCCESS;
  CHECK(current(&here));
  *flags = (unsigned)rights_of(found->rights, here.device);
  return CUDA_SUCCESS;
}

/* The lock is held; `found` is NULL for memory that the driver does not know, for which a few attributes have answers.
 * */
static CUresult attribute(void *data, CUpointer_attribute which, CUdeviceptr pointer, const struct allocation *found) {
  switch (which) {
    case CU_POINTER_ATTRIBUTE_CONTEXT: *(CUcontext *)data = found ? found->context : NULL; break;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      *(unsigned *)data =
          found && (on_device(found) || found->kind == MANAGED) ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
      break;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER: *(CUdeviceptr *)data = pointer; break;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      if (found && on_device(found)) return CUDA_ERROR_INVALID_VALUE;
      *(void **)data = (void *)(uintptr_t)pointer;
      break;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID: *(unsigned long long *)data = found ? found->id : 0; break;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: *(int *)data = found ? found->device : -2; break;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR: *(CUdeviceptr *)data = found ? found->start : 0; break;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE: *(size_t *)data = found ? found->size : 0; break;
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
      *(unsigned long long *)data = !found ? 0 : found->kind == MAPPED ? piece_block(found->object) : found->id;
      break;
    case CU_POINTER_ATTRIBUTE_MAPPED: *(unsigned char *)data = found != NULL; break;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED: *(unsigned char *)data = found && found->kind == MANAGED; break;
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
      *(unsigned char *)data = found && found->kind == ON_DEVICE;
      break;
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE: *(unsigned char *)data = 0; break;
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
      *(unsigned long long *)data = found ? handle_types(found) : CU_MEM_HANDLE_TYPE_NONE;
      break;
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS: return access_of(found, data);
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
      *(CUmemoryPool *)data = found && found->kind == POOLED ? (CUmemoryPool)pool_of(found->object) : NULL;
      break;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

/* An address that the driver does not know is an error here. */
EXPORTED CUresult cuPointerGetAttribute(void *data, CUpointer_attribute which, CUdeviceptr pointer) {
  CHECK(ready());
  if (!data) return CUDA_ERROR_INVALID_VALUE;
  allocations_read();
  const struct allocation *found = allocation_with(pointer, 1);
  CUresult result = found ? attribute(data, which, pointer, found) : CUDA_ERROR_INVALID_VALUE;
  allocations_release();
  return result;
}

/* And here it is not: attributes that it has not are 0. */
EXPORTED CUresult cuPointerGetAttributes(unsigned int count, CUpointer_attribute *which, void **data,
                                         CUdeviceptr pointer) {
  CHECK(ready());
  if (!count || !which || !data) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = CUDA_SUCCESS;
  allocations_read();
  const struct allocation *found = allocation_with(pointer, 1);
  for (unsigned n = 0; n < count && result == CUDA_SUCCESS; n++) {
    result = data[n] ? attribute(data[n], which[n], pointer, found) : CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_ERROR_INVALID_VALUE && data[n] && which[n] == CU_POINTER_ATTRIBUTE_HOST_POINTER) {
      *(void **)data[n] = NULL;
      result = CUDA_SUCCESS;
    }
  }
  allocations_release();
  return result;
}
