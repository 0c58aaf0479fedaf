/* Memory operations of streams: who writes what is waited for may be a stream, a thread of the host, or another process. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

static void pause_ms(long milliseconds) {
  struct timespec time = {milliseconds / 1000, milliseconds % 1000 * 1000000};
  nanosleep(&time, NULL);
}

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* A stream that is let wait must still wait after a while, and then not. */
static void waits_until(CUstream stream, atomic_uint *at, unsigned value) {
  pause_ms(3);
  GIVES(CUDA_ERROR_NOT_READY, cuStreamQuery(stream));
  *at = value;
  OK(cuStreamSynchronize(stream));
}

static void conditions(CUstream stream, unsigned *pinned) {
  atomic_uint *at = (atomic_uint *)pinned;
  _Atomic uint64_t *wide = (_Atomic uint64_t *)pinned;
  CUdeviceptr device;
  OK(cuMemHostGetDevicePointer(&device, pinned, 0));
  *at = 5;
  OK(cuStreamWaitValue32(stream, device, 5, CU_STREAM_WAIT_VALUE_GEQ));
  OK(cuStreamWaitValue32(stream, device, 4, CU_STREAM_WAIT_VALUE_GEQ));
  OK(cuStreamSynchronize(stream));
  OK(cuStreamWaitValue32(stream, device, 6, CU_STREAM_WAIT_VALUE_GEQ));
  waits_until(stream, at, 7);
  *at = 0xfffffff0u; /* before 2, as it goes round */
  OK(cuStreamWaitValue32(stream, device, 2, CU_STREAM_WAIT_VALUE_GEQ));
  waits_until(stream, at, 2);
  OK(cuStreamWaitValue32(stream, device, 3, CU_STREAM_WAIT_VALUE_EQ | CU_STREAM_WAIT_VALUE_FLUSH));
  pause_ms(1);
  *at = 4;
  waits_until(stream, at, 3);
  *at = 8;
  OK(cuStreamWaitValue32(stream, device, 7, CU_STREAM_WAIT_VALUE_AND));
  waits_until(stream, at, 10);
  *at = 0xffffff00u;
  OK(cuStreamWaitValue32(stream, device, 0xff, CU_STREAM_WAIT_VALUE_NOR));
  waits_until(stream, at, 0x7fffff00u);
  *wide = 1ull << 40;
  OK(cuStreamWaitValue64(stream, device, (1ull << 40) + 1, CU_STREAM_WAIT_VALUE_GEQ));
  pause_ms(1);
  GIVES(CUDA_ERROR_NOT_READY, cuStreamQuery(stream));
  *wide = 1ull << 41;
  OK(cuStreamWaitValue64(stream, device, 1ull << 41, CU_STREAM_WAIT_VALUE_EQ));
  OK(cuStreamWaitValue64(stream, device, UINT32_MAX, CU_STREAM_WAIT_VALUE_NOR));
  OK(cuStreamSynchronize(stream));
}

static void refusals(CUstream stream, unsigned *pinned) {
  CUdeviceptr device = (CUdeviceptr)pinned, a;
  unsigned own[2];
  CUstreamBatchMemOpParams many[256] = {0};
  OK(cuMemAlloc(&a, 8));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuStreamWaitValue32(stream, device, 1, 4));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuStreamWaitValue32(stream, device + 2, 1, 0));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuStreamWriteValue64(stream, device + 4, 1, 0));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuStreamWaitValue32(stream, (CUdeviceptr)own, 1, 0));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuStreamWriteValue32(stream, a + 8, 1, 0));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuStreamWriteValue32(stream, a, 1, 2));
  GIVES(CUDA_ERROR_NOT_SUPPORTED, cuStreamWriteValue32(stream, a, 1, CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER));
  GIVES(CUDA_ERROR_INVALID_HANDLE, cuStreamWriteValue32((CUstream)own, a, 1, 0));
  for (int i = 0; i < 256; i++) many[i].flushRemoteWrites.operation = CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES;
  OK(cuStreamBatchMemOp(stream, 255, many, 0));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuStreamBatchMemOp(stream, 256, many, 0));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuStreamBatchMemOp(stream, 1, many, 1));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuStreamBatchMemOp(stream, 1, NULL, 0));
  many[1].memoryBarrier.operation = CU_STREAM_MEM_OP_BARRIER;
  many[1].memoryBarrier.flags = 2;
  GIVES(CUDA_ERROR_INVALID_VALUE, cuStreamBatchMemOp(stream, 2, many, 0));
  many[1].memoryBarrier.operation = 77;
  GIVES(CUDA_ERROR_INVALID_VALUE, cuStreamBatchMemOp(stream, 2, many, 0));
  OK(cuMemFree(a));
}

