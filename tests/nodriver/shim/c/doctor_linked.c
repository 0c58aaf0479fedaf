/* Calls the driver that it is linked with, or with an argument none of its functions. */
#include <cuda.h>

int main(int count, char **words) {
  (void)words;
  CUcontext context;
  CUdeviceptr address;
  if (count > 1) return 0;
  return cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context) || cuMemAlloc(&address, 64);
}
