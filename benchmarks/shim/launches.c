/* What a launch costs: launches of a kernel with three pointers and a number, in batches.
 *
 *     launches COUNT EVERY [PTX]
 *
 * EVERY: the context is waited for after each so many launches, out of the time; 0: only at the end. PTX: a file whose
 * kernel `nothing` is launched; without it the driver is one that reads no module. Prints one JSON object: nanoseconds
 * of a launch by the mean of each batch, and the launches a second of all batches.
 *
 * With DIRECT the driver is linked; else it is opened by name, and its functions are looked up. */
#include <cuda.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BATCH = 64, LONGEST = 1 << 16 };

#define USED(X)                                                                                         \
  X(cuInit) X(cuDevicePrimaryCtxRetain) X(cuCtxSetCurrent) X(cuModuleLoadData) X(cuModuleGetFunction)   \
  X(cuMemAlloc) X(cuStreamCreate) X(cuLaunchKernel) X(cuCtxSynchronize)

#ifdef DIRECT
static void find(void) {}
#define DRIVER(name) name
#else
#define NAME_(name) #name
#define NAME(name) NAME_(name) /* of the form that cuda.h means: cuMemAlloc_v2 */
#define POINTER(name) __typeof__(name) *name;
static struct { USED(POINTER) } driver;
#define DRIVER(name) driver.name

static void *function(void *library, const char *name) {
  void *found = dlsym(library, name);
  if (!found) {
    fprintf(stderr, "%s\n", dlerror());
    exit(1);
  }
  return found;
}

#define FIND(name) *(void **)&driver.name = function(library, NAME(name));
static void find(void) {
  void *library = dlopen("libcuda.so.1", RTLD_NOW);
  if (!library) {
    fprintf(stderr, "%s\n", dlerror());
    exit(1);
  }
  USED(FIND)
}
#endif

static void check(CUresult result, const char *what) {
  if (result == CUDA_SUCCESS) return;
  fprintf(stderr, "%s: error %d\n", what, result);
  exit(1);
}
#define CHECK(name, ...) check(DRIVER(name)(__VA_ARGS__), #name)

static double nanoseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static int by_size(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static CUfunction kernel(const char *path) {
  static char text[LONGEST] = "no PTX";
  FILE *file = path ? fopen(path, "r") : NULL;
  CUmodule module;
  CUfunction found;
  if (path && (!file || fread(text, 1, sizeof text - 1, file) == 0)) {
    perror(path);
    exit(1);
  }
  if (file) fclose(file);
  CHECK(cuModuleLoadData, &module, text);
  CHECK(cuModuleGetFunction, &found, module, "nothing");
  return found;
}

int main(int count, char **words) {
  if (count < 3) return 2;
  const size_t batches = strtoull(words[1], NULL, 10) / BATCH, every = strtoull(words[2], NULL, 10);
  double *const means = malloc((batches + 1) * sizeof *means);
  CUcontext context;
  CUdeviceptr memory[3];
  CUstream stream;
  if (!means || batches == 0) return 2;
  memset(means, 0, batches * sizeof *means); /* its pages are there */
  find();
  CHECK(cuInit, 0);
  CHECK(cuDevicePrimaryCtxRetain, &context, 0);
  CHECK(cuCtxSetCurrent, context);
  CHECK(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
  const CUfunction function = kernel(count > 3 ? words[3] : NULL);
  for (int i = 0; i < 3; i++)
    CHECK(cuMemAlloc, &memory[i], 4096);
  int number = 0;
  void *parameters[] = {&memory[0], &memory[1], &memory[2], &number};
  double sum = 0, begin = nanoseconds();
  for (size_t batch = 0; batch < batches; batch++) {
    for (int i = 0; i < BATCH; i++) {
      number++; /* no two launches have the same parameters */
      CHECK(cuLaunchKernel, function, 1, 1, 1, 32, 1, 1, 0, stream, parameters, NULL);
    }
    const double end = nanoseconds();
    sum += end - begin;
    means[batch] = (end - begin) / BATCH;
    begin = end;
    if (every && (batch + 1) * BATCH % every == 0) {
      CHECK(cuCtxSynchronize, );
      begin = nanoseconds();
    }
  }
  CHECK(cuCtxSynchronize, );
  qsort(means, batches, sizeof *means, by_size);
  printf("{\"launches\": %zu, \"median_ns\": %.3f, \"p99_ns\": %.3f, \"mean_ns\": %.3f, \"per_second\": %.0f}\n",
         batches * BATCH, means[batches / 2], means[batches * 99 / 100], sum / (double)(batches * BATCH),
         (double)(batches * BATCH) / sum * 1e9);
  free(means);
  return 0;
}
