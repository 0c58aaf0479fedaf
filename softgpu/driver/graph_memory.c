/* Memory that graphs allocate and free.
 *
 * A node that allocates has its memory, always at the same address, as long as it is in a graph or an executable one. A
 * launch only notes that the program may use it until it is freed, and has it until then whatever becomes of the
 * graphs. */
#include "graph_memory.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "allocations.h"
#include "arena.h"
#include "driver.h"
#include "memory.h"

struct graph_memory {
  _Atomic unsigned references; /* of commands, and one while it is left by a launch */
  CUDA_MEM_ALLOC_NODE_PARAMS_v2 params;
  struct rights rights;
  /* With the lock: */
  bool left;                         /* by a launch, to be freed */
  unsigned long long graph, freeing; /* which have it; the last one that got a node to free it */
};

struct about {
  struct command command;
  struct graph_memory *memory; /* a reference */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
  uint64_t now, most_used, most_reserved;
} bytes_of[MOST_DEVICES];

static void count(CUdevice device, uint64_t bytes, bool more) {
  pthread_mutex_lock(&lock);
  bytes_of[device].now += more ? bytes : -bytes;
  if (bytes_of[device].now > bytes_of[device].most_used) bytes_of[device].most_used = bytes_of[device].now;
  if (bytes_of[device].now > bytes_of[device].most_reserved) bytes_of[device].most_reserved = bytes_of[device].now;
  pthread_mutex_unlock(&lock);
}

static void let_go(struct graph_memory *memory) {
  struct allocation removed;
  if (--memory->references) return;
  allocations_write();
  bool was = allocation_remove(memory->params.dptr, &removed);
  allocations_release();
  if (was) {
    memory_give_back(&removed);
    count(removed.device, removed.size, false);
  }
  free((void *)memory->params.accessDescs);
  free(memory);
}

static CUresult do_nothing(const struct command *command) {
  (void)command;
  return CUDA_SUCCESS;
}

static void end(struct command *command) {
  let_go(((struct about *)command)->memory);
  free(command);
}

static const struct command_kind ALLOC = {.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC, .run = do_nothing, .end = end};
static const struct command_kind FREE = {.type = CU_GRAPH_NODE_TYPE_MEM_FREE, .run = do_nothing, .end = end};

