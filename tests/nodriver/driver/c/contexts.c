/* Contexts: the stack of each thread, handles that are no more, primary contexts. */
#include <pthread.h>

#include "check.h"

static CUcontext current(void) {
  CUcontext context = NULL;
  OK(cuCtxGetCurrent(&context));
  return context;
}

static void stacks(void) {
  CUcontext a, b, popped;
  CUdevice device;
  CHECK(!current());
  GIVES(CUDA_ERROR_INVALID_CONTEXT, cuCtxPopCurrent(&popped));
  GIVES(CUDA_ERROR_INVALID_CONTEXT, cuCtxGetDevice(&device));
  OK(cuCtxCreate(&a, NULL, 0, 0));
  CHECK(current() == a);
  OK(cuCtxCreate(&b, NULL, CU_CTX_SCHED_SPIN, 1));
  CHECK(current() == b);
  OK(cuCtxGetDevice(&device));
  CHECK(device == 1);
  OK(cuCtxPopCurrent(&popped));
  CHECK(popped == b && current() == a);
  OK(cuCtxPushCurrent(b));
  OK(cuCtxPushCurrent(b));
  OK(cuCtxSetCurrent(a));
  CHECK(current() == a);
  OK(cuCtxSetCurrent(a));
  OK(cuCtxSetCurrent(NULL));
  CHECK(current() == b);
  OK(cuCtxDestroy(b)); /* it is current: popped as well */
  CHECK(current() == a);
  GIVES(CUDA_ERROR_INVALID_CONTEXT, cuCtxPushCurrent(b));
  GIVES(CUDA_ERROR_INVALID_CONTEXT, cuCtxSetCurrent(b));
  GIVES(CUDA_ERROR_INVALID_CONTEXT, cuCtxDestroy(b));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuCtxDestroy(NULL));
  OK(cuCtxDestroy(a));
  CHECK(!current());
}

static void destroyed_below(void) {
  CUcontext a, b, popped;
  unsigned flags;
  OK(cuCtxCreate(&a, NULL, 0, 0));
  OK(cuCtxCreate(&b, NULL, 0, 0));
  OK(cuCtxDestroy(a)); /* below the top: it stays in the stack */
  OK(cuCtxPopCurrent(NULL));
  CHECK(current() == a);
  GIVES(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuCtxGetFlags(&flags));
  OK(cuCtxPopCurrent(&popped));
  CHECK(popped == a && !current());
  OK(cuCtxDestroy(b));
}

static void attributes(void) {
  CUcontext a, b;
  unsigned flags = 99, version = 0;
  unsigned long long first = 0, second = 0;
  size_t limit = 0;
  CUfunc_cache cache;
  int least = 9, greatest = 9;
  OK(cuCtxCreate(&a, NULL, CU_CTX_SCHED_BLOCKING_SYNC | CU_CTX_MAP_HOST, 0));
  OK(cuCtxGetFlags(&flags));
  CHECK(flags == (CU_CTX_SCHED_BLOCKING_SYNC | CU_CTX_MAP_HOST));
  OK(cuCtxSetFlags(CU_CTX_SCHED_YIELD));
  OK(cuCtxGetFlags(&flags));
  CHECK(flags == CU_CTX_SCHED_YIELD);
  GIVES(CUDA_ERROR_INVALID_VALUE, cuCtxSetFlags(CU_CTX_SCHED_SPIN | CU_CTX_SCHED_YIELD));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuCtxCreate(&b, NULL, 1u << 30, 0));
  GIVES(CUDA_ERROR_INVALID_DEVICE, cuCtxCreate(&b, NULL, 0, 2));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuCtxCreate(NULL, NULL, 0, 0));
  OK(cuCtxCreate(&b, NULL, 0, 0));
  OK(cuCtxGetId(a, &first));
  OK(cuCtxGetId(NULL, &second));
  CHECK(first && second && first != second);
  OK(cuCtxGetApiVersion(a, &version));
  CHECK(version >= 3000);
  OK(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 4096));
  OK(cuCtxGetLimit(&limit, CU_LIMIT_STACK_SIZE));
  CHECK(limit == 4096);
  OK(cuCtxGetLimit(&limit, CU_LIMIT_MALLOC_HEAP_SIZE));
  CHECK(limit == 8 << 20);
  GIVES(CUDA_ERROR_UNSUPPORTED_LIMIT, cuCtxGetLimit(&limit, CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuCtxGetLimit(&limit, CU_LIMIT_MAX));
  OK(cuCtxSetCacheConfig(CU_FUNC_CACHE_PREFER_L1));
  OK(cuCtxGetCacheConfig(&cache));
  CHECK(cache == CU_FUNC_CACHE_PREFER_L1);
  OK(cuCtxGetStreamPriorityRange(&least, &greatest));
  CHECK(least == 0 && greatest < 0);
  OK(cuCtxDestroy(b));
  OK(cuCtxDestroy(a));
}

