/* Launches as often as it is told. */
#include "hazard.h"

int main(int count, char **words) {
  CUfunction function = ready();
  for (long i = 0; i < (count > 1 ? atol(words[1]) : 10); i++) CHECK(launch(function, NULL));
  puts("done");
  return 0;
}
