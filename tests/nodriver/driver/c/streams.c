/* Streams and events: what comes after what. Functions of the program are used as work that takes as long as one likes. */
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "check.h"

static void pause_ms(long milliseconds) {
  struct timespec time = {milliseconds / 1000, milliseconds % 1000 * 1000000};
  nanosleep(&time, NULL);
}

/* Work that begins when it is let, notes its turn, and ends. */
struct step {
  atomic_int may, begun, turn;
};

static atomic_int turns;

static void do_step(void *given) {
  struct step *step = given;
  step->begun = 1;
  while (!step->may) pause_ms(1);
  step->turn = ++turns;
}

static struct step steps[8];

static void fresh(int let) {
  turns = 0;
  for (int i = 0; i < 8; i++) {
    steps[i].begun = steps[i].turn = 0;
    steps[i].may = let;
  }
}

static void in_order(void) {
  CUstream stream;
  fresh(1);
  OK(cuStreamCreate(&stream, 0));
  OK(cuStreamQuery(stream));
  for (int i = 0; i < 8; i++) OK(cuLaunchHostFunc(stream, do_step, &steps[i]));
  OK(cuStreamSynchronize(stream));
  for (int i = 0; i < 8; i++) CHECK(steps[i].turn == i + 1);
  OK(cuStreamQuery(stream));
  OK(cuStreamDestroy(stream));
  GIVES(CUDA_ERROR_INVALID_HANDLE, cuStreamSynchronize(stream));
  GIVES(CUDA_ERROR_INVALID_HANDLE, cuStreamDestroy(stream));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuStreamCreate(&stream, 2));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuStreamCreate(NULL, 0));
}

/* Streams go on side by side, and wait for each other where events say so. */
static void events(void) {
  CUstream a, b;
  CUevent event;
  fresh(0);
  OK(cuStreamCreate(&a, CU_STREAM_NON_BLOCKING));
  OK(cuStreamCreate(&b, CU_STREAM_NON_BLOCKING));
  OK(cuEventCreate(&event, 0));
  OK(cuEventQuery(event)); /* never recorded: nothing to wait for */
  OK(cuStreamWaitEvent(b, event, 0));
  OK(cuLaunchHostFunc(a, do_step, &steps[0]));
  OK(cuEventRecord(event, a));
  OK(cuLaunchHostFunc(a, do_step, &steps[1]));
  OK(cuLaunchHostFunc(b, do_step, &steps[2]));
  OK(cuStreamWaitEvent(b, event, 0));
  OK(cuLaunchHostFunc(b, do_step, &steps[3]));
  steps[2].may = steps[3].may = 1;
  while (!steps[2].turn) pause_ms(1);
  pause_ms(20);
  CHECK(!steps[3].begun);
  GIVES(CUDA_ERROR_NOT_READY, cuEventQuery(event));
  GIVES(CUDA_ERROR_NOT_READY, cuStreamQuery(b));
  steps[0].may = 1;
  OK(cuEventSynchronize(event));
  OK(cuStreamSynchronize(b));
  CHECK(steps[2].turn == 1 && steps[0].turn == 2 && steps[3].turn == 3 && !steps[1].turn);
  /* It is recorded again: what waited before waits for the first time only. */
  OK(cuEventRecord(event, a));
  GIVES(CUDA_ERROR_NOT_READY, cuEventQuery(event));
  OK(cuEventDestroy(event)); /* before that is done */
  GIVES(CUDA_ERROR_INVALID_HANDLE, cuEventQuery(event));
  OK(cuStreamDestroy(b));
  OK(cuStreamDestroy(a)); /* with work in it */
  steps[1].may = 1;
  while (!steps[1].turn) pause_ms(1);
}

/* The default stream of a context waits for the others, and they for it; non-blocking ones do not take part. */
static void default_stream(void) {
  CUstream blocking, free_one;
  fresh(0);
  OK(cuStreamCreate(&blocking, 0));
  OK(cuStreamCreate(&free_one, CU_STREAM_NON_BLOCKING));
  OK(cuLaunchHostFunc(blocking, do_step, &steps[0]));
  OK(cuLaunchHostFunc(NULL, do_step, &steps[1]));
  OK(cuLaunchHostFunc(blocking, do_step, &steps[2]));
  OK(cuLaunchHostFunc(free_one, do_step, &steps[3]));
  OK(cuLaunchHostFunc(CU_STREAM_PER_THREAD, do_step, &steps[4]));
  steps[3].may = 1;
  OK(cuStreamSynchronize(free_one));
  pause_ms(20);
  CHECK(steps[0].begun && !steps[1].begun && !steps[2].begun && !steps[4].begun);
  steps[2].may = steps[1].may = 1;
  pause_ms(20);
  CHECK(!steps[1].begun && !steps[2].begun);
  steps[0].may = steps[4].may = 1;
  OK(cuCtxSynchronize());
  CHECK(steps[3].turn == 1 && steps[0].turn == 2 && steps[1].turn == 3 && steps[2].turn > 3 && steps[4].turn > 3);
  OK(cuStreamDestroy(blocking));
  OK(cuStreamDestroy(free_one));
}

