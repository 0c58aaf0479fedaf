/* One thread opens libraries while another loads modules and launches. */
#include "hazard.h"

#include <pthread.h>

extern _Atomic unsigned opened;
static _Atomic int stop;
static unsigned own;

static void *opens(void *unused) {
  while (!stop) {
    void *library = dlopen("libm.so.6", RTLD_NOW);
    MUST(library);
    own++;
    dlclose(library);
  }
  return unused;
}

int main(void) {
  pthread_t thread;
  CUmodule module;
  CUfunction function = ready();
  unsigned before = opened;
  MUST(!pthread_create(&thread, NULL, opens, NULL));
  for (int i = 0; i < 5000; i++) {
    CHECK(cuModuleLoadData(&module, "no PTX"));
    CHECK(cuModuleGetFunction(&function, module, "nothing"));
    CHECK(launch(function, NULL));
  }
  stop = 1;
  MUST(!pthread_join(thread, NULL));
  printf("%u\n", opened - before - own);
  return 0;
}
