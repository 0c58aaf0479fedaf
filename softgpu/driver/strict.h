/* Strict mode, SOFTGPU_STRICT=1: what real drivers do not promise fails here, or takes as long as it may there.
 * docs/driver.md says what that is. */
#ifndef SOFTGPU_STRICT_H
#define SOFTGPU_STRICT_H

#include <stdbool.h>

#include "api.h"
#include "stream.h"

bool strict_begin(void); /* false, after a line on standard error: the variable is neither 0 nor 1 */

/* Wait for all work of a context, to free or load something; in strict mode no other thread can use it until then. */
void strict_wait(CUcontext context);
/* A kernel is used first: real drivers load it then, which may wait for the context's work. */
void strict_load(CUcontext context);
/* Every call that uses a context: wait until no other thread keeps it. */
void strict_pass(CUcontext context);

/* A call adds to a queue: wait until that has room. */
CUresult strict_room(const struct stream_place *place);

#endif
