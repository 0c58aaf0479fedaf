/* The bytes of devices: a file in memory for each, mapped as a whole at a range of addresses of its own.
 *
 * The file is sparse: only pages that somebody wrote take memory of this machine. A block that is given back is zeroed at
 * once, by making holes where it has whole pages. */
#include "arena.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "driver.h"
#include "instrument.h"
#include "share.h"
#include "space.h"

enum { MOST_KEPT = 64 };

struct arena {
  pthread_mutex_t lock;
  struct space space;
  uint8_t *base; /* NULL until the first block is taken */
  int file;
  struct block *kept[MOST_KEPT]; /* given back last, if the instrument wants their addresses to come back at once */
  unsigned kept_count;
};

static struct arena arenas[MOST_DEVICES];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void make_locks(void) {
  for (int n = 0; n < MOST_DEVICES; n++) pthread_mutex_init(&arenas[n].lock, NULL);
}

/* The lock is held. */
static bool begin(struct arena *arena, uint64_t size) {
  int file = memfd_create("softgpu-device", MFD_CLOEXEC);
  if (file < 0 || ftruncate(file, (off_t)size)) {
    complain("no memory of %llu bytes for a device: %s", (unsigned long long)size, strerror(errno));
    if (file >= 0) close(file);
    return false;
  }
  void *base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
  if (base == MAP_FAILED || !space_begin(&arena->space, size)) {
    complain("no addresses for %llu bytes of a device: %s", (unsigned long long)size, strerror(errno));
    if (base != MAP_FAILED) munmap(base, size);
    close(file);
    return false;
  }
  arena->file = file;
  arena->base = base;
  return true;
}

/* Only so many of the kept blocks stay, those that were given back last. The lock is held. */
static void keep_only(struct arena *arena, unsigned most) {
  unsigned rest = arena->kept_count > most ? arena->kept_count - most : 0;
  for (unsigned n = 0; n < rest; n++) space_give(&arena->space, arena->kept[n]);
  memmove(arena->kept, arena->kept + rest, (arena->kept_count - rest) * sizeof *arena->kept);
  arena->kept_count -= rest;
}

/* The lock is held. */
static struct block *take(struct arena *arena, uint64_t size) {
  for (unsigned n = arena->kept_count; n--;)
    if (block_size(arena->kept[n]) == size) {
      struct block *block = arena->kept[n];
      memmove(arena->kept + n, arena->kept + n + 1, (--arena->kept_count - n) * sizeof *arena->kept);
      return block;
    }
  struct block *block = space_take(&arena->space, size);
  if (block || !arena->kept_count) return block;
  keep_only(arena, 0);
  return space_take(&arena->space, size);
}

CUresult arena_take(CUdevice device, uint64_t bytes, struct block **block, uint64_t *address) {
  pthread_once(&once, make_locks);
  struct arena *arena = &arenas[device];
  uint64_t size = device_at(device)->memory, rounded = (bytes + GRAIN - 1) / GRAIN * GRAIN;
  if (bytes > size || !share_take(device, rounded, size)) return CUDA_ERROR_OUT_OF_MEMORY;
  pthread_mutex_lock(&arena->lock);
  *block = arena->base || begin(arena, size) ? take(arena, rounded) : NULL;
  pthread_mutex_unlock(&arena->lock);
  if (!*block) {
    share_give(device, rounded);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  *address = (uint64_t)(uintptr_t)(arena->base + block_offset(*block));
  return CUDA_SUCCESS;
}

/* Whole pages are given back to this machine, which makes them zero; what else there is, is written. */
static void clear(const struct arena *arena, uint64_t start, uint64_t size) {
  uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), end = start + size;
  uint64_t first = (start + page - 1) / page * page, last = end / page * page;
  if (first < last && !fallocate(arena->file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)first,
                                 (off_t)(last - first))) {
    memset(arena->base + start, 0, first - start);
    memset(arena->base + last, 0, end - last);
  } else {
    memset(arena->base + start, 0, size);
  }
}

void arena_give(CUdevice device, struct block *block) {
  struct arena *arena = &arenas[device];
  uint64_t size = block_size(block);
  clear(arena, block_offset(block), size);
  pthread_mutex_lock(&arena->lock);
  if (instrument_reuses()) {
    keep_only(arena, MOST_KEPT - 1);
    arena->kept[arena->kept_count++] = block;
  } else {
    space_give(&arena->space, block);
  }
  pthread_mutex_unlock(&arena->lock);
  share_give(device, size);
}
