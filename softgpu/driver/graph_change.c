/* Which changes of what nodes do executable graphs may get. */
#include "allocations.h"
#include "copy.h"
#include "graph_params.h"
#include "launch.h"
#include "memop.h"

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

/* Operations stay of their kinds. Flags may change but for the one that is no condition. */
static bool batch_may_change(const struct command *before, const struct command *after) {
  CUDA_BATCH_MEM_OP_NODE_PARAMS_v2 a, b;
  memop_params(before, &a);
  memop_params(after, &b);
  bool good = a.count == b.count;
  for (unsigned n = 0; n < a.count && good; n++) {
    const CUstreamBatchMemOpParams *x = &a.paramArray[n], *y = &b.paramArray[n];
    bool waits = x->operation == CU_STREAM_MEM_OP_WAIT_VALUE_32 || x->operation == CU_STREAM_MEM_OP_WAIT_VALUE_64;
    unsigned fixed = waits ? (unsigned)CU_STREAM_WAIT_VALUE_FLUSH : ~0u;
    bool writes = x->operation == CU_STREAM_MEM_OP_WRITE_VALUE_32 || x->operation == CU_STREAM_MEM_OP_WRITE_VALUE_64;
    unsigned flags[2] = {waits || writes ? x->waitValue.flags : x->memoryBarrier.flags,
                         waits || writes ? y->waitValue.flags : y->memoryBarrier.flags};
    good = x->operation == y->operation && (flags[0] & fixed) == (flags[1] & fixed);
  }
  return good;
}

static CUgraphExecUpdateResult launch_change(const struct command *before, const struct command *after) {
  if (before->context_id != after->context_id) return CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE;
  bool same = launch_is_cooperative(before) == launch_is_cooperative(after);
  return same ? CU_GRAPH_EXEC_UPDATE_SUCCESS : CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED;
}

CUgraphExecUpdateResult params_change(const struct command *before, const struct command *after) {
  bool good = before->context_id == after->context_id;
  if (before->kind->type != after->kind->type) return CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED;
  switch ((int)before->kind->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: return launch_change(before, after);
    case CU_GRAPH_NODE_TYPE_MEMCPY: good = good && copy_may_change(before, after); break;
    case CU_GRAPH_NODE_TYPE_MEMSET: good = good && fill_may_change(before, after); break;
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP: good = good && batch_may_change(before, after); break;
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
    case CU_GRAPH_NODE_TYPE_MEM_FREE: return CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED;
    default: good = true; break;
  }
  return good ? CU_GRAPH_EXEC_UPDATE_SUCCESS : CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
}
