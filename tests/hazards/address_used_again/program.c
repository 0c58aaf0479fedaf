/* A kernel of one stream uses memory that is freed on another; the next allocation gets the same address. */
#include "hazard.h"

static const char PTX[] = ".version 7.5\n.target sm_75\n.address_size 64\n"
    ".visible .global .align 4 .u32 counter;\n"
    ".visible .entry store(.param .u64 to) { .reg .b64 %a<3>; .reg .b32 %r<2>; ld.param.u64 %a1, [to];\n"
    "cvta.to.global.u64 %a2, %a1; ld.global.u32 %r1, [counter]; st.global.u32 [%a2], %r1; ret; }\n";

int main(void) {
  CUcontext context;
  CUmodule module;
  CUfunction store;
  CUstream first, second;
  CUdeviceptr memory, again, counter;
  size_t bytes;
  unsigned value = 0;
  CHECK(cuInit(0));
  CHECK(cuDevicePrimaryCtxRetain(&context, 0));
  CHECK(cuCtxSetCurrent(context));
  CHECK(cuModuleLoadData(&module, PTX));
  CHECK(cuModuleGetFunction(&store, module, "store"));
  CHECK(cuModuleGetGlobal(&counter, &bytes, module, "counter"));
  CHECK(cuMemsetD32(counter, 42, 1));
  CHECK(cuStreamCreate(&first, CU_STREAM_NON_BLOCKING));
  CHECK(cuStreamCreate(&second, CU_STREAM_NON_BLOCKING));
  CHECK(cuMemAllocAsync(&memory, 4096, second));
  CHECK(cuStreamSynchronize(second));
  void *parameters[] = {&memory};
  CHECK(cuLaunchKernel(store, 1, 1, 1, 1, 1, 1, 0, first, parameters, NULL));
  CHECK(cuMemcpyDtoHAsync(&value, memory, sizeof value, first));
  CHECK(cuStreamSynchronize(first));
  CHECK(cuMemFreeAsync(memory, second));
  CHECK(cuStreamSynchronize(second));
  CHECK(cuMemAllocAsync(&again, 4096, second));
  CHECK(cuStreamSynchronize(second));
  printf("%u %d %llx ", value, memory == again, (unsigned long long)memory);
  printf("%llx %zu\n", (unsigned long long)counter, bytes);
  CHECK(cuModuleUnload(module));
  return 0;
}
