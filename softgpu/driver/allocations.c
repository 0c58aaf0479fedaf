/* Every piece of memory that the driver knows: glibc's balanced tree, in which overlapping pieces compare as equal. */
#include "allocations.h"

#include <pthread.h>
#include <search.h>
#include <stdlib.h>

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static void *tree;
static unsigned long long last_id;

void allocations_read(void) { pthread_rwlock_rdlock(&lock); }
void allocations_write(void) { pthread_rwlock_wrlock(&lock); }
void allocations_release(void) { pthread_rwlock_unlock(&lock); }

static int compare(const void *left, const void *right) {
  const struct allocation *a = left, *b = right;
  if (a->start + a->size <= b->start) return -1;
  return a->start >= b->start + b->size;
}

const struct allocation *allocation_with(uint64_t address, uint64_t size) {
  struct allocation wanted = {.start = address, .size = 1};
  const struct allocation *const *found = tfind(&wanted, &tree, compare);
  uint64_t length = size ? size : 1;
  if (!found || length > (*found)->start + (*found)->size - address) return NULL;
  return *found;
}

bool allocation_add(const struct allocation *allocation) {
  struct allocation *copy = malloc(sizeof *copy);
  if (!copy) return false;
  *copy = *allocation;
  copy->id = ++last_id;
  struct allocation *const *at = tsearch(copy, &tree, compare);
  if (at && *at == copy) return true;
  free(copy);
  return false;
}

bool allocation_remove(uint64_t start, struct allocation *removed) {
  struct allocation wanted = {.start = start, .size = 1};
  struct allocation *const *at = tfind(&wanted, &tree, compare);
  if (!at || (*at)->start != start) return false;
  struct allocation *found = *at;
  *removed = *found;
  tdelete(&wanted, &tree, compare);
  free(found);
  return true;
}

struct search {
  CUcontext context;
  uint64_t *starts; /* NULL while they are counted */
  size_t count;
};

static void look(const void *node, VISIT visit, void *given) {
  const struct allocation *allocation = *(const struct allocation *const *)node;
  struct search *search = given;
  if ((visit != postorder && visit != leaf) || allocation->context != search->context) return;
  if (search->starts) search->starts[search->count] = allocation->start;
  search->count++;
}

uint64_t *allocations_of(CUcontext context, size_t *count) {
  struct search search = {.context = context};
  twalk_r(tree, look, &search);
  search.starts = search.count ? malloc(search.count * sizeof *search.starts) : NULL;
  search.count = 0;
  if (search.starts) twalk_r(tree, look, &search);
  *count = search.count;
  return search.starts;
}

struct total {
  enum kind kind;
  size_t count;
  uint64_t bytes;
};

static void add_up(const void *node, VISIT visit, void *given) {
  const struct allocation *allocation = *(const struct allocation *const *)node;
  struct total *total = given;
  if ((visit != postorder && visit != leaf) || allocation->kind != total->kind) return;
  total->count++;
  total->bytes += allocation->size;
}

size_t allocations_total(enum kind kind, uint64_t *bytes) {
  struct total total = {.kind = kind};
  allocations_read();
  twalk_r(tree, add_up, &total);
  allocations_release();
  *bytes = total.bytes;
  return total.count;
}
