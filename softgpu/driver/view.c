/* What kernels may access: for each context the view that was made last, until something changes.
 *
 * A view holds the addresses of memory that could be unmapped, so that nothing is unmapped under a kernel. The bytes of
 * devices are always mapped: there it is enough that a block is given to somebody else only when the work that was in
 * the queues of its context has been done, which is what freeing waits for. */
#include "view.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "allocations.h"
#include "driver.h"
#include "mapping.h"

struct kept {
  struct view view; /* first: who has a view has this */
  _Atomic unsigned references;
  unsigned long long state;
  struct mapping **mappings; /* references */
  size_t mapped;
};

struct slot {
  struct slot *next;
  CUcontext context;
  struct kept *kept;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct slot *slots;

void view_release(struct view *view) {
  struct kept *kept = (struct kept *)view;
  if (!kept || --kept->references) return;
  for (size_t n = 0; n < kept->mapped; n++) mapping_release(kept->mappings[n]);
  free(kept->mappings);
  free(kept->view.table);
  free(kept);
}

void views_forget(void) {
  pthread_mutex_lock(&lock);
  struct slot *all = slots;
  slots = NULL;
  pthread_mutex_unlock(&lock);
  for (struct slot *slot = all, *next; slot; slot = next) {
    next = slot->next;
    view_release(&slot->kept->view);
    free(slot);
  }
}

struct building {
  struct kept *kept;
  CUcontext contexts[MOST_PEERS + 1]; /* whose memory it is */
  size_t context_count;
  size_t entries, mappings; /* room */
  bool failed;
};

/* Whether kernels may access it, and what they may not do. */
static bool accessible(const struct building *building, const struct allocation *allocation, uint32_t *flags) {
  *flags = allocation->limits;
  if (allocation->kind == PINNED || allocation->kind == REGISTERED) return true;
  for (size_t n = 0; n < building->context_count; n++)
    if (building->contexts[n] == allocation->context) return true;
  return false;
}

/* Room for one more of what a list has `count` of. */
static bool room(void **list, size_t count, size_t *capacity, size_t size) {
  if (count < *capacity) return true;
  size_t more = *capacity ? 2 * *capacity : 64;
  void *grown = realloc(*list, more * size);
  if (!grown) return false;
  *list = grown;
  *capacity = more;
  return true;
}

static void enter(const struct allocation *allocation, void *given) {
  struct building *building = given;
  struct kept *kept = building->kept;
  uint32_t flags;
  if (building->failed || !accessible(building, allocation, &flags)) return;
  building->failed = !room((void **)&kept->view.table, kept->view.count, &building->entries, sizeof *kept->view.table) ||
                     !room((void **)&kept->mappings, kept->mapped, &building->mappings, sizeof *kept->mappings);
  if (building->failed) return;
  kept->view.table[kept->view.count++] =
      (struct sg_allocation){.start = allocation->start, .size = allocation->size, .flags = flags};
  struct mapping *mapping = allocation->mapping;
  if (mapping && !(kept->mapped && kept->mappings[kept->mapped - 1] == mapping))
    kept->mappings[kept->mapped++] = mapping_hold(mapping);
}

static struct kept *build(CUcontext context) {
  struct building building = {.kept = calloc(1, sizeof *building.kept)};
  if (!building.kept) return NULL;
  building.kept->references = 1;
  building.kept->state = allocations_state(); /* before anything is looked at: what changes meanwhile makes it old */
  building.context_count = context_peers(context, building.contexts);
  building.contexts[building.context_count++] = context;
  allocations_read();
  allocations_walk(enter, &building);
  allocations_release();
  if (!building.failed) return building.kept;
  view_release(&building.kept->view);
  return NULL;
}

/* The slot of a context, if it has one. The lock is held. */
static struct slot *slot_of(CUcontext context) {
  for (struct slot *slot = slots; slot; slot = slot->next)
    if (slot->context == context) return slot;
  return NULL;
}

/* Keep a view for later, unless it is old already. */
static void keep(CUcontext context, struct kept *kept) {
  struct slot *made = malloc(sizeof *made);
  struct kept *old = NULL;
  pthread_mutex_lock(&lock);
  struct slot *slot = slot_of(context);
  if (kept->state == allocations_state() && (slot || made)) {
    if (!slot) {
      *made = (struct slot){.next = slots, .context = context};
      slots = slot = made;
      made = NULL;
    }
    old = slot->kept;
    slot->kept = kept;
    kept->references++;
  }
  pthread_mutex_unlock(&lock);
  free(made);
  if (old) view_release(&old->view);
}

CUresult allocations_table(CUcontext context, CUdevice device, struct view **view) {
  (void)device;
  pthread_mutex_lock(&lock);
  struct slot *slot = slot_of(context);
  struct kept *kept = slot && slot->kept->state == allocations_state() ? slot->kept : NULL;
  if (kept) kept->references++;
  pthread_mutex_unlock(&lock);
  if (!kept) {
    kept = build(context);
    if (!kept) return CUDA_ERROR_OUT_OF_MEMORY;
    keep(context, kept);
  }
  *view = &kept->view;
  return CUDA_SUCCESS;
}
