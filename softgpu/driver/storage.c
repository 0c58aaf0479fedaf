/* Memory for many small things that are freed together. */
#include "storage.h"

#include <stdlib.h>

enum { USUAL = 4096 - 64 };

struct piece {
  struct piece *next;
  size_t size, used;
  max_align_t data[];
};

void *storage_take(struct storage *storage, size_t count, size_t size) {
  size_t bytes;
  if (__builtin_mul_overflow(count, size, &bytes) || bytes > (size_t)1 << 40) return NULL;
  bytes = (bytes / sizeof(max_align_t) + 1) * sizeof(max_align_t);
  struct piece *piece = storage->pieces;
  if (!piece || bytes > piece->size - piece->used) {
    size_t room = bytes > USUAL ? bytes : USUAL;
    piece = calloc(1, sizeof *piece + room);
    if (!piece) return NULL;
    piece->size = room;
    piece->next = storage->pieces;
    storage->pieces = piece;
  }
  void *found = (char *)piece->data + piece->used;
  piece->used += bytes;
  return found;
}

void storage_free(struct storage *storage) {
  while (storage->pieces) {
    struct piece *next = storage->pieces->next;
    free(storage->pieces);
    storage->pieces = next;
  }
}
