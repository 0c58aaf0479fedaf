/* Which addresses are handles of living objects: a balanced tree for each kind. */
#include "handles.h"

#include <pthread.h>
#include <search.h>
#include <stdint.h>
#include <stdlib.h>

#define HANDLE_NAME(kind, name) [kind] = name,
const char *const handle_names[HANDLE_KINDS] = {HANDLES(HANDLE_NAME)};

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static void *trees[HANDLE_KINDS];
static size_t counts[HANDLE_KINDS];

static int compare(const void *left, const void *right) {
  uintptr_t a = (uintptr_t)left, b = (uintptr_t)right;
  return (a > b) - (a < b);
}

bool handle_add(enum handle kind, void *object) {
  pthread_rwlock_wrlock(&lock);
  bool added = tsearch(object, &trees[kind], compare);
  counts[kind] += added;
  pthread_rwlock_unlock(&lock);
  return added;
}

bool handle_is(enum handle kind, const void *object, bool remove) {
  if (!object) return false;
  if (remove)
    pthread_rwlock_wrlock(&lock);
  else
    pthread_rwlock_rdlock(&lock);
  bool found = tfind(object, &trees[kind], compare);
  if (found && remove) {
    tdelete(object, &trees[kind], compare);
    counts[kind]--;
  }
  pthread_rwlock_unlock(&lock);
  return found;
}

size_t handle_count(enum handle kind) {
  pthread_rwlock_rdlock(&lock);
  size_t count = counts[kind];
  pthread_rwlock_unlock(&lock);
  return count;
}

bool handle_hold(enum handle kind, void *object, void (*hold)(void *object)) {
  if (!object) return false;
  pthread_rwlock_rdlock(&lock);
  bool found = tfind(object, &trees[kind], compare);
  if (found) hold(object);
  pthread_rwlock_unlock(&lock);
  return found;
}

struct search {
  CUcontext context;
  void **objects; /* NULL while they are counted */
  size_t count;
};

static void look(const void *node, VISIT when, void *given) {
  void *object = *(void *const *)node;
  struct search *search = given;
  if ((when != postorder && when != leaf) || *(const CUcontext *)object != search->context) return;
  if (search->objects) search->objects[search->count] = object;
  search->count++;
}

void handles_end(enum handle kind, CUcontext context, void (*end)(void *object)) {
  struct search search = {.context = context};
  pthread_rwlock_rdlock(&lock);
  twalk_r(trees[kind], look, &search);
  search.objects = search.count ? malloc(search.count * sizeof *search.objects) : NULL;
  search.count = 0;
  if (search.objects) twalk_r(trees[kind], look, &search);
  pthread_rwlock_unlock(&lock);
  for (size_t n = 0; n < search.count; n++)
    if (handle_is(kind, search.objects[n], true)) end(search.objects[n]);
  free(search.objects);
}
