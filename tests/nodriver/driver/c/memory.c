/* Memory: what is taken, given back and known, copies and fills, limits. Devices are an A100-80G and an L40S. */
#include <pthread.h>

#include "check.h"

static const size_t GIB = 1ull << 30;

static void taken_and_given(void) {
  CUdeviceptr a, b, base;
  size_t free_before, free_now, total, size;
  unsigned char bytes[3000], expected[3000];
  OK(cuMemGetInfo(&free_before, &total));
  CHECK(total == 80 * GIB && free_before == total);
  GIVES(CUDA_ERROR_INVALID_VALUE, cuMemAlloc(&a, 0));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuMemAlloc(NULL, 1));
  OK(cuMemAlloc(&a, 3000));
  OK(cuMemAlloc(&b, 1));
  CHECK(a % 512 == 0 && b % 512 == 0 && (b >= a + 3000 || b < a));
  OK(cuMemGetInfo(&free_now, &total));
  CHECK(free_before - free_now == 3072 + 512);
  memset(expected, 0, sizeof expected);
  OK(cuMemcpyDtoH(bytes, a, 3000));
  CHECK(!memcmp(bytes, expected, 3000)); /* new memory is zero */
  OK(cuMemGetAddressRange(&base, &size, a + 2999));
  CHECK(base == a && size == 3000);
  GIVES(CUDA_ERROR_NOT_FOUND, cuMemGetAddressRange(&base, &size, a + 3000));
  OK(cuMemsetD8(a, 0xaa, 3000));
  OK(cuMemFree(a));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuMemFree(a));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuMemFree(b + 4));
  OK(cuMemFree(0));
  OK(cuMemAlloc(&a, 3000));
  OK(cuMemcpyDtoH(bytes, a, 3000));
  CHECK(!memcmp(bytes, expected, 3000)); /* and so is memory that somebody had */
  OK(cuMemFree(a));
  OK(cuMemFree(b));
  OK(cuMemGetInfo(&free_now, &total));
  CHECK(free_now == free_before);
}

/* Memory that was used is zero again, however it is cut into pieces the next time, and nothing else becomes so. */
static void used_again(void) {
  enum { MOST = 3 << 20, PIECES = 40 };
  static unsigned char bytes[MOST];
  CUdeviceptr pieces[PIECES] = {0}, beside;
  size_t sizes[PIECES];
  unsigned seed = 1;
  OK(cuMemAlloc(&beside, 5000));
  OK(cuMemsetD8(beside, 0x55, 5000));
  for (int i = 0; i < 400; i++) {
    int n = (int)(seed >> 16) % PIECES;
    seed = seed * 1103515245 + 12345;
    if (pieces[n]) {
      OK(cuMemFree(pieces[n]));
      pieces[n] = 0;
      continue;
    }
    sizes[n] = 1 + (i % 3 ? seed % 20000 : seed % MOST);
    OK(cuMemAlloc(&pieces[n], sizes[n]));
    OK(cuMemcpyDtoH(bytes, pieces[n], sizes[n]));
    CHECK(!bytes[0] && !memcmp(bytes, bytes + 1, sizes[n] - 1));
    if (i % 2) OK(cuMemsetD8(pieces[n], 0xaa, sizes[n]));
    if (!(i % 2)) OK(cuMemsetD2D8(pieces[n], 12288, 0xaa, sizes[n] < 77 ? sizes[n] : 77, sizes[n] / 12288));
  }
  OK(cuMemcpyDtoH(bytes, beside, 5000));
  CHECK(bytes[0] == 0x55 && !memcmp(bytes, bytes + 1, 4999));
  for (int n = 0; n < PIECES; n++) OK(cuMemFree(pieces[n]));
  OK(cuMemFree(beside));
}

static void limits(void) {
  CUdeviceptr all, more, half[2];
  OK(cuMemAlloc(&all, 80 * GIB));
  GIVES(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc(&more, 1));
  OK(cuMemsetD8(all + 80 * GIB - 5000, 1, 5000)); /* only what is written takes memory of this machine */
  OK(cuMemFree(all));
  GIVES(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc(&more, 80 * GIB + 1));
  GIVES(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc(&more, SIZE_MAX));
  OK(cuMemAlloc(&half[0], 40 * GIB));
  OK(cuMemAlloc(&half[1], 40 * GIB));
  OK(cuMemFree(half[0]));
  OK(cuMemFree(half[1]));
  OK(cuMemAlloc(&all, 80 * GIB)); /* neighbours are one again */
  OK(cuMemFree(all));
}

