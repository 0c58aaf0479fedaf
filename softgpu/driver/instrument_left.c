/* At the end of a process: what it has not given back. */
#include <stdlib.h>

#include "allocations.h"
#include "driver.h"
#include "handles.h"
#include "instrument_settings.h"

enum { KINDS_OF_MEMORY = REGISTERED + 1, MOST = 1 + HANDLE_KINDS + 2 * KINDS_OF_MEMORY };

struct kind_left {
  const char *name;
  uint64_t count;
};

static unsigned count_all(struct kind_left *left) {
  static const char *const memory[KINDS_OF_MEMORY][2] = {
      [ON_DEVICE] = {"device allocations", "bytes of device allocations"},
      [PINNED] = {"host allocations", "bytes of host allocations"},
      [REGISTERED] = {"registered host ranges", "bytes of registered host ranges"},
  };
  unsigned n = 0;
  left[n++] = (struct kind_left){"contexts", context_count()};
  for (enum handle kind = 0; kind < HANDLE_KINDS; kind++)
    left[n++] = (struct kind_left){handle_names[kind], handle_count(kind)};
  for (int kind = 0; kind < KINDS_OF_MEMORY; kind++) {
    uint64_t bytes, count = allocations_total((enum kind)kind, &bytes);
    left[n++] = (struct kind_left){memory[kind][0], count};
    left[n++] = (struct kind_left){memory[kind][1], bytes};
  }
  return n;
}

__attribute__((destructor)) static void end(void) {
  struct kind_left left[MOST];
  struct line line;
  if (!instrument_on || !instrument_settings()->left || ready() != CUDA_SUCCESS) return;
  unsigned count = count_all(left);
  if (!instrument_settings()->log) {
    for (unsigned n = 0; n < count; n++)
      if (left[n].count) complain("left at exit: %s: %llu", left[n].name, (unsigned long long)left[n].count);
    return;
  }
  FILE *to = log_begin(&line);
  if (!to) return;
  fputs("{\"left\": {", to);
  for (unsigned n = 0; n < count; n++)
    fprintf(to, "%s\"%s\": %llu", n ? ", " : "", left[n].name, (unsigned long long)left[n].count);
  fputs("}}\n", to);
  log_end(&line);
}
