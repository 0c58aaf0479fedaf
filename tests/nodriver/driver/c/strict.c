/* Strict mode: full queues block, and who frees memory or uses a kernel first keeps the context until its work is done. In each
 * case a stream waits for a flag, a thread comes upon it, and can go on only when the flag has been set. */
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "check.h"

static const char PTX[] = ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry one() { ret; }\n"
                          ".visible .entry two() { ret; }\n.visible .entry three() { ret; }\n";

enum { LONGEST = 1024, MORE = 100 };

static CUcontext context;
static CUstream stream, other;
static CUmodule module;
static CUfunction one, three;
static CUdeviceptr memory;
static atomic_uint *flag;
static atomic_uint begun, over;

static void pause_ms(long milliseconds) {
  struct timespec time = {milliseconds / 1000, milliseconds % 1000 * 1000000};
  nanosleep(&time, NULL);
}

static void host(void *given) { (void)given; }

static void launch(const char *name) {
  CUfunction function;
  OK(cuModuleGetFunction(&function, module, name));
  OK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, other, NULL, NULL));
}

/* What threads do. */

static void fill_queue(void) {
  for (int n = 0; n < LONGEST + MORE; n++) OK(cuLaunchHostFunc(stream, host, NULL));
}

static void use_first(void) { launch("two"); }

static void free_memory(void) { OK(cuMemFree(memory)); }

static void query(void) { OK(cuStreamQuery(other)); }

static void *thread(void *given) {
  void (*action)(void);
  memcpy(&action, &given, sizeof action);
  OK(cuCtxSetCurrent(context));
  begun++;
  action();
  over++;
  return NULL;
}

static pthread_t start(void (*action)(void)) {
  pthread_t made;
  void *given;
  memcpy(&given, &action, sizeof given);
  unsigned before = begun;
  CHECK(!pthread_create(&made, NULL, thread, given));
  while (begun == before) pause_ms(1);
  pause_ms(30); /* to get to where it stops */
  return made;
}

static void waits_for_flag(void (*first)(void), void (*second)(void)) {
  pthread_t threads[2];
  *flag = over = 0;
  OK(cuStreamWaitValue32(stream, (CUdeviceptr)flag, 1, CU_STREAM_WAIT_VALUE_EQ));
  threads[0] = start(first);
  if (second) threads[1] = start(second);
  CHECK(!over);
  *flag = 1;
  pthread_join(threads[0], NULL);
  if (second) pthread_join(threads[1], NULL);
  OK(cuCtxSynchronize());
}

/* Kernels that have been used or loaded, copies and calls of a thread that only queues go on beside a stream that waits. */
static void others_go_on(void) {
  *flag = 0;
  OK(cuStreamWaitValue32(stream, (CUdeviceptr)flag, 1, CU_STREAM_WAIT_VALUE_EQ));
  for (int n = 0; n < LONGEST - 1; n++) OK(cuLaunchHostFunc(stream, host, NULL));
  launch("one");
  launch("three");
  OK(cuMemsetD8Async(memory, 1, 100, other));
  OK(cuStreamSynchronize(other));
  GIVES(CUDA_ERROR_NOT_READY, cuStreamQuery(stream));
  *flag = 1;
  OK(cuStreamSynchronize(stream));
}

int main(void) {
  void *pinned;
  OK(cuInit(0));
  OK(cuCtxCreate(&context, NULL, 0, 0));
  OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  OK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
  OK(cuMemHostAlloc(&pinned, 4, 0));
  OK(cuMemAlloc(&memory, 100));
  OK(cuModuleLoadData(&module, PTX));
  flag = pinned;
  OK(cuModuleGetFunction(&one, module, "one"));
  launch("one");
  OK(cuModuleGetFunction(&three, module, "three"));
  OK(cuFuncLoad(three));
  OK(cuStreamSynchronize(other));
  others_go_on();
  waits_for_flag(fill_queue, NULL);
  waits_for_flag(use_first, NULL);
  waits_for_flag(free_memory, query);
  OK(cuCtxDestroy(context));
  return 0;
}
