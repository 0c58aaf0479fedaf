/* Memory of the library's own, apart from the program's allocator, which may be in any state when a hook runs. */
#ifndef TESSERA_STORE_H
#define TESSERA_STORE_H

#include <stddef.h>

enum { STORE_CLASSES = 40 };

struct store {
  void *free[STORE_CLASSES]; /* pieces of 2^n bytes that were given back */
  char *next;                /* the rest of the newest region */
  size_t left;
};

void *store_take(size_t bytes); /* zeros; NULL when the system has no more */
void store_give(void *piece, size_t bytes);

#endif
