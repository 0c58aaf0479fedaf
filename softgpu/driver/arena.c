/* The bytes of devices: a file in memory for each, mapped as a whole at a range of addresses of its own.
 *
 * The file is sparse: only pages that somebody wrote take memory of this machine. A block that is given back is zeroed at
 * once. */
#include "arena.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "driver.h"
#include "pages.h"
#include "share.h"
#include "space.h"

struct arena {
  pthread_mutex_t lock;
  struct space space;
  struct pages pages; /* without addresses until the first block is taken */
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
  arena->pages.file = file;
  arena->pages.base = base;
  return true;
}

CUresult arena_take(CUdevice device, uint64_t bytes, struct block **block, uint64_t *address) {
  pthread_once(&once, make_locks);
  struct arena *arena = &arenas[device];
  uint64_t size = device_at(device)->memory, rounded = (bytes + GRAIN - 1) / GRAIN * GRAIN;
  if (bytes > size || !share_take(device, rounded, size)) return CUDA_ERROR_OUT_OF_MEMORY;
  pthread_mutex_lock(&arena->lock);
  *block = arena->pages.base || begin(arena, size) ? space_take(&arena->space, rounded) : NULL;
  pthread_mutex_unlock(&arena->lock);
  if (!*block) {
    share_give(device, rounded);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  pages_take(&arena->pages, block_offset(*block), block_size(*block));
  *address = (uint64_t)(uintptr_t)(arena->pages.base + block_offset(*block));
  return CUDA_SUCCESS;
}

void arena_give(CUdevice device, struct block *block) {
  struct arena *arena = &arenas[device];
  uint64_t size = block_size(block);
  pages_give(&arena->pages, block_offset(block), size);
  pthread_mutex_lock(&arena->lock);
  space_give(&arena->space, block);
  pthread_mutex_unlock(&arena->lock);
  share_give(device, size);
}
