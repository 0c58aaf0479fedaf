/* Managed memory, and what is remembered of what programs say about it. Devices are an A100-80G and an L40S. */
#include "check.h"

#include <stdint.h>

static const CUmemLocation HOST = {CU_MEM_LOCATION_TYPE_HOST, 0}, FIRST = {CU_MEM_LOCATION_TYPE_DEVICE, 0},
                           SECOND = {CU_MEM_LOCATION_TYPE_DEVICE, 1};
enum { PAGE = 4096, SIZE = 10 * PAGE };

static int attribute(CUmem_range_attribute which, CUdeviceptr pointer, size_t bytes) {
  int found;
  OK(cuMemRangeGetAttribute(&found, sizeof found, which, pointer, bytes));
  return found;
}

static void memory(void) {
  CUdeviceptr a;
  unsigned type;
  unsigned char managed;
  void *host;
  GIVES(CUDA_ERROR_INVALID_VALUE, cuMemAllocManaged(&a, SIZE, 0));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuMemAllocManaged(&a, SIZE, CU_MEM_ATTACH_SINGLE));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuMemAllocManaged(&a, 0, CU_MEM_ATTACH_GLOBAL));
  OK(cuMemAllocManaged(&a, SIZE, CU_MEM_ATTACH_GLOBAL));
  unsigned char *bytes = (unsigned char *)(uintptr_t)a;
  CHECK(!bytes[0] && !bytes[SIZE - 1]);
  OK(cuMemsetD8(a + 5, 7, 10));
  CHECK(bytes[5] == 7 && bytes[14] == 7 && !bytes[15]);
  bytes[5] = 9;
  unsigned char got = 0;
  OK(cuMemcpyDtoH(&got, a + 5, 1));
  CHECK(got == 9);
  OK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, a + 5));
  OK(cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, a));
  OK(cuPointerGetAttribute(&host, CU_POINTER_ATTRIBUTE_HOST_POINTER, a + 5));
  CHECK(type == CU_MEMORYTYPE_DEVICE && managed && host == bytes + 5);
  GIVES(CUDA_ERROR_INVALID_VALUE, cuMemFreeHost(bytes));
  OK(cuMemFree(a));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuMemFree(a));
}

static void advice(void) {
  CUdeviceptr a, other;
  int users[3];
  OK(cuMemAllocManaged(&a, SIZE, CU_MEM_ATTACH_HOST));
  OK(cuMemAlloc(&other, SIZE));
  CHECK(attribute(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, a, SIZE) == 0);
  CHECK(attribute(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, a, SIZE) == CU_DEVICE_INVALID);
  OK(cuMemAdvise(a + PAGE + 10, PAGE, CU_MEM_ADVISE_SET_READ_MOSTLY, HOST)); /* parts of two pages */
  CHECK(attribute(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, a + PAGE, 2 * PAGE) == 1);
  CHECK(attribute(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, a, PAGE + 1) == 0);
  CHECK(attribute(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, a + PAGE, 2 * PAGE + 1) == 0);
  OK(cuMemAdvise(a, SIZE, CU_MEM_ADVISE_UNSET_READ_MOSTLY, HOST));
  CHECK(attribute(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, a + PAGE, PAGE) == 0);
  OK(cuMemAdvise(a, SIZE, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, SECOND));
  CHECK(attribute(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, a, SIZE) == 1);
  CHECK(attribute(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE, a, SIZE) == CU_MEM_LOCATION_TYPE_DEVICE);
  OK(cuMemAdvise(a + 5 * PAGE, PAGE, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, HOST));
  CHECK(attribute(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, a, SIZE) == CU_DEVICE_INVALID);
  CHECK(attribute(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, a + 5 * PAGE, PAGE) == CU_DEVICE_CPU);
  OK(cuMemAdvise(a, SIZE, CU_MEM_ADVISE_SET_ACCESSED_BY, SECOND));
  OK(cuMemAdvise(a, PAGE, CU_MEM_ADVISE_SET_ACCESSED_BY, FIRST));
  OK(cuMemRangeGetAttribute(users, sizeof users, CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, a, SIZE));
  CHECK(users[0] == 1 && users[1] == CU_DEVICE_INVALID && users[2] == CU_DEVICE_INVALID);
  OK(cuMemRangeGetAttribute(users, sizeof users, CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, a, PAGE));
  CHECK(users[0] == 0 && users[1] == 1 && users[2] == CU_DEVICE_INVALID);
  OK(cuMemPrefetchAsync(a, SIZE, FIRST, 0, 0));
  CHECK(attribute(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, a, SIZE) == 0);
  void *data[] = {&users[0], &users[1]};
  size_t sizes[] = {4, 4};
  CUmem_range_attribute both[] = {CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID};
  OK(cuMemRangeGetAttributes(data, sizes, both, 2, a, SIZE));
  CHECK(users[0] == 0 && users[1] == 0);
  GIVES(CUDA_ERROR_INVALID_VALUE, cuMemRangeGetAttribute(users, 8, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, a, SIZE));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuMemRangeGetAttribute(users, 4, 99, a, SIZE));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuMemRangeGetAttribute(users, 4, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, a, SIZE + 1));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuMemAdvise(other, SIZE, CU_MEM_ADVISE_SET_READ_MOSTLY, HOST));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuMemAdvise(a, SIZE, 7, HOST));
  GIVES(CUDA_ERROR_INVALID_DEVICE,
        cuMemAdvise(a, SIZE, CU_MEM_ADVISE_SET_ACCESSED_BY, (CUmemLocation){CU_MEM_LOCATION_TYPE_DEVICE, 2}));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuMemPrefetchAsync(a, 0, FIRST, 0, 0));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuMemPrefetchAsync(a, SIZE, FIRST, 1, 0));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuMemPrefetchAsync(other, SIZE, FIRST, 0, 0));
  OK(cuMemFree(a));
  OK(cuMemFree(other));
}

static void attachment(void) {
  CUdeviceptr a;
  CUstream stream;
  OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  OK(cuMemAllocManaged(&a, SIZE, CU_MEM_ATTACH_HOST));
  OK(cuStreamAttachMemAsync(stream, a, 0, CU_MEM_ATTACH_SINGLE));
  OK(cuStreamAttachMemAsync(stream, a, SIZE, CU_MEM_ATTACH_GLOBAL));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuStreamAttachMemAsync(0, a, 0, CU_MEM_ATTACH_SINGLE));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuStreamAttachMemAsync(stream, a, 10, CU_MEM_ATTACH_GLOBAL));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuStreamAttachMemAsync(stream, a + 1, 0, CU_MEM_ATTACH_GLOBAL));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuStreamAttachMemAsync(stream, a, 0, 3));
  OK(cuStreamDestroy(stream));
}

int main(void) {
  CUcontext context;
  OK(cuInit(0));
  OK(cuCtxCreate(&context, NULL, 0, 0));
  memory();
  advice();
  attachment();
  OK(cuCtxDestroy(context)); /* what is left ends with it */
  return 0;
}
