#include "static_runtime/runtime.h"

int main(void) {
  CUcontext context;
  CUmodule module;
  CUfunction function;
  void *pointer = NULL;
  int number = 1;
  void *parameters[] = {&pointer, &pointer, &pointer, &number};
  CUlaunchConfig config = {.gridDimX = 1, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 1, .blockDimY = 1, .blockDimZ = 1};
  runtime_start();
  CHECK(runtime_cuInit(0));
  CHECK(runtime_cuDevicePrimaryCtxRetain(&context, 0));
  CHECK(runtime_cuCtxSetCurrent(context));
  CHECK(runtime_cuModuleLoadData(&module, "no PTX"));
  CHECK(runtime_cuModuleGetFunction(&function, module, "nothing"));
  CHECK(runtime_cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL));
  CHECK(runtime_cuLaunchKernelEx(&config, function, parameters, NULL));
  CHECK(runtime_cuCtxSynchronize());
  return 0;
}
