/* A kernel waits for a number in memory, which a copy on another stream brings later; in between another kernel is
 * launched for the first time, memory is made, a module is loaded. */
#include "hazard.h"

static const char PTX[] = ".version 7.5\n.target sm_75\n.address_size 64\n"
    ".visible .entry waits(.param .u64 at) { .reg .pred %p; .reg .b64 %a<3>; .reg .b32 %r<2>; ld.param.u64 %a1, [at];\n"
    "cvta.to.global.u64 %a2, %a1; again: ld.volatile.global.u32 %r1, [%a2]; \n"
    "setp.eq.u32 %p, %r1, 0; @%p bra again; ret; }\n"
    ".visible .entry other(.param .u64 at) { ret; }\n";

int main(void) {
  CUcontext context;
  CUmodule module, second;
  CUfunction waits, other;
  CUstream first, apart, third;
  CUdeviceptr flag, memory;
  unsigned *one;
  CHECK(cuInit(0));
  CHECK(cuDevicePrimaryCtxRetain(&context, 0));
  CHECK(cuCtxSetCurrent(context));
  CHECK(cuModuleLoadData(&module, PTX));
  CHECK(cuModuleGetFunction(&waits, module, "waits"));
  CHECK(cuMemAlloc(&flag, 4));
  CHECK(cuMemsetD32(flag, 0, 1));
  CHECK(cuMemHostAlloc((void **)&one, 4, 0));
  *one = 1;
  CHECK(cuStreamCreate(&first, CU_STREAM_NON_BLOCKING));
  CHECK(cuStreamCreate(&apart, CU_STREAM_NON_BLOCKING));
  CHECK(cuStreamCreate(&third, CU_STREAM_NON_BLOCKING));
  void *parameters[] = {&flag};
  CHECK(cuLaunchKernel(waits, 1, 1, 1, 1, 1, 1, 0, first, parameters, NULL));
  CHECK(cuModuleLoadData(&second, PTX));
  CHECK(cuModuleGetFunction(&other, second, "other"));
  CHECK(cuLaunchKernel(other, 1, 1, 1, 1, 1, 1, 0, apart, parameters, NULL));
  CHECK(cuMemAllocAsync(&memory, 64, apart));
  printf("%d ", cuStreamQuery(first));
  CHECK(cuMemcpyHtoDAsync(flag, one, 4, third));
  CHECK(cuStreamSynchronize(first));
  CHECK(cuStreamSynchronize(apart));
  puts("done");
  return 0;
}
