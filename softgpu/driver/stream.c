/* Streams. Their queues do the work; `work.h`. */
#include "command.h"

#include <pthread.h>
#include <stdlib.h>

#include "capture.h"
#include "driver.h"
#include "freed.h"
#include "handles.h"
#include "strict.h"

enum { LOWEST = 0, HIGHEST = -5 };

struct stream {
  CUcontext context; /* first: `handles_end` */
  unsigned long long context_id;
  CUdevice device;
  struct queue *queue;
  unsigned flags;
  _Atomic int priority, policy, domain;
  unsigned long long id;
};

static struct freed freed = FREED;
static _Atomic unsigned long long last_id = 2; /* the first two are those of the default streams */

/* The default streams of threads, each thread's own: one for every context that it has used it in. */
struct own {
  struct own *next;
  unsigned long long context;
  struct queue *queue;
};

static pthread_key_t own_key;
static pthread_once_t own_once = PTHREAD_ONCE_INIT;

static void drop_own(void *given) {
  for (struct own *own = given, *next; own; own = next) {
    next = own->next;
    capture_forget(own->queue);
    queue_drop(own->queue);
    free(own);
  }
}

static void make_own_key(void) { pthread_key_create(&own_key, drop_own); }

static CUresult own_queue(const struct here *here, struct queue **queue) {
  pthread_once(&own_once, make_own_key);
  struct own *first = pthread_getspecific(own_key);
  for (struct own *own = first; own; own = own->next)
    if (own->context == here->id) {
      *queue = own->queue;
      return CUDA_SUCCESS;
    }
  struct own *made = calloc(1, sizeof *made);
  if (!made || !(made->queue = queue_make(here->context, false, true))) {
    free(made);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  made->next = first;
  made->context = here->id;
  *queue = made->queue;
  return pthread_setspecific(own_key, made) ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

CUresult stream_find(CUstream handle, bool own, struct stream_place *place) {
  struct here here;
  CHECK(ready());
  if (handle && handle != CU_STREAM_LEGACY && handle != CU_STREAM_PER_THREAD) {
    if (!handle_is(STREAM, handle, false)) return CUDA_ERROR_INVALID_HANDLE;
    const struct stream *stream = (struct stream *)handle;
    *place = (struct stream_place){.queue = stream->queue, .stream = handle, .context = stream->context,
                                   .context_id = stream->context_id, .device = stream->device,
                                   .blocking = !(stream->flags & CU_STREAM_NON_BLOCKING)};
    strict_pass(place->context);
    return context_result(place->context, place->context_id);
  }
  CHECK(current(&here));
  bool legacy = handle == CU_STREAM_LEGACY || (!handle && !own);
  *place = (struct stream_place){.queue = here.legacy, .stream = legacy ? CU_STREAM_LEGACY : CU_STREAM_PER_THREAD,
                                 .context = here.context, .context_id = here.id, .device = here.device,
                                 .legacy = legacy, .blocking = !legacy};
  return legacy ? CUDA_SUCCESS : own_queue(&here, &place->queue);
}

CUresult stream_place(CUstream handle, bool own, struct stream_place *place) {
  CHECK(stream_find(handle, own, place));
  return place->legacy ? capture_permits_legacy(place->context, false) : CUDA_SUCCESS;
}

CUresult context_place(CUcontext context, struct stream_place *place) {
  struct here here;
  CHECK(context_here(context, &here));
  *place = (struct stream_place){.context = here.context, .context_id = here.id, .device = here.device};
  return CUDA_SUCCESS;
}

static int nearest_priority(int priority) {
  return priority > LOWEST ? LOWEST : priority < HIGHEST ? HIGHEST : priority;
}

EXPORTED CUresult cuStreamCreateWithPriority(CUstream *handle, unsigned int flags, int priority) {
  struct here here;
  CHECK(current(&here));
  if (!handle || flags & ~CU_STREAM_NON_BLOCKING) return CUDA_ERROR_INVALID_VALUE;
  struct stream *stream = object_make(&freed, sizeof *stream);
  if (!stream) return CUDA_ERROR_OUT_OF_MEMORY;
  *stream = (struct stream){.context = here.context, .context_id = here.id, .device = here.device, .flags = flags,
                            .id = ++last_id, .priority = nearest_priority(priority), .policy = CU_SYNC_POLICY_AUTO};
  stream->queue = queue_make(here.context, false, !(flags & CU_STREAM_NON_BLOCKING));
  if (!stream->queue || !handle_add(STREAM, stream)) {
    if (stream->queue) queue_drop(stream->queue);
    object_free(&freed, stream);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  *handle = (CUstream)stream;
  return CUDA_SUCCESS;
}

EXPORTED CUresult cuStreamCreate(CUstream *handle, unsigned int flags) {
  return cuStreamCreateWithPriority(handle, flags, LOWEST);
}

/* Work that is in it is still done. */
static void end(void *given) {
  struct stream *stream = given;
  capture_forget(stream->queue);
  queue_drop(stream->queue);
  object_free(&freed, stream);
}

EXPORTED CUresult cuStreamDestroy_v2(CUstream handle) {
  CHECK(ready());
  if (!handle_is(STREAM, handle, true)) return CUDA_ERROR_INVALID_HANDLE;
  end(handle);
  return CUDA_SUCCESS;
}

EXPORTED CUresult cuStreamDestroy(CUstream handle) { return cuStreamDestroy_v2(handle); }

void streams_end(CUcontext context) { handles_end(STREAM, context, end); }

static CUresult query(CUstream handle, bool own) {
  struct stream_place place;
  CHECK(stream_place(handle, own, &place));
  CHECK(capture_permits_stream(&place));
  struct operation *last = queue_last(place.queue);
  if (last) operation_release(last);
  return last ? CUDA_ERROR_NOT_READY : context_result(place.context, place.context_id);
}

EXPORTED CUresult cuStreamQuery(CUstream handle) { return query(handle, false); }
EXPORTED CUresult cuStreamQuery_ptsz(CUstream handle) { return query(handle, true); }

static CUresult synchronize(CUstream handle, bool own) {
  struct stream_place place;
  CHECK(stream_place(handle, own, &place));
  CHECK(capture_permits_stream(&place));
  struct operation *last = queue_last(place.queue);
  if (last) {
    operation_wait(last);
    operation_release(last);
  }
  return context_result(place.context, place.context_id);
}

EXPORTED CUresult cuStreamSynchronize(CUstream handle) { return synchronize(handle, false); }
EXPORTED CUresult cuStreamSynchronize_ptsz(CUstream handle) { return synchronize(handle, true); }

/* The stream of a handle for questions about it; the default ones are described by `blank`. */
static CUresult describe(CUstream handle, struct stream *blank, const struct stream **stream) {
  struct here here;
  CHECK(ready());
  if (handle && handle != CU_STREAM_LEGACY && handle != CU_STREAM_PER_THREAD) {
    if (!handle_is(STREAM, handle, false)) return CUDA_ERROR_INVALID_HANDLE;
    *stream = (struct stream *)handle;
    return CUDA_SUCCESS;
  }
  CHECK(current(&here));
  *blank = (struct stream){.context = here.context, .device = here.device, .id = handle == CU_STREAM_PER_THREAD ? 2 : 1,
                           .policy = CU_SYNC_POLICY_AUTO};
  *stream = blank;
  return CUDA_SUCCESS;
}

/* A question, and its twin: no default stream of a thread is meant by 0. */
#define QUESTION(name, type, field)                              \
  EXPORTED CUresult name(CUstream handle, type *answer) {        \
    struct stream blank;                                         \
    const struct stream *stream;                                 \
    if (!answer) return CUDA_ERROR_INVALID_VALUE;                \
    CHECK(describe(handle, &blank, &stream));                    \
    *answer = stream->field;                                     \
    return CUDA_SUCCESS;                                         \
  }                                                              \
  extern __typeof(name) name##_ptsz EXPORTED ALIAS(name);

QUESTION(cuStreamGetFlags, unsigned int, flags)
QUESTION(cuStreamGetPriority, int, priority)
QUESTION(cuStreamGetId, unsigned long long, id)
QUESTION(cuStreamGetCtx, CUcontext, context)
QUESTION(cuStreamGetDevice, CUdevice, device)

/* Partitions of SMs do not exist. */
EXPORTED CUresult cuStreamGetCtx_v2(CUstream handle, CUcontext *context, CUgreenCtx *partition) {
  if (!partition) return CUDA_ERROR_INVALID_VALUE;
  CHECK(cuStreamGetCtx(handle, context));
  *partition = NULL;
  return CUDA_SUCCESS;
}

extern __typeof(cuStreamGetCtx_v2) cuStreamGetCtx_v2_ptsz ALIAS(cuStreamGetCtx_v2);

EXPORTED CUresult cuStreamGetGreenCtx(CUstream handle, CUgreenCtx *partition) {
  CUcontext context;
  return cuStreamGetCtx_v2(handle, &context, partition);
}

/* Attributes. Caches are not configured, and there is one domain of memory operations, so that what some of them say
 * has no effect. */

EXPORTED CUresult cuStreamGetAttribute(CUstream handle, CUstreamAttrID attribute, CUstreamAttrValue *value) {
  struct stream blank;
  const struct stream *stream;
  if (!value) return CUDA_ERROR_INVALID_VALUE;
  CHECK(describe(handle, &blank, &stream));
  CUstreamAttrValue found = {0}; /* a window of no bytes, a map of all domains to the first */
  switch (attribute) {
    case CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW:
    case CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP: break;
    case CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY: found.syncPolicy = (CUsynchronizationPolicy)stream->policy; break;
    case CU_STREAM_ATTRIBUTE_PRIORITY: found.priority = stream->priority; break;
    case CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN: found.memSyncDomain = (CUlaunchMemSyncDomain)stream->domain; break;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
  *value = found;
  return CUDA_SUCCESS;
}

/* One attribute of a stream; of default ones none can be another than it is. */
static CUresult set(_Atomic int *field, bool changeable, bool good, int value) {
  if (!good) return CUDA_ERROR_INVALID_VALUE;
  if (!changeable) return *field == value ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
  *field = value;
  return CUDA_SUCCESS;
}

EXPORTED CUresult cuStreamSetAttribute(CUstream handle, CUstreamAttrID attribute, const CUstreamAttrValue *value) {
  struct stream blank;
  const struct stream *found;
  if (!value) return CUDA_ERROR_INVALID_VALUE;
  CHECK(describe(handle, &blank, &found));
  bool changeable = found != &blank;
  struct stream *stream = changeable ? (struct stream *)handle : &blank;
  int policy = (int)value->syncPolicy, domain = (int)value->memSyncDomain;
  switch (attribute) {
    case CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW: /* the largest one has no bytes */
      return value->accessPolicyWindow.num_bytes ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    case CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
      return value->memSyncDomainMap.default_ || value->memSyncDomainMap.remote ? CUDA_ERROR_INVALID_VALUE
                                                                                : CUDA_SUCCESS;
    case CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY:
      return set(&stream->policy, changeable, policy >= CU_SYNC_POLICY_AUTO && policy <= CU_SYNC_POLICY_BLOCKING_SYNC,
                 policy);
    case CU_STREAM_ATTRIBUTE_PRIORITY:
      return set(&stream->priority, changeable, true, nearest_priority(value->priority));
    case CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN:
      return set(&stream->domain, changeable, domain >= 0 && domain <= CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE, domain);
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}

EXPORTED CUresult cuStreamCopyAttributes(CUstream to, CUstream from) {
  static const CUstreamAttrID ALL[] = {CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY, CU_STREAM_ATTRIBUTE_PRIORITY,
                                       CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN};
  for (size_t n = 0; n < sizeof ALL / sizeof *ALL; n++) {
    CUstreamAttrValue value;
    CHECK(cuStreamGetAttribute(from, ALL[n], &value));
    CHECK(cuStreamSetAttribute(to, ALL[n], &value));
  }
  return CUDA_SUCCESS;
}

extern __typeof(cuStreamGetAttribute) cuStreamGetAttribute_ptsz ALIAS(cuStreamGetAttribute);
extern __typeof(cuStreamSetAttribute) cuStreamSetAttribute_ptsz ALIAS(cuStreamSetAttribute);
extern __typeof(cuStreamCopyAttributes) cuStreamCopyAttributes_ptsz ALIAS(cuStreamCopyAttributes);

/* Functions of the program, in their turn. */

struct call {
  struct command command;
  CUhostFn function;
  CUstreamCallback callback; /* instead of `function` */
  CUstream stream;
  void *given;
};

static void end_call(struct command *command) { free(command); }

static CUresult call_function(const struct command *command) {
  const struct call *call = (const struct call *)command;
  set_inside(true);
  call->function(call->given);
  set_inside(false);
  return CUDA_SUCCESS;
}

/* A callback is told what came of the work before it. */
static void call_back_after(const struct command *command, CUresult failed) {
  const struct call *call = (const struct call *)command;
  set_inside(true);
  call->callback(call->stream, failed, call->given);
  set_inside(false);
}

static CUresult call_back(const struct command *command) {
  call_back_after(command, CUDA_SUCCESS);
  return CUDA_SUCCESS;
}

static void show_call(const void *command, FILE *to) {
  const struct call *call = command;
  show_address(to, "function", (uint64_t)(uintptr_t)(call->function ? (void *)call->function : (void *)call->callback));
  show_address(to, "data", (uint64_t)(uintptr_t)call->given);
}

static const struct command_kind HOST_FUNCTION = {
    .type = CU_GRAPH_NODE_TYPE_HOST, .foreign = true, .run = call_function, .work = "host function", .show = show_call,
    .end = end_call};
static const struct command_kind HOST_CALLBACK = {
    .type = CU_GRAPH_NODE_TYPE_HOST, .foreign = true, .run = call_back, .work = "host function", .show = show_call,
    .skip = call_back_after, .end = end_call};

static CUresult add_call(CUstream handle, bool own, struct call wanted) {
  struct stream_place place;
  CHECK(stream_place(handle, own, &place));
  if (!wanted.function && is_captured(&place)) return capture_refuse(&place); /* graphs have no callbacks */
  struct call *made = malloc(sizeof *made);
  if (!made) return CUDA_ERROR_OUT_OF_MEMORY;
  *made = wanted;
  made->command = command_begin(wanted.function ? &HOST_FUNCTION : &HOST_CALLBACK, &place);
  return submit(&place, false, &made->command);
}

CUresult host_command(const CUDA_HOST_NODE_PARAMS_v2 *params, struct command **made) {
  if (!params->fn) return CUDA_ERROR_INVALID_VALUE;
  struct call *call = malloc(sizeof *call);
  if (!call) return CUDA_ERROR_OUT_OF_MEMORY;
  *call = (struct call){command_begin(&HOST_FUNCTION, &(struct stream_place){0}), .function = params->fn,
                        .given = params->userData};
  *made = &call->command;
  return CUDA_SUCCESS;
}

void host_params(const struct command *command, CUDA_HOST_NODE_PARAMS_v2 *params) {
  const struct call *call = (const struct call *)command;
  *params = (CUDA_HOST_NODE_PARAMS_v2){.fn = call->function, .userData = call->given};
}

EXPORTED CUresult cuLaunchHostFunc(CUstream handle, CUhostFn function, void *given) {
  if (!function) return CUDA_ERROR_INVALID_VALUE;
  return add_call(handle, false, (struct call){.function = function, .given = given});
}

EXPORTED CUresult cuLaunchHostFunc_ptsz(CUstream handle, CUhostFn function, void *given) {
  if (!function) return CUDA_ERROR_INVALID_VALUE;
  return add_call(handle, true, (struct call){.function = function, .given = given});
}

EXPORTED CUresult cuStreamAddCallback(CUstream handle, CUstreamCallback callback, void *given, unsigned int flags) {
  if (!callback || flags) return CUDA_ERROR_INVALID_VALUE;
  return add_call(handle, false, (struct call){.callback = callback, .stream = handle, .given = given});
}

EXPORTED CUresult cuStreamAddCallback_ptsz(CUstream handle, CUstreamCallback callback, void *given,
                                           unsigned int flags) {
  if (!callback || flags) return CUDA_ERROR_INVALID_VALUE;
  return add_call(handle, true, (struct call){.callback = callback, .stream = handle, .given = given});
}

EXPORTED CUresult cuCtxSynchronize_v2(CUcontext handle) {
  struct here here;
  CHECK(context_here(handle, &here));
  CHECK(capture_permits_context(here.context));
  work_wait(here.context);
  return context_result(here.context, here.id);
}

EXPORTED CUresult cuCtxSynchronize(void) { return cuCtxSynchronize_v2(NULL); }
