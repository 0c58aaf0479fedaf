/* Fifty threads that begin at once, or as many as the first word says. */
#include "hazard.h"

#include <pthread.h>

enum { MOST = 50 };
static pthread_barrier_t barrier;

static void *begin(void *unused) {
  pthread_barrier_wait(&barrier);
  CHECK(cuInit(0));
  CHECK(launch((CUfunction)&barrier, NULL));
  return unused;
}

int main(int count, char **words) {
  pthread_t threads[MOST];
  int early, number = count > 1 ? atoi(words[1]) : MOST;
  pthread_barrier_init(&barrier, NULL, (unsigned)number);
  for (int i = 0; i < number; i++) MUST(!pthread_create(&threads[i], NULL, begin, NULL));
  for (int i = 0; i < number; i++) MUST(!pthread_join(threads[i], NULL));
  CHECK(cuDeviceGetCount(&early));
  printf("%d\n", early);
  return 0;
}
