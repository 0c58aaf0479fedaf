/* Launches by every function that launches, COUNT times each, found by its symbol or through cuGetProcAddress. */
#include "hazard.h"

enum { COUNT = 10 };
static CUfunction function;
static void *pointer;
static int number = 1;
static void *parameters[] = {&pointer, &pointer, &pointer, &number};

typedef CUresult extended(const CUlaunchConfig *, CUfunction, void **, void **);

static void plainly(void *address) {
  launch_t *call;
  memcpy(&call, &address, sizeof call);
  for (int i = 0; i < COUNT; i++) CHECK(call(function, 2, 1, 1, 32, 1, 1, 0, NULL, parameters, NULL));
}

static void with_attributes(void *address) {
  extended *call;
  memcpy(&call, &address, sizeof call);
  CUlaunchConfig config = {.gridDimX = 2, .gridDimY = 1, .gridDimZ = 1,
                           .blockDimX = 32, .blockDimY = 1, .blockDimZ = 1};
  for (int i = 0; i < COUNT; i++) CHECK(call(&config, function, parameters, NULL));
}

static void *by_version(const char *name, cuuint64_t flags) {
  void *address = NULL;
  CHECK(cuGetProcAddress(name, &address, 12040, flags, NULL));
  MUST(address);
  return address;
}

int main(void) {
  function = ready();
  void *driver = dlopen("libcuda.so.1", RTLD_NOW);
  plainly(found(driver, "cuLaunchKernel"));
  plainly(found(driver, "cuLaunchKernel_ptsz"));
  plainly(found(driver, "cuLaunchCooperativeKernel"));
  plainly(found(driver, "cuLaunchCooperativeKernel_ptsz"));
  with_attributes(found(driver, "cuLaunchKernelEx"));
  with_attributes(found(driver, "cuLaunchKernelEx_ptsz"));
  plainly(by_version("cuLaunchKernel", CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM));
  with_attributes(by_version("cuLaunchKernelEx", CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM));
  with_attributes(by_version("cuLaunchKernelEx", CU_GET_PROC_ADDRESS_LEGACY_STREAM));
  plainly(*(void **)&(launch_t *[1]){cuLaunchKernel}); /* as it was linked */
  return 0;
}
