/* The least of a run-time library that is linked into a program: it opens the driver by its name, looks up one function
 * there, and all others through that one. */
#ifndef RUNTIME_H
#define RUNTIME_H

#include "hazard.h"

#define NEEDED(X)                                                                                                   \
  X(cuInit) X(cuDevicePrimaryCtxRetain) X(cuCtxSetCurrent) X(cuModuleLoadData) X(cuModuleGetFunction)               \
  X(cuStreamCreate) X(cuLaunchKernel) X(cuLaunchKernelEx) X(cuCtxSynchronize)
#define POINTER(name) static __typeof__(name) *runtime_##name;
NEEDED(POINTER)

#define LOOK_UP(name)                                                                                               \
  CHECK(ask(#name, (void **)&runtime_##name, 12040, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, &status));
static void runtime_start(void) {
  CUdriverProcAddressQueryResult status;
  void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  CUresult (*ask)(const char *, void **, int, cuuint64_t, CUdriverProcAddressQueryResult *) = NULL, (*again)() = NULL;
  *(void **)&ask = found(driver, "cuGetProcAddress_v2");
  CHECK(ask("cuGetProcAddress", (void **)&again, 12040, 0, &status)); /* they ask for itself too */
  *(void **)&ask = *(void **)&again;
  NEEDED(LOOK_UP)
}

#endif
