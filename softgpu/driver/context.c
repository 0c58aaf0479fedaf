/* Contexts: those that programs create, and the primary one of each device; each thread's stack of current ones.
 *
 * A handle is the address of a context. It is valid while the context is in the list of living ones; what a stack holds
 * stays readable after that, so that a thread whose context somebody destroyed is told so. */
#include <pthread.h>
#include <stdlib.h>

#include "allocations.h"
#include "array.h"
#include "driver.h"
#include "freed.h"
#include "memory.h"
#include "module.h"
#include "stream.h"
#include "strict.h"

enum { DEEPEST = 4096, LOWEST_PRIORITY = 0, HIGHEST_PRIORITY = -5, API_VERSION = 3020 };

static const unsigned SCHEDULES = CU_CTX_SCHED_MASK;
static const unsigned KNOWN_FLAGS = CU_CTX_FLAGS_MASK & ~CU_CTX_COREDUMP_ENABLE & ~CU_CTX_USER_COREDUMP_ENABLE;

struct context {
  struct context *next;
  unsigned long long id;
  CUdevice device;
  unsigned flags, users; /* places in stacks, and one while it lives */
  unsigned attached;     /* beside its creation */
  bool alive, primary;
  CUresult failed; /* what its work came to; nothing more of it is done then */
  size_t limits[CU_LIMIT_MAX];
  CUfunc_cache cache;
  struct queue *legacy;
  struct context *peers[MOST_PEERS]; /* alive: whose memory it may access */
  unsigned peer_count;
};

