/* What is known of handles, looked up on every call: reading takes no lock. Entries stay where they are as long as the
 * session lives, so that a reader never meets one that is gone; what has ended is marked, and its entry used again for
 * the next handle in the same bucket. */
#ifndef TESSERA_TABLE_H
#define TESSERA_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lock.h"

enum { TABLE_BUCKETS = 2048 };

/* At the beginning of a structure of what is known. */
struct entry {
  struct entry *next;
  uint64_t key, key2;
  uint32_t ended; /* the key means nothing any more */
  uint32_t bytes; /* of the whole structure */
};

struct table {
  struct lock lock; /* of those who change it */
  struct entry *buckets[TABLE_BUCKETS];
};

static inline unsigned table_bucket(uint64_t key, uint64_t key2) {
  uint64_t mixed = (key ^ (key2 << 1)) * 0x9e3779b97f4a7c15u;
  return (unsigned)(mixed >> 53); /* 11 bits: TABLE_BUCKETS */
}

/* The living entry of a key; NULL without one. */
static inline struct entry *table_find(struct table *table, uint64_t key, uint64_t key2) {
  struct entry *found = __atomic_load_n(&table->buckets[table_bucket(key, key2)], __ATOMIC_ACQUIRE);
  for (; found; found = __atomic_load_n(&found->next, __ATOMIC_ACQUIRE))
    if (found->key == key && found->key2 == key2 && !__atomic_load_n(&found->ended, __ATOMIC_ACQUIRE)) return found;
  return NULL;
}

/* An entry for a key, of `bytes` bytes, zeros behind `struct entry`, which `fill` sets before anybody sees it; the one
 * that is there already, if there is one. NULL without memory. */
typedef void fill_t(struct entry *entry, const void *with);
struct entry *table_add(struct table *table, uint64_t key, uint64_t key2, size_t bytes, fill_t *fill, const void *with);

/* Mark the entries that `of` names, all without it. */
typedef bool of_t(const struct entry *entry, uint64_t what);
void table_end(struct table *table, of_t *of, uint64_t what);
void table_end_key(struct table *table, uint64_t key, uint64_t key2);

#endif
