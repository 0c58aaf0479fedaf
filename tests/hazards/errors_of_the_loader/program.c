/* Looks symbols up as the manual says: by what dlerror says. */
#include "hazard.h"

static void ask(void *handle, const char *symbol) {
  dlerror();
  void *address = dlsym(handle, symbol);
  const char *error = dlerror();
  printf("%s %d %d\n", symbol, address != NULL, error != NULL);
  if (dlerror()) printf("twice\n");
}

int main(void) {
  void *driver = dlopen("libcuda.so.1", RTLD_NOW);
  ask(driver, "cuInit"); /* now the driver is opened */
  ask(driver, "cuLaunchKernelEx");
  ask(driver, "cuNoSuchFunction");
  ask(driver, "no_such_function");
  ask(RTLD_DEFAULT, "cuNoSuchFunction");
  ask(RTLD_DEFAULT, "printf");
  return 0;
}
