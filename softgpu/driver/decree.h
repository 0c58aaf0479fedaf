/* Cubins that stand for a PTX text of which only the driver knows: a test's decree. */
#ifndef SOFTGPU_DECREE_H
#define SOFTGPU_DECREE_H

#include <stdbool.h>
#include <stddef.h>

bool decrees(void); /* whether there are any */

/* Whether an ELF file of a GPU is at `image`; it has at least `limit` bytes, 0: unknown. */
bool is_cubin(const void *image, size_t limit);

/* The PTX text that a cubin stands for, to be freed, ended by a zero byte that `bytes` leaves out. NULL: none. */
char *decree_text(const void *cubin, size_t limit, size_t *bytes);

#endif
