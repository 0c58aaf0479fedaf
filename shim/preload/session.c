#include "session.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "doors.h"

struct session *session;
_Thread_local unsigned inside;

/* Another thread that opens the session answers in time or gives up. */
enum { OPENING_MILLISECONDS = 1500 };

bool session_wanted(void) {
  const char *path = getenv("TESSERA_SOCKET");
  return path && *path == '/';
}

/* The memory, all zeros, also in each child to come. */
static struct session *memory(void) {
  struct session *found = __atomic_load_n(&session, __ATOMIC_ACQUIRE);
  if (found) return found;
  struct session *made = mmap(NULL, sizeof *made, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (made == MAP_FAILED) return NULL;
  if (madvise(made, sizeof *made, MADV_WIPEONFORK) == 0 &&
      __atomic_compare_exchange_n(&session, &found, made, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
    return made;
  munmap(made, sizeof *made);
  return found;
}

/* The first record. */
static void record_driver(struct session *new) {
  const char *path = driver_path();
  size_t length = strlen(path);
  int version = 0;
  inside++;
  if (real.cuDriverGetVersion) real.cuDriverGetVersion(&version);
  inside--;
  new->version = (uint32_t)version;
  struct wire_driver *record = record_begin(WIRE_DRIVER, NUMBER_cuInit, padded(sizeof *record + length));
  record->version = (uint32_t)version;
  record->path_bytes = (uint32_t)length;
  put_bytes(record + 1, path, length);
  record_end(record);
}

static bool open_session(struct session *new) {
  const char *path = getenv("TESSERA_SOCKET");
  int file = ring_make(&new->ring);
  bool live = file >= 0 && greet(path, file, &new->options);
  if (file >= 0) close(file);
  if (!live) {
    SAY_ONCE("nobody takes records at %s: calls only pass", path);
    return false;
  }
  new->ring.shared->options = new->options;
  return true;
}

static bool wait_for_other(struct session *found) {
  struct timespec time = {0, 1000000};
  for (int i = 0; i < OPENING_MILLISECONDS && __atomic_load_n(&found->state, __ATOMIC_ACQUIRE) == SESSION_OPENING; i++)
    nanosleep(&time, NULL);
  return __atomic_load_n(&found->state, __ATOMIC_ACQUIRE) == SESSION_LIVE;
}

bool session_ready(void) {
  if (inside || doors_disabled() || !session_wanted()) return false;
  struct session *found = memory();
  if (!found) return false;
  uint32_t state = __atomic_load_n(&found->state, __ATOMIC_ACQUIRE);
  if (state == SESSION_LIVE || state == SESSION_OFF) return state == SESSION_LIVE;
  int before = errno;
  bool live;
  if (state == SESSION_NEW && __atomic_compare_exchange_n(&found->state, &state, SESSION_OPENING, false,
                                                          __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
    live = open_session(found);
    if (live) {
      record_driver(found);
      doors_given_before();
    }
    __atomic_store_n(&found->state, live ? SESSION_LIVE : SESSION_OFF, __ATOMIC_RELEASE);
  } else {
    live = wait_for_other(found);
  }
  errno = before;
  return live;
}

bool driver_has(unsigned number) {
  return driver_function((int)number) && (!session->version || (uint32_t)forms[number].since <= session->version);
}

void session_note(unsigned function) {
  if (!recording()) return;
  struct wire_call *record = record_begin(WIRE_CALL, function, sizeof *record);
  record_end(record);
}
