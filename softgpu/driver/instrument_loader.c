/* Some drivers call the loader inside cuInit. Libraries that stand between a program and the driver have to bear
 * that. */
#include <dlfcn.h>

#include "driver.h"
#include "instrument_settings.h"

static _Thread_local bool loading;

bool instrument_loading(void) { return loading; }

static void look_up(void *handle, const char *symbol) {
  if (!dlsym(handle, symbol)) dlerror(); /* that there is none is no concern of ours */
}

void instrument_load(void) {
  if (!instrument_on || !instrument_settings()->loader) return;
  loading = true;
  look_up(RTLD_DEFAULT, "cuInit");
  look_up(RTLD_DEFAULT, "cuGetProcAddress_v2");
  look_up(RTLD_NEXT, "cuInit");
  const char *names[] = {NULL, "libcuda.so.1", "libc.so.6"};
  for (int n = 0; n < 3; n++) {
    void *handle = dlopen(names[n], RTLD_LAZY);
    if (!handle) continue;
    look_up(handle, "cuInit");
    look_up(handle, "cuGetProcAddress");
    look_up(handle, "pthread_create");
    dlclose(handle);
  }
  loading = false;
}
