/* Threads that are to end launch on for a while, with a ring that nobody reads and with others that want it too; others
 * launch when they are gone. */
#include "hazard.h"

#include <pthread.h>

enum { ROUNDS = 20 };
static CUfunction function;
static long launches;

static void *few(void *unused) {
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
  pthread_cancel(pthread_self());
  pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
  for (long i = 0; i < launches / ROUNDS; i++) CHECK(wide_launch(function));
  pthread_testcancel();
  return unused;
}

int main(int count, char **words) {
  pthread_t threads[2];
  MUST(count == 2);
  launches = atol(words[1]);
  function = (CUfunction)&function;
  for (int round = 0; round < ROUNDS; round++) {
    void *result[2];
    for (int i = 0; i < 2; i++) MUST(!pthread_create(&threads[i], NULL, few, NULL));
    for (int i = 0; i < 2; i++) MUST(!pthread_join(threads[i], &result[i]) && result[i] == PTHREAD_CANCELED);
  }
  CHECK(wide_launch(function));
  puts("done");
  return 0;
}
