#include "ledger.h"

#include <string.h>

#include "session.h"

struct announced {
  struct announced *before, *after; /* in the order in which they came */
  struct announced *next;           /* in the bucket */
  uint64_t key, key2;
  size_t bytes;
  struct wire_head record;
};

union any {
  const struct wire_head *head;
  const struct wire_module *module;
  const struct wire_function *function;
  const struct wire_stream *stream;
  const struct wire_event *event;
  const struct wire_memory *memory;
  const struct wire_array *array;
  const struct wire_graph_exec *graph_exec;
  const struct wire_end *end;
};

/* All announcements have a handle or an address behind their heads. */
static uint64_t key_of(const struct wire_head *record) {
  uint64_t key;
  memcpy(&key, (const char *)record + sizeof *record, sizeof key);
  return key;
}

/* What tells those of one handle apart. */
static uint64_t key2_of(const struct wire_head *record) {
  if (record->kind != WIRE_GRAPH_NODE) return record->kind;
  const struct wire_node *node = (const void *)((const struct wire_graph_node *)(const void *)record + 1);
  return node->node ^ WIRE_GRAPH_NODE;
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

/* Whether one ends with another one, which is of a kind. */
static bool belongs(union any record, unsigned kind, uint64_t handle) {
  if (kind == WIRE_CONTEXT) return context_of(record) == handle;
  if (kind == WIRE_MODULE)
    return (record.head->kind == WIRE_FUNCTION && record.function->module == handle) ||
           (record.head->kind == WIRE_MEMORY && record.memory->kind == WIRE_VARIABLE && record.memory->owner == handle);
  return record.head->kind == WIRE_EXPORT && key_of(record.head) == handle;
}

static void forget(struct ledger *ledger, struct announced *entry) {
  struct announced **link = &ledger->buckets[bucket_of(entry->key, entry->key2)];
  while (*link != entry) link = &(*link)->next;
  *link = entry->next;
  *(entry->before ? &entry->before->after : &ledger->first) = entry->after;
  *(entry->after ? &entry->after->before : &ledger->last) = entry->before;
  store_give(entry, entry->bytes);
}

static struct announced *find(struct ledger *ledger, uint64_t key, uint64_t key2) {
  struct announced *found = ledger->buckets[bucket_of(key, key2)];
  while (found && (found->key != key || found->key2 != key2)) found = found->next;
  return found;
}

/* The new parameters of the nodes of an executable graph. */
static void forget_changes(struct ledger *ledger, const struct wire_graph_exec *exec) {
  const struct wire_node *node = (const void *)(exec + 1);
  for (uint32_t i = 0; i < exec->nodes; i++, node = (const void *)((const char *)node + node->size)) {
    struct announced *change = find(ledger, exec->exec, node->node ^ WIRE_GRAPH_NODE);
    if (change) forget(ledger, change);
  }
}

static void forget_whole(struct ledger *ledger, struct announced *entry) {
  union any any = {.head = &entry->record};
  if (any.head->kind == WIRE_GRAPH_EXEC) forget_changes(ledger, any.graph_exec);
  forget(ledger, entry);
}

static void keep(struct ledger *ledger, const struct wire_head *record) {
  uint64_t key = key_of(record), key2 = key2_of(record);
  struct announced *old = find(ledger, key, key2);
  if (old) forget_whole(ledger, old);
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

/* Also what belongs to what belongs to it, as it came later. */
static void end(struct ledger *ledger, unsigned kind, uint64_t handle) {
  struct announced *entry = find(ledger, handle, kind);
  bool has_more = kind == WIRE_CONTEXT || kind == WIRE_MODULE;
  if (entry) forget_whole(ledger, entry);
  entry = find(ledger, handle, WIRE_EXPORT);
  if (entry) forget(ledger, entry);
  for (entry = has_more ? ledger->first : NULL; entry;) {
    struct announced *after = entry->after;
    if (belongs((union any){.head = &entry->record}, kind, handle)) {
      unsigned inner = entry->record.kind;
      uint64_t key = entry->key;
      if (inner == WIRE_MODULE || inner == WIRE_GRAPH_EXEC) {
        end(ledger, inner, key);
        after = ledger->first; /* what came after may be gone too */
      } else {
        forget(ledger, entry);
      }
    }
    entry = after;
  }
}

void ledger_enter(const struct wire_head *record) {
  if (record->kind < WIRE_DEVICE || record->kind > WIRE_END) return;
  struct ledger *ledger = &session->ledger;
  union any any = {.head = record};
  if (record->kind == WIRE_END)
    end(ledger, any.end->kind, any.end->handle);
  else
    keep(ledger, record);
}

bool ledger_each(say_again_t *say_again, void *with) {
  for (struct announced *entry = session->ledger.first; entry; entry = entry->after)
    if (!say_again(&entry->record, with)) return false;
  return true;
}

/* Under the ring's lock. */
static void *copy_of(const void *from, size_t bytes) {
  void *made = from ? store_take(bytes) : NULL;
  return made ? memcpy(made, from, bytes) : NULL;
}

static const struct wire_head *record_of(uint64_t key, uint64_t key2) {
  struct announced *found = find(&session->ledger, key, key2);
  return found ? &found->record : NULL;
}

struct wire_graph_exec *ledger_graph(uint64_t exec) {
  lock_take(&session->ring.lock);
  const struct wire_head *record = record_of(exec, WIRE_GRAPH_EXEC);
  void *made = copy_of(record, record ? record->size : 0);
  lock_give(&session->ring.lock);
  return made;
}

struct wire_graph_node *ledger_change(uint64_t exec, uint64_t node) {
  lock_take(&session->ring.lock);
  const struct wire_head *record = record_of(exec, node ^ WIRE_GRAPH_NODE);
  void *made = copy_of(record, record ? record->size : 0);
  lock_give(&session->ring.lock);
  return made;
}

static const struct wire_node *node_of(uint64_t exec, uint64_t handle) {
  union any any = {.head = record_of(exec, handle ^ WIRE_GRAPH_NODE)};
  if (any.head) return (const void *)((const struct wire_graph_node *)(const void *)any.head + 1);
  any.head = record_of(exec, WIRE_GRAPH_EXEC);
  if (!any.head) return NULL;
  const struct wire_node *node = (const void *)(any.graph_exec + 1);
  for (uint32_t i = 0; i < any.graph_exec->nodes; i++, node = (const void *)((const char *)node + node->size))
    if (node->node == handle) return node;
  return NULL;
}

struct wire_node *ledger_node(uint64_t exec, uint64_t node) {
  lock_take(&session->ring.lock);
  const struct wire_node *found = node_of(exec, node);
  struct wire_node *made = copy_of(found, found ? found->size : 0);
  lock_give(&session->ring.lock);
  return made;
}
