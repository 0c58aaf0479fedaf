/* A driver that prints what it is asked to launch. */
#include <cuda.h>
#include <stdio.h>

CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **parameters, void **extra) {
  (void)function;
  printf("%u %u %d", config->gridDimX, config->numAttrs, *(int *)parameters[3]);
  for (unsigned i = 0; i < config->numAttrs; i++) {
    printf(" %d:", (int)config->attrs[i].id);
    for (unsigned byte = 0; byte < 16; byte++) printf("%02x", (unsigned char)config->attrs[i].value.pad[byte]);
  }
  printf(" %d\n", extra != NULL);
  return CUDA_SUCCESS;
}