/* Two streams hand a value to and fro, in memory of the device, by batches. */
static void to_and_fro(void) {
  enum { ROUNDS = 200 };
  CUstream streams[2];
  CUdeviceptr a;
  unsigned found = 0;
  OK(cuMemAlloc(&a, 8));
  for (int s = 0; s < 2; s++) OK(cuStreamCreate(&streams[s], CU_STREAM_NON_BLOCKING));
  for (unsigned i = 0; i < ROUNDS; i++)
    for (int s = 1; s >= 0; s--) { /* who waits longer comes first */
      CUstreamBatchMemOpParams batch[3] = {0};
      batch[0].waitValue = (struct CUstreamMemOpWaitValueParams_st){
          .operation = CU_STREAM_MEM_OP_WAIT_VALUE_32, .address = a, .value = 2 * i + (unsigned)s,
          .flags = CU_STREAM_WAIT_VALUE_EQ};
      batch[1].memoryBarrier.operation = CU_STREAM_MEM_OP_BARRIER;
      batch[2].writeValue = (struct CUstreamMemOpWriteValueParams_st){
          .operation = CU_STREAM_MEM_OP_WRITE_VALUE_32, .address = a, .value = 2 * i + (unsigned)s + 1};
      OK(cuStreamBatchMemOp(streams[s], 3, batch, 0));
    }
  OK(cuCtxSynchronize());
  OK(cuMemcpyDtoH(&found, a, 4));
  CHECK(found == 2 * ROUNDS);
  for (int s = 0; s < 2; s++) OK(cuStreamDestroy(streams[s]));
  OK(cuMemFree(a));
}

