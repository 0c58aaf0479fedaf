/* Addresses that stay mapped as long as somebody uses them. */
#include "mapping.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>

struct mapping {
  _Atomic unsigned references;
  void *start;
  size_t size;
  void (*alone)(void *start);
};

struct mapping *mapping_make(void *start, size_t size, void (*alone)(void *start)) {
  struct mapping *mapping = malloc(sizeof *mapping);
  if (!mapping) {
    munmap(start, size);
    return NULL;
  }
  *mapping = (struct mapping){.references = 1, .start = start, .size = size, .alone = alone};
  return mapping;
}

struct mapping *mapping_hold(struct mapping *mapping) {
  if (mapping) mapping->references++;
  return mapping;
}

bool mapping_alone(const struct mapping *mapping) { return mapping->references == 1; }

void mapping_release(struct mapping *mapping) {
  if (!mapping) return;
  void *start = mapping->start;
  void (*alone)(void *) = mapping->alone;
  unsigned left = --mapping->references; /* it may be gone from here on */
  if (!left) {
    munmap(start, mapping->size);
    free(mapping);
  } else if (left == 1 && alone) {
    alone(start);
  }
}
