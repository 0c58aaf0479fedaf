/* Launches at leisure. */
#include "hazard.h"

#include <time.h>

int main(void) {
  CUfunction function = ready();
  for (int i = 0; i < 500; i++) {
    CHECK(launch(function, NULL));
    nanosleep(&(struct timespec){0, 200000}, NULL);
  }
  return 0;
}
