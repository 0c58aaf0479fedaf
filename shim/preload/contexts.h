/* Contexts and devices as the driver has them, announced when they are first met. */
#ifndef TESSERA_CONTEXTS_H
#define TESSERA_CONTEXTS_H

#include <stdbool.h>

#include "real.h"

CUcontext context_now(void); /* the thread's; NULL without one */
void context_known(CUcontext context);
/* It was made, for a device; `primary`: the device's own. */
void context_made(CUcontext context, CUdevice device, bool primary, unsigned function);
CUcontext primary_context(CUdevice device); /* the last one that was made; NULL without one */
/* It ends in a call, with all that belongs to it; `ending` is for `ending_done`, and `context_again` if the call fails.
 * Gives captures that were begun with its streams: see `streams_end`. */
struct ending;
unsigned context_end(struct ending *ending, CUcontext context, unsigned function);
void context_again(CUcontext context);

#endif
