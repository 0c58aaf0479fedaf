#include "graph_node.h"

#include <string.h>

#include "copy.h"
#include "launch.h"
#include "memory_operations.h"
#include "ring.h"

void node_attributes(const struct wire_node *node, struct node_attributes *attributes) {
  *attributes = (struct node_attributes){.on_device = node->kind == WIRE_NODE_OTHER};
  if (node->kind != WIRE_NODE_LAUNCH) return;
  const struct wire_launch_body *body = (const void *)(node + 1);
  const char *from = (const char *)(body + 1) + padded(body->parameter_bytes);
  attributes->flags = body->flags & WIRE_COOPERATIVE;
  for (; attributes->count < body->attributes && attributes->count < NODE_ATTRIBUTES; attributes->count++) {
    struct wire_attribute attribute;
    memcpy(&attribute, from + attributes->count * sizeof attribute, sizeof attribute);
    attributes->list[attributes->count].id = attribute.id;
    memcpy(&attributes->list[attributes->count].value, attribute.value, sizeof attribute.value);
  }
}

/* The node, with room for a body; what is in it is 0. */
static void *put(struct growing *to, const struct wire_node *named, enum wire_node_kind kind, CUcontext context,
                 size_t body) {
  size_t bytes = sizeof(struct wire_node) + padded(body);
  struct wire_node *node = growing_add(to, bytes);
  if (!node) return NULL;
  memset(node, 0, bytes);
  *node = (struct wire_node){.size = (uint32_t)bytes, .kind = (uint16_t)kind, .enabled = named->enabled,
                             .node = named->node, .parent = named->parent,
                             .context = (uint64_t)(uintptr_t)context};
  return node + 1;
}

static void put_kernel(struct growing *to, const struct wire_node *named, const CUDA_KERNEL_NODE_PARAMS_v3 *from,
                       const struct node_attributes *attributes) {
  struct launch launch = {
      .function = from->func ? from->func : (CUfunction)from->kern,
      .grid = {from->gridDimX, from->gridDimY, from->gridDimZ},
      .block = {from->blockDimX, from->blockDimY, from->blockDimZ},
      .shared = from->sharedMemBytes, .flags = attributes->flags,
      .parameters = from->kernelParams, .extra = from->extra,
      .attributes = attributes->list, .attribute_count = attributes->count,
  };
  struct launch_layout layout;
  launch_prepare(&launch, &layout);
  struct wire_launch_body *body = put(to, named, WIRE_NODE_LAUNCH, from->func ? NULL : from->ctx, layout.bytes);
  if (body) put_launch(body, &launch, &layout);
}

static void put_copy(struct growing *to, const struct wire_node *named, const CUDA_MEMCPY_NODE_PARAMS *from) {
  struct wire_copy_body made, *body;
  bool known = copy_from_3d(&from->copyParams, &made);
  body = put(to, named, known ? WIRE_NODE_COPY : WIRE_NODE_OTHER, from->copyCtx, known ? sizeof *body : 0);
  if (body && known) *body = made;
}

static void put_set(struct growing *to, const struct wire_node *named, const CUDA_MEMSET_NODE_PARAMS_v2 *from) {
  struct wire_set_body *body = put(to, named, WIRE_NODE_SET, from->ctx, sizeof *body);
  if (body) set_from_params(from, body);
}

static void put_host(struct growing *to, const struct wire_node *named, const CUDA_HOST_NODE_PARAMS_v2 *from) {
  struct wire_host_function_body *body = put(to, named, WIRE_NODE_HOST_FUNCTION, NULL, sizeof *body);
  if (body) *body = (struct wire_host_function_body){(uintptr_t)from->fn, (uint64_t)(uintptr_t)from->userData, 0, 0};
}

static void put_event(struct growing *to, const struct wire_node *named, enum wire_node_kind kind, CUevent event) {
  struct wire_event_body *body = put(to, named, kind, NULL, sizeof *body);
  if (body) body->event = (uint64_t)(uintptr_t)event;
}

static void put_allocation(struct growing *to, const struct wire_node *named,
                           const CUDA_MEM_ALLOC_NODE_PARAMS_v2 *from) {
  struct wire_allocation *body = put(to, named, WIRE_NODE_ALLOCATE, NULL, sizeof *body);
  if (!body) return;
  bool device = from->poolProps.location.type == CU_MEM_LOCATION_TYPE_DEVICE;
  *body = (struct wire_allocation){from->dptr, from->bytesize, device ? from->poolProps.location.id : -1, 0};
}

static void put_free(struct growing *to, const struct wire_node *named, CUdeviceptr address) {
  struct wire_allocation *body = put(to, named, WIRE_NODE_FREE, NULL, sizeof *body);
  if (body) *body = (struct wire_allocation){address, 0, -1, 0};
}

static void put_operations(struct growing *to, const struct wire_node *named,
                           const CUDA_BATCH_MEM_OP_NODE_PARAMS_v2 *from) {
  if (!memory_operations_known(from->paramArray, from->count)) {
    put(to, named, WIRE_NODE_OTHER, from->ctx, 0);
    return;
  }
  size_t bytes = sizeof(struct wire_memory_operations_body) + from->count * sizeof(struct wire_memory_operation);
  struct wire_memory_operations_body *body = put(to, named, WIRE_NODE_MEMORY_OPERATIONS, from->ctx, bytes);
  if (body) put_memory_operations(body, from->paramArray, from->count, from->flags);
}

void node_put(struct growing *to, const struct wire_node *named, const CUgraphNodeParams *params,
              const struct node_attributes *attributes) {
  switch (params->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
      if (attributes->on_device) put(to, named, WIRE_NODE_OTHER, NULL, 0);
      else put_kernel(to, named, &params->kernel, attributes);
      break;
    case CU_GRAPH_NODE_TYPE_MEMCPY: put_copy(to, named, &params->memcpy); break;
    case CU_GRAPH_NODE_TYPE_MEMSET: put_set(to, named, &params->memset); break;
    case CU_GRAPH_NODE_TYPE_HOST: put_host(to, named, &params->host); break;
    case CU_GRAPH_NODE_TYPE_GRAPH: put(to, named, WIRE_NODE_CHILD, NULL, 0); break;
    case CU_GRAPH_NODE_TYPE_EMPTY: put(to, named, WIRE_NODE_EMPTY, NULL, 0); break;
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT: put_event(to, named, WIRE_NODE_EVENT_WAIT, params->eventWait.event); break;
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
      put_event(to, named, WIRE_NODE_EVENT_RECORD, params->eventRecord.event);
      break;
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC: put_allocation(to, named, &params->alloc); break;
    case CU_GRAPH_NODE_TYPE_MEM_FREE: put_free(to, named, params->free.dptr); break;
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP: put_operations(to, named, &params->memOp); break;
    default: put(to, named, WIRE_NODE_OTHER, NULL, 0);
  }
}