static void primary(void) {
  CUcontext a, b, own;
  unsigned flags = 1;
  int active = 1;
  OK(cuDevicePrimaryCtxGetState(1, &flags, &active));
  CHECK(!flags && !active);
  GIVES(CUDA_ERROR_INVALID_CONTEXT, cuDevicePrimaryCtxRelease(1));
  OK(cuDevicePrimaryCtxSetFlags(1, CU_CTX_SCHED_SPIN));
  OK(cuDevicePrimaryCtxRetain(&a, 1));
  OK(cuDevicePrimaryCtxRetain(&b, 1));
  CHECK(a == b && !current()); /* retained, not current */
  OK(cuCtxCreate(&own, NULL, 0, 1));
  CHECK(own != a);
  OK(cuCtxSetCurrent(a));
  OK(cuCtxGetFlags(&flags));
  CHECK(flags == CU_CTX_SCHED_SPIN);
  GIVES(CUDA_ERROR_INVALID_CONTEXT, cuCtxDestroy(a));
  OK(cuDevicePrimaryCtxRelease(1));
  OK(cuCtxGetFlags(&flags));
  OK(cuDevicePrimaryCtxRelease(1));
  GIVES(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuCtxGetFlags(&flags));
  OK(cuDevicePrimaryCtxRetain(&b, 1));
  OK(cuDevicePrimaryCtxReset(1));
  OK(cuDevicePrimaryCtxGetState(1, NULL, &active));
  CHECK(!active);
  OK(cuDevicePrimaryCtxRelease(1));
  GIVES(CUDA_ERROR_INVALID_DEVICE, cuDevicePrimaryCtxRetain(&a, -1));
  OK(cuCtxPopCurrent(NULL));
  OK(cuCtxDestroy(own));
}

/* Threads that share contexts and destroy their own. */
static CUcontext shared;

static void *thread(void *given) {
  (void)given;
  for (int i = 0; i < 300; i++) {
    CUcontext own, again;
    unsigned flags;
    OK(cuCtxCreate(&own, NULL, 0, i % 2));
    OK(cuCtxPushCurrent(shared));
    OK(cuCtxSetFlags(i % 2 ? CU_CTX_SCHED_SPIN : CU_CTX_SCHED_YIELD));
    OK(cuCtxGetFlags(&flags));
    OK(cuDevicePrimaryCtxRetain(&again, 0));
    OK(cuCtxPushCurrent(again));
    OK(cuDevicePrimaryCtxRelease(0));
    if (i % 3) OK(cuCtxPopCurrent(NULL));
    OK(cuCtxDestroy(own));
  }
  return NULL; /* with some contexts in its stack */
}

int main(void) {
  unsigned flags;
  CUcontext context;
  GIVES(CUDA_ERROR_NOT_INITIALIZED, cuCtxGetCurrent(&context));
  GIVES(CUDA_ERROR_NOT_INITIALIZED, cuCtxGetFlags(&flags));
  GIVES(CUDA_ERROR_NOT_INITIALIZED, cuDevicePrimaryCtxRetain(&context, 0));
  OK(cuInit(0));
  stacks();
  destroyed_below();
  attributes();
  primary();
  OK(cuCtxCreate(&shared, NULL, 0, 0));
  pthread_t threads[4];
  for (int i = 0; i < 4; i++) CHECK(!pthread_create(&threads[i], NULL, thread, NULL));
  for (int i = 0; i < 4; i++) CHECK(!pthread_join(threads[i], NULL));
  OK(cuCtxDestroy(shared));
  return 0;
}
