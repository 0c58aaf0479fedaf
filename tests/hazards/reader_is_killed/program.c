/* Launches, says so, and waits for a word; then launches more than the ring holds. */
#include "hazard.h"

int main(int count, char **words) {
  MUST(count == 2);
  char word[8];
  CUfunction function = ready();
  CHECK(launch(function, NULL));
  puts("ready");
  fflush(stdout);
  MUST(fgets(word, sizeof word, stdin));
  for (long i = 0; i < atol(words[1]); i++) CHECK(wide_launch(function));
  puts("done");
  return 0;
}