static void copies(void) {
  CUstream stream;
  CUdeviceptr a, b;
  unsigned char pageable[1000], *pinned;
  fresh(0);
  OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  OK(cuMemAlloc(&a, 1000));
  OK(cuMemAlloc(&b, 1000));
  OK(cuMemAllocHost((void **)&pinned, 1000));
  memset(pageable, 1, 1000);
  OK(cuLaunchHostFunc(stream, do_step, &steps[0]));
  OK(cuMemcpyHtoDAsync(a, pageable, 1000, stream));
  memset(pageable, 2, 1000); /* it has been read already */
  OK(cuMemsetD8Async(a + 500, 3, 500, stream));
  OK(cuMemcpyDtoDAsync(b, a, 1000, stream));
  OK(cuMemcpyDtoHAsync(pinned, b, 1000, stream));
  CHECK(!pinned[0]);
  GIVES(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoDAsync(a, pageable, 1001, stream));
  GIVES(CUDA_ERROR_INVALID_HANDLE, cuMemcpyHtoDAsync(a, pageable, 1, (CUstream)&stream));
  steps[0].may = 1;
  OK(cuStreamSynchronize(stream));
  CHECK(pinned[0] == 1 && pinned[499] == 1 && pinned[500] == 3 && pinned[999] == 3);
  fresh(0);
  OK(cuLaunchHostFunc(stream, do_step, &steps[0]));
  OK(cuMemsetD8Async(b, 9, 1000, stream));
  steps[0].may = 1;
  OK(cuMemcpyDtoHAsync(pageable, b, 1000, stream)); /* into pageable memory: there when the call returns */
  CHECK(pageable[0] == 9 && pageable[999] == 9);
  fresh(0);
  OK(cuLaunchHostFunc(stream, do_step, &steps[0]));
  OK(cuMemsetD8Async(a, 7, 1000, stream));
  steps[0].may = 1;
  OK(cuMemFree(a)); /* after the work that needs it */
  OK(cuMemFree(b));
  OK(cuMemFreeHost(pinned));
  OK(cuStreamDestroy(stream));
}

static void times(void) {
  CUevent start, end, silent;
  CUstream stream;
  float milliseconds = -1;
  fresh(0);
  OK(cuStreamCreate(&stream, 0));
  OK(cuEventCreate(&start, CU_EVENT_BLOCKING_SYNC));
  OK(cuEventCreate(&end, 0));
  OK(cuEventCreate(&silent, CU_EVENT_DISABLE_TIMING));
  GIVES(CUDA_ERROR_INVALID_HANDLE, cuEventElapsedTime(&milliseconds, start, end));
  OK(cuEventRecord(start, stream));
  OK(cuLaunchHostFunc(stream, do_step, &steps[0]));
  OK(cuEventRecord(end, stream));
  OK(cuEventRecord(silent, stream));
  OK(cuEventSynchronize(start));
  GIVES(CUDA_ERROR_NOT_READY, cuEventElapsedTime(&milliseconds, start, end));
  pause_ms(30);
  steps[0].may = 1;
  OK(cuStreamSynchronize(stream));
  OK(cuEventElapsedTime(&milliseconds, start, end));
  CHECK(milliseconds >= 29 && milliseconds < 10000);
  GIVES(CUDA_ERROR_INVALID_HANDLE, cuEventElapsedTime(&milliseconds, start, silent));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuEventCreate(&silent, 64));
  OK(cuEventDestroy(start));
  OK(cuEventDestroy(end));
  OK(cuEventDestroy(silent));
  OK(cuStreamDestroy(stream));
}

static void questions(void) {
  CUstream stream;
  CUcontext context, current;
  unsigned flags;
  int priority;
  unsigned long long first, second, third;
  OK(cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, -100));
  OK(cuStreamGetFlags(stream, &flags));
  OK(cuStreamGetPriority(stream, &priority));
  OK(cuStreamGetCtx(stream, &context));
  OK(cuCtxGetCurrent(&current));
  CHECK(flags == CU_STREAM_NON_BLOCKING && priority == -5 && context == current);
  OK(cuStreamGetId(stream, &first));
  OK(cuStreamGetId(NULL, &second));
  OK(cuStreamGetId(CU_STREAM_PER_THREAD, &third));
  CHECK(first != second && second != third && first != third);
  OK(cuStreamGetPriority(NULL, &priority));
  CHECK(priority == 0);
  OK(cuStreamDestroy(stream));
}

static struct step *called;

static void CUDA_CB callback(CUstream stream, CUresult status, void *given) {
  CHECK(status == CUDA_SUCCESS && stream);
  GIVES(CUDA_ERROR_NOT_PERMITTED, cuCtxSynchronize());
  GIVES(CUDA_ERROR_NOT_PERMITTED, cuStreamSynchronize(stream));
  GIVES(CUDA_ERROR_NOT_PERMITTED, cuMemFree(1));
  called = given;
}

