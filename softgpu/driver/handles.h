/* Which addresses are handles of living objects. */
#ifndef SOFTGPU_HANDLES_H
#define SOFTGPU_HANDLES_H

#include <stdbool.h>
#include <stddef.h>

#include "api.h"

/* Each kind, and what more than one of them is called; NULL for what programs cannot give back. */
#define HANDLES(KIND)         \
  KIND(STREAM, "streams")     \
  KIND(EVENT, "events")       \
  KIND(MODULE, "modules")     \
  KIND(FUNCTION, NULL)        \
  KIND(LIBRARY, "libraries")  \
  KIND(KERNEL, NULL)          \
  KIND(LINK, "links")         \
  KIND(GRAPH, "graphs")       \
  KIND(GRAPH_NODE, NULL)      \
  KIND(GRAPH_EXEC, "executable graphs") \
  KIND(USER_OBJECT, "user objects")     \
  KIND(POOL, "memory pools")  \
  KIND(MEMORY, "handles of memory") \
  KIND(ARRAY, "arrays")

#define HANDLE_KIND(kind, name) kind,
enum handle { HANDLES(HANDLE_KIND) HANDLE_KINDS };
extern const char *const handle_names[HANDLE_KINDS];

size_t handle_count(enum handle kind); /* living ones */

bool handle_add(enum handle kind, void *object); /* false: no memory */
/* With `remove` exactly one of those who ask at the same time gets true. */
bool handle_is(enum handle kind, const void *object, bool remove);
/* Whether it is one, and then it is held before anybody can remove it. */
bool handle_hold(enum handle kind, void *object, void (*hold)(void *object));

/* End all objects of a kind that belong to a context, which is the first thing that each of them has. */
void handles_end(enum handle kind, CUcontext context, void (*end)(void *object));

#endif
