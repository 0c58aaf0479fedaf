/* Memory of all kinds comes and goes. */
#ifndef TESSERA_MEMORY_H
#define TESSERA_MEMORY_H

#include "real.h"
#include "things.h"
#include "wire.h"

/* The record of memory that was made; of `what` all but the head's flags, and `name`, NULL without one. */
void memory_made(unsigned function, const struct wire_memory *what, const char *name);

/* It ends in a call; `kind`: enum wire_memory_kind, 0 if the function ends several kinds. */
struct ending memory_end(unsigned function, uint64_t address, unsigned kind);

/* Other processes may use from now on what an address is in. */
void memory_exported(unsigned function, uint64_t address);

/* What the driver says of an address: where its allocation begins and how large it is. False: it is in none. */
bool allocation_of(uint64_t address, uint64_t *start, uint64_t *bytes);

/* The device whose memory an address is in; -1 if the driver does not say. */
int device_of(uint64_t address);

#endif
