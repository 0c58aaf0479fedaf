/* What the programs that measure the driver share: time, medians, checks of results. */
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static inline double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static inline int by_size(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static inline double median(double *values, int count) {
  qsort(values, (size_t)count, sizeof *values, by_size);
  return values[count / 2];
}

static inline void check(CUresult result, const char *what, int line) {
  const char *name = "an unknown error";
  if (result == CUDA_SUCCESS)
    return;
  cuGetErrorName(result, &name);
  fprintf(stderr, "line %d: %s: %s\n", line, what, name);
  exit(1);
}

#define CHECK(call) check(call, #call, __LINE__)

/* Device 0 with its primary context current. */
static inline void start(void) {
  CUcontext context;
  CHECK(cuInit(0));
  CHECK(cuDevicePrimaryCtxRetain(&context, 0));
  CHECK(cuCtxSetCurrent(context));
}
