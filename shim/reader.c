/* The reading side of the ring. The program on the other side may do anything to the memory that both map, except make
 * it smaller, which its seal prevents: the position from which is read next is therefore kept here. */
#include "reader.h"
#include "wire.h"

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { SPINS = 200, SHORTEST_NS = 50000, LONGEST_NS = 2000000 };

struct ring {
  struct wire_ring *head;
  const uint8_t *records;
  uint64_t tail;
  long sleep_ns; /* the last time */
};

static const char *fault(int descriptor) {
  struct stat state;
  if (fstat(descriptor, &state)) {
    return "there is no such descriptor";
  }
  if (state.st_size != WIRE_HEAD_BYTES + WIRE_RING_BYTES) {
    return "it has another size";
  }
  int seals = fcntl(descriptor, F_GET_SEALS);
  return seals < 0 || !(seals & F_SEAL_SHRINK) ? "it is not sealed against shrinking" : NULL;
}

static const char *fault_of_head(const struct wire_ring *head) {
  if (head->magic != WIRE_MAGIC) {
    return "it does not begin as a ring does";
  }
  if (head->version != WIRE_VERSION) {
    return "it is of another version";
  }
  return head->bytes != WIRE_RING_BYTES ? "its head says another size" : NULL;
}

static int map_at(uint8_t *place, size_t bytes, int protection, int descriptor, off_t offset) {
  return mmap(place, bytes, protection, MAP_SHARED | MAP_FIXED, descriptor, offset) != MAP_FAILED;
}

struct ring *ring_map(int descriptor, const char **wrong) {
  *wrong = fault(descriptor);
  if (*wrong) {
    return NULL;
  }
  size_t all = WIRE_HEAD_BYTES + 2 * (size_t)WIRE_RING_BYTES;
  uint8_t *place = mmap(NULL, all, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  struct ring *ring = malloc(sizeof *ring);
  if (place == MAP_FAILED || !ring) {
    *wrong = "there is no memory to map it";
  } else if (!map_at(place, WIRE_HEAD_BYTES, PROT_READ | PROT_WRITE, descriptor, 0) ||
             !map_at(place + WIRE_HEAD_BYTES, WIRE_RING_BYTES, PROT_READ, descriptor, WIRE_HEAD_BYTES) ||
             !map_at(place + WIRE_HEAD_BYTES + WIRE_RING_BYTES, WIRE_RING_BYTES, PROT_READ, descriptor,
                     WIRE_HEAD_BYTES)) {
    *wrong = "it cannot be mapped";
  } else {
    *wrong = fault_of_head((const struct wire_ring *)place);
  }
  if (*wrong) {
    if (place != MAP_FAILED) {
      munmap(place, all);
    }
    free(ring);
    return NULL;
  }
  *ring = (struct ring){.head = (struct wire_ring *)place, .records = place + WIRE_HEAD_BYTES};
  return ring;
}

void ring_unmap(struct ring *ring) {
  munmap(ring->head, WIRE_HEAD_BYTES + 2 * (size_t)WIRE_RING_BYTES);
  free(ring);
}

uint64_t ring_lost(const struct ring *ring) { return __atomic_load_n(&ring->head->lost, __ATOMIC_ACQUIRE); }

uint64_t ring_position(const struct ring *ring) { return ring->tail; }

const uint8_t *ring_records(const struct ring *ring) { return ring->records + ring->tail % WIRE_RING_BYTES; }

int64_t ring_available(const struct ring *ring) {
  uint64_t bytes = __atomic_load_n(&ring->head->head, __ATOMIC_ACQUIRE) - ring->tail;
  return bytes > WIRE_RING_BYTES || bytes % 8 ? -1 : (int64_t)bytes;
}

static uint64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

int64_t ring_wait(struct ring *ring, int process, int parent, uint32_t microseconds) {
  int64_t bytes = ring_available(ring);
  for (int spin = 0; !bytes && !ring->sleep_ns && spin < SPINS; ++spin) {
    __builtin_ia32_pause();
    bytes = ring_available(ring);
  }
  uint64_t end = now_ns() + (uint64_t)microseconds * 1000;
  struct pollfd watched[] = {{process, POLLIN, 0}, {parent, POLLIN, 0}};
  for (uint64_t now = now_ns(); !bytes && now < end; now = now_ns()) {
    long sleep = 2 * ring->sleep_ns; /* the next wait goes on where this one ended, while nothing comes */
    ring->sleep_ns = sleep < SHORTEST_NS ? SHORTEST_NS : sleep > LONGEST_NS ? LONGEST_NS : sleep;
    uint64_t left = end - now;
    struct timespec time = {0, left < (uint64_t)ring->sleep_ns ? (long)left : ring->sleep_ns};
    int ready = ppoll(watched, 2, &time, NULL);
    bytes = ring_available(ring);
    if (ready > 0) {
      return bytes;
    }
  }
  if (bytes) {
    ring->sleep_ns = 0;
  }
  return bytes;
}

void ring_advance(struct ring *ring, uint64_t bytes) {
  ring->tail += bytes;
  __atomic_store_n(&ring->head->tail, ring->tail, __ATOMIC_RELEASE);
}

uint64_t ticks(void) { return __builtin_ia32_rdtsc(); }