/* Takes the reference, in any case. */
static CUresult make(const struct command_kind *kind, const struct stream_place *place, struct graph_memory *memory,
                     struct command **made) {
  struct about *about = malloc(sizeof *about);
  if (!about) {
    let_go(memory);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  *about = (struct about){command_begin(kind, place), memory};
  *made = &about->command;
  return CUDA_SUCCESS;
}

static CUresult check(const CUDA_MEM_ALLOC_NODE_PARAMS_v2 *params) {
  const CUmemPoolProps *pool = &params->poolProps;
  if (!params->bytesize || (params->accessDescCount && !params->accessDescs) || pool->win32SecurityAttributes)
    return CUDA_ERROR_INVALID_VALUE;
  if (pool->allocType != CU_MEM_ALLOCATION_TYPE_PINNED || pool->handleTypes != CU_MEM_HANDLE_TYPE_NONE)
    return CUDA_ERROR_INVALID_VALUE;
  if (pool->location.type != CU_MEM_LOCATION_TYPE_DEVICE || pool->usage) return CUDA_ERROR_NOT_SUPPORTED;
  if (!device_at(pool->location.id)) return CUDA_ERROR_INVALID_DEVICE;
  for (size_t n = 0; n < params->accessDescCount; n++) {
    const CUmemAccessDesc *wanted = &params->accessDescs[n];
    if (wanted->location.type != CU_MEM_LOCATION_TYPE_DEVICE || wanted->flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
      return CUDA_ERROR_INVALID_VALUE;
    if (!device_at(wanted->location.id)) return CUDA_ERROR_INVALID_DEVICE;
    if (wanted->location.id != pool->location.id && !devices_are_peers(wanted->location.id, pool->location.id))
      return CUDA_ERROR_INVALID_DEVICE;
  }
  return CUDA_SUCCESS;
}

static CUresult take(struct graph_memory *memory) {
  CUdevice device = memory->params.poolProps.location.id;
  struct allocation made = {.size = memory->params.bytesize, .kind = OF_GRAPH, .device = device,
                            .rights = &memory->rights,
                            .arena = arena_of(device), .object = memory};
  CHECK(arena_take(made.arena, made.size, 1, &made.block, &made.start));
  memory->params.dptr = made.start;
  CHECK(memory_add(&made));
  count(device, made.size, true);
  return CUDA_SUCCESS;
}

CUresult graph_alloc_command(const CUDA_MEM_ALLOC_NODE_PARAMS_v2 *params, struct command **made) {
  CHECK(check(params));
  size_t bytes = params->accessDescCount * sizeof *params->accessDescs;
  struct graph_memory *memory = calloc(1, sizeof *memory);
  CUmemAccessDesc *rights = malloc(bytes + 1);
  if (!memory || !rights) {
    free(memory);
    free(rights);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  if (bytes) memcpy(rights, params->accessDescs, bytes);
  memory->references = 1;
  memory->params = *params;
  memory->params.accessDescs = rights;
  rights_set(&memory->rights, params->poolProps.location.id, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  for (size_t n = 0; n < params->accessDescCount; n++) rights_set(&memory->rights, rights[n].location.id,
                                                                  rights[n].flags);
  CUresult result = take(memory);
  if (result == CUDA_SUCCESS) return make(&ALLOC, &(struct stream_place){0}, memory, made);
  free(rights);
  free(memory);
  return result;
}

/* The memory of graphs at an address, with a reference; NULL: there is none. */
static struct graph_memory *memory_with(CUdeviceptr pointer) {
  struct graph_memory *memory = NULL;
  allocations_read();
  const struct allocation *found = allocation_with(pointer, 1);
  if (found && found->kind == OF_GRAPH && found->start == pointer) memory = found->object;
  unsigned references = memory ? (unsigned)memory->references : 0;
  while (references && !__atomic_compare_exchange_n((unsigned *)&memory->references, &references, references + 1, false,
                                                    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
    ;
  allocations_release();
  return references ? memory : NULL; /* without one it is about to end */
}

CUresult graph_free_command(CUdeviceptr pointer, struct command **made) {
  struct graph_memory *memory = memory_with(pointer);
  return memory ? make(&FREE, &(struct stream_place){0}, memory, made) : CUDA_ERROR_INVALID_VALUE;
}

void graph_alloc_params(const struct command *command, CUDA_MEM_ALLOC_NODE_PARAMS_v2 *params) {
  *params = ((const struct about *)command)->memory->params;
}

CUdeviceptr graph_free_params(const struct command *command) { return ((const struct about *)command)->memory->params.dptr; }

/* One graph frees it once; if that is the one that allocates it, no other one does. The lock is held. */
static CUresult enter(struct graph *graph, struct graph_memory *memory, bool frees) {
  if (!frees) {
    memory->graph = graph->id;
    return CUDA_SUCCESS;
  }
  if (memory->freeing == graph->id || (memory->freeing && (memory->freeing == memory->graph || graph->id == memory->graph)))
    return CUDA_ERROR_INVALID_VALUE;
  memory->freeing = graph->id;
  return CUDA_SUCCESS;
}

CUresult graph_memory_enter(struct graph *graph, const struct command *command) {
  bool frees = command->kind == &FREE;
  if (command->kind != &ALLOC && !frees) return CUDA_SUCCESS;
  if (graph->owner) return CUDA_ERROR_NOT_SUPPORTED;
  pthread_mutex_lock(&lock);
  CUresult result = enter(graph, ((const struct about *)command)->memory, frees);
  pthread_mutex_unlock(&lock);
  if (result == CUDA_SUCCESS) graph->memory = true;
  return result;
}

/* Executable graphs. */

static struct graph_memory *memory_of(const struct command *command) { return ((const struct about *)command)->memory; }

/* The commands of a kind whose memory no command of the other kind has. */
static size_t unmatched(const struct plan *plan, const struct command_kind *kind, const struct command_kind *other,
                        const struct command **list) {
  size_t found = 0;
  for (size_t n = 0; n < plan->slot_count; n++) {
    const struct command *command = plan->slots[n].node->command;
    if (!command || command->kind != kind) continue;
    bool matched = false;
    for (size_t i = 0; i < plan->slot_count && !matched; i++) {
      const struct command *candidate = plan->slots[i].node->command;
      matched = candidate && candidate->kind == other && memory_of(candidate) == memory_of(command);
    }
    if (!matched) list[found++] = command;
  }
  return found;
}

CUresult exec_memory_make(const struct plan *plan, struct exec_memory *memory) {
  memory->left = malloc((plan->slot_count + 1) * sizeof *memory->left);
  memory->freed = malloc((plan->slot_count + 1) * sizeof *memory->freed);
  if (!memory->left || !memory->freed) return CUDA_ERROR_OUT_OF_MEMORY;
  memory->left_count = unmatched(plan, &ALLOC, &FREE, memory->left);
  memory->freed_count = unmatched(plan, &FREE, &ALLOC, memory->freed);
  return CUDA_SUCCESS;
}

void exec_memory_end(struct exec_memory *memory) {
  free(memory->left);
  free(memory->freed);
}

CUresult exec_memory_launch(const struct exec_memory *memory, bool again) {
  bool good = true;
  if (!memory->left_count && !memory->freed_count) return CUDA_SUCCESS;
  pthread_mutex_lock(&lock);
  for (size_t n = 0; n < memory->left_count && !again; n++) good &= !memory_of(memory->left[n])->left;
  for (size_t n = 0; n < memory->freed_count; n++) good &= memory_of(memory->freed[n])->left;
  for (size_t n = 0; n < memory->left_count && good; n++) {
    if (memory_of(memory->left[n])->left) continue;
    memory_of(memory->left[n])->left = true;
    memory_of(memory->left[n])->references++;
  }
  for (size_t n = 0; n < memory->freed_count && good; n++) {
    memory_of(memory->freed[n])->left = false;
    memory_of(memory->freed[n])->references--; /* not the last one: the command has one, and the launch has that */
  }
  pthread_mutex_unlock(&lock);
  return good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* What was left is left no more; whoever asks gets the reference. */
static bool take_left(struct graph_memory *memory) {
  pthread_mutex_lock(&lock);
  bool left = memory->left;
  memory->left = false;
  pthread_mutex_unlock(&lock);
  return left;
}

bool graph_memory_free(CUdeviceptr pointer, const struct stream_place *place, CUresult *result) {
  struct command *command;
  struct graph_memory *memory = memory_with(pointer);
  if (!memory) return false;
  bool left = take_left(memory);
  struct here here;
  if (left && !place && current(&here) == CUDA_SUCCESS) work_wait(here.context);
  if (left) let_go(memory); /* that of the launch; the one from above remains */
  *result = left ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  if (!left || !place) {
    let_go(memory);
  } else {
    *result = make(&FREE, place, memory, &command);
    /* its end comes after what is in the stream */
    if (*result == CUDA_SUCCESS) *result = submit(place, false, command);
  }
  return true;
}

/* Devices. What graphs have is used and reserved alike. */

EXPORTED CUresult cuDeviceGraphMemTrim(CUdevice device) {
  CHECK(ready());
  return device_at(device) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

EXPORTED CUresult cuDeviceGetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attribute, void *value) {
  CUresult result = CUDA_SUCCESS;
  CHECK(ready());
  if (!device_at(device)) return CUDA_ERROR_INVALID_DEVICE;
  if (!value) return CUDA_ERROR_INVALID_VALUE;
  pthread_mutex_lock(&lock);
  switch (attribute) {
    case CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT:
    case CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT: *(cuuint64_t *)value = bytes_of[device].now; break;
    case CU_GRAPH_MEM_ATTR_USED_MEM_HIGH: *(cuuint64_t *)value = bytes_of[device].most_used; break;
    case CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH: *(cuuint64_t *)value = bytes_of[device].most_reserved; break;
    default: result = CUDA_ERROR_INVALID_VALUE;
  }
  pthread_mutex_unlock(&lock);
  return result;
}

EXPORTED CUresult cuDeviceSetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attribute, void *value) {
  CHECK(ready());
  if (!device_at(device)) return CUDA_ERROR_INVALID_DEVICE;
  if (!value || *(cuuint64_t *)value) return CUDA_ERROR_INVALID_VALUE;
  if (attribute != CU_GRAPH_MEM_ATTR_USED_MEM_HIGH && attribute != CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH)
    return CUDA_ERROR_INVALID_VALUE;
  pthread_mutex_lock(&lock);
  if (attribute == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH)
    bytes_of[device].most_used = bytes_of[device].now;
  else
    bytes_of[device].most_reserved = bytes_of[device].now;
  pthread_mutex_unlock(&lock);
  return CUDA_SUCCESS;
}
