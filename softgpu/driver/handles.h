/* Which addresses are handles of living objects. */
#ifndef SOFTGPU_HANDLES_H
#define SOFTGPU_HANDLES_H

#include <stdbool.h>

#include "api.h"

enum handle {
  STREAM, EVENT, MODULE, FUNCTION, LIBRARY, KERNEL, LINK, GRAPH, GRAPH_NODE, GRAPH_EXEC, USER_OBJECT, POOL, MEMORY,
  HANDLE_KINDS
};

bool handle_add(enum handle kind, void *object); /* false: no memory */
/* With `remove` exactly one of those who ask at the same time gets true. */
bool handle_is(enum handle kind, const void *object, bool remove);

/* End all objects of a kind that belong to a context, which is the first thing that each of them has. */
void handles_end(enum handle kind, CUcontext context, void (*end)(void *object));

#endif
