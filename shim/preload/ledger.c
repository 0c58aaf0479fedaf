#include "ledger.h"

#include <string.h>

#include "session.h"
#include "store.h"

union any {
  const struct wire_head *head;
  const struct wire_module *module;
  const struct wire_function *function;
  const struct wire_stream *stream;
  const struct wire_event *event;
  const struct wire_memory *memory;
  const struct wire_array *array;
  const struct wire_reservation *reservation;
  const struct wire_access *access;
  const struct wire_export *export;
  const struct wire_graph_exec *graph_exec;
  const struct wire_graph_node *graph_node;
  const struct wire_end *end;
};

/* All announcements have a handle or an address behind their heads. */
static uint64_t key_of(const struct wire_head *record) {
  uint64_t key;
  memcpy(&key, (const char *)record + sizeof *record, sizeof key);
  return key;
}

static uint64_t export_key(unsigned kind) { return WIRE_EXPORT | (uint64_t)kind << 32; }

/* What tells those of one handle apart. */
static uint64_t key2_of(union any record) {
  unsigned kind = record.head->kind;
  switch (kind) {
    case WIRE_GRAPH_NODE: {
      const struct wire_node *node = (const void *)(record.graph_node + 1);
      return ledger_change_key(node->node);
    }
    case WIRE_EXPORT: return export_key(record.export->kind);
    case WIRE_ACCESS: /* of each place, to each range */
      return (kind | (uint64_t)record.access->location_type << 8 | (uint64_t)(uint32_t)record.access->location << 32) ^
             record.access->bytes;
    case WIRE_LINK_INPUT: return kind | record.head->sequence << 8; /* each is another one */
    default: return kind;
  }
}

static unsigned bucket_of(uint64_t key, uint64_t key2) {
  return (unsigned)(((key ^ key2 << 1) * 0x9e3779b97f4a7c15u) >> 52);
}

/* Those that end with the context. */
static uint64_t context_of(union any record) {
  switch (record.head->kind) {
    case WIRE_MODULE: return record.module->context;
    case WIRE_STREAM: return record.stream->context;
    case WIRE_EVENT: return record.event->context;
    case WIRE_MEMORY: return record.memory->context;
    case WIRE_ARRAY: return record.array->context;
    case WIRE_GRAPH_EXEC: return record.graph_exec->context;
    default: return 0;
  }
}

static bool inside_of(uint64_t address, uint64_t bytes, const struct wire_end *range) {
  return address >= range->handle && address - range->handle <= range->bytes &&
         bytes <= range->bytes - (address - range->handle);
}

/* What is mapped in a range, if its mappings end, and the rights to it. */
static bool in_range(union any record, const struct wire_end *what) {
  if (record.head->kind == WIRE_ACCESS) return inside_of(record.access->address, record.access->bytes, what);
  return what->kind == WIRE_MEMORY && record.head->kind == WIRE_MEMORY && record.memory->kind == WIRE_MAPPED &&
         inside_of(record.memory->address, record.memory->bytes, what);
}

/* Whether one ends with another one that it names itself. */
static bool belongs(union any record, const struct wire_end *what) {
  unsigned kind = record.head->kind;
  switch (what->kind) {
    case WIRE_CONTEXT: return context_of(record) == what->handle;
    case WIRE_MODULE: return kind == WIRE_FUNCTION && record.function->module == what->handle;
    case WIRE_LINK_INPUT:
      return (kind == WIRE_LINK_INPUT || kind == WIRE_LINK_OUTPUT) && key_of(record.head) == what->handle;
    default: return in_range(record, what);
  }
}

/* Whether ending it may end more than what is found by its handle. */
static bool has_more(const struct wire_end *what) {
  switch (what->kind) {
    case WIRE_CONTEXT:
    case WIRE_MODULE: return what->handle != 0;
    case WIRE_ARRAY:
    case WIRE_LINK_INPUT:
    case WIRE_RESERVATION: return true;
    default: return what->kind == WIRE_MEMORY && what->memory == WIRE_MAPPED;
  }
}

/* `by`: a record of WIRE_END whose call may fail yet, 0 for none. */
static void forget(struct ledger *ledger, struct announced *entry, uint64_t by) {
  struct announced **link = &ledger->buckets[bucket_of(entry->key, entry->key2)];
  while (*link != entry) link = &(*link)->next;
  *link = entry->next;
  *(entry->before ? &entry->before->after : &ledger->first) = entry->after;
  *(entry->after ? &entry->after->before : &ledger->last) = entry->before;
  if (!by) {
    store_give(entry, entry->bytes);
    return;
  }
  entry->ended_by = by;
  entry->next = ledger->ended;
  ledger->ended = entry;
}

static struct announced *find(struct ledger *ledger, uint64_t key, uint64_t key2) {
  struct announced *found = ledger->buckets[bucket_of(key, key2)];
  while (found && (found->key != key || found->key2 != key2)) found = found->next;
  return found;
}

/* The new parameters of the nodes of an executable graph. */
static void forget_changes(struct ledger *ledger, const struct wire_graph_exec *exec, uint64_t by) {
  const struct wire_node *node = (const void *)(exec + 1);
  for (uint32_t i = 0; i < exec->nodes; i++, node = (const void *)((const char *)node + node->size)) {
    struct announced *change = find(ledger, exec->exec, ledger_change_key(node->node));
    if (change) forget(ledger, change, by);
  }
}

