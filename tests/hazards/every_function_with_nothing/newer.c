/* Linked with functions that came with CUDA 12.4, which it also looks up. */
#include "hazard.h"

int main(void) {
  unsigned count;
  CHECK(cuInit(0));
  int first = cuLibraryGetKernelCount(&count, NULL), second = cuModuleGetFunctionCount(&count, NULL);
  printf("%d %d %d\n", first, second, dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cuModuleGetFunctionCount") != NULL);
  return 0;
}
