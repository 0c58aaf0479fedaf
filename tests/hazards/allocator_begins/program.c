#include "hazard.h"

int main(void) {
  void *memory = malloc(100000);
  MUST(memory);
  free(memory);
  CHECK(launch(ready(), NULL));
  puts("hello");
  return 0;
}
