/* The records that announced what there is now, in their order: they are written again when records were lost. */
#ifndef TESSERA_LEDGER_H
#define TESSERA_LEDGER_H

#include <stdbool.h>

#include "wire.h"

enum { LEDGER_BUCKETS = 4096 };

struct announced;

struct ledger {
  struct announced *first, *last;
  struct announced *buckets[LEDGER_BUCKETS];
};

/* Keep a record that announces a thing, in place of the one of the same handle; forget those of what a WIRE_END names.
 * Under the ring's lock, like the next. */
void ledger_enter(const struct wire_head *record);

/* What was announced of a handle and is valid, to be given back to the store; NULL if nothing was. They take the ring's
 * lock. `ledger_node`: of one node of an executable graph that is whole, with its new parameters if there are such;
 * `ledger_change`: only these, a record of WIRE_GRAPH_NODE. */
struct wire_graph_exec *ledger_graph(uint64_t exec);
struct wire_graph_node *ledger_change(uint64_t exec, uint64_t node);
struct wire_node *ledger_node(uint64_t exec, uint64_t node);

/* Each of them; false as soon as `say_again` gives false. */
typedef bool say_again_t(const struct wire_head *record, void *with);
bool ledger_each(say_again_t *say_again, void *with);

#endif
