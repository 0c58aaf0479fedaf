/* Launches more than the ring holds. */
#include "hazard.h"

int main(int count, char **words) {
  MUST(count == 2);
  CUfunction function = ready();
  for (long i = 0; i < atol(words[1]); i++) CHECK(wide_launch(function));
  puts("done");
  return 0;
}
