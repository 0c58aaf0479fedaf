/* Every piece of memory that the driver knows: glibc's balanced tree, in which overlapping pieces compare as equal. */
#include "allocations.h"

#include <pthread.h>
#include <search.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "mapping.h"

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static void *tree;
static unsigned long long last_id;
static _Atomic unsigned long long state;

void allocations_read(void) { pthread_rwlock_rdlock(&lock); }
void allocations_write(void) { pthread_rwlock_wrlock(&lock); }
void allocations_release(void) { pthread_rwlock_unlock(&lock); }

unsigned long long allocations_state(void) { return state; }
void allocations_changed(void) { state++; }

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

bool on_device(const struct allocation *allocation) {
  return allocation->kind == ON_DEVICE || allocation->kind == VARIABLE;
}

bool allocation_hold(uint64_t address, uint64_t size, struct mapping **held) {
  const struct allocation *found = allocation_with(address, size);
  if (found) *held = mapping_hold(found->mapping);
  return found;
}

bool allocation_add(const struct allocation *allocation) {
  struct allocation *copy = malloc(sizeof *copy);
  if (!copy) return false;
  *copy = *allocation;
  copy->id = ++last_id;
  struct allocation *const *at = tsearch(copy, &tree, compare);
  if (at && *at == copy) {
    allocations_changed();
    return true;
  }
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
  allocations_changed();
  return true;
}

struct walk {
  void (*see)(const struct allocation *allocation, void *given);
  void *given;
};

static void visit(const void *node, VISIT when, void *given) {
  const struct walk *walk = given;
  if (when == postorder || when == leaf) walk->see(*(const struct allocation *const *)node, walk->given);
}

void allocations_walk(void (*see)(const struct allocation *allocation, void *given), void *given) {
  twalk_r(tree, visit, &(struct walk){see, given});
}

struct search {
  CUcontext context;
  uint64_t *starts; /* NULL while they are counted */
  size_t count;
};

static void look(const struct allocation *allocation, void *given) {
  struct search *search = given;
  if (allocation->context != search->context) return;
  if (search->starts) search->starts[search->count] = allocation->start;
  search->count++;
}

uint64_t *allocations_of(CUcontext context, size_t *count) {
  struct search search = {.context = context};
  allocations_walk(look, &search);
  search.starts = search.count ? malloc(search.count * sizeof *search.starts) : NULL;
  search.count = 0;
  if (search.starts) allocations_walk(look, &search);
  *count = search.count;
  return search.starts;
}
