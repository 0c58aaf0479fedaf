/* An ordinary program of the CUDA driver API: a kernel of examples/kernels.ptx on every GPU that there is.
 *
 *     cc -I CUDA_HEADERS examples/driver.c -L softgpu/lib -lcuda -o driver
 *     LD_LIBRARY_PATH=softgpu/lib SOFTGPU_DEVICES=H100-SXM,L40S ./driver examples/kernels.ptx
 *
 * With NVIDIA's driver in place of softgpu/lib it runs on real ones.
 */
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>

enum { COUNT = 1 << 20, BLOCK = 128 };

static void check(CUresult result, const char *what) {
  const char *name = "unknown";
  if (result == CUDA_SUCCESS) return;
  cuGetErrorName(result, &name);
  fprintf(stderr, "%s: %s\n", what, name);
  exit(1);
}

#define CHECK(call) check(call, #call)

static void run_on(CUdevice device, const char *path) {
  static float x[COUNT], y[COUNT];
  char name[100];
  CUcontext context;
  CUmodule module;
  CUfunction saxpy;
  CUdeviceptr dx, dy;
  CUevent start, end;
  float milliseconds, a = 2;
  int n = COUNT;
  CHECK(cuDeviceGetName(name, sizeof name, device));
  CHECK(cuDevicePrimaryCtxRetain(&context, device));
  CHECK(cuCtxSetCurrent(context));
  CHECK(cuModuleLoad(&module, path));
  CHECK(cuModuleGetFunction(&saxpy, module, "saxpy"));
  CHECK(cuMemAlloc(&dx, sizeof x));
  CHECK(cuMemAlloc(&dy, sizeof y));
  CHECK(cuEventCreate(&start, 0));
  CHECK(cuEventCreate(&end, 0));
  for (int i = 0; i < COUNT; i++) x[i] = (float)i, y[i] = 1;
  CHECK(cuMemcpyHtoD(dx, x, sizeof x));
  CHECK(cuMemcpyHtoD(dy, y, sizeof y));
  void *arguments[] = {&dy, &dx, &a, &n};
  CHECK(cuEventRecord(start, NULL));
  CHECK(cuLaunchKernel(saxpy, (COUNT + BLOCK - 1) / BLOCK, 1, 1, BLOCK, 1, 1, 0, NULL, arguments, NULL));
  CHECK(cuEventRecord(end, NULL));
  CHECK(cuMemcpyDtoH(y, dy, sizeof y));
  CHECK(cuEventElapsedTime(&milliseconds, start, end));
  printf("%s: y[0] = %g, y[%d] = %g, %.3f ms\n", name, (double)y[0], COUNT - 1, (double)y[COUNT - 1], (double)milliseconds);
  CHECK(cuDevicePrimaryCtxRelease(device));
}

int main(int count, char **arguments) {
  int devices;
  if (count != 2) {
    fprintf(stderr, "usage: %s kernels.ptx\n", arguments[0]);
    return 2;
  }
  CHECK(cuInit(0));
  CHECK(cuDeviceGetCount(&devices));
  for (int n = 0; n < devices; n++) run_on(n, arguments[1]);
  return 0;
}
