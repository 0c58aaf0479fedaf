#include "ring.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "doors.h"
#include "nap.h"
#include "session.h"

enum { LINE = 64, AHEAD = 2048, BACKED_AT_ONCE = 1 << 19 };

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

#define MILLISECOND 1000000ull
/* How long a program may have to wait in a call for the reader to make room. */
#define PATIENCE (9 * MILLISECOND)
#define PATIENCE_FOR_CONTENTS (2000 * MILLISECOND)

/* A child that was forked off has other threads than those that its memory remembers. */
static _Thread_local struct { uint32_t process, number; } thread;

/* Both times behind each other; MADV_DONTFORK: a child has a ring of its own. */
static bool map_twice(int file, struct ring *ring) {
  size_t whole = WIRE_HEAD_BYTES + 2ul * WIRE_RING_BYTES;
  char *place = mmap(NULL, whole, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (place == MAP_FAILED) return false;
  int how = MAP_SHARED | MAP_FIXED;
  bool done = mmap(place, WIRE_HEAD_BYTES + (size_t)WIRE_RING_BYTES, PROT_READ | PROT_WRITE, how, file, 0) !=
                  MAP_FAILED &&
              mmap(place + WIRE_HEAD_BYTES + WIRE_RING_BYTES, WIRE_RING_BYTES, PROT_READ | PROT_WRITE, how, file,
                   WIRE_HEAD_BYTES) != MAP_FAILED &&
              madvise(place, whole, MADV_DONTFORK) == 0;
  if (!done) {
    munmap(place, whole);
    return false;
  }
  ring->shared = (struct wire_ring *)(void *)place;
  ring->records = place + WIRE_HEAD_BYTES;
  return true;
}

/* Past the limit the system would end the program. */
static bool large_files(void) {
  struct rlimit limit;
  return getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur >= WIRE_HEAD_BYTES + (rlim_t)WIRE_RING_BYTES;
}

int ring_make(struct ring *ring) {
  if (!large_files()) return -1;
  int file = (int)syscall(SYS_memfd_create, "tessera", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (file < 0) return -1;
  ring->process = (uint32_t)getpid();
  ring->aside = mmap(NULL, WIRE_LARGEST_RECORD, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (ring->aside == MAP_FAILED || ftruncate(file, WIRE_HEAD_BYTES + (off_t)WIRE_RING_BYTES) != 0 ||
      fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0 || !map_twice(file, ring)) {
    close(file);
    return -1;
  }
  *ring->shared = (struct wire_ring){
      .magic = WIRE_MAGIC, .version = WIRE_VERSION, .functions = FUNCTION_COUNT, .list = FUNCTION_LIST,
      .bytes = WIRE_RING_BYTES, .process = ring->process,
  };
  return file;
}

static uint64_t room_left(struct ring *ring) {
  ring->tail = __atomic_load_n(&ring->shared->tail, __ATOMIC_ACQUIRE);
  uint64_t used = ring->head - ring->tail;
  return used <= WIRE_RING_BYTES ? WIRE_RING_BYTES - used : 0; /* a tail that is nonsense is no room */
}

/* Under the lock, like all up to `record_end`. */
static bool wait_for(struct ring *ring, size_t bytes) {
  uint64_t deadline = now() + PATIENCE;
  while (room_left(ring) < bytes) {
    if (now() > deadline) return false;
    nap(NAP);
  }
  return true;
}

static void *write_head(void *place, enum wire_kind kind, unsigned function, size_t bytes, uint64_t sequence) {
  uint32_t process = session->ring.process;
  if (__builtin_expect(thread.process != process, 0)) {
    thread.process = process;
    thread.number = (uint32_t)syscall(SYS_gettid);
  }
  *(struct wire_head *)place = (struct wire_head){
      .size = (uint32_t)bytes, .kind = (uint16_t)kind, .sequence = sequence, .ticks = __builtin_ia32_rdtsc(),
      .thread = thread.number, .function = function,
  };
  return place;
}

static char *at_head(struct ring *ring) { return ring->records + (ring->head & (WIRE_RING_BYTES - 1)); }

static void publish(struct ring *ring, size_t bytes) {
  /* The reader has had the lines that records to come will want back. */
  const char *ahead = at_head(ring) + AHEAD;
  for (size_t line = 0; line < bytes && line < AHEAD; line += LINE) __builtin_prefetch(ahead + line, 1);
  ring->head += bytes;
  __atomic_store_n(&ring->shared->head, ring->head, __ATOMIC_RELEASE);
}

static bool restate(const struct wire_head *record, void *with) {
  struct ring *ring = with;
  if (room_left(ring) < record->size && !wait_for(ring, record->size)) return false;
  struct wire_head *copy = memcpy(at_head(ring), record, record->size);
  copy->sequence = ++ring->sequence;
  copy->flags |= WIRE_RESTATED;
  publish(ring, record->size);
  return true;
}

/* Records have been lost, and now half of the ring is free: say so, and say again what there is. */
static void begin_epoch(struct ring *ring) {
  struct wire_epoch *record = write_head(at_head(ring), WIRE_EPOCH, 0, sizeof *record, ++ring->sequence);
  record->epoch = ++ring->epoch;
  record->unused = 0;
  record->lost = ring->lost;
  publish(ring, sizeof *record);
  ring->lost = 0;
  if (!ledger_each(restate, ring)) ring->lost = 1; /* the next epoch will try again */
}

/* A page that is met for the first time costs more than the records on it: many at once cost less. A system that is
 * older than this (Linux 5.14) gives them one by one. */
static void back(struct ring *ring, uint64_t end) {
  while (ring->backed < end && ring->backed < WIRE_RING_BYTES) {
    int before = errno;
    madvise(ring->records + ring->backed, BACKED_AT_ONCE, MADV_POPULATE_WRITE);
    errno = before;
    ring->backed += BACKED_AT_ONCE;
  }
  if (ring->backed >= WIRE_RING_BYTES) ring->backed = UINT64_MAX;
}

static bool has_room(struct ring *ring, size_t bytes) {
  if (bytes > WIRE_LARGEST_RECORD) return false;
  if (__builtin_expect(ring->head + bytes > ring->backed, 0)) back(ring, ring->head + bytes);
  if (__builtin_expect(ring->lost != 0, 0)) {
    if (room_left(ring) < WIRE_RING_BYTES / 2) return false;
    begin_epoch(ring);
    if (ring->lost) return false;
  }
  uint64_t used = ring->head - ring->tail;
  if (__builtin_expect(used <= WIRE_RING_BYTES && WIRE_RING_BYTES - used >= bytes, 1)) return true;
  return room_left(ring) >= bytes || wait_for(ring, bytes);
}

void *record_begin(enum wire_kind kind, unsigned function, size_t bytes) {
  struct ring *ring = &session->ring;
  lock_take(&ring->lock);
  ring->larger = !has_room(ring, bytes);
  char *place = ring->larger ? ring->aside : at_head(ring);
  return write_head(place, kind, function, bytes, ++ring->sequence);
}

uint64_t record_end(void *record) {
  struct ring *ring = &session->ring;
  const struct wire_head *head = record;
  uint64_t sequence = head->sequence;
  ledger_enter(head);
  if (__builtin_expect(ring->larger != 0, 0)) {
    ring->lost++;
    __atomic_store_n(&ring->shared->lost, ring->shared->lost + 1, __ATOMIC_RELAXED);
  } else {
    publish(ring, head->size);
  }
  lock_give(&ring->lock);
  return sequence;
}

bool ring_room(size_t bytes) {
  struct ring *ring = &session->ring;
  size_t wanted = bytes + WIRE_RING_BYTES / 4;
  uint64_t moved = now(), tail = 0;
  for (;;) {
    lock_take(&ring->lock);
    uint64_t left = room_left(ring), seen = ring->tail;
    bool losing = ring->lost != 0;
    lock_give(&ring->lock);
    if (left >= wanted) return true;
    uint64_t time = now();
    if (seen != tail) moved = time;
    tail = seen;
    if (losing || time - moved > PATIENCE_FOR_CONTENTS) return false;
    nap(NAP);
  }
}

void *put_bytes(void *place, const void *bytes, size_t count) {
  char *to = place;
  if (count) memcpy(to, bytes, count);
  memset(to + count, 0, padded(count) - count);
  return to + padded(count);
}
