/* Events of several processes: a page that all of them have mapped. */
#include "shared_event.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include "driver.h"
#include "memfile.h"
#include "watch.h"
#include "work.h"

enum { PAGE = 4096, TURNS = 256, PROCESS_BITS = 24, SELDOM = 64 };

static const uint32_t MAGIC = 0x45504953; /* "SIPE" */

/* A record is its turn, counted from 1 on, and the process that records, in the lower bits. */
struct board {
  _Atomic uint64_t last;        /* record */
  _Atomic uint64_t done[TURNS]; /* the latest turn with that remainder that is done */
};

_Static_assert(sizeof(struct board) <= PAGE, "a page is enough");

struct shared_event {
  _Atomic unsigned references;
  struct board *board;
  int file; /* -1: it is another process's */
};

static CUresult make(int file, bool own, struct shared_event **event) {
  struct shared_event *made = malloc(sizeof *made);
  void *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (made && page != MAP_FAILED) {
    *made = (struct shared_event){.references = 1, .board = page, .file = own ? file : -1};
    if (!own) close(file);
    *event = made;
    return CUDA_SUCCESS;
  }
  if (page != MAP_FAILED) munmap(page, PAGE);
  free(made);
  close(file);
  return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult shared_event_make(CUdevice device, struct shared_event **event) {
  int file = memfile_make("event", device, PAGE);
  return file < 0 ? CUDA_ERROR_OUT_OF_MEMORY : make(file, true, event);
}

struct exported {
  uint32_t magic;
  struct memfile_place place;
};

CUresult shared_event_handle(const struct shared_event *event, CUipcEventHandle *handle) {
  if (event->file < 0) return CUDA_ERROR_INVALID_HANDLE;
  struct exported exported;
  memset(&exported, 0, sizeof exported);
  exported.magic = MAGIC;
  exported.place = memfile_tell(event->file);
  memset(handle, 0, sizeof *handle);
  memcpy(handle, &exported, sizeof exported);
  return CUDA_SUCCESS;
}

CUresult shared_event_open(const CUipcEventHandle *handle, struct shared_event **event) {
  struct exported exported;
  CUdevice device;
  uint64_t size;
  int file;
  memcpy(&exported, handle, sizeof exported);
  if (exported.magic != MAGIC) return CUDA_ERROR_INVALID_HANDLE;
  if (exported.place.process == getpid()) return CUDA_ERROR_INVALID_CONTEXT;
  CHECK(memfile_open(&exported.place, "event", &file, &device, &size));
  return make(file, false, event);
}

struct shared_event *shared_event_hold(struct shared_event *event) {
  event->references++;
  return event;
}

void shared_event_release(struct shared_event *event) {
  if (!event || --event->references) return;
  munmap(event->board, PAGE);
  if (event->file >= 0) close(event->file);
  free(event);
}

static uint64_t turn_of(uint64_t record) { return record >> PROCESS_BITS; }
static int process_of(uint64_t record) { return (int)(record & ((1u << PROCESS_BITS) - 1)); }

uint64_t shared_event_begin(struct shared_event *event) {
  uint64_t last = event->board->last, next;
  do next = (turn_of(last) + 1) << PROCESS_BITS | (uint64_t)getpid();
  while (!atomic_compare_exchange_weak(&event->board->last, &last, next));
  return next;
}

void shared_event_finish(struct shared_event *event, uint64_t record) {
  _Atomic uint64_t *done = &event->board->done[turn_of(record) % TURNS];
  uint64_t before = *done;
  while (before < turn_of(record) && !atomic_compare_exchange_weak(done, &before, turn_of(record))) {
  }
}

uint64_t shared_event_last(const struct shared_event *event) { return event->board->last; }

static bool is_done(const struct shared_event *event, uint64_t record) {
  return event->board->done[turn_of(record) % TURNS] >= turn_of(record);
}

bool shared_event_done(const struct shared_event *event, uint64_t record) {
  return is_done(event, record) || !process_lives(process_of(record));
}

/* Waiting. */

struct waiting {
  struct watch watch; /* first: `look` */
  struct shared_event *event;
  uint64_t record;
  struct operation *operation;
  unsigned looks;
};

void *shared_event_wait_begin(struct shared_event *event, uint64_t record) {
  struct waiting *waiting = malloc(sizeof *waiting);
  if (waiting) *waiting = (struct waiting){.event = shared_event_hold(event), .record = record};
  return waiting;
}

void shared_event_wait_end(void *given) {
  struct waiting *waiting = given;
  shared_event_release(waiting->event);
  free(waiting);
}

/* Whether the process lives is asked less often. */
static bool look(struct watch *watch) {
  struct waiting *waiting = (struct waiting *)watch;
  bool done = ++waiting->looks % SELDOM ? is_done(waiting->event, waiting->record)
                                        : shared_event_done(waiting->event, waiting->record);
  if (!done) return false;
  operation_end(waiting->operation);
  shared_event_wait_end(waiting);
  return true;
}

void shared_event_wait(void *given) {
  struct waiting *waiting = given;
  if (!shared_event_done(waiting->event, waiting->record)) {
    waiting->watch.look = look;
    waiting->operation = operation_defer();
    if (watch_add(&waiting->watch)) return;
    while (!shared_event_done(waiting->event, waiting->record)) sched_yield(); /* no thread for it */
    operation_end(waiting->operation);
  }
  shared_event_wait_end(waiting);
}
