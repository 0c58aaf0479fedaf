/* Parameters of nodes, and the commands that they describe. */
#include "graph_params.h"

#include <string.h>

#include "copy.h"
#include "driver.h"
#include "function.h"
#include "graph_memory.h"
#include "handles.h"
#include "launch.h"
#include "memop.h"

static CUresult copy_of(const CUDA_MEMCPY_NODE_PARAMS *params, struct command **made) {
  struct stream_place place;
  if (params->flags || params->reserved) return CUDA_ERROR_INVALID_VALUE;
  CHECK(context_place(params->copyCtx, &place));
  return copy_command(&params->copyParams, &place, made);
}

static CUresult fill_of(const CUDA_MEMSET_NODE_PARAMS_v2 *params, struct command **made) {
  struct stream_place place;
  CHECK(context_place(params->ctx, &place));
  return fill_command(params, &place, made);
}

static CUresult batch_of(const CUDA_BATCH_MEM_OP_NODE_PARAMS_v2 *params, struct command **made) {
  struct stream_place place;
  CHECK(context_place(params->ctx, &place));
  return memop_command(params, &place, made);
}

/* A function is in a context; a kernel is brought into the one that is named. */
CUresult params_launch(const CUDA_KERNEL_NODE_PARAMS_v3 *params, bool cooperative, struct command **made) {
  struct stream_place place;
  HELD_FUNCTION function = NULL;
  if (function_held(params->func, &function)) {
    const struct module *module = function->module;
    place = (struct stream_place){.context = module->context, .context_id = module->context_id,
                                  .device = module->device};
  } else {
    CHECK(context_place(params->func ? NULL : params->ctx, &place));
  }
  return launch_command(params, cooperative, &place, made);
}

CUresult params_command(const CUgraphNodeParams *params, struct command **made) {
  switch ((int)params->type) {
    case CU_GRAPH_NODE_TYPE_MEMCPY: return copy_of(&params->memcpy, made);
    case CU_GRAPH_NODE_TYPE_MEMSET: return fill_of(&params->memset, made);
    case CU_GRAPH_NODE_TYPE_HOST: return host_command(&params->host, made);
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD: return event_command(true, params->eventRecord.event, made);
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT: return event_command(false, params->eventWait.event, made);
    case CU_GRAPH_NODE_TYPE_KERNEL: return params_launch(&params->kernel, false, made);
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP: return batch_of(&params->memOp, made);
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC: return graph_alloc_command(&params->alloc, made);
    case CU_GRAPH_NODE_TYPE_MEM_FREE: return graph_free_command(params->free.dptr, made);
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL:
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT:
    case CU_GRAPH_NODE_TYPE_CONDITIONAL: return CUDA_ERROR_NOT_SUPPORTED;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}

void command_params(const struct command *command, CUgraphNodeParams *params) {
  memset(params, 0, sizeof *params);
  params->type = command->kind->type;
  switch ((int)params->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: launch_params(command, &params->kernel); break;
    case CU_GRAPH_NODE_TYPE_MEMCPY:
      copy_params(command, &params->memcpy.copyParams);
      params->memcpy.copyCtx = command->context;
      break;
    case CU_GRAPH_NODE_TYPE_MEMSET: fill_params(command, &params->memset); break;
    case CU_GRAPH_NODE_TYPE_HOST: host_params(command, &params->host); break;
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD: params->eventRecord.event = event_of(command); break;
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT: params->eventWait.event = event_of(command); break;
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP: memop_params(command, &params->memOp); break;
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC: graph_alloc_params(command, &params->alloc); break;
    case CU_GRAPH_NODE_TYPE_MEM_FREE: params->free.dptr = graph_free_params(command); break;
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
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP: return sizeof params->memOp;
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC: return sizeof params->alloc;
    case CU_GRAPH_NODE_TYPE_MEM_FREE: return sizeof params->free;
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
