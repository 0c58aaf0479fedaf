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

enum { REMEMBERED = 16 };
static struct change changes[REMEMBERED];

void allocations_read(void) { pthread_rwlock_rdlock(&lock); }
void allocations_write(void) { pthread_rwlock_wrlock(&lock); }
void allocations_release(void) { pthread_rwlock_unlock(&lock); }

unsigned long long allocations_state(void) { return state; }
void allocations_changed(void) { state++; }

/* The lock is held for writing. */
static void remember(bool added, const struct allocation *allocation) {
  unsigned long long now = ++state;
  changes[now % REMEMBERED] = (struct change){now, added, *allocation};
}

const struct change *allocations_change(unsigned long long wanted) {
  const struct change *change = &changes[wanted % REMEMBERED];
  return change->state == wanted ? change : NULL;
}

void rights_set(struct rights *rights, CUdevice device, CUmemAccess_flags flags) {
  uint64_t bit = 1ull << device;
  rights->read = flags & CU_MEM_ACCESS_FLAGS_PROT_READ ? rights->read | bit : rights->read & ~bit;
  rights->write = flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE ? rights->write | bit : rights->write & ~bit;
}

CUmemAccess_flags rights_of(const struct rights *rights, CUdevice device) {
  uint64_t bit = 1ull << device;
  if (rights->write & bit) return CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  return rights->read & bit ? CU_MEM_ACCESS_FLAGS_PROT_READ : CU_MEM_ACCESS_FLAGS_PROT_NONE;
}

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

bool on_device(const struct allocation *allocation) { return allocation->kind < PINNED; }

/* Of what the rights of devices decide about, somebody must have one. */
static bool readable(const struct allocation *allocation) { return !allocation->rights || allocation->rights->read; }

bool allocation_hold(uint64_t address, uint64_t size, struct mapping **held) {
  const struct allocation *first = allocation_with(address, 1), *found = first;
  if (!first || !readable(first) || address + size < address) return false;
  while (address + size > found->start + found->size) {
    found = first->kind == MAPPED ? allocation_with(found->start + found->size, 1) : NULL;
    if (!found || found->mapping != first->mapping || !readable(found)) return false;
  }
  *held = mapping_hold(first->mapping);
  return true;
}

bool allocation_add(const struct allocation *allocation) {
  struct allocation *copy = malloc(sizeof *copy);
  if (!copy) return false;
  *copy = *allocation;
  copy->id = ++last_id;
  struct allocation *const *at = tsearch(copy, &tree, compare);
  if (at && *at == copy) {
    remember(true, copy);
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
  remember(false, removed);
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
