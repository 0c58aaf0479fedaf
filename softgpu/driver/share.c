/* What processes that name the same machine share: how much memory each of them has taken.
 *
 * A small file in the user's own runtime folder has a slot for each process. A process holds a lock on its slot's byte
 * as long as it lives, which the kernel takes back however it dies; so a slot whose byte nobody has locked is free, and
 * what it says counts no more. */
#include "share.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client.h"
#include "driver.h"

enum { SLOTS = 256, NAME = 64 };

static const uint64_t MAGIC = 0x3255504754464f53; /* "SOFTGPU2" */

struct slot {
  _Atomic uint64_t taken[MOST_DEVICES]; /* bytes */
};

struct state {
  _Atomic uint64_t magic;
  uint64_t start;                      /* constant: share.h */
  uint64_t busy[MOST_DEVICES][PARTS];  /* until when; the table is locked */
  _Atomic uint64_t took, late;
  char devices[4096]; /* the machine that the first process named */
  struct slot slots[SLOTS];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct state *state; /* of this process alone when the machine has no name */
static struct slot *own;
static int file = -1;
static char identity[NAME + 32];

/* Locks are on bytes that the file need not have: 0 for the whole table, 1 + n for slot n. */
static bool file_lock(short type, off_t byte, bool wait) {
  struct flock range = {.l_type = type, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};
  int done;
  do done = fcntl(file, wait ? F_SETLKW : F_SETLK, &range);
  while (done && errno == EINTR);
  return !done;
}

static bool somebody_has(off_t byte) {
  struct flock range = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};
  return fcntl(file, F_GETLK, &range) || range.l_type != F_UNLCK;
}

static bool good_name(const char *name) {
  size_t length = strlen(name);
  return length <= NAME && strspn(name,
                                  "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-") == length &&
         *name != '.';
}

static bool open_file(const char *name) {
  char folder[SG_PATH_BYTES], path[SG_PATH_BYTES + NAME + 16];
  struct sg_failure failure;
  if (!good_name(name)) {
    complain("SOFTGPU_MACHINE=%.80s must be up to %d letters, digits, '_', '.', '-'", name, NAME);
    return false;
  }
  if (sg_runtime_folder(folder, &failure)) {
    complain("the machine %s cannot be shared: %s", name, failure.text);
    return false;
  }
  snprintf(path, sizeof path, "%s/softgpu-%s", folder, name);
  file = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (file < 0 || !file_lock(F_WRLCK, 0, true) || ftruncate(file, sizeof *state)) {
    complain("the machine %s cannot be shared: %s: %s", name, path, strerror(errno));
    return false;
  }
  void *memory = mmap(NULL, sizeof *state, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (memory == MAP_FAILED) {
    complain("the machine %s cannot be shared: %s", name, strerror(errno));
    return false;
  }
  state = memory;
  return true;
}

/* The table is locked. */
static bool claim(const char *name, const char *devices) {
  int free_slot = -1;
  bool others = false;
  for (int n = 0; n < SLOTS; n++) {
    if (somebody_has(1 + n))
      others = true;
    else if (free_slot < 0)
      free_slot = n;
  }
  if (free_slot < 0 || !file_lock(F_WRLCK, 1 + free_slot, false)) {
    complain("the machine %s has %d processes already", name, SLOTS);
    return false;
  }
  if (!others || atomic_load(&state->magic) != MAGIC) { /* the first process, or the first after all have died */
    memset(state, 0, sizeof *state);
    state->start = nanoseconds_now();
    snprintf(state->devices, sizeof state->devices, "%s", devices);
    atomic_store(&state->magic, MAGIC);
  } else if (strncmp(state->devices, devices, sizeof state->devices - 1)) {
    complain("the machine %s has the devices %.200s, not %.200s", name, state->devices, devices);
    return false;
  }
  own = &state->slots[free_slot];
  for (int n = 0; n < MOST_DEVICES; n++) atomic_store(&own->taken[n], 0);
  return true;
}

const char *share_name(void) { return identity; }

/* The file's number tells machines of one name in different folders apart; no name of a machine begins with a dot. */
static void identify(const char *name) {
  struct stat found;
  if (file < 0)
    snprintf(identity, sizeof identity, ".%d", (int)getpid());
  else if (!fstat(file, &found))
    snprintf(identity, sizeof identity, "%s.%llx", name, (unsigned long long)found.st_ino);
}

bool share_begin(const char *devices) {
  const char *name = getenv("SOFTGPU_MACHINE");
  if (!name || !*name) {
    state = calloc(1, sizeof *state);
    own = state ? &state->slots[0] : NULL;
    if (state) state->start = nanoseconds_now();
    identify("");
    return own != NULL;
  }
  bool good = open_file(name) && claim(name, devices);
  identify(name);
  if (file >= 0) file_lock(F_UNLCK, 0, true);
  if (!good && file >= 0) {
    close(file); /* gives all locks back */
    file = -1;
  }
  return good;
}

static uint64_t total(int device) {
  uint64_t sum = 0;
  for (int n = 0; n < (file < 0 ? 1 : SLOTS); n++) sum += atomic_load(&state->slots[n].taken[device]);
  return sum;
}

/* Forget what processes that are no more had taken. The table is locked. */
static void reap(void) {
  for (int n = 0; n < SLOTS; n++)
    if (&state->slots[n] != own && !somebody_has(1 + n)) memset(&state->slots[n], 0, sizeof state->slots[n]);
}

static void table_lock(void) {
  pthread_mutex_lock(&lock);
  if (file >= 0) file_lock(F_WRLCK, 0, true);
}

static void table_unlock(void) {
  if (file >= 0) file_lock(F_UNLCK, 0, true);
  pthread_mutex_unlock(&lock);
}

bool share_take(int device, uint64_t bytes, uint64_t limit) {
  table_lock();
  bool fits = bytes <= limit && total(device) <= limit - bytes;
  if (!fits && file >= 0) {
    reap();
    fits = bytes <= limit && total(device) <= limit - bytes;
  }
  if (fits) atomic_fetch_add(&own->taken[device], bytes);
  table_unlock();
  return fits;
}

void share_give(int device, uint64_t bytes) { atomic_fetch_sub(&own->taken[device], bytes); }

uint64_t share_taken(int device) {
  table_lock();
  if (file >= 0) reap();
  uint64_t taken = total(device);
  table_unlock();
  return taken;
}

uint64_t share_start(void) { return state->start; }

uint64_t share_occupy(const struct taken *parts, size_t count, uint64_t ready, uint64_t duration) {
  if (!count) return ready;
  table_lock();
  for (size_t n = 0; n < count; n++) {
    uint64_t busy = state->busy[parts[n].device][parts[n].part];
    if (ready < busy) ready = busy;
  }
  for (size_t n = 0; n < count; n++) state->busy[parts[n].device][parts[n].part] = ready + duration;
  table_unlock();
  return ready;
}

struct clock_sums share_count(uint64_t took, uint64_t late) {
  return (struct clock_sums){atomic_fetch_add(&state->took, took) + took, atomic_fetch_add(&state->late, late) + late};
}
