/* Contexts and devices as the driver has them, announced when they are first met. */
#ifndef TESSERA_CONTEXTS_H
#define TESSERA_CONTEXTS_H

#include <stdbool.h>

#include "real.h"

CUcontext context_now(void); /* the thread's; NULL without one */
void context_known(CUcontext context);
/* It was made, for a device; `primary`: the device's own. */
void context_made(CUcontext context, CUdevice device, bool primary, unsigned function);
/* With all that belongs to it. Gives captures that were begun with its streams: see `streams_end`. */
unsigned context_end(CUcontext context, unsigned function);

#endif
