/* Which bytes are a record. What a program has written is never trusted: readers look at nothing that this file has not
 * found to lie within the record. Bytes need no alignment. */
#include "reader.h"
#include "wire.h"

#include <stddef.h>
#include <string.h>

/* What is left of a record behind what was looked at. */
struct rest {
  const uint8_t *at;
  uint64_t bytes;
};

static const char *const short_record = "it is shorter than what it says it holds";

/* Takes `bytes`, padded, from the rest; 0 if there are fewer. */
static int take(struct rest *rest, uint64_t bytes) {
  if (bytes > rest->bytes) {
    return 0;
  }
  uint64_t padded = (bytes + 7) / 8 * 8; /* the rest is a multiple of 8, so this fits too */
  rest->at += padded;
  rest->bytes -= padded;
  return 1;
}

static int take_many(struct rest *rest, uint64_t count, uint64_t each) {
  return count <= rest->bytes / each && take(rest, count * each);
}

static const char *launch(struct rest *rest) {
  struct wire_launch_body body;
  memcpy(&body, rest->at, sizeof body);
  take(rest, sizeof body);
  return take(rest, body.parameter_bytes) && take_many(rest, body.attributes, sizeof(struct wire_attribute))
             ? NULL : short_record;
}

static const char *copy(struct rest *rest) {
  struct wire_copy_body body;
  memcpy(&body, rest->at, sizeof body);
  take(rest, sizeof body);
  if (body.inline_bytes > WIRE_INLINE_BYTES) {
    return "its contents are too large to stand in it";
  }
  return take(rest, body.inline_bytes) ? NULL : short_record;
}

static const char *memory_operations(struct rest *rest) {
  struct wire_memory_operations_body body;
  memcpy(&body, rest->at, sizeof body);
  take(rest, sizeof body);
  return take_many(rest, body.count, sizeof(struct wire_memory_operation)) ? NULL : short_record;
}

/* The bodies of nodes, by enum wire_node_kind. */
static const uint64_t node_bodies[] = {
    [WIRE_NODE_OTHER] = 0,
    [WIRE_NODE_LAUNCH] = sizeof(struct wire_launch_body),
    [WIRE_NODE_COPY] = sizeof(struct wire_copy_body),
    [WIRE_NODE_SET] = sizeof(struct wire_set_body),
    [WIRE_NODE_HOST_FUNCTION] = sizeof(struct wire_host_function_body),
    [WIRE_NODE_EMPTY] = 0,
    [WIRE_NODE_EVENT_RECORD] = sizeof(struct wire_event_body),
    [WIRE_NODE_EVENT_WAIT] = sizeof(struct wire_event_body),
    [WIRE_NODE_CHILD] = 0,
    [WIRE_NODE_ALLOCATE] = sizeof(struct wire_allocation),
    [WIRE_NODE_FREE] = sizeof(struct wire_allocation),
    [WIRE_NODE_MEMORY_OPERATIONS] = sizeof(struct wire_memory_operations_body),
};

static const char *node(struct rest *rest) {
  struct wire_node head;
  if (rest->bytes < sizeof head) {
    return short_record;
  }
  memcpy(&head, rest->at, sizeof head);
  if (head.kind >= sizeof node_bodies / sizeof *node_bodies) {
    return "a node in it is of no known kind";
  }
  if (head.size % 8 || head.size < sizeof head + node_bodies[head.kind] || head.size > rest->bytes) {
    return "a node in it has a size that cannot be";
  }
  struct rest inner = {rest->at + sizeof head, head.size - sizeof head};
  take(rest, head.size);
  switch (head.kind) {
  case WIRE_NODE_LAUNCH:
    return launch(&inner);
  case WIRE_NODE_COPY:
    return copy(&inner);
  case WIRE_NODE_MEMORY_OPERATIONS:
    return memory_operations(&inner);
  default:
    return NULL;
  }
}

static const char *graph(const struct wire_graph_exec *record, struct rest rest) {
  for (uint32_t k = 0; k < record->nodes; ++k) {
    const char *wrong = node(&rest);
    if (wrong) {
      return wrong;
    }
  }
  return take_many(&rest, record->edges, sizeof(struct wire_edge)) ? NULL : short_record;
}

