/* Closes descriptors, all or the standard ones, and goes on calling the driver; writes to what it has closed. */
#include "hazard.h"

#include <unistd.h>

int main(int count, char **words) {
  MUST(count == 2);
  CUfunction function = NULL;
  if (!strcmp(words[1], "standard")) {
    close_range(0, 2, 0);
    function = ready();
  } else {
    function = ready();
    close_range(0, ~0u, 0);
  }
  for (int i = 0; i < 1000; i++)
    if (launch(function, NULL) || write(1, "?", 1) != -1 || write(2, "?", 1) != -1) return 2;
  for (int file = 0; file < 64; file++)
    if (dup(file) != -1) return 3; /* something of the library's is still open */
  return 0;
}
