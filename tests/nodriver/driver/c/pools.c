/* Memory that streams allocate and free, and the pools that it comes from. Devices are an A100-80G and an L40S. */
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <unistd.h>

#include "check.h"

static const size_t GIB = 1ull << 30;

static cuuint64_t attribute(CUmemoryPool pool, CUmemPool_attribute which) {
  cuuint64_t found = 0;
  OK(cuMemPoolGetAttribute(pool, which, &found));
  return found;
}

static size_t unused(void) {
  size_t bytes, total;
  OK(cuMemGetInfo(&bytes, &total));
  return bytes;
}

static CUmemoryPool make(int device, size_t most, CUmemAllocationHandleType types) {
  CUmemPoolProps wanted = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .handleTypes = types, .maxSize = most,
                           .location = {CU_MEM_LOCATION_TYPE_DEVICE, device}};
  CUmemoryPool pool;
  OK(cuMemPoolCreate(&pool, &wanted));
  return pool;
}

static void wait_until(void *given) {
  sem_t *gate = given;
  while (sem_wait(gate)) {
  }
}

/* A free is done when its stream comes to it. */
static void in_order(void) {
  CUstream stream;
  CUdeviceptr a, base;
  CUmemoryPool pool, of;
  sem_t gate;
  size_t before = unused(), size;
  unsigned char bytes[100];
  sem_init(&gate, 0, 0);
  OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  OK(cuDeviceGetDefaultMemPool(&pool, 0));
  OK(cuMemAllocAsync(&a, 3000, stream));
  CHECK(before - unused() == 3072 && attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT) == 3072);
  OK(cuMemcpyDtoHAsync(bytes, a, 100, stream));
  OK(cuStreamSynchronize(stream));
  for (int n = 0; n < 100; n++) CHECK(!bytes[n]);
  OK(cuPointerGetAttribute(&of, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, a + 5));
  CHECK(of == pool);
  OK(cuLaunchHostFunc(stream, wait_until, &gate));
  OK(cuMemsetD8Async(a, 1, 3000, stream));
  OK(cuMemFreeAsync(a, stream));
  CHECK(before - unused() == 3072);
  GIVES(CUDA_ERROR_INVALID_VALUE, cuMemFreeAsync(a, stream));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuMemFree(a));
  sem_post(&gate);
  OK(cuStreamSynchronize(stream));
  CHECK(unused() == before && !attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT));
  CHECK(attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH) == 3072);
  GIVES(CUDA_ERROR_NOT_FOUND, cuMemGetAddressRange(&base, &size, a));
  OK(cuMemAllocAsync(&a, 3000, stream));
  OK(cuMemcpyDtoHAsync(bytes, a, 100, stream));
  OK(cuStreamSynchronize(stream));
  CHECK(!bytes[0] && !bytes[99]); /* zero again */
  OK(cuMemFree(a));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuMemFreeAsync(a, stream));
  OK(cuMemAlloc(&a, 10));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuMemFreeAsync(a, stream));
  OK(cuMemFree(a));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuMemAllocAsync(&a, 0, stream));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuMemAllocFromPoolAsync(&a, 10, (CUmemoryPool)&gate, stream));
  GIVES(CUDA_ERROR_OUT_OF_MEMORY, cuMemAllocAsync(&a, 81 * GIB, stream));
  /* What is still to be freed is waited for. */
  for (int n = 0; n < 5; n++) {
    OK(cuMemAllocAsync(&a, 60 * GIB, stream));
    OK(cuMemFreeAsync(a, stream));
  }
  OK(cuStreamDestroy(stream));
  sem_destroy(&gate);
}

