/* Addresses that stay mapped as long as somebody uses them: memory may be freed under a copy or a kernel that is
 * running. */
#ifndef SOFTGPU_MAPPING_H
#define SOFTGPU_MAPPING_H

#include <stdbool.h>
#include <stddef.h>

struct mapping;

/* For what mmap gave; the maker has the first reference. With the last one the range is unmapped. NULL: no memory, and
 * the range is unmapped at once. `alone`, if there is one, is called with its start whenever the maker's reference may
 * be the only one that is left. */
struct mapping *mapping_make(void *start, size_t size, void (*alone)(void *start));
struct mapping *mapping_hold(struct mapping *mapping); /* NULL stays NULL, here and in `mapping_release` */
void mapping_release(struct mapping *mapping);
bool mapping_alone(const struct mapping *mapping); /* only the maker has a reference */

#endif
