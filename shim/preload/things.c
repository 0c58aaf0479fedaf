#include "things.h"

#include <string.h>

#include "contexts.h"
#include "store.h"
#include "work.h"

static void *behind(void *head) { return (char *)head + sizeof(struct wire_head); }
static const void *behind_const(const void *head) { return (const char *)head + sizeof(struct wire_head); }

struct ending ending_begin(unsigned function, struct wire_end what) {
  struct wire_end *record = record_begin(WIRE_END, function, sizeof *record);
  memcpy(behind(record), behind_const(&what), sizeof what - sizeof what.head);
  record->head.flags = what.head.flags;
  session->ledger.keep_ended = true;
  struct ending ending = {record_end(record), function};
  inside++;
  return ending;
}

static struct announced *taken(uint64_t by) {
  lock_take(&session->ring.lock);
  struct announced *found = ledger_ended(by);
  lock_give(&session->ring.lock);
  return found;
}

static void settle(const struct ending *ending, bool again) {
  for (struct announced *entry = taken(ending->sequence), *next; entry; entry = next) {
    const struct wire_head *old = &entry->record;
    next = entry->next;
    if (again) {
      struct wire_head *record = record_begin((enum wire_kind)old->kind, old->function, old->size);
      memcpy(behind(record), behind_const(old), old->size - sizeof *old);
      record_end(record);
    }
    store_give(entry, entry->bytes);
  }
}

CUresult ending_done(struct ending *ending, CUresult result) {
  inside--;
  if (result) record_outcome(ending->sequence, ending->function, result, NULL, 0);
  settle(ending, result != CUDA_SUCCESS);
  return result;
}

void ending_undo(struct ending *ending) {
  inside--;
  settle(ending, true);
}

void record_thing(enum wire_kind kind, unsigned function, unsigned flags, const void *thing, size_t bytes) {
  struct wire_head *record = record_begin(kind, function, bytes);
  record->flags = (uint16_t)flags;
  memcpy(behind(record), behind_const(thing), bytes - sizeof *record);
  record_end(record);
}

struct uses {
  struct entry entry;
  uint64_t context;
  int count;
};

static void fill(struct entry *entry, const void *with) {
  memcpy(&((struct uses *)(void *)entry)->context, with, sizeof(uint64_t));
}

int use_begin(enum wire_kind kind, uint64_t handle, uint64_t context) {
  lock_take(&session->uses_lock);
  struct uses *uses = (struct uses *)(void *)table_add(&session->uses, handle, kind, sizeof *uses, fill, &context);
  int count = uses ? ++uses->count : USES_UNKNOWN;
  lock_give(&session->uses_lock);
  return count;
}

int use_end(enum wire_kind kind, uint64_t handle) {
  lock_take(&session->uses_lock);
  struct uses *uses = (struct uses *)(void *)table_find(&session->uses, handle, kind);
  int left = uses ? --uses->count : USES_UNKNOWN;
  if (!left) table_end_key(&session->uses, handle, kind);
  lock_give(&session->uses_lock);
  return left;
}

static bool of_context(const struct entry *entry, uint64_t context) {
  return ((const struct uses *)(const void *)entry)->context == context;
}

void uses_end(uint64_t context) { table_end(&session->uses, of_context, context); }

void uses_forget(enum wire_kind kind, uint64_t handle) { table_end_key(&session->uses, handle, kind); }

bool is_announced(enum wire_kind kind, uint64_t handle) {
  lock_take(&session->ring.lock);
  bool found = ledger_find(kind, handle) != NULL;
  lock_give(&session->ring.lock);
  return found;
}

uint64_t context_here(void) {
  CUcontext context = context_now();
  if (context) context_known(context);
  return number_of(context);
}

int device_here(void) {
  CUdevice device = -1;
  if (ASK(real.cuCtxGetDevice(&device)) != CUDA_SUCCESS) return -1;
  return device;
}
