/* At the end of a process: what it has not given back, and whether the modelled clock kept up. */
#include <stdlib.h>

#include "allocations.h"
#include "driver.h"
#include "handles.h"
#include "instrument_settings.h"

enum memory { DEVICE_MEMORY, HOST_MEMORY, REGISTERED_MEMORY, MEMORIES };
enum { MOST = 1 + HANDLE_KINDS + 2 * MEMORIES };

struct left {
  const char *name;
  uint64_t count;
};

struct total {
  uint64_t count, bytes;
};

static void add_up(const struct allocation *allocation, void *given) {
  if (allocation->kind == VARIABLE) return; /* it goes with the module */
  enum memory which = on_device(allocation)            ? DEVICE_MEMORY
                      : allocation->kind == REGISTERED ? REGISTERED_MEMORY
                                                       : HOST_MEMORY;
  struct total *total = &((struct total *)given)[which];
  total->count++;
  total->bytes += allocation->size;
}

static unsigned count_all(struct left *left) {
  static const char *const names[MEMORIES][2] = {
      [DEVICE_MEMORY] = {"device allocations", "bytes of device allocations"},
      [HOST_MEMORY] = {"host allocations", "bytes of host allocations"},
      [REGISTERED_MEMORY] = {"registered ranges", "bytes of registered ranges"},
  };
  struct total totals[MEMORIES] = {{0}};
  unsigned n = 0;
  allocations_read();
  allocations_walk(add_up, totals);
  allocations_release();
  left[n++] = (struct left){"contexts", context_count()};
  for (int kind = 0; kind < HANDLE_KINDS; kind++)
    if (handle_names[kind]) left[n++] = (struct left){handle_names[kind], handle_count((enum handle)kind)};
  for (int which = 0; which < MEMORIES; which++) {
    left[n++] = (struct left){names[which][0], totals[which].count};
    left[n++] = (struct left){names[which][1], totals[which].bytes};
  }
  return n;
}

void instrument_clock(const struct clock_report *report) {
  struct line line;
  if (!instrument_on || !instrument_settings()->log) return;
  FILE *to = line_begin(&line);
  if (!to) return;
  fprintf(to, "{\"clock\": \"%s\", \"operations\": %llu, \"took_ns\": %llu, \"late_ns\": %llu}\n",
          report->kept_up ? "kept up" : "void", (unsigned long long)report->operations, (unsigned long long)report->took,
          (unsigned long long)report->late);
  line_end(&line);
}

__attribute__((destructor)) static void end(void) {
  struct left left[MOST];
  struct line line;
  if (!instrument_on || !instrument_settings()->left || ready() != CUDA_SUCCESS) return;
  unsigned count = count_all(left);
  if (!instrument_settings()->log) {
    for (unsigned n = 0; n < count; n++)
      if (left[n].count) complain("left at exit: %s: %llu", left[n].name, (unsigned long long)left[n].count);
    return;
  }
  FILE *to = line_begin(&line);
  if (!to) return;
  fputs("{\"left\": {", to);
  for (unsigned n = 0; n < count; n++)
    fprintf(to, "%s\"%s\": %llu", n ? ", " : "", left[n].name, (unsigned long long)left[n].count);
  fputs("}}\n", to);
  line_end(&line);
}