static void copies(void) {
  CUdeviceptr a, b;
  unsigned char from[5000], to[5000];
  for (int i = 0; i < 5000; i++) from[i] = (unsigned char)(i * 7);
  OK(cuMemAlloc(&a, 5000));
  OK(cuMemAlloc(&b, 5000));
  OK(cuMemcpyHtoD(a, from, 5000));
  OK(cuMemcpyDtoD(b + 100, a, 4900));
  OK(cuMemcpyDtoH(to, b + 100, 4900));
  CHECK(!memcmp(from, to, 4900));
  OK(cuMemcpy(a, b, 100));
  OK(cuMemcpy((CUdeviceptr)to, a, 200));
  CHECK(!to[0] && !to[99] && to[100] == from[100]);
  OK(cuMemcpyHtoD(a, from, 0));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD(a, from, 5001));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD(a + 5000, from, 1));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD((CUdeviceptr)to, from, 1));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoH(to, a, (size_t)-1));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoH(NULL, a, 1));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuMemcpy(a + 4999, (CUdeviceptr)from, 2));
  OK(cuMemFree(a));
  OK(cuMemFree(b));
}

static void fills(void) {
  CUdeviceptr a;
  size_t pitch;
  unsigned char to[4096];
  OK(cuMemAllocPitch(&a, &pitch, 100, 4, 4));
  CHECK(pitch >= 100 && pitch % 512 == 0);
  GIVES(CUDA_ERROR_INVALID_VALUE, cuMemAllocPitch(&a, &pitch, 100, 4, 3));
  OK(cuMemsetD2D32(a + 4, pitch, 0x01020304, 3, 4));
  OK(cuMemsetD2D16(a + 20, pitch, 0x1122, 2, 2));
  OK(cuMemsetD2D8(a + 40, pitch, 9, 1, 1));
  OK(cuMemcpyDtoH(to, a, 3 * pitch + 100));
  for (int y = 0; y < 4; y++) {
    const unsigned char *row = to + y * pitch;
    CHECK(row[3] == 0 && row[4] == 4 && row[7] == 1 && row[12] == 4 && row[15] == 1 && row[16] == 0);
    CHECK(row[20] == (y < 2 ? 0x22 : 0) && row[23] == (y < 2 ? 0x11 : 0) && !row[24] && row[40] == (y ? 0 : 9));
  }
  OK(cuMemsetD32(a, 0x07070707, 25));
  OK(cuMemsetD16(a + 8, 0xffff, 3));
  OK(cuMemcpyDtoH(to, a, 16));
  CHECK(to[7] == 7 && to[8] == 0xff && to[13] == 0xff && to[14] == 7);
  OK(cuMemsetD32(a, 5, 25));
  OK(cuMemcpyDtoH(to, a, 104));
  CHECK(to[0] == 5 && to[96] == 5 && to[97] == 0 && to[100] == 0);
  GIVES(CUDA_ERROR_INVALID_VALUE, cuMemsetD32(a + 2, 5, 1));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuMemsetD16(a + 1, 5, 1));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuMemsetD8(a, 5, 4 * pitch + 1));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuMemsetD32(a, 5, SIZE_MAX / 2));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuMemsetD2D8(a, 10, 5, 20, 2));
  OK(cuMemFree(a));
}

static void host(void) {
  void *pinned;
  CUdeviceptr device;
  unsigned flags, type;
  static char own[10000];
  OK(cuMemHostAlloc(&pinned, 5000, CU_MEMHOSTALLOC_PORTABLE));
  memset(pinned, 1, 5000);
  OK(cuMemHostGetDevicePointer(&device, (char *)pinned + 7, 0));
  CHECK(device == (CUdeviceptr)pinned + 7);
  OK(cuMemHostGetFlags(&flags, pinned));
  CHECK(flags & CU_MEMHOSTALLOC_PORTABLE && flags & CU_MEMHOSTALLOC_DEVICEMAP);
  OK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, device));
  CHECK(type == CU_MEMORYTYPE_HOST);
  OK(cuMemsetD8(device, 3, 10));
  CHECK(((char *)pinned)[7] == 3 && ((char *)pinned)[17] == 1);
  GIVES(CUDA_ERROR_INVALID_VALUE, cuMemFree((CUdeviceptr)pinned));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuMemFreeHost((char *)pinned + 1));
  OK(cuMemFreeHost(pinned));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuMemFreeHost(pinned));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuMemHostAlloc(&pinned, 1, 64));

  GIVES(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, cuMemHostUnregister(own));
  OK(cuMemHostRegister(own + 100, 5000, CU_MEMHOSTREGISTER_DEVICEMAP));
  GIVES(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, cuMemHostRegister(own, 101, 0));
  GIVES(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, cuMemHostRegister(own + 5099, 1, 0));
  OK(cuMemHostGetDevicePointer(&device, own + 200, 0));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuMemHostGetDevicePointer(&device, own, 0));
  GIVES(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, cuMemHostUnregister(own));
  OK(cuMemHostUnregister(own + 100));
}

