/* Things that come and go: what every function that makes or ends one does. */
#ifndef TESSERA_THINGS_H
#define TESSERA_THINGS_H

#include <stdbool.h>

#include "ask.h"
#include "real.h"
#include "session.h"
#include "wire.h"

/* A call that the program makes of the driver, in which nothing that the driver calls is the program's. */
#define DRIVER(call)            \
  ({                            \
    inside++;                   \
    CUresult result_ = (call);  \
    inside--;                   \
    result_;                    \
  })

/* A question of the library's own. */
#define ASK(call)                        \
  ({                                     \
    struct asking asking_ = ask_begin(); \
    CUresult answer_ = (call);           \
    ask_end(asking_);                    \
    answer_;                             \
  })

/* Something ends: a record before the call, and when that fails another that says so, and all records that announced
 * what ended, anew.
 *
 *   struct ending ending = ending_begin(NUMBER_cuArrayDestroy, (struct wire_end){.kind = WIRE_ARRAY, .handle = ...});
 *   return ending_done(&ending, real.cuArrayDestroy(...));
 */
struct ending {
  uint64_t sequence;
  unsigned function;
};

struct ending ending_begin(unsigned function, struct wire_end what);
CUresult ending_done(struct ending *ending, CUresult result);
void ending_undo(struct ending *ending); /* the call has succeeded, and did not end it */

/* A record without a tail, as it stands behind its head; `flags`: enum wire_flag. */
void record_thing(enum wire_kind kind, unsigned function, unsigned flags, const void *record, size_t bytes);

/* Things of one handle that the driver counts: it ends with the last use. `context`: with which they end too. */
enum { USES_UNKNOWN = -1 };
int use_begin(enum wire_kind kind, uint64_t handle, uint64_t context); /* how many there are now */
int use_end(enum wire_kind kind, uint64_t handle);                     /* how many are left; or nobody has counted */
void uses_end(uint64_t context);
void uses_forget(enum wire_kind kind, uint64_t handle); /* it is another thing's now */

/* Whether the program has been told of a thing, as far as records go. */
bool is_announced(enum wire_kind kind, uint64_t handle);

/* The thread's context, announced, and its device: 0 and -1 without one. */
uint64_t context_here(void);
int device_here(void);

static inline uint64_t number_of(const void *handle) { return (uint64_t)(uintptr_t)handle; }

#endif
