/* What the programs of the hazards share. */
#ifndef HAZARD_H
#define HAZARD_H

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda.h>

#define MUST(condition)                                                                   \
  do {                                                                                    \
    if (!(condition)) {                                                                   \
      fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);             \
      exit(1);                                                                            \
    }                                                                                     \
  } while (0)
#define CHECK(call) check(call, #call, __LINE__)

static inline void check(CUresult result, const char *what, int line) {
  if (result == CUDA_SUCCESS) return;
  fprintf(stderr, "line %d: %s: error %d\n", line, what, (int)result);
  exit(1);
}

/* A function by its symbol; it must be there. */
static inline void *found(void *library, const char *symbol) {
  void *address = library || !strncmp(symbol, "cu", 2) ? dlsym(library, symbol) : NULL;
  if (!address) {
    fprintf(stderr, "%s: %s\n", symbol, dlerror());
    exit(1);
  }
  return address;
}

/* cuLaunchKernel, looked up. */
typedef CUresult launch_t(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream,
                          void **, void **);

/* A context on device 0, and something to launch: a kernel of three pointers and an int on the null driver. */
static inline CUfunction ready(void) {
  CUcontext context;
  CUmodule module;
  CUfunction function;
  CHECK(cuInit(0));
  CHECK(cuDevicePrimaryCtxRetain(&context, 0));
  CHECK(cuCtxSetCurrent(context));
  CHECK(cuModuleLoadData(&module, "no PTX"));
  CHECK(cuModuleGetFunction(&function, module, "nothing"));
  return function;
}

static inline CUresult launch(CUfunction function, CUstream stream) {
  void *pointer = NULL;
  int count = 1;
  void *parameters[] = {&pointer, &pointer, &pointer, &count};
  return cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL);
}

enum { WIDE = 64 };

/* One whose record has almost five thousand bytes. */
static inline CUresult wide_launch(CUfunction function) {
  static CUlaunchAttribute attributes[WIDE];
  CUlaunchConfig config = {.gridDimX = 1, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 1, .blockDimY = 1, .blockDimZ = 1,
                           .attrs = attributes, .numAttrs = WIDE};
  void *pointer = NULL, *parameters[] = {&pointer, &pointer, &pointer, &pointer};
  return cuLaunchKernelEx(&config, function, parameters, NULL);
}

#endif