static const size_t LIMITS[CU_LIMIT_MAX] = {
    [CU_LIMIT_STACK_SIZE] = 1024,
    [CU_LIMIT_PRINTF_FIFO_SIZE] = 1 << 20,
    [CU_LIMIT_MALLOC_HEAP_SIZE] = 8 << 20,
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* all that follows, and all fields */
static struct context *living, *ending; /* ending: no handles any more, but their work may not be done yet */
static unsigned long long last_id;
static struct freed freed = FREED;
static struct {
  struct context *context;
  unsigned retained, flags;
} primaries[MOST_DEVICES];

static _Thread_local struct {
  struct context **at;
  size_t depth, room;
} stack;
static pthread_key_t stack_key;
static pthread_once_t stack_once = PTHREAD_ONCE_INIT;

static void let_go(struct context *context) {
  if (!--context->users) object_free(&freed, context);
}

/* A thread ends: it holds no context any more. The thread's own variable is gone by now. */
static void drop_stack(void *given) {
  struct context **at = given;
  pthread_mutex_lock(&lock);
  for (size_t i = 0; at[i]; i++) let_go(at[i]);
  pthread_mutex_unlock(&lock);
  free(at);
}

static void make_key(void) { pthread_key_create(&stack_key, drop_stack); }

/* Room for one more, and for the NULL that ends the list. */
static bool stack_room(void) {
  if (stack.depth + 1 < stack.room) return true;
  if (stack.depth >= DEEPEST) return false;
  pthread_once(&stack_once, make_key);
  size_t room = stack.room ? 2 * stack.room : 8;
  struct context **at = realloc(stack.at, room * sizeof *at);
  if (!at) return false;
  stack.at = at;
  stack.room = room;
  stack.at[stack.depth] = NULL;
  return pthread_setspecific(stack_key, at) == 0;
}

static void stack_push(struct context *context) {
  context->users++;
  stack.at[stack.depth++] = context;
  stack.at[stack.depth] = NULL;
}

static void stack_pop(void) {
  struct context *top = stack.at[--stack.depth];
  stack.at[stack.depth] = NULL;
  let_go(top);
}

static struct context *top(void) { return stack.depth ? stack.at[stack.depth - 1] : NULL; }

static bool is_alive(CUcontext handle) {
  for (struct context *context = living; context; context = context->next)
    if ((CUcontext)context == handle) return true;
  return false;
}

unsigned context_count(void) {
  unsigned count = 0;
  pthread_mutex_lock(&lock);
  for (struct context *context = living; context; context = context->next) count++;
  pthread_mutex_unlock(&lock);
  return count;
}

/* The living context of a handle, the current one for NULL. The lock is held. */
static CUresult found(CUcontext handle, struct context **context) {
  *context = handle ? (struct context *)handle : top();
  if (!handle && !*context) return CUDA_ERROR_INVALID_CONTEXT;
  if (!handle) return (*context)->alive ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
  return is_alive(handle) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

/* The context of a handle with the lock held, which `done` gives back; without it when there is none. */
static CUresult hold(CUcontext handle, struct context **context) {
  CHECK(ready());
  pthread_mutex_lock(&lock);
  CUresult result = found(handle, context);
  if (result != CUDA_SUCCESS) pthread_mutex_unlock(&lock);
  return result;
}

static CUresult done(CUresult result) {
  pthread_mutex_unlock(&lock);
  return result;
}

CUresult current(struct here *here) { return context_here(NULL, here); }

CUresult context_here(CUcontext handle, struct here *here) {
  struct context *context;
  CHECK(hold(handle, &context));
  *here = (struct here){(CUcontext)context, context->device, context->id, context->legacy};
  CUresult result = done(context->failed);
  strict_pass(here->context);
  return result;
}

/* The one that had a number; its address may be another's by now. The lock is held. */
static struct context *numbered(CUcontext handle, unsigned long long id) {
  return is_alive(handle) && ((struct context *)handle)->id == id ? (struct context *)handle : NULL;
}

void context_fail(CUcontext handle, unsigned long long id, CUresult result) {
  pthread_mutex_lock(&lock);
  struct context *context = numbered(handle, id);
  if (context && context->failed == CUDA_SUCCESS) context->failed = result;
  pthread_mutex_unlock(&lock);
}

unsigned long long context_id(CUcontext handle) {
  pthread_mutex_lock(&lock);
  unsigned long long id = is_alive(handle) ? ((struct context *)handle)->id : 0;
  pthread_mutex_unlock(&lock);
  return id;
}

/* What a context's work came to; `gone` when it is no more. */
static CUresult result_or(CUcontext handle, unsigned long long id, CUresult gone) {
  pthread_mutex_lock(&lock);
  struct context *context = numbered(handle, id);
  CUresult result = context ? context->failed : gone;
  pthread_mutex_unlock(&lock);
  return result;
}

CUresult context_result(CUcontext handle, unsigned long long id) { return result_or(handle, id, CUDA_SUCCESS); }

CUresult context_check(CUcontext handle, unsigned long long id) {
  return result_or(handle, id, CUDA_ERROR_CONTEXT_IS_DESTROYED);
}

static struct context *create(CUdevice device, unsigned flags, bool primary) {
  struct context *context = object_make(&freed, sizeof *context);
  struct queue *legacy = context ? queue_make((CUcontext)context, true, true) : NULL;
  if (!legacy) {
    object_free(&freed, context);
    return NULL;
  }
  *context = (struct context){.next = living, .id = ++last_id, .device = device, .flags = flags, .users = 1,
                              .alive = true, .primary = primary, .legacy = legacy};
  for (int i = 0; i < CU_LIMIT_MAX; i++) context->limits[i] = LIMITS[i];
  living = context;
  return context;
}

/* Where a context has another one among its peers; behind the last one if it has not. The lock is held. */
static unsigned peer_place(const struct context *context, const struct context *peer) {
  unsigned place = 0;
  while (place < context->peer_count && context->peers[place] != peer) place++;
  return place;
}

static bool peer_drop(struct context *context, const struct context *peer) {
  unsigned place = peer_place(context, peer);
  if (place == context->peer_count) return false;
  context->peers[place] = context->peers[--context->peer_count];
  return true;
}

static void take_out(struct context **list, const struct context *context) {
  while (*list != context) list = &(*list)->next;
  *list = context->next;
}

/* Its handle is none any more. The lock is held; `finish` follows without it. */
static void forget(struct context *context) {
  take_out(&living, context);
  for (struct context *other = living; other; other = other->next) peer_drop(other, context);
  for (struct context *other = ending; other; other = other->next) peer_drop(other, context);
  context->alive = false;
  context->next = ending;
  ending = context;
}

/* What it has to do is still done; then all that it has is given back. */
static void finish(struct context *context) {
  if (!context) return;
  work_wait((CUcontext)context);
  streams_end((CUcontext)context);
  events_end((CUcontext)context);
  arrays_end((CUcontext)context);
  modules_end((CUcontext)context);
  memory_end((CUcontext)context);
  queue_drop(context->legacy);
  pthread_mutex_lock(&lock);
  take_out(&ending, context);
  let_go(context);
  pthread_mutex_unlock(&lock);
}

static CUresult check_flags(unsigned flags) {
  unsigned schedule = flags & SCHEDULES;
  bool one = schedule == CU_CTX_SCHED_AUTO || schedule == CU_CTX_SCHED_SPIN || schedule == CU_CTX_SCHED_YIELD ||
             schedule == CU_CTX_SCHED_BLOCKING_SYNC;
  return one && !(flags & ~KNOWN_FLAGS) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* Creation, and the stack. */

EXPORTED CUresult cuCtxCreate_v2(CUcontext *handle, unsigned int flags, CUdevice device) {
  CHECK(ready());
  if (!handle) return CUDA_ERROR_INVALID_VALUE;
  if (!device_at(device)) return CUDA_ERROR_INVALID_DEVICE;
  CHECK(check_flags(flags));
  pthread_mutex_lock(&lock);
  struct context *context = stack_room() ? create(device, flags, false) : NULL;
  if (context) stack_push(context);
  pthread_mutex_unlock(&lock);
  *handle = (CUcontext)context;
  return context ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

EXPORTED CUresult cuCtxCreate(CUcontext *handle, unsigned int flags, CUdevice device) {
  return cuCtxCreate_v2(handle, flags, device);
}

/* Partitions of SMs do not exist here. */
EXPORTED CUresult cuCtxCreate_v3(CUcontext *handle, CUexecAffinityParam *affinity, int count, unsigned int flags,
                                 CUdevice device) {
  CHECK(ready());
  if (affinity || count) return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
  return cuCtxCreate_v2(handle, flags, device);
}

EXPORTED CUresult cuCtxCreate_v4(CUcontext *handle, CUctxCreateParams *parameters, unsigned int flags,
                                 CUdevice device) {
  CHECK(ready());
  if (parameters && parameters->cigParams) return CUDA_ERROR_NOT_SUPPORTED;
  if (!parameters) return cuCtxCreate_v2(handle, flags, device);
  return cuCtxCreate_v3(handle, parameters->execAffinityParams, parameters->numExecAffinityParams, flags, device);
}

/* Of primary contexts only their devices dispose. */
EXPORTED CUresult cuCtxDestroy_v2(CUcontext handle) {
  CHECK(ready());
  if (!handle) return CUDA_ERROR_INVALID_VALUE;
  struct context *context;
  CHECK(hold(handle, &context));
  if (context->primary) return done(CUDA_ERROR_INVALID_CONTEXT);
  if (top() == context) stack_pop();
  forget(context);
  done(CUDA_SUCCESS);
  finish(context);
  return CUDA_SUCCESS;
}

EXPORTED CUresult cuCtxDestroy(CUcontext handle) { return cuCtxDestroy_v2(handle); }

/* Of old programs, which count who uses a context. */
EXPORTED CUresult cuCtxAttach(CUcontext *handle, unsigned int flags) {
  struct context *context;
  CHECK(hold(NULL, &context));
  if (!handle || flags) return done(CUDA_ERROR_INVALID_VALUE);
  context->attached++;
  *handle = (CUcontext)context;
  return done(CUDA_SUCCESS);
}

EXPORTED CUresult cuCtxDetach(CUcontext handle) {
  struct context *context;
  CHECK(hold(NULL, &context));
  if ((CUcontext)context != handle || (context->primary && !context->attached)) return done(CUDA_ERROR_INVALID_CONTEXT);
  if (!context->attached) {
    done(CUDA_SUCCESS);
    return cuCtxDestroy_v2(handle);
  }
  context->attached--;
  return done(CUDA_SUCCESS);
}

EXPORTED CUresult cuCtxPushCurrent_v2(CUcontext handle) {
  CHECK(ready());
  if (!handle) return CUDA_ERROR_INVALID_CONTEXT;
  struct context *context;
  CHECK(hold(handle, &context));
  if (!stack_room()) return done(CUDA_ERROR_OUT_OF_MEMORY);
  stack_push(context);
  return done(CUDA_SUCCESS);
}

EXPORTED CUresult cuCtxPushCurrent(CUcontext handle) { return cuCtxPushCurrent_v2(handle); }

EXPORTED CUresult cuCtxPopCurrent_v2(CUcontext *handle) {
  CHECK(ready());
  struct context *context = top();
  if (!context) return CUDA_ERROR_INVALID_CONTEXT;
  if (handle) *handle = (CUcontext)context;
  pthread_mutex_lock(&lock);
  stack_pop();
  return done(CUDA_SUCCESS);
}

EXPORTED CUresult cuCtxPopCurrent(CUcontext *handle) { return cuCtxPopCurrent_v2(handle); }

/* In place of the top one; NULL only takes that away. */
EXPORTED CUresult cuCtxSetCurrent(CUcontext handle) {
  CHECK(ready());
  struct context *context = NULL;
  if (handle)
    CHECK(hold(handle, &context));
  else
    pthread_mutex_lock(&lock);
  if (context && !stack_room()) return done(CUDA_ERROR_OUT_OF_MEMORY);
  if (context) context->users++; /* it may be the one that is taken away */
  if (top()) stack_pop();
  if (context) {
    stack_push(context);
    let_go(context);
  }
  return done(CUDA_SUCCESS);
}

EXPORTED CUresult cuCtxGetCurrent(CUcontext *handle) {
  CHECK(ready());
  if (!handle) return CUDA_ERROR_INVALID_VALUE;
  *handle = (CUcontext)top();
  return CUDA_SUCCESS;
}

/* Attributes. */

EXPORTED CUresult cuCtxGetDevice_v2(CUdevice *device, CUcontext handle) {
  struct context *context;
  CHECK(hold(handle, &context));
  if (!device) return done(CUDA_ERROR_INVALID_VALUE);
  *device = context->device;
  return done(CUDA_SUCCESS);
}

EXPORTED CUresult cuCtxGetDevice(CUdevice *device) { return cuCtxGetDevice_v2(device, NULL); }

EXPORTED CUresult cuCtxGetFlags(unsigned int *flags) {
  struct context *context;
  CHECK(hold(NULL, &context));
  if (!flags) return done(CUDA_ERROR_INVALID_VALUE);
  *flags = context->flags;
  return done(CUDA_SUCCESS);
}

EXPORTED CUresult cuCtxSetFlags(unsigned int flags) {
  struct context *context;
  CHECK(hold(NULL, &context));
  CUresult result = check_flags(flags);
  if (result == CUDA_SUCCESS) context->flags = flags;
  return done(result);
}

EXPORTED CUresult cuCtxGetId(CUcontext handle, unsigned long long *id) {
  struct context *context;
  CHECK(hold(handle, &context));
  if (!id) return done(CUDA_ERROR_INVALID_VALUE);
  *id = context->id;
  return done(CUDA_SUCCESS);
}

EXPORTED CUresult cuCtxGetApiVersion(CUcontext handle, unsigned int *version) {
  struct context *context;
  CHECK(hold(handle, &context));
  if (!version) return done(CUDA_ERROR_INVALID_VALUE);
  *version = API_VERSION;
  return done(CUDA_SUCCESS);
}

/* Contexts that have some of the SMs do not exist. */
EXPORTED CUresult cuCtxGetExecAffinity(CUexecAffinityParam *parameter, CUexecAffinityType type) {
  struct context *context;
  CHECK(hold(NULL, &context));
  bool good = parameter && (int)type >= 0 && type < CU_EXEC_AFFINITY_TYPE_MAX;
  return done(good ? CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY : CUDA_ERROR_INVALID_VALUE);
}

static CUresult check_limit(CUlimit limit) {
  if (limit >= CU_LIMIT_MAX) return CUDA_ERROR_INVALID_VALUE;
  return LIMITS[limit] ? CUDA_SUCCESS : CUDA_ERROR_UNSUPPORTED_LIMIT;
}

EXPORTED CUresult cuCtxGetLimit(size_t *value, CUlimit limit) {
  struct context *context;
  CHECK(hold(NULL, &context));
  CUresult result = value ? check_limit(limit) : CUDA_ERROR_INVALID_VALUE;
  if (result == CUDA_SUCCESS) *value = context->limits[limit];
  return done(result);
}

EXPORTED CUresult cuCtxSetLimit(CUlimit limit, size_t value) {
  struct context *context;
  CHECK(hold(NULL, &context));
  CUresult result = check_limit(limit);
  if (result == CUDA_SUCCESS) context->limits[limit] = value;
  return done(result);
}

EXPORTED CUresult cuCtxGetCacheConfig(CUfunc_cache *config) {
  struct context *context;
  CHECK(hold(NULL, &context));
  if (!config) return done(CUDA_ERROR_INVALID_VALUE);
  *config = context->cache;
  return done(CUDA_SUCCESS);
}

EXPORTED CUresult cuCtxSetCacheConfig(CUfunc_cache config) {
  struct context *context;
  CHECK(hold(NULL, &context));
  if (config > CU_FUNC_CACHE_PREFER_EQUAL) return done(CUDA_ERROR_INVALID_VALUE);
  context->cache = config;
  return done(CUDA_SUCCESS);
}

/* Cards since capability 5.0 have banks of four bytes, whatever one asks for. */
EXPORTED CUresult cuCtxGetSharedMemConfig(CUsharedconfig *config) {
  struct context *context;
  CHECK(hold(NULL, &context));
  if (!config) return done(CUDA_ERROR_INVALID_VALUE);
  *config = CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE;
  return done(CUDA_SUCCESS);
}

EXPORTED CUresult cuCtxSetSharedMemConfig(CUsharedconfig config) {
  struct context *context;
  CHECK(hold(NULL, &context));
  return done(config <= CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

EXPORTED CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest) {
  struct context *context;
  CHECK(hold(NULL, &context));
  if (least) *least = LOWEST_PRIORITY;
  if (greatest) *greatest = HIGHEST_PRIORITY;
  return done(CUDA_SUCCESS);
}

/* Peers. */

bool context_peers(CUcontext handle, unsigned long long id, CUcontext peers[MOST_PEERS], size_t *count) {
  pthread_mutex_lock(&lock);
  const struct context *context = numbered(handle, id);
  for (struct context *other = ending; other && !context; other = other->next)
    if ((CUcontext)other == handle && other->id == id) context = other;
  *count = context ? context->peer_count : 0;
  for (size_t n = 0; n < *count; n++) peers[n] = (CUcontext)context->peers[n];
  pthread_mutex_unlock(&lock);
  return context;
}

/* The current context and another one, with the lock held after success. */
static CUresult two(CUcontext handle, struct context **context, struct context **peer) {
  CHECK(hold(NULL, context));
  CUresult result = handle ? found(handle, peer) : CUDA_ERROR_INVALID_CONTEXT;
  if (result == CUDA_SUCCESS && *peer == *context) result = CUDA_ERROR_INVALID_CONTEXT;
  return result == CUDA_SUCCESS ? result : done(result);
}

EXPORTED CUresult cuCtxEnablePeerAccess(CUcontext handle, unsigned int flags) {
  struct context *context, *peer;
  CHECK(two(handle, &context, &peer));
  if (flags) return done(CUDA_ERROR_INVALID_VALUE);
  if (!devices_are_peers(context->device, peer->device)) return done(CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
  if (peer_place(context, peer) < context->peer_count) return done(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
  if (context->peer_count == MOST_PEERS) return done(CUDA_ERROR_TOO_MANY_PEERS);
  context->peers[context->peer_count++] = peer;
  allocations_changed();
  return done(CUDA_SUCCESS);
}

EXPORTED CUresult cuCtxDisablePeerAccess(CUcontext handle) {
  struct context *context, *peer;
  CHECK(two(handle, &context, &peer));
  if (!peer_drop(context, peer)) return done(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
  allocations_changed();
  return done(CUDA_SUCCESS);
}

/* Primary contexts. */

static CUresult primary_of(CUdevice device) {
  CHECK(ready());
  return device_at(device) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

EXPORTED CUresult cuDevicePrimaryCtxRetain(CUcontext *handle, CUdevice device) {
  CHECK(primary_of(device));
  if (!handle) return CUDA_ERROR_INVALID_VALUE;
  pthread_mutex_lock(&lock);
  if (!primaries[device].context) primaries[device].context = create(device, primaries[device].flags, true);
  *handle = (CUcontext)primaries[device].context;
  if (*handle) primaries[device].retained++;
  pthread_mutex_unlock(&lock);
  return *handle ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* What `finish` has to end. The lock is held. */
static struct context *primary_end(CUdevice device) {
  struct context *context = primaries[device].context;
  if (context) forget(context);
  primaries[device].context = NULL;
  return context;
}

EXPORTED CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  CHECK(primary_of(device));
  struct context *ended = NULL;
  pthread_mutex_lock(&lock);
  CUresult result = primaries[device].retained ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
  if (result == CUDA_SUCCESS && !--primaries[device].retained) ended = primary_end(device);
  pthread_mutex_unlock(&lock);
  finish(ended);
  return result;
}

EXPORTED CUresult cuDevicePrimaryCtxRelease(CUdevice device) { return cuDevicePrimaryCtxRelease_v2(device); }

/* Whoever retained it still has to release it, and the next one to retain it gets a new one. */
EXPORTED CUresult cuDevicePrimaryCtxReset_v2(CUdevice device) {
  CHECK(primary_of(device));
  pthread_mutex_lock(&lock);
  struct context *ended = primary_end(device);
  pthread_mutex_unlock(&lock);
  finish(ended);
  return CUDA_SUCCESS;
}

EXPORTED CUresult cuDevicePrimaryCtxReset(CUdevice device) { return cuDevicePrimaryCtxReset_v2(device); }

EXPORTED CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned int flags) {
  CHECK(primary_of(device));
  CHECK(check_flags(flags));
  pthread_mutex_lock(&lock);
  primaries[device].flags = flags;
  if (primaries[device].context) primaries[device].context->flags = flags;
  pthread_mutex_unlock(&lock);
  return CUDA_SUCCESS;
}

EXPORTED CUresult cuDevicePrimaryCtxSetFlags(CUdevice device, unsigned int flags) {
  return cuDevicePrimaryCtxSetFlags_v2(device, flags);
}

EXPORTED CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned int *flags, int *active) {
  CHECK(primary_of(device));
  pthread_mutex_lock(&lock);
  if (flags) *flags = primaries[device].flags;
  if (active) *active = primaries[device].context != NULL;
  pthread_mutex_unlock(&lock);
  return CUDA_SUCCESS;
}