static void pools(void) {
  CUmemoryPool standard, pool = make(0, 1 << 20, CU_MEM_HANDLE_TYPE_NONE), found;
  CUmemLocation place = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  CUdeviceptr a, b;
  int reuse = 5;
  cuuint64_t threshold = GIB, none = 0;
  OK(cuDeviceGetDefaultMemPool(&standard, 0));
  OK(cuDeviceGetMemPool(&found, 0));
  CHECK(found == standard);
  GIVES(CUDA_ERROR_INVALID_VALUE, cuMemPoolDestroy(standard));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuDeviceSetMemPool(1, pool));
  GIVES(CUDA_ERROR_INVALID_DEVICE, cuDeviceSetMemPool(2, pool));
  OK(cuDeviceSetMemPool(0, pool));
  OK(cuMemGetMemPool(&found, &place, CU_MEM_ALLOCATION_TYPE_PINNED));
  CHECK(found == pool);
  OK(cuMemAllocAsync(&a, 1000 << 10, 0));
  GIVES(CUDA_ERROR_OUT_OF_MEMORY, cuMemAllocAsync(&b, 100 << 10, 0)); /* more than its largest size */
  CHECK(attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) == 1000 << 10);
  OK(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, &reuse));
  CHECK(reuse == 1);
  reuse = 0;
  OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, &reuse));
  OK(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, &reuse));
  CHECK(reuse == 0);
  OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
  CHECK(attribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD) == GIB);
  GIVES(CUDA_ERROR_INVALID_VALUE, cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &none));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &threshold));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuMemPoolGetAttribute(pool, 99, &none));
  OK(cuMemPoolTrimTo(pool, 0));
  OK(cuMemPoolDestroy(pool)); /* its memory still works */
  OK(cuDeviceGetMemPool(&found, 0));
  CHECK(found == standard);
  GIVES(CUDA_ERROR_INVALID_VALUE, cuMemPoolTrimTo(pool, 0));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuMemPoolDestroy(pool));
  OK(cuMemsetD8(a, 1, 1000 << 10));
  OK(cuMemFreeAsync(a, 0));
  OK(cuCtxSynchronize());

  CUmemPoolProps wrong = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 2}};
  GIVES(CUDA_ERROR_INVALID_DEVICE, cuMemPoolCreate(&pool, &wrong));
  wrong.location.id = 0;
  wrong.handleTypes = CU_MEM_HANDLE_TYPE_FABRIC;
  GIVES(CUDA_ERROR_NOT_SUPPORTED, cuMemPoolCreate(&pool, &wrong));
  wrong.handleTypes = 0;
  wrong.reserved[3] = 1;
  GIVES(CUDA_ERROR_INVALID_VALUE, cuMemPoolCreate(&pool, &wrong));
  wrong.reserved[3] = 0;
  wrong.location.type = CU_MEM_LOCATION_TYPE_HOST;
  GIVES(CUDA_ERROR_NOT_SUPPORTED, cuMemPoolCreate(&pool, &wrong));
}

