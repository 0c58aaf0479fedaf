/* What a process records: to whom, and all that has to be remembered for that. One session for each process, in memory
 * that is all zeros in a child after a fork: there a session of its own begins, whatever locks were held. */
#ifndef TESSERA_SESSION_H
#define TESSERA_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ledger.h"
#include "lock.h"
#include "ring.h"
#include "store.h"
#include "table.h"

enum session_state { SESSION_NEW = 0, SESSION_OPENING, SESSION_LIVE, SESSION_OFF };

struct session {
  uint32_t state;          /* enum session_state */
  uint32_t options;        /* enum wire_option */
  uint32_t version;        /* of the driver, as it says */
  uint32_t captures;       /* captures that streams have begun: 0 only if no stream is captured */
  struct lock store_lock;
  struct store store;
  struct ring ring;
  struct ledger ledger;    /* under the ring's lock */
  struct table streams, kernels, contexts, modules, uses;
  struct lock uses_lock, texts_lock;
  struct table sent;       /* contents that the reader has, by the first bytes of their hashes */
};

extern __attribute__((visibility("hidden"))) struct session *session; /* NULL until the first session */

/* How deep this thread is in calls that the library makes of the driver, or that the driver makes of itself: those are
 * not the program's. */
extern __attribute__((visibility("hidden"))) _Thread_local unsigned inside;

bool session_wanted(void); /* somebody listens, as the environment says */
bool session_ready(void);  /* open it if it is new; whether it is live */

/* Whether a call is to be recorded. */
static inline bool recording(void) {
  if (__builtin_expect(inside != 0, 0)) return false;
  if (__builtin_expect(session && __atomic_load_n(&session->state, __ATOMIC_ACQUIRE) == SESSION_LIVE, 1)) return true;
  return session_ready();
}

static inline bool payloads_wanted(void) { return session->options & 1; } /* WIRE_PAYLOADS */

/* Whether the driver has a function of this number: one that is newer than itself, as software drivers have, counts as
 * absent. */
bool driver_has(unsigned number);

void session_note(unsigned function); /* a call of which only the name is recorded */

/* socket.c: greet who listens at a path and hand over a ring. False: nobody there, or a refusal. */
bool greet(const char *path, int ring, uint32_t *options);
/* standard.c: as long as something of the library's is open, the numbers of standard streams that are free are taken,
 * by what nobody can read or write: a program without these streams may write to them all the same. */
struct standard {
  int files[3], count;
};
void standard_taken(struct standard *standard);
void standard_free(const struct standard *standard);

#endif
