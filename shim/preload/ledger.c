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

/* What tells those of one handle apart. */
static uint64_t key2_of(union any record) {
  unsigned kind = record.head->kind;
  switch (kind) {
    case WIRE_GRAPH_NODE: return ((const struct wire_node *)(const void *)(record.graph_node + 1))->node ^ kind;
    case WIRE_EXPORT: return kind | (uint64_t)record.export->kind << 32;
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

static bool is_variable(union any record, uint64_t owner) {
  return record.head->kind == WIRE_MEMORY && record.memory->kind == WIRE_VARIABLE && record.memory->owner == owner;
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

/* Whether one ends with another one. */
static bool belongs(union any record, const struct wire_end *what) {
  uint64_t handle = what->handle;
  unsigned kind = record.head->kind;
  switch (what->kind) {
    case WIRE_CONTEXT: return context_of(record) == handle;
    case WIRE_MODULE:
      return (kind == WIRE_FUNCTION && record.function->module == handle) || is_variable(record, handle) ||
             (kind == WIRE_MODULE && record.module->of == handle);
    case WIRE_ARRAY: return kind == WIRE_ARRAY && record.array->of == handle;
    case WIRE_GRAPH_EXEC: return kind == WIRE_GRAPH_NODE && record.graph_node->exec == handle;
    case WIRE_LINK_INPUT: return (kind == WIRE_LINK_INPUT || kind == WIRE_LINK_OUTPUT) && key_of(record.head) == handle;
    default: return in_range(record, what);
  }
}

static bool has_more(const struct wire_end *what) {
  switch (what->kind) {
    case WIRE_CONTEXT:
    case WIRE_MODULE:
    case WIRE_ARRAY:
    case WIRE_GRAPH_EXEC: return what->handle != 0;
    case WIRE_MEMORY: return what->memory == WIRE_MAPPED;
    default: return what->kind == WIRE_LINK_INPUT || what->kind == WIRE_RESERVATION;
  }
}

static void take_out(struct ledger *ledger, struct announced *entry) {
  struct announced **link = &ledger->buckets[bucket_of(entry->key, entry->key2)];
  while (*link != entry) link = &(*link)->next;
  *link = entry->next;
  *(entry->before ? &entry->before->after : &ledger->first) = entry->after;
  *(entry->after ? &entry->after->before : &ledger->last) = entry->before;
}

/* With what else is said of it; `by`: a record whose call may fail yet, 0 for none. */
static void forget_one(struct ledger *ledger, struct announced *entry, uint64_t by) {
  take_out(ledger, entry);
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

static void keep(struct ledger *ledger, const struct wire_head *record) {
  uint64_t key = key_of(record), key2 = key2_of((union any){.head = record});
  struct announced *old = find(ledger, key, key2);
  if (old) forget_one(ledger, old, 0);
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

/* Gives what came behind it. */
static struct announced *forget(struct ledger *ledger, struct announced *entry, uint64_t by) {
  struct announced *export = find(ledger, entry->key, WIRE_EXPORT | (uint64_t)entry->record.kind << 32);
  struct announced *after = entry->after;
  if (export && export == after) after = export->after;
  forget_one(ledger, entry, by);
  if (export) forget_one(ledger, export, by);
  return after;
}

/* Whether it belongs to something that has ended with a context. */
static bool orphan(struct ledger *ledger, union any record) {
  if (record.head->kind == WIRE_FUNCTION)
    return !record.function->kernel && !find(ledger, record.function->module, WIRE_MODULE);
  if (record.head->kind == WIRE_GRAPH_NODE) return !find(ledger, record.graph_node->exec, WIRE_GRAPH_EXEC);
  return false;
}

static void end(struct ledger *ledger, const struct wire_end *what, uint64_t by) {
  struct announced *entry = find(ledger, what->handle, what->kind);
  if (entry) forget(ledger, entry, by);
  for (entry = has_more(what) ? ledger->first : NULL; entry;) {
    struct announced *after = entry->after;
    if (belongs((union any){.head = &entry->record}, what)) {
      struct wire_end inner = {.handle = entry->key, .kind = entry->record.kind};
      if (what->kind == WIRE_MODULE && inner.kind == WIRE_MODULE) {
        end(ledger, &inner, by);
        after = ledger->first; /* what came after may be gone too */
      } else {
        after = forget(ledger, entry, by);
      }
    }
    entry = after;
  }
  for (entry = what->kind == WIRE_CONTEXT && what->handle ? ledger->first : NULL; entry;)
    entry = orphan(ledger, (union any){.head = &entry->record}) ? forget(ledger, entry, by) : entry->after;
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

const struct wire_head *ledger_find(enum wire_kind kind, uint64_t handle) {
  const struct announced *found = find(&session->ledger, handle, kind);
  return found ? &found->record : NULL;
}

bool ledger_each(say_again_t *say_again, void *with) {
  for (struct announced *entry = session->ledger.first; entry; entry = entry->after)
    if (!say_again(&entry->record, with)) return false;
  return true;
}
