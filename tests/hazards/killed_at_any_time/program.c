/* Launches without end, from several threads. */
#include "hazard.h"

#include <pthread.h>

static void *launches(void *function) {
  for (;;) CHECK(launch(function, NULL));
  return NULL;
}

int main(void) {
  pthread_t thread;
  CUfunction function = ready();
  puts("ready");
  fflush(stdout);
  for (int i = 0; i < 2; i++) MUST(!pthread_create(&thread, NULL, launches, function));
  return launches(function) != NULL;
}
