/* The bytes of devices: a file in memory for each, mapped as a whole at a range of addresses of its own.
 *
 * The file is sparse: only pages that somebody wrote take memory of this machine. A block that is given back is zeroed
 * at once. */
#include "arena.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "driver.h"
#include "instrument.h"
#include "mapping.h"
#include "memfile.h"
#include "pages.h"
#include "share.h"
#include "space.h"

enum { SPREAD = 2 }; /* addresses for each byte of a device, so that there is room however its memory is divided */
enum { MOST_KEPT = 64 };

struct arena {
  pthread_mutex_t lock;
  CUdevice device;
  struct space space;
  uint64_t size;
  struct pages pages; /* without addresses until the first block is taken */
  struct mapping *mapping; /* NULL: it is never unmapped */
  struct block *kept[MOST_KEPT]; /* given back last, if the instrument wants their addresses to come back at once */
  unsigned kept_count;
};

static struct arena arenas[MOST_DEVICES];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void make_arenas(void) {
  for (int n = 0; n < MOST_DEVICES; n++) {
    pthread_mutex_init(&arenas[n].lock, NULL);
    arenas[n].device = n;
  }
}

struct arena *arena_of(CUdevice device) {
  pthread_once(&once, make_arenas);
  return &arenas[device];
}

bool arenas_have(uint64_t address) {
  bool has = false;
  for (int n = 0; n < device_count() && !has; n++) {
    struct arena *arena = arena_of(n);
    pthread_mutex_lock(&arena->lock);
    uint64_t base = (uint64_t)(uintptr_t)arena->pages.base;
    has = base && address >= base && address - base < arena->size;
    pthread_mutex_unlock(&arena->lock);
  }
  return has;
}

/* The lock is held, or nobody else knows it yet. */
static bool begin(struct arena *arena, uint64_t bytes, const char *what) {
  uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), size = (SPREAD * bytes + page - 1) / page * page;
  int file = memfile_make(what, arena->device, size);
  if (file < 0) return false;
  void *base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
  if (base == MAP_FAILED || !space_begin(&arena->space, size)) {
    complain("no addresses for %llu bytes of a device: %s", (unsigned long long)size, strerror(errno));
    if (base != MAP_FAILED) munmap(base, size);
    close(file);
    return false;
  }
  arena->pages.file = file;
  arena->pages.base = base;
  arena->size = size;
  return true;
}

struct arena *arena_make(CUdevice device, uint64_t size, const char *what) {
  struct arena *arena = calloc(1, sizeof *arena);
  if (!arena) return NULL;
  *arena = (struct arena){.device = device};
  pthread_mutex_init(&arena->lock, NULL);
  if (begin(arena, size, what)) {
    arena->mapping = mapping_make(arena->pages.base, arena->size, NULL);
    if (arena->mapping) return arena;
    space_end(&arena->space);
    close(arena->pages.file);
  }
  free(arena);
  return NULL;
}

void arena_end(struct arena *arena) {
  pages_end(&arena->pages);
  mapping_release(arena->mapping);
  close(arena->pages.file);
  space_end(&arena->space);
  pthread_mutex_destroy(&arena->lock);
  free(arena);
}

struct mapping *arena_mapping(const struct arena *arena) { return arena->mapping; }
int arena_file(const struct arena *arena) { return arena->pages.file; }

uint64_t arena_offset(const struct arena *arena, uint64_t address) {
  return address - (uint64_t)(uintptr_t)arena->pages.base;
}

/* Only so many of the kept blocks stay, those that were given back last. The lock is held. */
static void keep_only(struct arena *arena, unsigned most) {
  unsigned rest = arena->kept_count > most ? arena->kept_count - most : 0;
  for (unsigned n = 0; n < rest; n++) space_give(&arena->space, arena->kept[n]);
  memmove(arena->kept, arena->kept + rest, (arena->kept_count - rest) * sizeof *arena->kept);
  arena->kept_count -= rest;
}

/* The lock is held. */
static struct block *take(struct arena *arena, uint64_t size, uint64_t alignment) {
  for (unsigned n = arena->kept_count; n--;) {
    struct block *block = arena->kept[n];
    if (block_size(block) != size || block_offset(block) % alignment) continue;
    memmove(arena->kept + n, arena->kept + n + 1, (--arena->kept_count - n) * sizeof *arena->kept);
    return block;
  }
  struct block *block = space_take(&arena->space, size, alignment);
  if (block || !arena->kept_count) return block;
  keep_only(arena, 0);
  return space_take(&arena->space, size, alignment);
}

CUresult arena_take(struct arena *arena, uint64_t bytes, uint64_t alignment, struct block **block, uint64_t *address) {
  uint64_t size = device_at(arena->device)->memory, rounded = (bytes + GRAIN - 1) / GRAIN * GRAIN;
  if (bytes > size || !share_take(arena->device, rounded, size)) return CUDA_ERROR_OUT_OF_MEMORY;
  pthread_mutex_lock(&arena->lock);
  *block = arena->pages.base || begin(arena, size, "device") ? take(arena, rounded, alignment) : NULL;
  pthread_mutex_unlock(&arena->lock);
  if (!*block) {
    share_give(arena->device, rounded);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  pages_take(&arena->pages, block_offset(*block), block_size(*block));
  *address = (uint64_t)(uintptr_t)(arena->pages.base + block_offset(*block));
  return CUDA_SUCCESS;
}

void arena_give(struct arena *arena, struct block *block) {
  uint64_t size = block_size(block);
  pages_give(&arena->pages, block_offset(block), size);
  pthread_mutex_lock(&arena->lock);
  if (instrument_reuses()) {
    keep_only(arena, MOST_KEPT - 1);
    arena->kept[arena->kept_count++] = block;
  } else {
    space_give(&arena->space, block);
  }
  pthread_mutex_unlock(&arena->lock);
  share_give(arena->device, size);
}
