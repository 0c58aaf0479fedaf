/* A picture of a graph, as a text for Graphviz. */
#include <stdio.h>

#include "driver.h"
#include "graph.h"
#include "graph_params.h"

static const unsigned KNOWN = 2 * CU_GRAPH_DEBUG_DOT_FLAGS_CONDITIONAL_NODE_PARAMS - 1;

static const char *const NAMES[] = {
    [CU_GRAPH_NODE_TYPE_KERNEL] = "kernel",         [CU_GRAPH_NODE_TYPE_MEMCPY] = "memcpy",
    [CU_GRAPH_NODE_TYPE_MEMSET] = "memset",         [CU_GRAPH_NODE_TYPE_HOST] = "host",
    [CU_GRAPH_NODE_TYPE_GRAPH] = "graph",           [CU_GRAPH_NODE_TYPE_EMPTY] = "empty",
    [CU_GRAPH_NODE_TYPE_WAIT_EVENT] = "wait event", [CU_GRAPH_NODE_TYPE_EVENT_RECORD] = "record event",
    [CU_GRAPH_NODE_TYPE_MEM_ALLOC] = "mem alloc",   [CU_GRAPH_NODE_TYPE_MEM_FREE] = "mem free",
    [CU_GRAPH_NODE_TYPE_BATCH_MEM_OP] = "batch mem op",
};

static bool wants(unsigned flags, unsigned flag) { return flags & (flag | CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE); }

static void print_kernel(FILE *file, const CUDA_KERNEL_NODE_PARAMS_v3 *kernel, unsigned flags) {
  const char *name = NULL;
  if (kernel->func ? cuFuncGetName(&name, kernel->func) : cuKernelGetName(&name, kernel->kern)) name = NULL;
  fprintf(file, "\\n%s", name ? name : "?");
  if (wants(flags, CU_GRAPH_DEBUG_DOT_FLAGS_KERNEL_NODE_PARAMS))
    fprintf(file, "\\ngrid %u %u %u, block %u %u %u, shared %u", kernel->gridDimX, kernel->gridDimY, kernel->gridDimZ,
            kernel->blockDimX, kernel->blockDimY, kernel->blockDimZ, kernel->sharedMemBytes);
}

static const char *memory(CUmemorytype type) {
  return type == CU_MEMORYTYPE_HOST ? "host" : type == CU_MEMORYTYPE_DEVICE ? "device" : "unified";
}

static void print_copy(FILE *file, const CUDA_MEMCPY3D *copy, unsigned flags) {
  fprintf(file, "\\n%s to %s", memory(copy->srcMemoryType), memory(copy->dstMemoryType));
  if (wants(flags, CU_GRAPH_DEBUG_DOT_FLAGS_MEMCPY_NODE_PARAMS))
    fprintf(file, "\\n%zu x %zu x %zu bytes", copy->WidthInBytes, copy->Height, copy->Depth);
}

static void print_params(FILE *file, const CUgraphNodeParams *params, unsigned flags) {
  switch ((int)params->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: print_kernel(file, &params->kernel, flags); break;
    case CU_GRAPH_NODE_TYPE_MEMCPY: print_copy(file, &params->memcpy.copyParams, flags); break;
    case CU_GRAPH_NODE_TYPE_MEMSET:
      if (wants(flags, CU_GRAPH_DEBUG_DOT_FLAGS_MEMSET_NODE_PARAMS))
        fprintf(file, "\\n0x%llx: %zu x %zu of %u bytes with 0x%x", (unsigned long long)params->memset.dst,
                params->memset.width, params->memset.height, params->memset.elementSize, params->memset.value);
      break;
    case CU_GRAPH_NODE_TYPE_HOST:
      if (wants(flags, CU_GRAPH_DEBUG_DOT_FLAGS_HOST_NODE_PARAMS))
        fprintf(file, "\\n%p(%p)", (void *)(uintptr_t)params->host.fn, params->host.userData);
      break;
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
      if (wants(flags, CU_GRAPH_DEBUG_DOT_FLAGS_EVENT_NODE_PARAMS))
        fprintf(file, "\\nevent %p", (void *)params->eventRecord.event);
      break;
    default: break;
  }
}

/* Nodes are named by their numbers, those of graphs in the graph in boxes of their own. */
static void print_graph(FILE *file, const struct graph *graph, unsigned flags) {
  fprintf(file, "subgraph cluster_%llu {\nlabel=\"graph %llu\" graph[style=\"dashed\"];\n", graph->id, graph->id);
  for (size_t n = 0; n < graph->nodes.count; n++) {
    const struct node *node = graph->nodes.at[n];
    CUgraphNodeParams params;
    fprintf(file, "node_%llu [shape=\"box\" label=\"%zu: %s", node->id, n, NAMES[node->type]);
    if (wants(flags, CU_GRAPH_DEBUG_DOT_FLAGS_HANDLES)) fprintf(file, "\\nnode %p", (const void *)node);
    if (node->command) {
      command_params(node->command, &params);
      print_params(file, &params, flags);
    }
    if (node->child) fprintf(file, "\\ngraph %llu", node->child->id);
    fprintf(file, "\"];\n");
    for (size_t i = 0; i < node->after.count; i++)
      fprintf(file, "node_%llu -> node_%llu;\n", node->id, node->after.at[i]->id);
  }
  for (size_t n = 0; n < graph->nodes.count; n++)
    if (graph->nodes.at[n]->child) print_graph(file, graph->nodes.at[n]->child, flags);
  fprintf(file, "}\n");
}

EXPORTED CUresult cuGraphDebugDotPrint(CUgraph handle, const char *path, unsigned int flags) {
  struct graph *graph;
  CHECK(ready());
  if (!path || flags & ~KNOWN) return CUDA_ERROR_INVALID_VALUE;
  graphs_lock();
  CUresult result = graph_of(handle, &graph);
  FILE *file = result == CUDA_SUCCESS ? fopen(path, "we") : NULL;
  if (result == CUDA_SUCCESS && !file) result = CUDA_ERROR_OPERATING_SYSTEM;
  if (file) {
    fprintf(file, "digraph dot {\n");
    print_graph(file, graph, flags);
    fprintf(file, "}\n");
    bool failed = ferror(file);
    if (fclose(file) || failed) result = CUDA_ERROR_OPERATING_SYSTEM;
  }
  graphs_unlock();
  return result;
}
