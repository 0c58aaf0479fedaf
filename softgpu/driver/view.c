/* What kernels may access: for each context the view that was made last, until something changes.
 *
 * A view holds the addresses of memory that could be unmapped, so that nothing is unmapped under a kernel. The bytes of
 * devices are always mapped: there it is enough that a block is given to somebody else only when the work that was in
 * the queues of its context has been done, which is what freeing waits for. */
#include "view.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "allocations.h"
#include "driver.h"
#include "mapping.h"

struct kept {
  struct view view; /* first: who has a view has this */
  _Atomic unsigned references;
  unsigned long long state;
  struct mapping **mappings; /* references */
  size_t mapped;
  size_t entries, holds; /* for how many there is room */
};

struct slot {
  struct slot *next;
  CUcontext context;
  struct kept *kept; /* NULL while it is being amended */
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
    if (slot->kept) view_release(&slot->kept->view);
    free(slot);
  }
}

struct building {
  struct kept *kept;
  uint64_t device;                    /* its bit in rights */
  CUcontext contexts[MOST_PEERS + 1]; /* whose memory it is */
  size_t context_count;
  bool failed;
};

/* Whether kernels may access it, and what they may not do. */
static bool accessible(const struct building *building, const struct allocation *allocation, uint32_t *flags) {
  *flags = allocation->limits;
  if (!on_device(allocation)) return true;
  if (allocation->rights) {
    if (!(allocation->rights->write & building->device)) *flags |= SG_READ_ONLY;
    return allocation->rights->read & building->device;
  }
  for (size_t n = 0; n < building->context_count; n++)
    if (building->contexts[n] == allocation->context) return true;
  return false;
}

/* A list with room for one more than the `count` that it has; NULL: no memory, and the list is as it was. */
static void *room(void *list, size_t count, size_t *capacity, size_t size) {
  if (count < *capacity) return list;
  size_t more = *capacity ? 2 * *capacity : 64;
  void *grown = realloc(list, more * size);
  if (grown) *capacity = more;
  return grown;
}

/* Room for one more entry, and for what it keeps mapped. */
static bool make_room(struct building *building) {
  struct kept *kept = building->kept;
  struct sg_allocation *table = room(kept->view.table, kept->view.count, &kept->entries, sizeof *table);
  if (table) kept->view.table = table;
  struct mapping **mappings = room(kept->mappings, kept->mapped, &kept->holds, sizeof *mappings);
  if (mappings) kept->mappings = mappings;
  building->failed |= !table || !mappings;
  return !building->failed;
}

static struct sg_allocation entry(const struct allocation *allocation, uint32_t flags) {
  return (struct sg_allocation){.start = allocation->start, .size = allocation->size, .flags = flags};
}

static void enter(const struct allocation *allocation, void *given) {
  struct building *building = given;
  struct kept *kept = building->kept;
  uint32_t flags;
  if (building->failed || !accessible(building, allocation, &flags) || !make_room(building)) return;
  struct mapping *mapping = allocation->mapping;
  bool again = mapping && kept->mapped && kept->mappings[kept->mapped - 1] == mapping;
  if (mapping && !again) kept->mappings[kept->mapped++] = mapping_hold(mapping);
  struct sg_allocation *last = again ? &kept->view.table[kept->view.count - 1] : NULL;
  if (again && allocation->kind == MAPPED && last->start + last->size == allocation->start && last->flags == flags)
    last->size += allocation->size; /* neighbours in one reservation are one for kernels */
  else
    kept->view.table[kept->view.count++] = entry(allocation, flags);
}

/* One change in place: a few of them cost less than all anew. False: it is not that simple. */
static bool amend(struct building *building, const struct change *change) {
  struct kept *kept = building->kept;
  struct sg_allocation *table = kept->view.table;
  const struct allocation *allocation = &change->allocation;
  size_t low = 0, high = kept->view.count;
  if (allocation->mapping) return false;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (table[middle].start < allocation->start)
      low = middle + 1;
    else
      high = middle;
  }
  size_t behind = kept->view.count - low;
  if (!change->added) {
    if (!behind || table[low].start != allocation->start) return true; /* it was not accessible */
    memmove(&table[low], &table[low + 1], (behind - 1) * sizeof *table);
    kept->view.count--;
    return true;
  }
  uint32_t flags;
  const struct allocation *now = allocation_with(allocation->start, 1);
  if (!now || now->id != allocation->id || !accessible(building, now, &flags)) return true;
  if (!make_room(building)) return false;
  table = kept->view.table;
  memmove(&table[low + 1], &table[low], behind * sizeof *table);
  table[low] = entry(now, flags);
  kept->view.count++;
  return true;
}

/* All that has changed since. */
static bool amend_all(struct building *building, unsigned long long now) {
  while (building->kept->state < now) {
    const struct change *change = allocations_change(building->kept->state + 1);
    if (!change || !amend(building, change)) return false;
    building->kept->state++;
  }
  return true;
}

/* A view as things are now, made from an old one that nobody else has, or NULL. */
static CUresult build(CUcontext context, unsigned long long id, CUdevice device, struct kept *old, struct kept **made) {
  struct building building = {.kept = old, .device = 1ull << device};
  unsigned long long now = allocations_state(); /* before anything is looked at: what changes meanwhile makes it old */
  if (!context_peers(context, id, building.contexts, &building.context_count)) {
    if (old) view_release(&old->view);
    return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  }
  building.contexts[building.context_count++] = context;
  allocations_read();
  if (!old || !amend_all(&building, now)) {
    building.failed = false;
    building.kept = calloc(1, sizeof *building.kept);
    if (building.kept) {
      *building.kept = (struct kept){.references = 1, .state = now};
      allocations_walk(enter, &building);
    }
  }
  allocations_release();
  if (old && building.kept != old) view_release(&old->view);
  if (building.kept && building.failed) view_release(&building.kept->view);
  *made = building.kept;
  return building.failed || !building.kept ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
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

CUresult allocations_table(CUcontext context, unsigned long long id, CUdevice device, struct view **view) {
  struct kept *kept = NULL, *old = NULL;
  pthread_mutex_lock(&lock);
  struct slot *slot = slot_of(context);
  if (slot && slot->kept && slot->kept->state == allocations_state()) {
    kept = slot->kept;
    kept->references++;
  } else if (slot && slot->kept && slot->kept->references == 1) {
    old = slot->kept;
    slot->kept = NULL;
  }
  pthread_mutex_unlock(&lock);
  if (!kept) {
    CHECK(build(context, id, device, old, &kept));
    keep(context, kept);
  }
  *view = &kept->view;
  return CUDA_SUCCESS;
}
