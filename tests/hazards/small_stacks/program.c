/* A thread with a small stack is the first to call the driver, launches and copies. */
#include "hazard.h"

#include <pthread.h>
#include <signal.h>

enum { STACK = 32 << 10 };

static void *uses(void *unused) {
  static char bytes[100000];
  CUdeviceptr memory;
  CUfunction function = ready();
  CHECK(cuMemAlloc(&memory, sizeof bytes));
  CHECK(cuMemcpyHtoD(memory, bytes, 100));
  CHECK(cuMemcpyHtoD(memory, bytes, sizeof bytes));
  CHECK(wide_launch(function));
  CHECK(cuMemFree(memory));
  return unused;
}

int main(void) {
  pthread_t thread;
  pthread_attr_t small;
  MUST(!pthread_attr_init(&small) && !pthread_attr_setstacksize(&small, STACK));
  MUST(!pthread_create(&thread, &small, uses, NULL) && !pthread_join(thread, NULL));
  puts("done");
  return 0;
}
