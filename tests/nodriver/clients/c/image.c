/* A program as any other, linked with -lcuda: loads the image that it is given in every way there is, and multiplies
 * matrices with it in several streams. */
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>

enum { SIZE = 45, STREAMS = 4, MOST_BYTES = 1 << 20 };

static void check(CUresult result, int line) {
  const char *name = "?";
  if (result == CUDA_SUCCESS)
    return;
  cuGetErrorName(result, &name);
  fprintf(stderr, "line %d: %s\n", line, name);
  exit(1);
}

#define OK(call) check(call, __LINE__)

static float a[SIZE * SIZE], b[SIZE * SIZE], c[STREAMS][SIZE * SIZE];

static void multiply(CUfunction product, CUdeviceptr bias, CUdeviceptr launches) {
  const float added[] = {0.5f, -1.5f};
  unsigned long long count;
  CUdeviceptr left, right, result[STREAMS];
  CUstream streams[STREAMS];
  int n = SIZE;
  OK(cuMemcpyHtoD(bias, added, sizeof added));
  OK(cuMemAlloc(&left, sizeof a));
  OK(cuMemAlloc(&right, sizeof b));
  OK(cuMemcpyHtoD(left, a, sizeof a));
  OK(cuMemcpyHtoD(right, b, sizeof b));
  for (int s = 0; s < STREAMS; s++) {
    OK(cuStreamCreate(&streams[s], CU_STREAM_NON_BLOCKING));
    OK(cuMemAllocAsync(&result[s], sizeof c[s], streams[s]));
    void *arguments[] = {&left, &right, &result[s], &n};
    OK(cuLaunchKernel(product, (SIZE + 15) / 16, (SIZE + 15) / 16, 1, 16, 16, 1, 0, streams[s], arguments, NULL));
    OK(cuMemcpyDtoHAsync(c[s], result[s], sizeof c[s], streams[s]));
    OK(cuMemFreeAsync(result[s], streams[s]));
  }
  for (int s = 0; s < STREAMS; s++) {
    OK(cuStreamSynchronize(streams[s]));
    OK(cuStreamDestroy(streams[s]));
    for (int row = 0; row < SIZE; row++)
      for (int column = 0; column < SIZE; column++) {
        float sum = 0; /* of small integers, so in any order the same */
        for (int k = 0; k < SIZE; k++)
          sum += a[row * SIZE + k] * b[k * SIZE + column];
        if (c[s][row * SIZE + column] != sum + added[column % 2]) {
          fprintf(stderr, "row %d, column %d is wrong\n", row, column);
          exit(1);
        }
      }
  }
  OK(cuMemcpyDtoH(&count, launches, sizeof count));
  if (count != STREAMS)
    exit(2);
  OK(cuMemFree(left));
  OK(cuMemFree(right));
}

static void with_module(CUmodule module) {
  CUfunction product;
  CUdeviceptr bias, launches;
  OK(cuModuleGetFunction(&product, module, "product"));
  OK(cuModuleGetGlobal(&bias, NULL, module, "bias"));
  OK(cuModuleGetGlobal(&launches, NULL, module, "launches"));
  multiply(product, bias, launches);
  OK(cuModuleUnload(module));
}

static void with_library(CUlibrary library) {
  CUkernel product;
  CUdeviceptr bias, launches;
  OK(cuLibraryGetKernel(&product, library, "product"));
  OK(cuLibraryGetGlobal(&bias, NULL, library, "bias"));
  OK(cuLibraryGetGlobal(&launches, NULL, library, "launches"));
  multiply((CUfunction)product, bias, launches);
  OK(cuLibraryUnload(library));
}

int main(int words, char **word) {
  static char bytes[MOST_BYTES];
  CUcontext context;
  CUmodule module;
  CUlibrary library;
  FILE *file = words == 2 ? fopen(word[1], "rb") : NULL;
  if (!file || !fread(bytes, 1, sizeof bytes - 1, file))
    return 3;
  fclose(file);
  for (int i = 0; i < SIZE * SIZE; i++) {
    a[i] = (float)(i * 7 % 11 - 5);
    b[i] = (float)(i * 5 % 13 - 6);
  }
  OK(cuInit(0));
  OK(cuDevicePrimaryCtxRetain(&context, 0));
  OK(cuCtxSetCurrent(context));
  OK(cuModuleLoad(&module, word[1]));
  with_module(module);
  OK(cuModuleLoadData(&module, bytes));
  with_module(module);
  OK(cuLibraryLoadFromFile(&library, word[1], NULL, NULL, 0, NULL, NULL, 0));
  with_library(library);
  OK(cuLibraryLoadData(&library, bytes, NULL, NULL, 0, NULL, NULL, 0));
  with_library(library);
  OK(cuDevicePrimaryCtxRelease(0));
  printf("done\n");
  return 0;
}
