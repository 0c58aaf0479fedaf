#include "hazard.h"

extern unsigned dummy_lookups, dummy_launches;

int main(void) {
  launch_t *launches = NULL;
  CUfunction function = ready();
  void *pointer = NULL, *parameters[] = {&pointer, &pointer, &pointer, &pointer};
  *(void **)&launches = found(dlopen("libcuda.so.1", RTLD_NOW), "cuLaunchKernel");
  for (int i = 0; i < 10; i++) CHECK(launches(function, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL));
  printf("%d %u\n", dummy_lookups > 0, dummy_launches);
  return 0;
}
