/* Which addresses are handles of living objects: a balanced tree for each kind. */
#include "handles.h"

#include <pthread.h>
#include <search.h>
#include <stdint.h>

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static void *trees[HANDLE_KINDS];

static int compare(const void *left, const void *right) {
  uintptr_t a = (uintptr_t)left, b = (uintptr_t)right;
  return (a > b) - (a < b);
}

bool handle_add(enum handle kind, void *object) {
  pthread_rwlock_wrlock(&lock);
  bool added = tsearch(object, &trees[kind], compare);
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
  if (found && remove) tdelete(object, &trees[kind], compare);
  pthread_rwlock_unlock(&lock);
  return found;
}

struct each {
  void (*action)(void *object, void *given);
  void *given;
};

static void visit(const void *node, VISIT when, void *given) {
  const struct each *each = given;
  if (when == postorder || when == leaf) each->action(*(void *const *)node, each->given);
}

void handles_each(enum handle kind, void (*action)(void *object, void *given), void *given) {
  struct each each = {action, given};
  pthread_rwlock_rdlock(&lock);
  twalk_r(trees[kind], visit, &each);
  pthread_rwlock_unlock(&lock);
}
