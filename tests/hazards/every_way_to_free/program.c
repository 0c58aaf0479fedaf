/* Memory by every function that gives it, given back by every function that takes it; and twice, and what is no
 * memory. */
#include "hazard.h"

static CUstream stream;
static CUmemoryPool pool;
static CUdeviceptr pointer;
static void *host;
static size_t pitch;
static char registered[1 << 16] __attribute__((aligned(4096)));

static CUresult by_alloc(void) { return cuMemAlloc(&pointer, 4096); }
static CUresult by_pitch(void) { return cuMemAllocPitch(&pointer, &pitch, 100, 10, 4); }
static CUresult managed(void) { return cuMemAllocManaged(&pointer, 4096, CU_MEM_ATTACH_GLOBAL); }
static CUresult async(void) { return cuMemAllocAsync(&pointer, 4096, stream); }
static CUresult pooled(void) { return cuMemAllocFromPoolAsync(&pointer, 4096, pool, stream); }
static CUresult host_alloc(void) { return cuMemHostAlloc(&host, 4096, CU_MEMHOSTALLOC_PORTABLE); }
static CUresult alloc_host(void) { return cuMemAllocHost(&host, 4096); }
static CUresult registers(void) { return cuMemHostRegister(host = registered, sizeof registered, 0); }
static CUresult nothing(void) { return pointer = 0x123400, host = &pointer, CUDA_SUCCESS; }

static CUresult plainly(void) { return cuMemFree(pointer); }
static CUresult asynchronously(void) { return cuMemFreeAsync(pointer, stream); }
static CUresult host_free(void) { return cuMemFreeHost(host); }
static CUresult unregister(void) { return cuMemHostUnregister(host); }

int main(void) {
  CUcontext context;
  CUresult (*makers[])(void) = {by_alloc, by_pitch, managed, async, pooled, host_alloc, alloc_host, registers, nothing};
  CUresult (*takers[])(void) = {plainly, asynchronously, host_free, unregister};
  CHECK(cuInit(0));
  CHECK(cuDevicePrimaryCtxRetain(&context, 0));
  CHECK(cuCtxSetCurrent(context));
  CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CHECK(cuDeviceGetDefaultMemPool(&pool, 0));
  for (int maker = 0; maker < 9; maker++)
    for (int taker = 0; taker < 4; taker++) {
      if ((maker < 5) != (taker < 2) && maker < 8) continue; /* the other memory's: drivers differ in their answers */
      CUresult made = makers[maker]();
      CUresult first = takers[taker](), again = takers[taker]();
      printf("%d by %d: %d %d %d\n", maker, taker, made, first, again);
      if (first) takers[maker < 5 ? 0 : maker == 7 ? 3 : 2]();
    }
  CHECK(cuStreamSynchronize(stream));
  return 0;
}
