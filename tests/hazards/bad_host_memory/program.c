/* Copies, and launches, with host memory that cannot be read or written, wholly or behind its first page. */
#include "hazard.h"

#include <sys/mman.h>

int main(int count, char **words) {
  CUcontext context;
  CUdeviceptr memory;
  CUstream stream;
  CUmodule module;
  MUST(count == 2);
  char *pages = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  MUST(pages != MAP_FAILED && !mprotect(pages + 4096, (1 << 20) - 4096, PROT_NONE));
  CHECK(cuInit(0));
  CHECK(cuDevicePrimaryCtxRetain(&context, 0));
  CHECK(cuCtxSetCurrent(context));
  CHECK(cuMemAlloc(&memory, 1 << 20));
  CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  switch (atoi(words[1])) { /* cases of the test */
    case 0: printf("%d\n", cuMemcpyHtoD(memory, pages, 8192)); break;
    case 1: printf("%d\n", cuMemcpyHtoDAsync(memory, pages, 1 << 19, stream)); break;
    case 2: printf("%d\n", cuMemcpyDtoH(pages, memory, 8192)); break;
    case 3: printf("%d\n", cuMemcpyHtoD(0, pages, 8192)); break;
    case 4: printf("%d\n", cuMemcpyHtoD(memory, pages + 4096, 16)); break;
    case 5: printf("%d\n", cuMemcpyHtoD(memory, (void *)8, (size_t)1 << 60)); break;
    case 6: printf("%d\n", cuMemcpy(memory, (CUdeviceptr)(uintptr_t)pages, 8192)); break;
    case 7: printf("%d\n", cuModuleLoadData(&module, pages + 4096)); break;
    case 8: printf("%d\n", cuMemcpyHtoD((CUdeviceptr)1, pages, (size_t)1 << 40)); break;
    default: printf("%d\n", cuMemHostRegister(pages, 8192, 0));
  }
  fflush(stdout);
  printf("%d\n", cuStreamSynchronize(stream));
  return 0;
}
