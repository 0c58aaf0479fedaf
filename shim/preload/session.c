#include "session.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "doors.h"
#include "nap.h"

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
  struct standard standard;
  standard_taken(&standard);
  int file = ring_make(&new->ring);
  bool live = file >= 0 && greet(path, file, &new->options);
  if (file >= 0) close(file);
  standard_free(&standard);
  if (!live) {
    SAY_ONCE("nobody takes records at %s: calls only pass", path);
    return false;
  }
  new->ring.shared->options = new->options;
  return true;
}

static bool wait_for_other(struct session *found) {
  uint64_t deadline = now() + OPENING_MILLISECONDS * 1000000ull;
  while (__atomic_load_n(&found->state, __ATOMIC_ACQUIRE) == SESSION_OPENING && now() < deadline) nap(NAP);
  return __atomic_load_n(&found->state, __ATOMIC_ACQUIRE) == SESSION_LIVE;
}

static bool open_or_wait(struct session *found) {
  uint32_t new = SESSION_NEW;
  if (!__atomic_compare_exchange_n(&found->state, &new, SESSION_OPENING, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
    return wait_for_other(found);
  int before = errno, cancel;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel); /* others would wait for this thread */
  bool live = open_session(found);
  if (live) {
    record_driver(found);
    doors_given_before();
  }
  __atomic_store_n(&found->state, live ? SESSION_LIVE : SESSION_OFF, __ATOMIC_RELEASE);
  pthread_setcancelstate(cancel, NULL);
  errno = before;
  return live;
}

bool session_ready(void) {
  struct session *found = __atomic_load_n(&session, __ATOMIC_ACQUIRE);
  uint32_t state = found ? __atomic_load_n(&found->state, __ATOMIC_ACQUIRE) : SESSION_NEW;
  if (state == SESSION_OFF || inside) return false;
  if (state == SESSION_LIVE) return true;
  if (doors_disabled() || !session_wanted() || !(found = memory())) return false;
  return open_or_wait(found);
}

bool driver_has(unsigned number) {
  return driver_function((int)number) && (!session->version || (uint32_t)forms[number].since <= session->version);
}

void session_note(unsigned function) {
  if (!recording()) return;
  struct wire_call *record = record_begin(WIRE_CALL, function, sizeof *record);
  record_end(record);
}