/* The structures of records, by enum wire_kind; 0 where there is none. */
static const uint16_t structures[] = {
    [WIRE_DRIVER] = sizeof(struct wire_driver),
    [WIRE_EPOCH] = sizeof(struct wire_epoch),
    [WIRE_DATA] = sizeof(struct wire_data),
    [WIRE_OUTCOME] = sizeof(struct wire_outcome),
    [WIRE_CALL] = sizeof(struct wire_call),
    [WIRE_DOOR] = sizeof(struct wire_door),
    [WIRE_DEVICE] = sizeof(struct wire_device),
    [WIRE_CONTEXT] = sizeof(struct wire_context),
    [WIRE_MODULE] = sizeof(struct wire_module),
    [WIRE_FUNCTION] = sizeof(struct wire_function),
    [WIRE_STREAM] = sizeof(struct wire_stream),
    [WIRE_EVENT] = sizeof(struct wire_event),
    [WIRE_MEMORY] = sizeof(struct wire_memory),
    [WIRE_RESERVATION] = sizeof(struct wire_reservation),
    [WIRE_PHYSICAL] = sizeof(struct wire_physical),
    [WIRE_ARRAY] = sizeof(struct wire_array),
    [WIRE_GRAPH_EXEC] = sizeof(struct wire_graph_exec),
    [WIRE_GRAPH_NODE] = sizeof(struct wire_graph_node),
    [WIRE_LINK_INPUT] = sizeof(struct wire_link_input),
    [WIRE_LINK_OUTPUT] = sizeof(struct wire_link_output),
    [WIRE_ACCESS] = sizeof(struct wire_access),
    [WIRE_EXPORT] = sizeof(struct wire_export),
    [WIRE_END] = sizeof(struct wire_end),
    [WIRE_LAUNCH] = sizeof(struct wire_launch),
    [WIRE_COPY] = sizeof(struct wire_copy),
    [WIRE_SET] = sizeof(struct wire_set),
    [WIRE_GRAPH_LAUNCH] = sizeof(struct wire_graph_launch),
    [WIRE_EVENT_RECORD] = sizeof(struct wire_event_record),
    [WIRE_EVENT_WAIT] = sizeof(struct wire_event_wait),
    [WIRE_HOST_FUNCTION] = sizeof(struct wire_host_function),
    [WIRE_MEMORY_OPERATIONS] = sizeof(struct wire_memory_operations),
    [WIRE_OTHER_WORK] = sizeof(struct wire_other_work),
    [WIRE_SYNCHRONIZE] = sizeof(struct wire_synchronize),
    [WIRE_CAPTURE_BEGIN] = sizeof(struct wire_capture),
    [WIRE_CAPTURE_END] = sizeof(struct wire_capture),
};

union record {
  struct wire_head head;
  struct wire_driver driver;
  struct wire_door door;
  struct wire_data data;
  struct wire_device device;
  struct wire_module module;
  struct wire_function function;
  struct wire_memory memory;
  struct wire_link_input link_input;
  struct wire_graph_exec graph_exec;
};

const char *record_wrong(const void *bytes, uint64_t n) {
  union record record;
  if (n < sizeof record.head) {
    return short_record;
  }
  memcpy(&record.head, bytes, sizeof record.head);
  uint32_t size = record.head.size, kind = record.head.kind;
  uint64_t fixed = kind < sizeof structures / sizeof *structures ? structures[kind] : 0;
  if (!fixed) {
    return "it is of no known kind";
  }
  if (size % 8 || size < fixed || size > WIRE_LARGEST_RECORD) {
    return "it has a size that cannot be";
  }
  if (size > n) {
    return "it ends behind the last byte";
  }
  memcpy(&record, bytes, fixed < sizeof record ? fixed : sizeof record);
  struct rest rest = {(const uint8_t *)bytes + fixed, size - fixed};
  struct rest body = {(const uint8_t *)bytes + offsetof(struct wire_launch, body),
                      size - offsetof(struct wire_launch, body)};
  int fits = 1;
  switch (kind) {
  case WIRE_DRIVER:
    fits = take(&rest, record.driver.path_bytes);
    break;
  case WIRE_DOOR:
    fits = take(&rest, record.door.name_bytes);
    break;
  case WIRE_DATA:
    if (record.data.offset > record.data.total || record.data.bytes > record.data.total - record.data.offset) {
      return "its piece lies outside the contents";
    }
    fits = take(&rest, record.data.bytes);
    break;
  case WIRE_DEVICE:
    fits = take(&rest, record.device.name_bytes);
    break;
  case WIRE_MODULE:
    fits = take(&rest, record.module.path_bytes);
    break;
  case WIRE_FUNCTION:
    fits = take_many(&rest, record.function.parameters, sizeof(struct wire_parameter)) &&
           take(&rest, record.function.name_bytes);
    break;
  case WIRE_MEMORY:
    fits = take(&rest, record.memory.name_bytes);
    break;
  case WIRE_LINK_INPUT:
    fits = take(&rest, record.link_input.name_bytes);
    break;
  case WIRE_GRAPH_EXEC:
    return graph(&record.graph_exec, rest);
  case WIRE_GRAPH_NODE:
    return node(&rest);
  case WIRE_LAUNCH:
    return launch(&body);
  case WIRE_COPY:
    return copy(&body);
  case WIRE_MEMORY_OPERATIONS:
    return memory_operations(&body);
  default:
    break;
  }
  return fits ? NULL : short_record;
}

uint64_t ring_span(const void *bytes, uint64_t n, uint64_t most) {
  uint64_t done = 0, end = n < most ? n : most;
  while (done < end && !record_wrong((const uint8_t *)bytes + done, end - done)) {
    uint32_t size;
    memcpy(&size, (const uint8_t *)bytes + done, sizeof size);
    done += size;
  }
  return done;
}

void record_tally(const void *bytes, uint64_t n, struct tally *tally) {
  struct wire_head head;
  for (uint64_t done = 0; done < n; done += head.size) {
    memcpy(&head, (const uint8_t *)bytes + done, sizeof head);
    if (tally->records) {
      int later = head.sequence > tally->last;
      tally->missing += later ? head.sequence - tally->last - 1 : 0;
      tally->disordered += !later;
    }
    tally->last = head.sequence;
    tally->records += 1;
    tally->epochs += head.kind == WIRE_EPOCH;
    tally->kinds[head.kind] += 1;
  }
  tally->bytes += n;
}