/* More streams wait than there are threads; they cost next to nothing meanwhile. */
static void many(atomic_uint *at) {
  enum { MANY = 300 };
  static CUstream streams[MANY];
  CUdeviceptr a;
  unsigned back[MANY];
  struct rusage before, after;
  *at = 0;
  OK(cuMemAlloc(&a, 4 * MANY));
  for (unsigned i = 0; i < MANY; i++) {
    OK(cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
    OK(cuStreamWaitValue32(streams[i], (CUdeviceptr)at, 1 + i, 0));
    OK(cuMemsetD32Async(a + 4 * i, i + 1, 1, streams[i]));
  }
  pause_ms(50);
  getrusage(RUSAGE_SELF, &before);
  pause_ms(200);
  getrusage(RUSAGE_SELF, &after);
  long used = (after.ru_utime.tv_sec - before.ru_utime.tv_sec + after.ru_stime.tv_sec - before.ru_stime.tv_sec) * 1000000 +
              after.ru_utime.tv_usec - before.ru_utime.tv_usec + after.ru_stime.tv_usec - before.ru_stime.tv_usec;
  CHECK(used < 100000);
  *at = MANY / 2;
  OK(cuStreamSynchronize(streams[MANY / 2 - 1]));
  GIVES(CUDA_ERROR_NOT_READY, cuStreamQuery(streams[MANY / 2]));
  *at = MANY;
  OK(cuCtxSynchronize());
  OK(cuMemcpyDtoH(back, a, 4 * MANY));
  for (unsigned i = 0; i < MANY; i++) CHECK(back[i] == i + 1);
  for (unsigned i = 0; i < MANY; i++) OK(cuStreamDestroy(streams[i]));
  OK(cuMemFree(a));
}

/* A thread answers what a stream asks while the program waits for the context. */
static void *answer(void *given) {
  atomic_uint *words = given;
  while (words[0] != 1) pause_ms(1);
  words[1] = 1;
  return NULL;
}

static void with_thread(CUstream stream, unsigned *pinned) {
  pthread_t thread;
  CUdeviceptr at = (CUdeviceptr)pinned;
  memset(pinned, 0, 12);
  CHECK(!pthread_create(&thread, NULL, answer, pinned));
  OK(cuStreamWriteValue32(stream, at, 1, CU_STREAM_WRITE_VALUE_DEFAULT));
  OK(cuStreamWaitValue32(stream, at + 4, 1, CU_STREAM_WAIT_VALUE_EQ));
  OK(cuStreamWriteValue32(stream, at + 8, 9, 0));
  OK(cuCtxSynchronize());
  CHECK(pinned[2] == 9);
  CHECK(!pthread_join(thread, NULL));
}

/* What waits does not keep work of other streams, nor a call that need not wait, from going on. */
static void not_in_the_way(CUstream stream, unsigned *pinned) {
  CUdeviceptr a, b;
  CUstream other;
  unsigned found = 0;
  atomic_uint *at = (atomic_uint *)pinned;
  *at = 0;
  OK(cuMemAlloc(&a, 4));
  OK(cuMemAlloc(&b, 4));
  OK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
  OK(cuStreamWaitValue32(NULL, (CUdeviceptr)pinned, 1, 0)); /* the default stream */
  OK(cuMemsetD32(a, 3, 1));
  OK(cuMemcpyDtoD(b, a, 4));
  OK(cuMemsetD32Async(b, 4, 1, other));
  OK(cuMemcpyDtoHAsync(&found, b, 4, other));
  CHECK(found == 4);
  *at = 1;
  OK(cuMemcpyDtoH(&found, b, 4));
  CHECK(found == 3);
  OK(cuStreamWaitValue32(other, (CUdeviceptr)pinned, 2, 0));
  OK(cuStreamDestroy(other)); /* before it is done */
  OK(cuStreamWaitValue32(stream, (CUdeviceptr)pinned, 2, 0));
  *at = 2;
  OK(cuCtxSynchronize());
  OK(cuMemFree(a));
  OK(cuMemFree(b));
}

static void begin(void) {
  CUcontext context;
  OK(cuInit(0));
  OK(cuDevicePrimaryCtxRetain(&context, 0));
  OK(cuCtxSetCurrent(context));
}

enum { TURNS = 100 };

/* One of two processes: each waits for the other's number and adds one. */
static void take_turns(unsigned *shared, unsigned first) {
  CUstream stream;
  begin();
  OK(cuMemHostRegister(shared, 4096, CU_MEMHOSTREGISTER_DEVICEMAP));
  OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  for (unsigned i = first; i < TURNS; i += 2) {
    OK(cuStreamWaitValue32(stream, (CUdeviceptr)shared, i, CU_STREAM_WAIT_VALUE_EQ));
    OK(cuStreamWriteValue32(stream, (CUdeviceptr)shared, i + 1, 0));
    if (i % 3) OK(cuStreamSynchronize(stream));
  }
  OK(cuStreamSynchronize(stream));
  OK(cuMemHostUnregister(shared));
}

int main(void) {
  CUstream stream;
  unsigned *pinned, *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  int answer_of_child, value;
  CHECK(shared != MAP_FAILED);
  alarm(60); /* nothing here may hang */
  pid_t child = fork();
  if (!child) {
    take_turns(shared, 1);
    exit(0);
  }
  take_turns(shared, 0);
  CHECK(waitpid(child, &answer_of_child, 0) == child && answer_of_child == 0);
  CHECK(*(atomic_uint *)shared == TURNS);

  OK(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS, 0));
  CHECK(value == 1);
  OK(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR, 0));
  CHECK(value == 1);
  OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  OK(cuMemAllocHost((void **)&pinned, 4096));
  conditions(stream, pinned);
  refusals(stream, pinned);
  to_and_fro();
  many((atomic_uint *)pinned);
  with_thread(stream, pinned);
  not_in_the_way(stream, pinned);
  /* One after another, each answered at once: far less than a millisecond each. */
  double start = seconds();
  for (unsigned i = 1; i <= 200; i++) {
    OK(cuStreamWaitValue32(stream, (CUdeviceptr)pinned, 100 + i, 0));
    *(atomic_uint *)pinned = 100 + i;
    OK(cuStreamSynchronize(stream));
  }
  CHECK(seconds() - start < 2);
  OK(cuMemFreeHost(pinned));
  OK(cuStreamDestroy(stream));
  OK(cuDevicePrimaryCtxRelease(0));
  return 0;
}
