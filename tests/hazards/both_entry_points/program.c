/* Looks a function up through both forms of cuGetProcAddress before cuInit, as run-time libraries do; calls both. */
#include "hazard.h"

int main(void) {
  launch_t *first = NULL, *second = NULL;
  CUdriverProcAddressQueryResult status;
  CUresult (*older)(const char *, void **, int, cuuint64_t) = NULL;
  *(void **)&older = found(dlopen("libcuda.so.1", RTLD_NOW), "cuGetProcAddress");
  CHECK(older("cuLaunchKernel", (void **)&first, 12000, 0));
  CHECK(cuGetProcAddress("cuLaunchKernel", (void **)&second, 12000, 0, &status));
  CUfunction function = ready();
  void *pointer = NULL;
  int number = 1;
  void *parameters[] = {&pointer, &pointer, &pointer, &number};
  CHECK(first(function, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL));
  CHECK(second(function, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL));
  printf("%d %d\n", first == second, status == CU_GET_PROC_ADDRESS_SUCCESS);
  return 0;
}
