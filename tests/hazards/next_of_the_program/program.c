/* Asks for the next definition of functions a thousand times in eight threads. */
#include "hazard.h"

#include <fcntl.h>
#include <pthread.h>

static void *ask(void *expected) {
  for (int i = 0; i < 1000; i++) {
    MUST(dlsym(RTLD_NEXT, "open") == expected);
    MUST(dlsym(RTLD_DEFAULT, "open") == expected);
    MUST(dlsym(RTLD_NEXT, "no_such_function") == NULL && dlerror() != NULL);
    MUST(dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5") != NULL);
  }
  return NULL;
}

int main(void) {
  pthread_t threads[8];
  void *expected = dlsym(dlopen("libc.so.6", RTLD_NOW), "open");
  MUST(expected);
  for (int i = 0; i < 8; i++) MUST(!pthread_create(&threads[i], NULL, ask, expected));
  for (int i = 0; i < 8; i++) MUST(!pthread_join(threads[i], NULL));
  return 0;
}
