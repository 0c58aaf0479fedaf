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

/* Each of them; false as soon as `say_again` gives false. */
typedef bool say_again_t(const struct wire_head *record, void *with);
bool ledger_each(say_again_t *say_again, void *with);

#endif
