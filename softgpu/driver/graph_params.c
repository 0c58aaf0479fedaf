/* Parameters of nodes, and the commands that they describe. */
#include "graph_params.h"

#include <string.h>

#include "allocations.h"
#include "copy.h"
#include "driver.h"

/* The place of a node: a context, without a stream; for NULL the current one. */
static CUresult place_of(CUcontext context, struct stream_place *place) {
  struct here here;
  CHECK(context_here(context, &here));
  *place = (struct stream_place){.context = here.context, .context_id = here.id, .device = here.device};
  return CUDA_SUCCESS;
}

static CUresult copy_of(const CUDA_MEMCPY_NODE_PARAMS *params, struct command **made) {
  struct stream_place place;
  if (params->flags || params->reserved) return CUDA_ERROR_INVALID_VALUE;
  CHECK(place_of(params->copyCtx, &place));
  return copy_command(&params->copyParams, place.context, place.context_id, made);
}

static CUresult fill_of(const CUDA_MEMSET_NODE_PARAMS_v2 *params, struct command **made) {
  struct stream_place place;
  CHECK(place_of(params->ctx, &place));
  return fill_command(params, place.context, place.context_id, made);
}

CUresult params_command(const CUgraphNodeParams *params, struct command **made) {
  switch ((int)params->type) {
    case CU_GRAPH_NODE_TYPE_MEMCPY: return copy_of(&params->memcpy, made);
    case CU_GRAPH_NODE_TYPE_MEMSET: return fill_of(&params->memset, made);
    case CU_GRAPH_NODE_TYPE_HOST: return host_command(&params->host, made);
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD: return event_command(true, params->eventRecord.event, made);
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT: return event_command(false, params->eventWait.event, made);
    case CU_GRAPH_NODE_TYPE_KERNEL:
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL:
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT:
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
    case CU_GRAPH_NODE_TYPE_CONDITIONAL: return CUDA_ERROR_NOT_SUPPORTED;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}

void command_params(const struct command *command, CUgraphNodeParams *params) {
  memset(params, 0, sizeof *params);
  params->type = command->kind->type;
  switch ((int)params->type) {
    case CU_GRAPH_NODE_TYPE_MEMCPY:
      copy_params(command, &params->memcpy.copyParams);
      params->memcpy.copyCtx = command->context;
      break;
    case CU_GRAPH_NODE_TYPE_MEMSET: fill_params(command, &params->memset); break;
    case CU_GRAPH_NODE_TYPE_HOST: host_params(command, &params->host); break;
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD: params->eventRecord.event = event_of(command); break;
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT: params->eventWait.event = event_of(command); break;
    default: break;
  }
}

static size_t used(CUgraphNodeType type) {
  const CUgraphNodeParams *params = NULL;
  switch ((int)type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: return sizeof params->kernel;
    case CU_GRAPH_NODE_TYPE_MEMCPY: return sizeof params->memcpy;
    case CU_GRAPH_NODE_TYPE_MEMSET: return sizeof params->memset;
    case CU_GRAPH_NODE_TYPE_HOST: return sizeof params->host;
    case CU_GRAPH_NODE_TYPE_GRAPH: return sizeof params->graph;
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT: return sizeof params->eventWait;
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD: return sizeof params->eventRecord;
    case CU_GRAPH_NODE_TYPE_EMPTY: return 0;
    default: return sizeof params->reserved1;
  }
}

bool params_clean(const CUgraphNodeParams *params) {
  const unsigned char *bytes = (const unsigned char *)params->reserved1;
  bool clean = !params->reserved0[0] && !params->reserved0[1] && !params->reserved0[2] && !params->reserved2;
  for (size_t n = used(params->type); n < sizeof params->reserved1 && clean; n++) clean = !bytes[n];
  return clean;
}

/* Whether two addresses are of memory of the same kind and context, as far as the driver knows them. */
static bool alike(CUdeviceptr before, CUdeviceptr after) {
  allocations_read();
  const struct allocation *a = allocation_with(before, 1), *b = allocation_with(after, 1);
  bool same = !a || (b && a->kind == b->kind && a->context == b->context);
  allocations_release();
  return same;
}

static CUdeviceptr address(CUmemorytype type, const void *host, CUdeviceptr device) {
  return type == CU_MEMORYTYPE_HOST ? (CUdeviceptr)(uintptr_t)host : device;
}

static bool is_line(const CUDA_MEMCPY3D *copy) { return copy->WidthInBytes && copy->Height == 1 && copy->Depth == 1; }

static bool copy_may_change(const struct command *before, const struct command *after) {
  CUDA_MEMCPY3D a, b;
  copy_params(before, &a);
  copy_params(after, &b);
  return is_line(&a) && is_line(&b) && a.srcMemoryType == b.srcMemoryType && a.dstMemoryType == b.dstMemoryType &&
         alike(address(a.srcMemoryType, a.srcHost, a.srcDevice), address(b.srcMemoryType, b.srcHost, b.srcDevice)) &&
         alike(address(a.dstMemoryType, a.dstHost, a.dstDevice), address(b.dstMemoryType, b.dstHost, b.dstDevice));
}

static bool fill_may_change(const struct command *before, const struct command *after) {
  CUDA_MEMSET_NODE_PARAMS_v2 a, b;
  fill_params(before, &a);
  fill_params(after, &b);
  if (!b.width || a.height != b.height || !alike(a.dst, b.dst)) return false;
  return a.height == 1 || (a.width == b.width && a.pitch == b.pitch && a.elementSize == b.elementSize);
}

CUgraphExecUpdateResult params_change(const struct command *before, const struct command *after) {
  bool good = true;
  if (before->kind->type != after->kind->type) return CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED;
  switch ((int)before->kind->type) {
    case CU_GRAPH_NODE_TYPE_MEMCPY: good = before->context == after->context && copy_may_change(before, after); break;
    case CU_GRAPH_NODE_TYPE_MEMSET: good = before->context == after->context && fill_may_change(before, after); break;
    default: break;
  }
  return good ? CU_GRAPH_EXEC_UPDATE_SUCCESS : CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
}