/* Who waits for one stream does not get stuck in what another one does. */
static void not_stuck(void) {
  CUstream a, b;
  fresh(0);
  OK(cuStreamCreate(&a, CU_STREAM_NON_BLOCKING));
  OK(cuStreamCreate(&b, CU_STREAM_NON_BLOCKING));
  OK(cuLaunchHostFunc(a, do_step, &steps[0]));
  OK(cuStreamAddCallback(b, callback, &steps[1], 0));
  OK(cuStreamSynchronize(b));
  CHECK(called == &steps[1]);
  steps[0].may = 1; /* only now */
  OK(cuStreamSynchronize(a));
  OK(cuStreamDestroy(a));
  OK(cuStreamDestroy(b));
}

/* What belongs to a context ends with it, after its work. */
static void ends(void) {
  CUcontext context;
  CUstream stream;
  CUevent event;
  CUdeviceptr a;
  fresh(0);
  OK(cuCtxCreate(&context, NULL, 0, 1));
  OK(cuStreamCreate(&stream, 0));
  OK(cuEventCreate(&event, 0));
  OK(cuMemAlloc(&a, 100));
  OK(cuLaunchHostFunc(stream, do_step, &steps[0]));
  OK(cuMemsetD8Async(a, 1, 100, stream));
  OK(cuEventRecord(event, stream));
  steps[0].may = 1;
  OK(cuCtxDestroy(context));
  CHECK(steps[0].turn);
  GIVES(CUDA_ERROR_INVALID_HANDLE, cuStreamQuery(stream));
  GIVES(CUDA_ERROR_INVALID_HANDLE, cuEventQuery(event));
}

enum { MANY = 3000 };

static void many(void) {
  static CUstream streams[MANY];
  static CUevent events_[MANY];
  CUdeviceptr a;
  unsigned sum = 0, back[MANY];
  OK(cuMemAlloc(&a, 4 * MANY));
  for (int i = 0; i < MANY; i++) {
    OK(cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
    OK(cuEventCreate(&events_[i], CU_EVENT_DISABLE_TIMING));
  }
  for (int i = 0; i < MANY; i++) { /* each after the one before it */
    if (i) OK(cuStreamWaitEvent(streams[i], events_[i - 1], 0));
    if (i) OK(cuMemcpyDtoDAsync(a + 4 * (CUdeviceptr)i, a + 4 * (CUdeviceptr)(i - 1), 4, streams[i]));
    if (!i) OK(cuMemsetD32Async(a, 7, 1, streams[i]));
    OK(cuEventRecord(events_[i], streams[i]));
  }
  OK(cuEventSynchronize(events_[MANY - 1]));
  OK(cuMemcpyDtoH(back, a, 4 * MANY));
  for (int i = 0; i < MANY; i++) sum += back[i];
  CHECK(sum == 7u * MANY);
  for (int i = 0; i < MANY; i++) {
    OK(cuStreamDestroy(streams[i]));
    OK(cuEventDestroy(events_[i]));
  }
  OK(cuMemFree(a));
}

static CUcontext shared;

/* Threads that use one context: their own streams, the default one, and each other's memory. */
static void *thread(void *given) {
  size_t number = (size_t)given;
  CUdeviceptr a;
  CUstream stream;
  CUevent event;
  OK(cuCtxSetCurrent(shared));
  OK(cuStreamCreate(&stream, number % 2 ? CU_STREAM_NON_BLOCKING : 0));
  OK(cuEventCreate(&event, 0));
  OK(cuMemAlloc(&a, 4096));
  for (int i = 0; i < 300; i++) {
    unsigned value = (unsigned)(number * 1000 + (size_t)i), back = 0;
    OK(cuMemsetD32Async(a, value, 1024, stream));
    OK(cuEventRecord(event, stream));
    OK(cuStreamWaitEvent(i % 3 ? NULL : CU_STREAM_PER_THREAD, event, 0));
    OK(cuMemcpyDtoDAsync(a + 2048, a, 4, i % 3 ? NULL : CU_STREAM_PER_THREAD));
    if (i % 2) OK(cuEventSynchronize(event));
    if (!(i % 3)) OK(cuStreamSynchronize(CU_STREAM_PER_THREAD));
    OK(cuMemcpyDtoH(&back, a + 2048, 4)); /* by the default stream */
    CHECK(back == value);
  }
  OK(cuMemFree(a));
  OK(cuStreamDestroy(stream));
  OK(cuEventDestroy(event));
  return NULL;
}

int main(void) {
  CUstream stream;
  GIVES(CUDA_ERROR_NOT_INITIALIZED, cuStreamCreate(&stream, 0));
  OK(cuInit(0));
  GIVES(CUDA_ERROR_INVALID_CONTEXT, cuStreamSynchronize(NULL));
  OK(cuDevicePrimaryCtxRetain(&shared, 0));
  OK(cuCtxSetCurrent(shared));
  in_order();
  events();
  default_stream();
  copies();
  times();
  questions();
  not_stuck();
  ends();
  many();
  pthread_t threads[4];
  for (size_t i = 0; i < 4; i++) CHECK(!pthread_create(&threads[i], NULL, thread, (void *)i));
  for (int i = 0; i < 4; i++) CHECK(!pthread_join(threads[i], NULL));
  OK(cuDevicePrimaryCtxRelease(0));
  return 0;
}
