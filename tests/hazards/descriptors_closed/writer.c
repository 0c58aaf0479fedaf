/* Without standard streams, one thread writes to them while another one begins with the driver. */
#include "hazard.h"

#include <pthread.h>
#include <unistd.h>

static _Atomic int stop, wrote;

static void *writes(void *unused) {
  while (!stop)
    for (int file = 0; file < 3; file++) wrote += write(file, "nonsense", 8) > 0;
  return unused;
}

int main(void) {
  pthread_t thread;
  close_range(0, 2, 0);
  MUST(!pthread_create(&thread, NULL, writes, NULL));
  int result = launch(ready(), NULL);
  stop = 1;
  MUST(!pthread_join(thread, NULL));
  return result ? 1 : wrote ? 2 : 0;
}
