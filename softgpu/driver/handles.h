/* Which addresses are handles of living objects. */
#ifndef SOFTGPU_HANDLES_H
#define SOFTGPU_HANDLES_H

#include <stdbool.h>

enum handle { STREAM, EVENT, HANDLE_KINDS };

bool handle_add(enum handle kind, void *object); /* false: no memory */
/* With `remove` exactly one of those who ask at the same time gets true. */
bool handle_is(enum handle kind, const void *object, bool remove);

/* Call `action` for every object of a kind; it may remove none. */
void handles_each(enum handle kind, void (*action)(void *object, void *given), void *given);

#endif
