/* Makes things of two contexts with no context current, with the wrong one, and from another thread; says after each
 * call which one is current. */
#include "hazard.h"

#include <pthread.h>

static const char PTX[] = ".version 7.5\n.target sm_75\n.address_size 64\n.visible .entry nothing() { ret; }\n";
static CUcontext contexts[2];

static int current(void) {
  CUcontext now = NULL;
  CHECK(cuCtxGetCurrent(&now));
  return now == contexts[0] ? 0 : now == contexts[1] ? 1 : now ? 9 : -1;
}
#define SAY(call)                                         \
  do {                                                    \
    int result = call;                                    \
    printf("%s %d %d\n", #call, result, current());       \
  } while (0)

static void calls(int own) {
  CUmodule module = NULL;
  CUfunction kernel = NULL;
  CUlibrary library = NULL;
  CUkernel free_kernel = NULL;
  CUstream stream = NULL, borrowed = NULL;
  CUevent event = NULL;
  CUdeviceptr memory = 0;
  CUcontext popped;
  SAY(cuCtxPushCurrent(contexts[own]));
  SAY(cuStreamCreate(&stream, 0));
  SAY(cuStreamCreate(&borrowed, CU_STREAM_NON_BLOCKING));
  SAY(cuEventCreate(&event, 0));
  SAY(cuModuleLoadData(&module, PTX));
  SAY(cuModuleGetFunction(&kernel, module, "nothing"));
  SAY(cuMemAlloc(&memory, 64));
  SAY(cuCtxPopCurrent(&popped));
  /* Of the other context, or of none. */
  SAY(cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL));
  SAY(cuMemsetD8Async(memory, 1, 64, borrowed));
  SAY(cuStreamSynchronize(stream));
  SAY(cuStreamQuery(borrowed) == CUDA_ERROR_INVALID_HANDLE);
  SAY(cuLibraryLoadData(&library, PTX, NULL, NULL, 0, NULL, NULL, 0));
  SAY(cuLibraryGetKernel(&free_kernel, library, "nothing"));
  SAY(cuLaunchKernel((CUfunction)free_kernel, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL));
  SAY(cuMemFree(memory));
  SAY(cuEventDestroy(event));
  SAY(cuStreamDestroy(stream));
  SAY(cuStreamDestroy(borrowed));
  SAY(cuModuleUnload(module));
  SAY(cuLibraryUnload(library));
}

static void *elsewhere(void *unused) {
  calls(0); /* with none */
  SAY(cuCtxSetCurrent(contexts[1]));
  calls(0); /* with another */
  return unused;
}

int main(void) {
  pthread_t thread;
  CHECK(cuInit(0));
  for (int i = 0; i < 2; i++) CHECK(cuDevicePrimaryCtxRetain(&contexts[i], i));
  calls(1);
  MUST(!pthread_create(&thread, NULL, elsewhere, NULL) && !pthread_join(thread, NULL));
  SAY(cuDevicePrimaryCtxRelease(0));
  SAY(cuDevicePrimaryCtxRelease(1));
  return 0;
}