/* With what is said of it beside, which comes after it if it is to be announced anew. */
static void forget_whole(struct ledger *ledger, struct announced *entry, uint64_t by) {
  union any any = {.head = &entry->record};
  struct announced *export = find(ledger, entry->key, export_key(any.head->kind));
  bool graph = any.head->kind == WIRE_GRAPH_EXEC;
  if (by) forget(ledger, entry, by); /* it stays where it is */
  if (graph) forget_changes(ledger, any.graph_exec, by);
  if (!by) forget(ledger, entry, by);
  if (export) forget(ledger, export, by);
}

static void keep(struct ledger *ledger, const struct wire_head *record) {
  uint64_t key = key_of(record), key2 = key2_of((union any){.head = record});
  struct announced *old = find(ledger, key, key2);
  if (old) forget_whole(ledger, old, 0);
  size_t bytes = sizeof(struct announced) - sizeof(struct wire_head) + record->size;
  struct announced *made = store_take(bytes);
  if (!made) return;
  made->key = key;
  made->key2 = key2;
  made->bytes = bytes;
  memcpy(&made->record, record, record->size);
  struct announced **bucket = &ledger->buckets[bucket_of(key, key2)];
  made->next = *bucket;
  *bucket = made;
  made->before = ledger->last;
  *(ledger->last ? &ledger->last->after : &ledger->first) = made;
  ledger->last = made;
}

/* Whether it ends with another one, as that one leaves or, with a context, has never been announced. */
static bool follows(struct ledger *ledger, union any record, bool unknown) {
  struct announced *owner = NULL;
  switch (record.head->kind) {
    case WIRE_FUNCTION:
      owner = find(ledger, record.function->module, WIRE_MODULE);
      return owner ? owner->leaving : unknown && !record.function->kernel;
    case WIRE_MODULE: owner = find(ledger, record.module->of, WIRE_MODULE); break;
    case WIRE_ARRAY: owner = find(ledger, record.array->of, WIRE_ARRAY); break;
    case WIRE_GRAPH_NODE: owner = find(ledger, record.graph_node->exec, WIRE_GRAPH_EXEC); break;
    case WIRE_EXPORT: owner = find(ledger, record.export->address, record.export->kind); break;
    case WIRE_MEMORY:
      if (record.memory->kind == WIRE_VARIABLE) owner = find(ledger, record.memory->owner, WIRE_MODULE);
      break;
    default: break;
  }
  return owner && owner->leaving;
}

/* First all that go are marked: what something belongs to was announced before it. */
static void end_all(struct ledger *ledger, const struct wire_end *what, uint64_t by) {
  struct announced *entry = find(ledger, what->handle, what->kind), *after;
  if (entry) entry->leaving = true;
  for (entry = ledger->first; entry; entry = entry->after) {
    union any any = {.head = &entry->record};
    if (belongs(any, what) || follows(ledger, any, what->kind == WIRE_CONTEXT)) entry->leaving = true;
  }
  for (entry = ledger->first; entry; entry = after) {
    after = entry->after;
    if (!entry->leaving) continue;
    entry->leaving = false;
    forget(ledger, entry, by);
  }
}

static void end(struct ledger *ledger, const struct wire_end *what, uint64_t by) {
  struct announced *entry = has_more(what) ? NULL : find(ledger, what->handle, what->kind);
  if (entry) forget_whole(ledger, entry, by);
  if (has_more(what)) end_all(ledger, what, by);
}

void ledger_enter(const struct wire_head *record) {
  if (record->kind < WIRE_DEVICE || record->kind > WIRE_END) return;
  struct ledger *ledger = &session->ledger;
  uint64_t by = ledger->keep_ended ? record->sequence : 0;
  ledger->keep_ended = false;
  if (record->flags & WIRE_CAPTURED) return; /* it is no thing yet, or ends nothing */
  if (record->kind == WIRE_END)
    end(ledger, ((union any){.head = record}).end, by);
  else
    keep(ledger, record);
}

struct announced *ledger_ended(uint64_t by) {
  struct announced *found = NULL, **link = &session->ledger.ended;
  while (*link) {
    struct announced *entry = *link;
    if (entry->ended_by != by) {
      link = &entry->next;
      continue;
    }
    *link = entry->next;
    entry->next = found; /* the first one comes to the front */
    found = entry;
  }
  return found;
}

const struct wire_head *ledger_find(uint64_t what, uint64_t handle) {
  const struct announced *found = find(&session->ledger, handle, what);
  return found ? &found->record : NULL;
}

void *ledger_copy(uint64_t what, uint64_t handle) {
  lock_take(&session->ring.lock);
  const struct wire_head *record = ledger_find(what, handle);
  void *made = record ? store_take(record->size) : NULL;
  if (made) memcpy(made, record, record->size);
  lock_give(&session->ring.lock);
  return made;
}

bool ledger_each(say_again_t *say_again, void *with) {
  for (struct announced *entry = session->ledger.first; entry; entry = entry->after)
    if (!say_again(&entry->record, with)) return false;
  return true;
}
