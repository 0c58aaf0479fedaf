/* Opens the driver by its name. */
#include "hazard.h"

int main(void) {
  void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  CUresult (*start)(unsigned) = NULL;
  launch_t *launches = NULL;
  void *pointer = NULL, *parameters[] = {&pointer, &pointer, &pointer, &pointer};
  *(void **)&start = found(driver, "cuInit");
  *(void **)&launches = found(driver, "cuLaunchKernel");
  CHECK(start(0));
  CHECK(launches((CUfunction)parameters, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL));
  dlclose(driver);
  CHECK(launches((CUfunction)parameters, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL)); /* it has to stay */
  puts("done");
  return 0;
}
