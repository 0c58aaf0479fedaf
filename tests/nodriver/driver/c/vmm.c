/* Reserved addresses, memory without any, and what is mapped where. Devices are an A100-80G and an L40S. */
#include <semaphore.h>
#include <stdint.h>
#include <unistd.h>

#include "check.h"

enum { STEP = 2 << 20 };
static const size_t GIB = 1ull << 30;
static const CUmemAllocationHandleType FILES = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;

static size_t unused(void) {
  size_t bytes, total;
  OK(cuMemGetInfo(&bytes, &total));
  return bytes;
}

static CUmemAllocationProp wanted(int device, CUmemAllocationHandleType types) {
  return (CUmemAllocationProp){.type = CU_MEM_ALLOCATION_TYPE_PINNED, .requestedHandleTypes = types,
                               .location = {CU_MEM_LOCATION_TYPE_DEVICE, device}};
}

static CUmemGenericAllocationHandle make(int device, size_t size, CUmemAllocationHandleType types) {
  CUmemAllocationProp properties = wanted(device, types);
  CUmemGenericAllocationHandle handle;
  OK(cuMemCreate(&handle, size, &properties, 0));
  return handle;
}

static void allow(CUdeviceptr start, size_t size, int device, CUmemAccess_flags flags) {
  CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, device}, flags};
  OK(cuMemSetAccess(start, size, &access, 1));
}

static void properties(void) {
  CUmemAllocationProp right = wanted(1, FILES), found, wrong;
  CUmemGenericAllocationHandle handle;
  size_t granularity;
  int file;
  OK(cuMemGetAllocationGranularity(&granularity, &right, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  CHECK(granularity == STEP);
  GIVES(CUDA_ERROR_INVALID_VALUE, cuMemGetAllocationGranularity(&granularity, &right, 2));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuMemCreate(&handle, STEP + 4096, &right, 0));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuMemCreate(&handle, STEP, &right, 1));
  GIVES(CUDA_ERROR_OUT_OF_MEMORY, cuMemCreate(&handle, 48 * GIB + STEP, &right, 0));
  OK(cuMemCreate(&handle, 4 * STEP, &right, 0));
  OK(cuMemGetAllocationPropertiesFromHandle(&found, handle));
  CHECK(found.location.id == 1 && found.requestedHandleTypes == FILES && found.type == CU_MEM_ALLOCATION_TYPE_PINNED);
  OK(cuMemRelease(handle));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuMemRelease(handle));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuMemGetAllocationPropertiesFromHandle(&found, handle));
  wrong = wanted(2, 0);
  GIVES(CUDA_ERROR_INVALID_DEVICE, cuMemCreate(&handle, STEP, &wrong, 0));
  wrong = wanted(0, CU_MEM_HANDLE_TYPE_FABRIC);
  GIVES(CUDA_ERROR_NOT_SUPPORTED, cuMemCreate(&handle, STEP, &wrong, 0));
  wrong = wanted(0, 0);
  wrong.location.type = CU_MEM_LOCATION_TYPE_HOST;
  GIVES(CUDA_ERROR_NOT_SUPPORTED, cuMemCreate(&handle, STEP, &wrong, 0));
  handle = make(0, STEP, 0);
  GIVES(CUDA_ERROR_INVALID_VALUE, cuMemExportToShareableHandle(&file, handle, FILES, 0));
  OK(cuMemRelease(handle));
}

