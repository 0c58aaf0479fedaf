/* Which parts of a device's memory are taken. */
#include "space.h"

#include <stdlib.h>

enum { SECOND = 4 }; /* bits of the second level: 16 classes between powers of two */

struct block {
  uint64_t offset, size; /* in grains */
  struct block *before, *behind; /* neighbours by offset */
  struct block *previous, *next; /* in its list, while it is free */
  bool free;
};

uint64_t block_offset(const struct block *block) { return block->offset * GRAIN; }
uint64_t block_size(const struct block *block) { return block->size * GRAIN; }

struct class {
  unsigned first, second;
};

/* The list in which a free block of so many grains is. Below 16 grains each size has its own. */
static struct class class_of(uint64_t size) {
  if (size < 1u << SECOND) return (struct class){0, (unsigned)size};
  unsigned top = 63 - (unsigned)__builtin_clzll(size);
  return (struct class){top - SECOND + 1, (unsigned)(size >> (top - SECOND)) & 15};
}

/* The first list all of whose blocks are large enough. */
static struct class class_for(uint64_t size) {
  if (size >= 1u << SECOND) size += (1ull << (63 - (unsigned)__builtin_clzll(size) - SECOND)) - 1;
  return class_of(size);
}

static void add(struct space *space, struct block *block) {
  struct class at = class_of(block->size);
  struct block **list = &space->lists[at.first][at.second];
  block->free = true;
  block->previous = NULL;
  block->next = *list;
  if (*list) (*list)->previous = block;
  *list = block;
  space->some |= 1ull << at.first;
  space->which[at.first] |= (uint16_t)(1u << at.second);
}

static void take_out(struct space *space, struct block *block) {
  struct class at = class_of(block->size);
  block->free = false;
  if (block->next) block->next->previous = block->previous;
  if (block->previous) {
    block->previous->next = block->next;
    return;
  }
  space->lists[at.first][at.second] = block->next;
  if (block->next) return;
  space->which[at.first] &= (uint16_t) ~(1u << at.second);
  if (!space->which[at.first]) space->some &= ~(1ull << at.first);
}

bool space_begin(struct space *space, uint64_t size) {
  *space = (struct space){.size = size / GRAIN * GRAIN};
  space->first = calloc(1, sizeof *space->first);
  if (!space->first) return false;
  space->first->size = size / GRAIN;
  add(space, space->first);
  return true;
}

void space_end(struct space *space) {
  for (struct block *block = space->first, *behind; block; block = behind) {
    behind = block->behind;
    free(block);
  }
  *space = (struct space){0};
}

static struct block *find(const struct space *space, uint64_t size) {
  struct class at = class_for(size);
  if (at.first >= sizeof space->lists / sizeof *space->lists) return NULL;
  unsigned which = space->which[at.first] & (0xffffu << at.second);
  if (!which) {
    uint64_t some = at.first < 63 ? space->some & (~0ull << (at.first + 1)) : 0;
    if (!some) return NULL;
    at.first = (unsigned)__builtin_ctzll(some);
    which = space->which[at.first];
  }
  return space->lists[at.first][__builtin_ctz(which)];
}

/* The last resort before a device is full: a block of the request's own class may be large enough, too. */
static struct block *search(const struct space *space, uint64_t size) {
  struct class at = class_of(size);
  if (at.first >= sizeof space->lists / sizeof *space->lists) return NULL;
  for (struct block *block = space->lists[at.first][at.second]; block; block = block->next)
    if (block->size >= size) return block;
  return NULL;
}

/* Make the part of a block behind its first `grains` a block of its own, which is in no list. */
static struct block *split(struct block *block, uint64_t grains) {
  struct block *rest = calloc(1, sizeof *rest);
  if (!rest) return NULL;
  *rest = (struct block){
      .offset = block->offset + grains, .size = block->size - grains, .before = block, .behind = block->behind};
  if (rest->behind) rest->behind->before = rest;
  block->behind = rest;
  block->size = grains;
  return rest;
}

struct block *space_take(struct space *space, uint64_t size, uint64_t alignment) {
  uint64_t grains = size / GRAIN + (size % GRAIN != 0), step = alignment > GRAIN ? alignment / GRAIN : 1;
  if (!grains) grains = 1;
  struct block *found = find(space, grains + step - 1);
  if (!found) found = search(space, grains + step - 1);
  if (!found) return NULL;
  take_out(space, found);
  uint64_t skipped = -found->offset & (step - 1);
  struct block *block = skipped ? split(found, skipped) : found;
  if (block != found) add(space, found); /* what lies before it stays free */
  if (!block) return NULL;
  space->taken += block_size(block);
  if (block->size == grains) return block;
  struct block *rest = split(block, grains);
  if (!rest) {
    space_give(space, block);
    return NULL;
  }
  space->taken -= block_size(rest);
  add(space, rest);
  return block;
}

/* Make one of a free block and the one behind it. */
static void join(struct block *block) {
  struct block *behind = block->behind;
  block->size += behind->size;
  block->behind = behind->behind;
  if (block->behind) block->behind->before = block;
  free(behind);
}

void space_give(struct space *space, struct block *block) {
  space->taken -= block_size(block);
  if (block->behind && block->behind->free) {
    take_out(space, block->behind);
    join(block);
  }
  if (block->before && block->before->free) {
    block = block->before;
    take_out(space, block);
    join(block);
  }
  add(space, block);
}
