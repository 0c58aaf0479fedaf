/* Pages of sparse files in memory that nobody uses any more.
 *
 * A page that is given back to the machine and needed again costs several times what it costs to zero it. A sixteenth
 * of the machine's memory is therefore kept, in all files together. */
#include "pages.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

enum { PART = 16, MOST_RUNS = 64 }; /* of memory; of pages in what is given back, as each run is looked for */

static _Atomic uint64_t kept; /* of all files */
static uint64_t page, most;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void ask(void) {
  page = (uint64_t)sysconf(_SC_PAGESIZE);
  most = (uint64_t)sysconf(_SC_PHYS_PAGES) * page / PART;
}

static void add(struct pages *pages, uint64_t bytes) {
  pages->kept += bytes;
  kept += bytes;
}

static void subtract(struct pages *pages, uint64_t bytes) {
  uint64_t before = pages->kept, less;
  do less = bytes < before ? bytes : before;
  while (!atomic_compare_exchange_weak(&pages->kept, &before, before - less));
  kept -= less;
}

/* The next run of pages that are there, from `at` on. */
static bool next_run(const struct pages *pages, uint64_t at, uint64_t end, uint64_t *start, uint64_t *stop) {
  off_t found = lseek(pages->file, (off_t)at, SEEK_DATA);
  if (found < 0 || (uint64_t)found >= end) return false;
  off_t after = lseek(pages->file, found, SEEK_HOLE);
  *start = (uint64_t)found;
  *stop = after < 0 || (uint64_t)after > end ? end : (uint64_t)after;
  return true;
}

void pages_take(struct pages *pages, uint64_t start, uint64_t size) {
  uint64_t run, stop;
  pthread_once(&once, ask);
  uint64_t at = (start + page - 1) / page * page, end = (start + size) / page * page;
  for (; at < end && pages->kept && next_run(pages, at, end, &run, &stop); at = stop) subtract(pages, stop - run);
}

static void give_back(struct pages *pages, uint64_t start, uint64_t end) {
  if (fallocate(pages->file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)start, (off_t)(end - start)))
    memset(pages->base + start, 0, end - start);
}

/* Zero what is there, and keep it as long as there is room for more. */
static void clear(struct pages *pages, uint64_t start, uint64_t end) {
  uint64_t run, stop;
  for (int runs = 0; start < end && next_run(pages, start, end, &run, &stop); runs++) {
    uint64_t had = kept, room = had < most && runs < MOST_RUNS ? (most - had) / page * page : 0;
    if (room < stop - run) {
      give_back(pages, run + room, end);
      end = stop = run + room;
    }
    memset(pages->base + run, 0, stop - run);
    add(pages, stop - run);
    start = stop;
  }
}

void pages_give(struct pages *pages, uint64_t start, uint64_t size) {
  pthread_once(&once, ask);
  uint64_t end = start + size, first = (start + page - 1) / page * page, last = end / page * page;
  if (first >= last) {
    memset(pages->base + start, 0, size);
    return;
  }
  memset(pages->base + start, 0, first - start);
  memset(pages->base + last, 0, end - last);
  clear(pages, first, last);
}

void pages_end(struct pages *pages) { subtract(pages, UINT64_MAX); }
