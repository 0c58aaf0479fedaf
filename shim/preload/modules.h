/* Modules and libraries as the program has loaded them. */
#ifndef TESSERA_MODULES_H
#define TESSERA_MODULES_H

#include <stdbool.h>
#include <stdint.h>

#include "image.h"

/* One was loaded from an image, whose bytes the reader gets; `context`: 0 for a library; `path`: of its file, or
 * NULL. */
void module_made(uint64_t handle, uint64_t context, const struct image *image, const char *path, unsigned function);

/* A module that is a library's in the current context; announced when it is met first. */
void module_of_library(uint64_t handle, uint64_t library, unsigned function);

/* It ends in a call, with its kernels; `ending` is for `ending_done`. */
struct ending;
void module_end(struct ending *ending, uint64_t handle, unsigned function);
void modules_end(uint64_t context); /* all that belong to a context */

/* A function or kernel was found by its name: what its PTX says of it, for drivers that cannot be asked. */
void module_tell(uint64_t module, uint64_t function, bool kernel, const char *name);

#endif
