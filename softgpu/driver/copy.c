/* Copies and fills that are done when the call returns. */
#include <string.h>

#include "allocations.h"
#include "driver.h"

/* The same function under the symbol of its twin: a copy that waits is the same for every default stream. */
#define TWIN(twin, function) extern __typeof(function) twin EXPORTED __attribute__((alias(#function)))

enum side { HOST, KNOWN, EITHER }; /* any address; one that the driver knows; whichever it is */

/* Whether bytes may be accessed. Of an address that the driver knows all of them must lie in one allocation. The lock is
 * held. */
static bool fits(uint64_t address, size_t bytes, enum side side) {
  if (side == HOST) return address;
  const struct allocation *found = allocation_with(address, 1);
  if (!found) return side == EITHER && address;
  return allocation_with(address, bytes);
}

static CUresult copy(uint64_t target, enum side target_side, uint64_t source, enum side source_side, size_t bytes) {
  CUcontext context;
  CUdevice device;
  CHECK(current_context(&context, &device));
  if (!bytes) return CUDA_SUCCESS;
  allocations_read();
  bool good = fits(target, bytes, target_side) && fits(source, bytes, source_side);
  if (good) memmove((void *)(uintptr_t)target, (const void *)(uintptr_t)source, bytes);
  allocations_release();
  return good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

EXPORTED CUresult cuMemcpy(CUdeviceptr target, CUdeviceptr source, size_t bytes) {
  return copy(target, EITHER, source, EITHER, bytes);
}
TWIN(cuMemcpy_ptds, cuMemcpy);

EXPORTED CUresult cuMemcpyHtoD_v2(CUdeviceptr target, const void *source, size_t bytes) {
  return copy(target, KNOWN, (uint64_t)(uintptr_t)source, HOST, bytes);
}
TWIN(cuMemcpyHtoD_v2_ptds, cuMemcpyHtoD_v2);

EXPORTED CUresult cuMemcpyDtoH_v2(void *target, CUdeviceptr source, size_t bytes) {
  return copy((uint64_t)(uintptr_t)target, HOST, source, KNOWN, bytes);
}
TWIN(cuMemcpyDtoH_v2_ptds, cuMemcpyDtoH_v2);

EXPORTED CUresult cuMemcpyDtoD_v2(CUdeviceptr target, CUdeviceptr source, size_t bytes) {
  return copy(target, KNOWN, source, KNOWN, bytes);
}
TWIN(cuMemcpyDtoD_v2_ptds, cuMemcpyDtoD_v2);

/* `height` rows of `width` elements of 1, 2 or 4 bytes, `pitch` bytes apart. */
static CUresult fill(uint64_t target, size_t pitch, uint32_t value, size_t element, size_t width, size_t height) {
  CUcontext context;
  CUdevice device;
  size_t row, last;
  CHECK(current_context(&context, &device));
  if (target % element || pitch % element) return CUDA_ERROR_INVALID_VALUE;
  if (!width || !height) return CUDA_SUCCESS;
  if (__builtin_mul_overflow(width, element, &row) || (height > 1 && pitch < row) ||
      __builtin_mul_overflow(height - 1, pitch, &last) || last + row < last)
    return CUDA_ERROR_INVALID_VALUE;
  allocations_read();
  bool good = allocation_with(target, last + row);
  for (size_t y = 0; good && y < height; y++) {
    uint8_t *at = (uint8_t *)(uintptr_t)(target + y * pitch);
    if (element == 1) {
      memset(at, (int)value, row);
    } else {
      memcpy(at, &value, element); /* the lower bytes: this machine is little-endian */
      for (size_t done = element; done < row;) { /* what there is, once more */
        size_t more = done < row - done ? done : row - done;
        memcpy(at + done, at, more);
        done += more;
      }
    }
  }
  allocations_release();
  return good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

EXPORTED CUresult cuMemsetD8_v2(CUdeviceptr target, unsigned char value, size_t count) {
  return fill(target, 0, value, 1, count, 1);
}
TWIN(cuMemsetD8_v2_ptds, cuMemsetD8_v2);

EXPORTED CUresult cuMemsetD16_v2(CUdeviceptr target, unsigned short value, size_t count) {
  return fill(target, 0, value, 2, count, 1);
}
TWIN(cuMemsetD16_v2_ptds, cuMemsetD16_v2);

EXPORTED CUresult cuMemsetD32_v2(CUdeviceptr target, unsigned int value, size_t count) {
  return fill(target, 0, value, 4, count, 1);
}
TWIN(cuMemsetD32_v2_ptds, cuMemsetD32_v2);

EXPORTED CUresult cuMemsetD2D8_v2(CUdeviceptr target, size_t pitch, unsigned char value, size_t width, size_t height) {
  return fill(target, pitch, value, 1, width, height);
}
TWIN(cuMemsetD2D8_v2_ptds, cuMemsetD2D8_v2);

EXPORTED CUresult cuMemsetD2D16_v2(CUdeviceptr target, size_t pitch, unsigned short value, size_t width, size_t height) {
  return fill(target, pitch, value, 2, width, height);
}
TWIN(cuMemsetD2D16_v2_ptds, cuMemsetD2D16_v2);

EXPORTED CUresult cuMemsetD2D32_v2(CUdeviceptr target, size_t pitch, unsigned int value, size_t width, size_t height) {
  return fill(target, pitch, value, 4, width, height);
}
TWIN(cuMemsetD2D32_v2_ptds, cuMemsetD2D32_v2);
