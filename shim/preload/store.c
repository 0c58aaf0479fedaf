#include "store.h"

#include <string.h>
#include <sys/mman.h>

#include "session.h"

enum { SMALLEST = 5, REGION = 1 << 20 };

/* The n of the smallest 2^n that holds so many bytes. */
static unsigned class_of(size_t bytes) {
  unsigned n = SMALLEST;
  while (((size_t)1 << n) < bytes) n++;
  return n;
}

static void *mapped(size_t bytes) {
  void *found = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return found == MAP_FAILED ? NULL : found;
}

/* Under the lock. The rest of an older region is lost: less than the piece that did not fit. */
static void *cut(struct store *store, size_t bytes) {
  if (store->left < bytes) {
    store->next = mapped(REGION);
    store->left = store->next ? REGION : 0;
    if (!store->next) return NULL;
  }
  void *piece = store->next;
  store->next += bytes;
  store->left -= bytes;
  return piece;
}

void *store_take(size_t bytes) {
  unsigned n = class_of(bytes);
  if (n >= STORE_CLASSES) return NULL;
  size_t whole = (size_t)1 << n;
  if (whole > REGION / 4) return mapped(whole);
  struct store *store = &session->store;
  lock_take(&session->store_lock);
  void *piece = store->free[n];
  if (piece)
    memcpy(&store->free[n], piece, sizeof(void *));
  else
    piece = cut(store, whole);
  lock_give(&session->store_lock);
  return piece ? memset(piece, 0, bytes) : NULL;
}

void store_give(void *piece, size_t bytes) {
  if (!piece) return;
  unsigned n = class_of(bytes);
  size_t whole = (size_t)1 << n;
  if (whole > REGION / 4) {
    munmap(piece, whole);
    return;
  }
  lock_take(&session->store_lock);
  memcpy(piece, &session->store.free[n], sizeof(void *));
  session->store.free[n] = piece;
  lock_give(&session->store_lock);
}
