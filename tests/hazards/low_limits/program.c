/* Sets a limit of the system, and uses the driver. */
#include "hazard.h"

#include <sys/resource.h>

int main(int count, char **words) {
  MUST(count == 3);
  struct rlimit limit = {strtoull(words[2], NULL, 10), strtoull(words[2], NULL, 10)};
  MUST(!setrlimit(!strcmp(words[1], "files") ? RLIMIT_NOFILE : !strcmp(words[1], "size") ? RLIMIT_FSIZE
                  : !strcmp(words[1], "memory") ? RLIMIT_AS : RLIMIT_MEMLOCK, &limit));
  printf("%d\n", launch(ready(), NULL));
  return 0;
}