static void pointers(void) {
  CUdeviceptr a, start;
  CUcontext context, current;
  int ordinal;
  unsigned type;
  unsigned long long first, second;
  size_t size;
  OK(cuCtxGetCurrent(&current));
  OK(cuMemAlloc(&a, 1000));
  OK(cuPointerGetAttribute(&context, CU_POINTER_ATTRIBUTE_CONTEXT, a + 999));
  OK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, a));
  OK(cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, a));
  OK(cuPointerGetAttribute(&first, CU_POINTER_ATTRIBUTE_BUFFER_ID, a));
  CHECK(context == current && type == CU_MEMORYTYPE_DEVICE && ordinal == 0);
  GIVES(CUDA_ERROR_INVALID_VALUE, cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, a + 1000));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)&type));
  CUpointer_attribute which[] = {CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, CU_POINTER_ATTRIBUTE_RANGE_SIZE,
                                 CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
  void *data[] = {&start, &size, &ordinal};
  OK(cuPointerGetAttributes(3, which, data, a + 5));
  CHECK(start == a && size == 1000 && ordinal == 0);
  OK(cuPointerGetAttributes(3, which, data, (CUdeviceptr)&type));
  CHECK(start == 0 && size == 0 && ordinal == -2);
  OK(cuMemFree(a));
  OK(cuMemAlloc(&a, 1000));
  OK(cuPointerGetAttribute(&second, CU_POINTER_ATTRIBUTE_BUFFER_ID, a));
  CHECK(first != second);
  OK(cuMemFree(a));
}

/* What a context has ends with it; devices do not share bytes or addresses. */
static void contexts(void) {
  CUcontext second;
  CUdeviceptr a, b, pieces[50];
  size_t unused, total, size;
  void *pinned;
  OK(cuMemAlloc(&a, 4096));
  OK(cuCtxCreate(&second, NULL, 0, 1));
  OK(cuMemGetInfo(&unused, &total));
  CHECK(total == 48 * GIB && unused == total);
  OK(cuMemAlloc(&b, 4096));
  OK(cuMemsetD8(b, 7, 4096));
  OK(cuMemcpyDtoD(a, b, 10)); /* between devices */
  for (int i = 0; i < 50; i++) OK(cuMemAlloc(&pieces[i], 1000 * (size_t)(i + 1)));
  OK(cuMemAllocHost(&pinned, 100));
  OK(cuCtxDestroy(second));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuMemFree(b));
  GIVES(CUDA_ERROR_NOT_FOUND, cuMemGetAddressRange(&b, &size, pieces[20]));
  OK(cuCtxCreate(&second, NULL, 0, 1));
  OK(cuMemGetInfo(&unused, &total));
  CHECK(unused == total);
  OK(cuCtxDestroy(second));
  OK(cuMemFree(a));
}

enum { MANY = 20000 };

static void many(void) {
  static CUdeviceptr pieces[MANY];
  size_t unused, total;
  for (int i = 0; i < MANY; i++) {
    OK(cuMemAlloc(&pieces[i], 1 + (size_t)(i * 7919) % 5000));
    OK(cuMemsetD8(pieces[i], (unsigned char)i, 1));
  }
  for (int i = 0; i < MANY; i += 2) OK(cuMemFree(pieces[i]));
  for (int i = 1; i < MANY; i += 2) {
    unsigned char byte;
    OK(cuMemcpyDtoH(&byte, pieces[i], 1));
    CHECK(byte == (unsigned char)i);
  }
  for (int i = 0; i < MANY; i += 2) OK(cuMemAlloc(&pieces[i], 1 + (size_t)(i * 31) % 700));
  for (int i = MANY - 1; i >= 0; i--) OK(cuMemFree(pieces[i]));
  OK(cuMemGetInfo(&unused, &total));
  CHECK(unused == total);
}

static CUcontext shared;

static void *thread(void *given) {
  unsigned seed = (unsigned)(size_t)given;
  OK(cuCtxSetCurrent(shared));
  for (int i = 0; i < 500; i++) {
    CUdeviceptr a;
    unsigned value = seed * 1000 + (unsigned)i, back = 0;
    OK(cuMemAlloc(&a, 100 + 997 * (size_t)(i % 13)));
    OK(cuMemsetD32(a, value, 25));
    OK(cuMemcpyDtoH(&back, a + 96, 4));
    CHECK(back == value);
    OK(cuMemFree(a));
  }
  return NULL;
}

int main(void) {
  CUdeviceptr a;
  GIVES(CUDA_ERROR_NOT_INITIALIZED, cuMemAlloc(&a, 1));
  OK(cuInit(0));
  GIVES(CUDA_ERROR_INVALID_CONTEXT, cuMemAlloc(&a, 1));
  OK(cuDevicePrimaryCtxRetain(&shared, 0));
  OK(cuCtxSetCurrent(shared));
  taken_and_given();
  used_again();
  limits();
  copies();
  fills();
  host();
  pointers();
  contexts();
  many();
  pthread_t threads[4];
  for (size_t i = 0; i < 4; i++) CHECK(!pthread_create(&threads[i], NULL, thread, (void *)i));
  for (int i = 0; i < 4; i++) CHECK(!pthread_join(threads[i], NULL));
  OK(cuMemAlloc(&a, 100));
  OK(cuDevicePrimaryCtxRelease(0));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuMemFree(a));
  return 0;
}
