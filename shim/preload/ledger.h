/* The records that announced what there is now, in their order: they are written again when records were lost. */
#ifndef TESSERA_LEDGER_H
#define TESSERA_LEDGER_H

#include <stdbool.h>
#include <stddef.h>

#include "wire.h"

enum { LEDGER_BUCKETS = 4096 };

struct announced {
  struct announced *before, *after; /* in the order in which they came */
  struct announced *next;           /* in the bucket, or among those that have ended */
  uint64_t key, key2;
  uint64_t ended_by; /* sequence of a record of WIRE_END */
  size_t bytes;      /* of all this, with what belongs to the record */
  bool leaving;      /* while it is found out what ends with something */
  struct wire_head record;
};

struct ledger {
  struct announced *first, *last;
  struct announced *ended; /* by calls that have not come back yet, the last one first */
  bool keep_ended;         /* the next WIRE_END is of such a call */
  struct announced *buckets[LEDGER_BUCKETS];
};

/* Keep a record that announces a thing, in place of the one of the same handle; forget those of what a WIRE_END names.
 * Under the ring's lock, like all that follow. */
void ledger_enter(const struct wire_head *record);

/* What a WIRE_END with `keep_ended` took away, in its order, linked by `next`: the caller's to give back. */
struct announced *ledger_ended(uint64_t by);

/* The record that announced a thing, by its enum wire_kind or `ledger_change_key`; NULL without one. */
const struct wire_head *ledger_find(uint64_t what, uint64_t handle);

/* Each of them; false as soon as `say_again` gives false. */
typedef bool say_again_t(const struct wire_head *record, void *with);
bool ledger_each(say_again_t *say_again, void *with);

/* By which the new parameters of a node are found, beside the handle of its executable graph. */
static inline uint64_t ledger_change_key(uint64_t node) { return node ^ WIRE_GRAPH_NODE; }

/* Without the lock: copies of records, or of parts of them, which the caller gives back to the store with the size that
 * they name; NULL if there is none, or no memory. */
void *ledger_copy(uint64_t what, uint64_t handle); /* as `ledger_find` has it */
struct wire_graph_exec *ledger_graph(uint64_t exec);
struct wire_graph_node *ledger_change(uint64_t exec, uint64_t node);
struct wire_node *ledger_node(uint64_t exec, uint64_t node); /* with its new parameters, if it has any */

#endif