static void mappings(void) {
  CUdeviceptr start, other, base;
  size_t before = unused(), size;
  OK(cuMemAddressReserve(&start, 4 * STEP, 0, 0, 0));
  CHECK(start % STEP == 0);
  OK(cuMemAddressReserve(&other, STEP, 64 * STEP, 0, 0));
  CHECK(other % (64 * STEP) == 0);
  GIVES(CUDA_ERROR_INVALID_VALUE, cuMemAddressReserve(&base, STEP, 3, 0, 0));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuMemAddressReserve(&base, STEP + 1, 0, 0, 0));
  CUmemGenericAllocationHandle a = make(0, STEP, 0), b = make(0, 2 * STEP, FILES), again;
  CHECK(before - unused() == 3 * STEP);
  GIVES(CUDA_ERROR_INVALID_VALUE, cuMemMap(start + 4096, STEP, 0, a, 0));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuMemMap(start, 2 * STEP, 0, a, 0)); /* it has not as much */
  GIVES(CUDA_ERROR_INVALID_VALUE, cuMemMap(start + 3 * STEP, 2 * STEP, 0, b, 0));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuMemMap(start, STEP, STEP, b, 0));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuMemMap(start, STEP, 0, (CUmemGenericAllocationHandle)(uintptr_t)&a, 0));
  OK(cuMemMap(start, STEP, 0, a, 0));
  OK(cuMemMap(start + STEP, 2 * STEP, 0, b, 0));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuMemMap(start + 2 * STEP, STEP, 0, a, 0));
  OK(cuMemMap(other, STEP, 0, b, 0)); /* the same memory once more */
  GIVES(CUDA_ERROR_INVALID_VALUE, cuMemsetD8(start, 1, 10)); /* nobody has rights */
  allow(start, 3 * STEP, 0, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  allow(other, STEP, 0, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  unsigned char bytes[2 * 4096];
  memset(bytes, 1, sizeof bytes);
  OK(cuMemcpyDtoH(bytes, start + STEP - 4096, sizeof bytes)); /* from one mapping into its neighbour */
  for (size_t n = 0; n < sizeof bytes; n++) CHECK(!bytes[n]);
  OK(cuMemsetD8(start + STEP - 4096, 5, 2 * 4096));
  OK(cuMemcpyDtoH(bytes, other, 4097));
  CHECK(bytes[0] == 5 && bytes[4095] == 5 && !bytes[4096]);
  GIVES(CUDA_ERROR_INVALID_VALUE, cuMemsetD8(start + 3 * STEP - 1, 5, 2));
  OK(cuMemGetAddressRange(&base, &size, start + STEP + 5));
  CHECK(base == start + STEP && size == 2 * STEP);
  unsigned long long blocks[2];
  OK(cuPointerGetAttribute(&blocks[0], CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID, start + STEP));
  OK(cuPointerGetAttribute(&blocks[1], CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID, other));
  CHECK(blocks[0] == blocks[1]);
  GIVES(CUDA_ERROR_INVALID_VALUE, cuMemFree(start));
  OK(cuMemRelease(b)); /* what is mapped stays */
  GIVES(CUDA_ERROR_INVALID_VALUE, cuMemMap(start + 3 * STEP, STEP, 0, b, 0));
  OK(cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)(start + 2 * STEP)));
  CHECK(again == b);
  OK(cuMemRelease(again));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuMemAddressFree(start, 4 * STEP));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuMemUnmap(start + STEP, STEP)); /* a part of a mapping */
  GIVES(CUDA_ERROR_INVALID_VALUE, cuMemUnmap(start, 4 * STEP));
  OK(cuMemUnmap(start, 3 * STEP));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuMemUnmap(start, STEP));
  CHECK(before - unused() == 3 * STEP);
  OK(cuMemUnmap(other, STEP));
  CHECK(before - unused() == STEP);
  OK(cuMemMap(start + 3 * STEP, STEP, 0, a, 0));
  OK(cuMemRelease(a));
  OK(cuMemUnmap(start + 3 * STEP, STEP));
  CHECK(unused() == before);
  GIVES(CUDA_ERROR_INVALID_VALUE, cuMemAddressFree(start, STEP));
  OK(cuMemAddressFree(start, 4 * STEP));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuMemAddressFree(start, 4 * STEP));
  OK(cuMemAddressFree(other, STEP));
}

static void rights(void) {
  CUdeviceptr start;
  unsigned long long flags;
  unsigned access;
  CUmemLocation first = {CU_MEM_LOCATION_TYPE_DEVICE, 0}, second = {CU_MEM_LOCATION_TYPE_DEVICE, 1};
  CUmemGenericAllocationHandle a = make(0, STEP, 0);
  OK(cuMemAddressReserve(&start, 2 * STEP, 0, 0, 0));
  OK(cuMemMap(start, STEP, 0, a, 0));
  OK(cuMemMap(start + STEP, STEP, 0, a, 0));
  allow(start, STEP, 1, CU_MEM_ACCESS_FLAGS_PROT_READ);
  OK(cuMemGetAccess(&flags, &first, start));
  CHECK(flags == CU_MEM_ACCESS_FLAGS_PROT_NONE);
  OK(cuMemGetAccess(&flags, &second, start + 5));
  CHECK(flags == CU_MEM_ACCESS_FLAGS_PROT_READ);
  OK(cuMemGetAccess(&flags, &second, start + STEP));
  CHECK(flags == CU_MEM_ACCESS_FLAGS_PROT_NONE);
  allow(start, 2 * STEP, 0, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  OK(cuPointerGetAttribute(&access, CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, start));
  CHECK(access == CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE);
  CUmemAccessDesc wrong = {first, 2};
  GIVES(CUDA_ERROR_INVALID_VALUE, cuMemSetAccess(start, STEP, &wrong, 1));
  wrong = (CUmemAccessDesc){{CU_MEM_LOCATION_TYPE_DEVICE, 7}, CU_MEM_ACCESS_FLAGS_PROT_READ};
  GIVES(CUDA_ERROR_INVALID_DEVICE, cuMemSetAccess(start, STEP, &wrong, 1));
  wrong.location.id = 0;
  GIVES(CUDA_ERROR_INVALID_VALUE, cuMemSetAccess(start, 3 * STEP, &wrong, 1));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuMemGetAccess(&flags, &first, start + 2 * STEP));
  OK(cuMemUnmap(start, STEP));
  OK(cuMemMap(start, STEP, 0, a, 0));
  OK(cuMemGetAccess(&flags, &first, start)); /* a new mapping begins with none */
  CHECK(flags == CU_MEM_ACCESS_FLAGS_PROT_NONE);
  OK(cuMemUnmap(start, 2 * STEP));
  OK(cuMemAddressFree(start, 2 * STEP));
  OK(cuMemRelease(a));
}

