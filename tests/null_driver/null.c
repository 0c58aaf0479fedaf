/* A driver that does nothing, for measuring and testing what lies between programs and drivers. Every function of the
 * API answers CUDA_SUCCESS at once (stubs.c, made by the build); the few here also say what programs need to go on. */
#include "null.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "driver.h"

enum { VERSION = 13000, LENGTH = 8 };
static const size_t MEMORY = (size_t)80 << 30, STEP = (size_t)1 << 21;
static int context; /* its address is the one context's handle */

int driver_version(void) { return VERSION; }

/* No two are alike, as handles and as addresses of memory, which nobody may touch. */
int give(unsigned long long *answer) {
  static atomic_ullong last = 0x700000000000;
  if (!answer) return CUDA_ERROR_INVALID_VALUE;
  *answer = atomic_fetch_add(&last, STEP) + STEP;
  return CUDA_SUCCESS;
}

static CUresult number(int *answer, int value) {
  if (!answer) return CUDA_ERROR_INVALID_VALUE;
  *answer = value;
  return CUDA_SUCCESS;
}

static CUresult size(size_t *answer, size_t value) {
  if (!answer) return CUDA_ERROR_INVALID_VALUE;
  *answer = value;
  return CUDA_SUCCESS;
}

static CUresult the_context(CUcontext *answer) {
  if (!answer) return CUDA_ERROR_INVALID_VALUE;
  *answer = (CUcontext)&context;
  return CUDA_SUCCESS;
}

static CUresult text(const char **answer, CUresult error) {
  if (!answer) return CUDA_ERROR_INVALID_VALUE;
  *answer = error == CUDA_SUCCESS ? "CUDA_SUCCESS" : "an error";
  return CUDA_SUCCESS;
}

static CUresult host_memory(void **answer, size_t bytes) {
  if (!answer) return CUDA_ERROR_INVALID_VALUE;
  *answer = calloc(1, bytes);
  return *answer ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuDriverGetVersion(int *version) { return number(version, VERSION); }
CUresult cuGetErrorName(CUresult error, const char **name) { return text(name, error); }
CUresult cuGetErrorString(CUresult error, const char **words) { return text(words, error); }

CUresult cuDeviceGetCount(int *count) { return number(count, 1); }
CUresult cuDeviceGet(CUdevice *device, int ordinal) {
  return ordinal == 0 ? number(device, 0) : CUDA_ERROR_INVALID_DEVICE;
}
CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device) {
  (void)device;
  return number(value, attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR ? 8 : 0);
}
CUresult cuDeviceGetName(char *name, int length, CUdevice device) {
  (void)device;
  if (!name || length < 1) return CUDA_ERROR_INVALID_VALUE;
  memset(name, 0, (size_t)length);
  memcpy(name, "null", length > 4 ? 4 : (size_t)length - 1);
  return CUDA_SUCCESS;
}
CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device) {
  (void)device;
  return size(bytes, MEMORY);
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *answer, CUdevice device) {
  (void)device;
  return the_context(answer);
}
CUresult cuCtxGetCurrent(CUcontext *answer) { return the_context(answer); }
CUresult cuCtxGetDevice(CUdevice *device) { return number(device, 0); }

CUresult cuMemAllocHost_v2(void **answer, size_t bytes) { return host_memory(answer, bytes); }
CUresult cuMemHostAlloc(void **answer, size_t bytes, unsigned flags) {
  (void)flags;
  return host_memory(answer, bytes);
}
CUresult cuMemFreeHost(void *memory) {
  free(memory);
  return CUDA_SUCCESS;
}

/* A function's handle lies behind its module's, up to the next multiple of STEP. */
CUresult cuModuleGetFunction(CUfunction *answer, CUmodule module, const char *name) {
  static atomic_ullong last;
  (void)name;
  if (!answer) return CUDA_ERROR_INVALID_VALUE;
  unsigned long long number = atomic_fetch_add(&last, 1) % (STEP / LENGTH - 1) + 1;
  *answer = (CUfunction)(((uintptr_t)module & ~(STEP - 1)) + number * LENGTH);
  return CUDA_SUCCESS;
}
CUresult cuFuncGetModule(CUmodule *answer, CUfunction function) {
  if (!answer) return CUDA_ERROR_INVALID_VALUE;
  *answer = (CUmodule)((uintptr_t)function & ~(STEP - 1));
  return CUDA_SUCCESS;
}

/* All kernels have three pointers and an int. */
static CUresult parameter(size_t index, size_t *offset, size_t *bytes) {
  if (index > 3 || !offset) return CUDA_ERROR_INVALID_VALUE;
  if (bytes) *bytes = index < 3 ? LENGTH : sizeof(int);
  return size(offset, index * LENGTH);
}
CUresult cuFuncGetParamInfo(CUfunction function, size_t index, size_t *offset, size_t *bytes) {
  (void)function;
  return parameter(index, offset, bytes);
}
CUresult cuKernelGetParamInfo(CUkernel kernel, size_t index, size_t *offset, size_t *bytes) {
  (void)kernel;
  return parameter(index, offset, bytes);
}
CUresult cuFuncGetName(const char **name, CUfunction function) {
  (void)function;
  return text(name, CUDA_SUCCESS);
}

/* Nothing is captured. */
static CUresult idle(CUstreamCaptureStatus *status) {
  if (!status) return CUDA_ERROR_INVALID_VALUE;
  *status = CU_STREAM_CAPTURE_STATUS_NONE;
  return CUDA_SUCCESS;
}
CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status) {
  (void)stream;
  return idle(status);
}
CUresult cuStreamIsCapturing_ptsz(CUstream stream, CUstreamCaptureStatus *status) {
  (void)stream;
  return idle(status);
}
