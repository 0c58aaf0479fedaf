#include "table.h"

#include <string.h>

#include "session.h"

/* Under the lock: an entry of the bucket that has ended and is large enough, or a new one. `*fresh`: it is not in the
 * bucket yet. */
static struct entry *room(struct entry *first, size_t bytes, bool *fresh) {
  for (struct entry *found = first; found; found = found->next)
    if (found->ended && found->bytes >= bytes) {
      uint32_t whole = found->bytes;
      memset((char *)found + sizeof *found, 0, whole - sizeof *found);
      *fresh = false;
      return found;
    }
  struct entry *made = store_take(bytes);
  if (made) made->bytes = (uint32_t)bytes;
  *fresh = true;
  return made;
}

struct entry *table_add(struct table *table, uint64_t key, uint64_t key2, size_t bytes, fill_t *fill,
                        const void *with) {
  unsigned bucket = table_bucket(key, key2);
  lock_take(&table->lock);
  struct entry *found = table_find(table, key, key2);
  if (!found) {
    bool fresh;
    found = room(table->buckets[bucket], bytes, &fresh);
    if (found) {
      found->key = key;
      found->key2 = key2;
      if (fill) fill(found, with);
      if (fresh) {
        found->next = table->buckets[bucket];
        __atomic_store_n(&table->buckets[bucket], found, __ATOMIC_RELEASE);
      } else {
        __atomic_store_n(&found->ended, 0, __ATOMIC_RELEASE);
      }
    }
  }
  lock_give(&table->lock);
  return found;
}

void table_end(struct table *table, of_t *of, uint64_t what) {
  lock_take(&table->lock);
  for (unsigned bucket = 0; bucket < TABLE_BUCKETS; bucket++)
    for (struct entry *found = table->buckets[bucket]; found; found = found->next)
      if (!of || of(found, what)) __atomic_store_n(&found->ended, 1, __ATOMIC_RELEASE);
  lock_give(&table->lock);
}

void table_end_key(struct table *table, uint64_t key, uint64_t key2) {
  lock_take(&table->lock);
  struct entry *found = table_find(table, key, key2);
  if (found) __atomic_store_n(&found->ended, 1, __ATOMIC_RELEASE);
  lock_give(&table->lock);
}