static void rights(void) {
  CUmemoryPool pool = make(0, 0, CU_MEM_HANDLE_TYPE_NONE);
  CUmemAccess_flags flags;
  CUmemLocation second = {CU_MEM_LOCATION_TYPE_DEVICE, 1};
  CUmemAccessDesc wanted = {second, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  OK(cuMemPoolGetAccess(&flags, pool, &second));
  CHECK(flags == CU_MEM_ACCESS_FLAGS_PROT_NONE);
  OK(cuMemPoolSetAccess(pool, &wanted, 1));
  OK(cuMemPoolGetAccess(&flags, pool, &second));
  CHECK(flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  wanted.flags = CU_MEM_ACCESS_FLAGS_PROT_READ;
  GIVES(CUDA_ERROR_INVALID_VALUE, cuMemPoolSetAccess(pool, &wanted, 1));
  wanted = (CUmemAccessDesc){{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_NONE};
  GIVES(CUDA_ERROR_INVALID_VALUE, cuMemPoolSetAccess(pool, &wanted, 1));
  wanted.location.id = 2;
  GIVES(CUDA_ERROR_INVALID_DEVICE, cuMemPoolSetAccess(pool, &wanted, 1));
  OK(cuMemPoolDestroy(pool));
}

/* In the same process: the exported pool and the imported one are the same memory. */
static void exported(void) {
  CUmemoryPool private = make(0, 0, CU_MEM_HANDLE_TYPE_NONE);
  CUmemoryPool pool = make(0, 0, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  CUmemoryPool imported;
  CUmemPoolPtrExportData data, wrong;
  CUdeviceptr a, b, c;
  CUipcMemHandle handle;
  unsigned long long types;
  int file;
  size_t before = unused();
  GIVES(CUDA_ERROR_INVALID_VALUE,
        cuMemPoolExportToShareableHandle(&file, private, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
  OK(cuMemPoolExportToShareableHandle(&file, pool, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
  OK(cuMemAllocFromPoolAsync(&a, 5000, private, 0));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuMemPoolExportPointer(&data, a));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuIpcGetMemHandle(&handle, a));
  OK(cuMemFree(a));
  OK(cuMemAllocFromPoolAsync(&b, 100, pool, 0));
  OK(cuMemAllocFromPoolAsync(&a, 5000, pool, 0));
  OK(cuMemsetD32(a, 17, 10));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuMemPoolExportPointer(&data, a + 1));
  OK(cuMemPoolExportPointer(&data, a));
  OK(cuPointerGetAttribute(&types, CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, a));
  CHECK(types == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  GIVES(CUDA_ERROR_INVALID_VALUE, cuMemPoolImportFromShareableHandle(&imported, (void *)(uintptr_t)0,
                                                                     CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
  OK(cuMemPoolImportFromShareableHandle(&imported, (void *)(uintptr_t)file, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                        0));
  CHECK(!close(file));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuDeviceSetMemPool(0, imported));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuMemAllocFromPoolAsync(&c, 10, imported, 0));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuMemPoolImportPointer(&c, pool, &data));
  wrong = data;
  wrong.reserved[17] ^= 0x40; /* somewhere far behind */
  wrong.reserved[22] = 1;
  GIVES(CUDA_ERROR_INVALID_VALUE, cuMemPoolImportPointer(&c, imported, &wrong));
  OK(cuMemPoolImportPointer(&c, imported, &data));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuMemPoolImportPointer(&b, imported, &data));
  unsigned value = 0;
  OK(cuMemcpyDtoH(&value, c + 36, 4));
  CHECK(c != a && value == 17);
  OK(cuMemsetD32(c, 18, 1));
  OK(cuMemcpyDtoH(&value, a, 4));
  CHECK(value == 18);
  OK(cuMemPoolDestroy(imported));
  OK(cuMemFreeAsync(c, 0));
  OK(cuMemFreeAsync(a, 0));
  OK(cuMemPoolDestroy(pool));
  OK(cuMemPoolDestroy(private));
  OK(cuMemFree(b));
  OK(cuCtxSynchronize());
  CHECK(unused() == before);
}

static CUcontext shared;

static void *thread(void *given) {
  CUstream stream;
  unsigned seed = (unsigned)(size_t)given;
  OK(cuCtxSetCurrent(shared));
  OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  for (unsigned n = 0; n < 300; n++) {
    CUdeviceptr a;
    unsigned value = seed * 1000 + n, back = 0;
    OK(cuMemAllocAsync(&a, 100 + 997 * (size_t)(n % 13), stream));
    OK(cuMemsetD32Async(a, value, 25, stream));
    OK(cuMemcpyDtoHAsync(&back, a + 96, 4, stream));
    OK(cuMemFreeAsync(a, stream));
    CHECK(back == value);
  }
  OK(cuStreamDestroy(stream));
  return NULL;
}

int main(void) {
  pthread_t threads[4];
  int value;
  CUdeviceptr a;
  OK(cuInit(0));
  GIVES(CUDA_ERROR_INVALID_CONTEXT, cuMemAllocAsync(&a, 10, 0));
  OK(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 0));
  CHECK(value == 1);
  OK(cuCtxCreate(&shared, NULL, 0, 0));
  in_order();
  pools();
  rights();
  exported();
  for (size_t n = 0; n < 4; n++) CHECK(!pthread_create(&threads[n], NULL, thread, (void *)n));
  for (int n = 0; n < 4; n++) CHECK(!pthread_join(threads[n], NULL));
  OK(cuMemAllocAsync(&a, 100, 0)); /* of a pool, which no context takes with it */
  OK(cuMemFreeAsync(a, 0));
  OK(cuCtxDestroy(shared));
  return 0;
}
