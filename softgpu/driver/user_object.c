/* Objects of the program with a count of references, which the program and graphs have. */
#include "user_object.h"

#include <limits.h>
#include <pthread.h>
#include <stdlib.h>

#include "driver.h"
#include "graph.h"
#include "handles.h"
#include "work.h"

struct user_object {
  unsigned long long references;
  CUhostFn destroy;
  void *given;
};

struct user_references {
  struct user_references *next;
  struct user_object *object;
  unsigned long long count;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* all counts, and what follows */
static struct queue *ends;                               /* where functions are called that end objects */

static void call_destroy(void *given) {
  struct user_object *object = given;
  set_inside(true);
  object->destroy(object->given);
  set_inside(false);
  free(object);
}

/* Its function is called by another thread: the one that let go of it may have locks which that needs. */
static void end(struct user_object *object) {
  handle_is(USER_OBJECT, object, true);
  if (!ends) ends = queue_make(NULL, false, false);
  if (!ends || !queue_add(ends, &(struct work){call_destroy, object, true}, NULL, 0, NULL)) call_destroy(object);
}

/* The lock is held. */
static void let_go(struct user_object *object, unsigned long long count) {
  object->references -= count;
  if (!object->references) end(object);
}

static bool good_count(unsigned count) { return count && count <= INT_MAX; }

static struct user_references *add(struct user_references *next, struct user_object *object, unsigned long long count) {
  struct user_references *made = malloc(sizeof *made);
  if (made) *made = (struct user_references){next, object, count};
  return made;
}

bool user_references_copy(const struct user_references *from, struct user_references **to) {
  bool good = true;
  pthread_mutex_lock(&lock);
  for (; from && good; from = from->next) {
    struct user_references *made = add(*to, from->object, from->count);
    good = made;
    if (!made) break;
    from->object->references += from->count;
    *to = made;
  }
  pthread_mutex_unlock(&lock);
  return good;
}

void user_references_end(struct user_references *references) {
  pthread_mutex_lock(&lock);
  for (struct user_references *next; references; references = next) {
    next = references->next;
    let_go(references->object, references->count);
    free(references);
  }
  pthread_mutex_unlock(&lock);
}

EXPORTED CUresult cuUserObjectCreate(CUuserObject *handle, void *given, CUhostFn destroy, unsigned int references,
                                     unsigned int flags) {
  CHECK(ready());
  if (!handle || !destroy || !good_count(references) || flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC)
    return CUDA_ERROR_INVALID_VALUE;
  struct user_object *object = malloc(sizeof *object);
  if (object) *object = (struct user_object){references, destroy, given};
  if (!object || !handle_add(USER_OBJECT, object)) {
    free(object);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  *handle = (CUuserObject)object;
  return CUDA_SUCCESS;
}

/* The lock is held after success. */
static CUresult found(CUuserObject handle, unsigned count) {
  CHECK(ready());
  if (!good_count(count)) return CUDA_ERROR_INVALID_VALUE;
  pthread_mutex_lock(&lock);
  if (handle_is(USER_OBJECT, handle, false)) return CUDA_SUCCESS;
  pthread_mutex_unlock(&lock);
  return CUDA_ERROR_INVALID_VALUE;
}

EXPORTED CUresult cuUserObjectRetain(CUuserObject handle, unsigned int count) {
  CHECK(found(handle, count));
  ((struct user_object *)handle)->references += count;
  pthread_mutex_unlock(&lock);
  return CUDA_SUCCESS;
}

EXPORTED CUresult cuUserObjectRelease(CUuserObject handle, unsigned int count) {
  CHECK(found(handle, count));
  struct user_object *object = (struct user_object *)handle;
  bool good = count <= object->references;
  if (good) let_go(object, count);
  pthread_mutex_unlock(&lock);
  return good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* What a graph has of an object; where the list ends if it has nothing. */
static struct user_references **place_of(struct graph *graph, const struct user_object *object) {
  struct user_references **at = &graph->objects;
  while (*at && (*at)->object != object) at = &(*at)->next;
  return at;
}

/* The locks are held. */
static CUresult retain(CUgraph handle, struct user_object *object, unsigned count, bool move) {
  struct graph *graph;
  CHECK(graph_of(handle, &graph));
  struct user_references **at = place_of(graph, object);
  if (!*at && !(*at = add(NULL, object, 0))) return CUDA_ERROR_OUT_OF_MEMORY;
  (*at)->count += count;
  if (!move) object->references += count;
  return CUDA_SUCCESS;
}

EXPORTED CUresult cuGraphRetainUserObject(CUgraph graph, CUuserObject handle, unsigned int count, unsigned int flags) {
  if (flags & ~CU_GRAPH_USER_OBJECT_MOVE) return CUDA_ERROR_INVALID_VALUE;
  graphs_lock();
  CUresult result = found(handle, count);
  if (result == CUDA_SUCCESS) {
    result = retain(graph, (struct user_object *)handle, count, flags & CU_GRAPH_USER_OBJECT_MOVE);
    pthread_mutex_unlock(&lock);
  }
  graphs_unlock();
  return result;
}

/* The locks are held. */
static CUresult release(CUgraph handle, struct user_object *object, unsigned count) {
  struct graph *graph;
  CHECK(graph_of(handle, &graph));
  struct user_references **at = place_of(graph, object), *had = *at;
  if (!had || had->count < count) return CUDA_ERROR_INVALID_VALUE;
  had->count -= count;
  if (!had->count) {
    *at = had->next;
    free(had);
  }
  let_go(object, count);
  return CUDA_SUCCESS;
}

EXPORTED CUresult cuGraphReleaseUserObject(CUgraph graph, CUuserObject handle, unsigned int count) {
  graphs_lock();
  CUresult result = found(handle, count);
  if (result == CUDA_SUCCESS) {
    result = release(graph, (struct user_object *)handle, count);
    pthread_mutex_unlock(&lock);
  }
  graphs_unlock();
  return result;
}
