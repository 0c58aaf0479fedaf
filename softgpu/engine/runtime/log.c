/* The log of global accesses, kept as ranges of bytes. Each site has one range that grows while its accesses touch it;
 * ranges that are done go to lists, which are sorted and merged when they are full. */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

static const uint64_t FIRST_CAPACITY = 1024;

static int by_start(const void *a, const void *b) {
  const struct sg_range *x = a, *y = b;
  return (x->start > y->start) - (x->start < y->start);
}

/* Sort, and join ranges that touch. */
static void tidy(struct sg_ranges *list) {
  if (list->count < 2) return;
  qsort(list->items, list->count, sizeof *list->items, by_start);
  uint64_t last = 0;
  for (uint64_t i = 1; i < list->count; i++) {
    struct sg_range *kept = &list->items[last], *range = &list->items[i];
    if (range->start > kept->end)
      list->items[++last] = *range;
    else if (range->end > kept->end)
      kept->end = range->end;
  }
  list->count = last + 1;
}

static bool reserve(struct sg_ranges *list, uint64_t capacity) {
  if (capacity <= list->capacity) return true;
  struct sg_range *items = realloc(list->items, capacity * sizeof *items);
  if (!items) return false;
  list->items = items;
  list->capacity = capacity;
  return true;
}

static bool push(struct sg_ranges *list, struct sg_range range) {
  if (list->count == list->capacity) {
    tidy(list);
    if (list->count >= list->capacity / 2 && !reserve(list, list->capacity ? 2 * list->capacity : FIRST_CAPACITY))
      return false;
  }
  list->items[list->count++] = range;
  return true;
}

static bool close_site(struct worker *worker, uint32_t site) {
  struct access_log *log = &worker->log;
  struct sg_range range = log->open[site];
  if (range.start == range.end) return true;
  uint8_t access = worker->launch->kernel->sites[site].access;
  for (unsigned kind = 0; kind < 3; kind++)
    if ((access >> kind & 1) && !push(&log->kinds[kind], range)) return false;
  return true;
}

/* Add [start, end) to what a site accessed. */
static bool note(struct worker *worker, uint32_t site, uint64_t start, uint64_t end) {
  struct sg_range *open = &worker->log.open[site];
  if (start <= open->end && end >= open->start) {
    if (start < open->start) open->start = start;
    if (end > open->end) open->end = end;
    return true;
  }
  bool ok = close_site(worker, site);
  *open = (struct sg_range){start, end};
  return ok;
}

void log_helper(struct sg_env *env, const uint64_t *addresses, uint32_t mask, uint32_t site) {
  struct worker *worker = worker_of(env);
  uint64_t width = worker->launch->kernel->sites[site].width;
  uint64_t start = 0, end = 0; /* of neighbouring lanes */
  bool ok = true;
  if (!width) return;
  for (uint32_t left = mask; left; left &= left - 1) {
    uint64_t from = addresses[lowest(left)], to = from + width;
    if (from >> 48) continue;
    if (start != end && from <= end && to >= start) {
      if (from < start) start = from;
      if (to > end) end = to;
      continue;
    }
    if (start != end) ok = note(worker, site, start, end) && ok;
    start = from;
    end = to;
  }
  if (start != end) ok = note(worker, site, start, end) && ok;
  if (!ok) no_memory(worker);
}

bool log_begin(struct worker *worker) {
  struct access_log *log = &worker->log;
  const struct sg_kernel *kernel = worker->launch->kernel;
  if (!(kernel->flags & SG_LOGS)) return true;
  if (log->open_count < kernel->site_count) {
    struct sg_range *open = realloc(log->open, kernel->site_count * sizeof *open);
    if (!open) return false;
    log->open = open;
    log->open_count = kernel->site_count;
  }
  if (kernel->site_count) memset(log->open, 0, kernel->site_count * sizeof *log->open);
  for (unsigned kind = 0; kind < 3; kind++) log->kinds[kind].count = 0;
  return true;
}

/* Add a worker's ranges to the result. */
void log_end(struct worker *worker) {
  struct launch *launch = worker->launch;
  struct sg_ranges *results[3] = {&launch->result->read, &launch->result->written, &launch->result->atomic};
  bool ok = true;
  if (!worker->log.open) return;
  for (uint32_t site = 0; site < launch->kernel->site_count; site++) ok = close_site(worker, site) && ok;
  pthread_mutex_lock(&launch->lock);
  for (unsigned kind = 0; kind < 3; kind++) {
    struct sg_ranges *from = &worker->log.kinds[kind], *to = results[kind];
    tidy(from);
    bool fits = reserve(to, to->count + from->count);
    ok = ok && fits;
    if (!fits || !from->count) continue;
    memcpy(to->items + to->count, from->items, from->count * sizeof *from->items);
    to->count += from->count;
  }
  pthread_mutex_unlock(&launch->lock);
  if (!ok) no_memory(worker);
}

void log_free(struct worker *worker) {
  for (unsigned kind = 0; kind < 3; kind++) free(worker->log.kinds[kind].items);
  free(worker->log.open);
}

/* Take [start, end) out of sorted ranges. */
static bool remove_bytes(struct sg_ranges *list, uint64_t start, uint64_t end) {
  uint64_t kept = 0;
  struct sg_range cut = {0, 0}; /* the part behind the hole, when a range lies on both sides of it */
  for (uint64_t i = 0; i < list->count; i++) {
    struct sg_range range = list->items[i];
    if (range.start < start && range.end > end) cut = (struct sg_range){end, range.end};
    if (range.end > start && range.start < end) {
      if (range.start < start)
        range.end = start;
      else
        range.start = range.end < end ? range.end : end;
    }
    if (range.start < range.end) list->items[kept++] = range;
  }
  list->count = kept;
  if (cut.start == cut.end) return true;
  bool ok = push(list, cut);
  tidy(list);
  return ok;
}

static bool overlaps(const struct sg_ranges *list, uint64_t start, uint64_t end) {
  uint64_t low = 0, high = list->count;
  while (low < high) {
    uint64_t middle = low + (high - low) / 2;
    if (list->items[middle].end <= start)
      low = middle + 1;
    else
      high = middle;
  }
  return low < list->count && list->items[low].start < end;
}

/* Merge the ranges of all workers, without constant memory and without a workspace of the launch's own. */
void log_finish(struct launch *launch) {
  struct sg_ranges *results[3] = {&launch->result->read, &launch->result->written, &launch->result->atomic};
  uint64_t workspace = (uint64_t)(uintptr_t)launch->workspace;
  for (unsigned kind = 0; kind < 3; kind++) {
    struct sg_ranges *list = results[kind];
    tidy(list);
    bool ok = !overlaps(list, workspace, workspace + WORKSPACE_BYTES) ||
              remove_bytes(list, workspace, workspace + WORKSPACE_BYTES);
    for (uint64_t i = 0; i < launch->request->allocation_count; i++) {
      const struct sg_allocation *allocation = &launch->request->allocations[i];
      if ((allocation->flags & SG_CONSTANT) && overlaps(list, allocation->start, allocation->start + allocation->size))
        ok = remove_bytes(list, allocation->start, allocation->start + allocation->size) && ok;
    }
    if (!ok) launch->result->status = SG_OUT_OF_MEMORY;
  }
}
