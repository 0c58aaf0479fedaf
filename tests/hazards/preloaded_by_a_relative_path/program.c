#include "hazard.h"

#include <unistd.h>

int main(void) {
  MUST(!chdir("/"));
  printf("%d\n", launch(ready(), NULL));
  return 0;
}