static void exported(void) {
  CUmemGenericAllocationHandle a = make(0, STEP, FILES), b;
  CUdeviceptr start;
  int file;
  unsigned value = 0;
  GIVES(CUDA_ERROR_INVALID_VALUE, cuMemExportToShareableHandle(&file, a, CU_MEM_HANDLE_TYPE_FABRIC, 0));
  OK(cuMemExportToShareableHandle(&file, a, FILES, 0));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuMemImportFromShareableHandle(&b, (void *)(uintptr_t)0, FILES));
  OK(cuMemImportFromShareableHandle(&b, (void *)(uintptr_t)file, FILES));
  CHECK(!close(file));
  OK(cuMemAddressReserve(&start, 2 * STEP, 0, 0, 0));
  OK(cuMemMap(start, STEP, 0, a, 0));
  OK(cuMemMap(start + STEP, STEP, 0, b, 0));
  allow(start, 2 * STEP, 0, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  OK(cuMemsetD32(start + 8, 77, 1));
  OK(cuMemcpyDtoH(&value, start + STEP + 8, 4));
  CHECK(value == 77);
  OK(cuMemRelease(a));
  OK(cuMemUnmap(start, STEP));
  OK(cuMemcpyDtoH(&value, start + STEP + 8, 4));
  CHECK(value == 77);
  OK(cuMemUnmap(start + STEP, STEP));
  OK(cuMemRelease(b));
  OK(cuMemAddressFree(start, 2 * STEP));
}

static void wait_until(void *given) {
  sem_t *gate = given;
  while (sem_wait(gate)) {
  }
}

/* Work that is in streams may still use what is unmapped or freed, and must not crash. */
static void under_way(void) {
  CUmemGenericAllocationHandle a = make(0, STEP, 0), b = make(0, STEP, 0);
  CUcontext second, first;
  CUdeviceptr start, target;
  CUstream stream;
  unsigned char *pinned, byte = 9;
  sem_t gate;
  sem_init(&gate, 0, 0);
  OK(cuMemAddressReserve(&start, 3 * STEP, 0, 0, 0));
  OK(cuMemMap(start, STEP, 0, a, 0));
  OK(cuMemMap(start + STEP, STEP, 0, a, 0));
  allow(start, 2 * STEP, 0, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  OK(cuMemAllocHost((void **)&pinned, STEP));
  OK(cuCtxGetCurrent(&first));
  OK(cuCtxCreate(&second, NULL, 0, 1)); /* whose work freeing does not wait for */
  OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  OK(cuMemAlloc(&target, 3 * STEP));
  OK(cuLaunchHostFunc(stream, wait_until, &gate));
  OK(cuMemcpyDtoDAsync(target, start, 2 * STEP, stream));
  OK(cuMemcpyDtoDAsync(target, (CUdeviceptr)(uintptr_t)pinned, STEP, stream));
  OK(cuMemsetD8Async(start, 3, STEP, stream));
  OK(cuMemsetD8Async((CUdeviceptr)(uintptr_t)pinned, 3, STEP, stream));
  OK(cuMemUnmap(start, 2 * STEP));
  OK(cuMemFreeHost(pinned));
  OK(cuMemMap(start, STEP, 0, b, 0));
  allow(start, STEP, 0, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  sem_post(&gate);
  OK(cuStreamSynchronize(stream));
  OK(cuMemcpyDtoH(&byte, start + STEP - 1, 1));
  CHECK(byte == 3); /* what is mapped now was there when it came to that */
  OK(cuLaunchHostFunc(stream, wait_until, &gate));
  OK(cuMemsetD8Async(start, 4, STEP, stream));
  OK(cuMemUnmap(start, STEP));
  OK(cuMemAddressFree(start, 3 * STEP));
  sem_post(&gate);
  OK(cuCtxDestroy(second));
  OK(cuCtxSetCurrent(first));
  OK(cuMemRelease(a));
  OK(cuMemRelease(b));
  sem_destroy(&gate);
}

int main(void) {
  CUcontext context;
  OK(cuInit(0));
  OK(cuCtxCreate(&context, NULL, 0, 0));
  size_t before = unused();
  properties();
  mappings();
  rights();
  exported();
  under_way();
  CHECK(unused() == before);
  OK(cuCtxDestroy(context));
  return 0;
}
