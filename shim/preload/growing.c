#include "growing.h"

#include <string.h>

#include "store.h"
#include "wire.h"

enum { FIRST = 4096 };

static bool grow(struct growing *growing, size_t wanted) {
  size_t room = growing->room ? growing->room : FIRST;
  while (room < wanted) room *= 2;
  char *bytes = store_take(room);
  if (!bytes) return false;
  if (growing->used) memcpy(bytes, growing->bytes, growing->used);
  store_give(growing->bytes, growing->room);
  growing->bytes = bytes;
  growing->room = room;
  return true;
}

void *growing_add(struct growing *growing, size_t bytes) {
  size_t wanted = growing->used + bytes;
  if (growing->failed || bytes > WIRE_LARGEST_RECORD || wanted > WIRE_LARGEST_RECORD ||
      ((!growing->bytes || wanted > growing->room) && !grow(growing, wanted))) {
    growing->failed = true;
    return NULL;
  }
  void *added = growing->bytes + growing->used;
  growing->used = wanted;
  return added;
}

void growing_end(struct growing *growing) {
  store_give(growing->bytes, growing->room);
  *growing = (struct growing){0};
}
