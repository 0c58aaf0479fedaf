/* Graphs of many nodes that read and write cells, against doing the same one by one; and graphs of many threads. */
#include "graphs.h"

enum { CELLS = 12, NODES = 60, ROUNDS = 25 };

struct operation {
  int kind; /* 0: set, 1: copy, 2: function of the program */
  int to, from, other;
  unsigned value;
  int off;
};

static unsigned *cells, model[CELLS];
static unsigned seed = 1;

static unsigned any(unsigned below) {
  seed = seed * 1103515245u + 12345u;
  return (seed >> 8) % below;
}

static void compute(void *given) {
  const struct operation *o = given;
  cells[o->to] = 3 * cells[o->from] + cells[o->other] + o->value;
}

static void do_model(const struct operation *o) {
  if (o->off) return;
  model[o->to] = o->kind == 0   ? o->value
                 : o->kind == 1 ? model[o->from]
                                : 3 * model[o->from] + model[o->other] + o->value;
}

static struct operation any_operation(void) {
  return (struct operation){.kind = (int)any(3), .to = (int)any(CELLS), .from = (int)any(CELLS), .other = (int)any(CELLS),
                            .value = any(1000)};
}

static CUdeviceptr cell(int number) { return (CUdeviceptr)(uintptr_t)&cells[number]; }

/* Who wrote a cell last, and who has read it since then. */
struct uses {
  int writer, readers[NODES], count;
};

static int needs(const struct uses *uses, const struct operation *o, int *list) {
  int count = 0;
  char seen[NODES] = {0};
  int reads[2] = {o->from, o->other}, reading = o->kind;
  for (int r = 0; r < reading; r++)
    if (uses[reads[r]].writer >= 0 && !seen[uses[reads[r]].writer]++) list[count++] = uses[reads[r]].writer;
  const struct uses *to = &uses[o->to];
  if (to->writer >= 0 && !seen[to->writer]++) list[count++] = to->writer;
  for (int r = 0; r < to->count; r++)
    if (!seen[to->readers[r]]++) list[count++] = to->readers[r];
  return count;
}

static void note(struct uses *uses, const struct operation *o, int number) {
  int reads[2] = {o->from, o->other}, reading = o->kind;
  for (int r = 0; r < reading; r++)
    if (reads[r] != o->to) uses[reads[r]].readers[uses[reads[r]].count++] = number;
  uses[o->to].writer = number;
  uses[o->to].count = 0;
}

static CUgraphNode add_operation(CUgraph graph, const CUgraphNode *before, size_t count, struct operation *o) {
  if (o->kind == 0) return add_set(graph, before, count, cell(o->to), o->value);
  if (o->kind == 1) return add_copy(graph, before, count, cell(o->to), cell(o->from));
  return add_host(graph, before, count, compute, o);
}

static void compare(void) {
  for (int c = 0; c < CELLS; c++) CHECK(cells[c] == model[c]);
}

static void random_graph(void) {
  static struct operation operations[NODES], inner[NODES][2];
  CUgraphNode nodes[NODES], before[NODES];
  int has_inner[NODES] = {0}, list[NODES], count = 10 + (int)any(NODES - 10);
  struct uses uses[CELLS] = {0};
  CUgraph graph = new_graph();
  for (int c = 0; c < CELLS; c++) uses[c].writer = -1;
  for (int n = 0; n < count; n++) {
    struct operation *o = &operations[n];
    *o = any_operation();
    int needed = needs(uses, o, list);
    for (int i = 0; i < needed; i++) before[i] = nodes[list[i]];
    note(uses, o, n);
    has_inner[n] = !any(8);
    if (!has_inner[n]) {
      nodes[n] = add_operation(graph, before, (size_t)needed, o);
      continue;
    }
    /* In a graph of its own, twice: the second one in a graph in that. */
    CUgraph child = new_graph(), grandchild = new_graph();
    CUgraphNode first = add_operation(child, NULL, 0, &inner[n][0]), second;
    inner[n][0] = inner[n][1] = *o;
    OK(cuGraphDestroyNode(first));
    first = add_operation(child, NULL, 0, &inner[n][0]);
    add_operation(grandchild, NULL, 0, &inner[n][1]);
    OK(cuGraphAddChildGraphNode(&second, child, &first, 1, grandchild));
    OK(cuGraphAddChildGraphNode(&nodes[n], graph, before, (size_t)needed, child));
    OK(cuGraphDestroy(child));
    OK(cuGraphDestroy(grandchild));
  }
  CUgraphExec exec = instantiate(graph);
  for (int round = 0; round < 4; round++) {
    for (int n = 0; n < count; n++) {
      do_model(&operations[n]);
      if (has_inner[n]) do_model(&operations[n]);
    }
    launch(exec);
    compare();
    for (int n = 0; n < count; n++) {
      struct operation *o = &operations[n];
      if (has_inner[n] || any(3)) continue;
      o->value = any(1000);
      CUDA_MEMSET_NODE_PARAMS params = set_params(cell(o->to), o->value, 1);
      if (o->kind == 0) OK(cuGraphExecMemsetNodeSetParams(exec, nodes[n], &params, context));
      if (o->kind != 2) o->off = !any(4);
      if (o->kind != 2) OK(cuGraphNodeSetEnabled(exec, nodes[n], !o->off));
    }
  }
  OK(cuGraphExecDestroy(exec));
  OK(cuGraphDestroy(graph));
}

/* The same by capture: each operation in any of some streams, which wait for each other by events. */
static void random_capture(void) {
  enum { STREAMS = 4 };
  static struct operation operations[NODES];
  CUstream streams[STREAMS];
  CUevent done[NODES], all;
  int list[NODES], where[NODES], used[STREAMS] = {1};
  struct uses uses[CELLS] = {0};
  CUgraph graph;
  OK(cuEventCreate(&all, CU_EVENT_DISABLE_TIMING));
  for (int c = 0; c < CELLS; c++) uses[c].writer = -1;
  for (int s = 0; s < STREAMS; s++) OK(cuStreamCreate(&streams[s], s % 2 ? CU_STREAM_NON_BLOCKING : 0));
  OK(cuStreamBeginCapture(streams[0], CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  OK(cuEventRecord(all, streams[0]));
  for (int n = 0; n < NODES; n++) {
    struct operation *o = &operations[n];
    *o = any_operation();
    int s = where[n] = (int)any(STREAMS), needed = needs(uses, o, list);
    if (!used[s]++) OK(cuStreamWaitEvent(streams[s], all, 0));
    for (int i = 0; i < needed; i++)
      if (where[list[i]] != s) OK(cuStreamWaitEvent(streams[s], done[list[i]], 0));
    if (o->kind == 0) OK(cuMemsetD32Async(cell(o->to), o->value, 1, streams[s]));
    if (o->kind == 1) OK(cuMemcpyAsync(cell(o->to), cell(o->from), 4, streams[s]));
    if (o->kind == 2) OK(cuLaunchHostFunc(streams[s], compute, o));
    OK(cuEventCreate(&done[n], CU_EVENT_DISABLE_TIMING));
    OK(cuEventRecord(done[n], streams[s]));
    note(uses, o, n);
  }
  for (int s = 1; s < STREAMS; s++) {
    if (!used[s]) continue;
    OK(cuEventRecord(all, streams[s]));
    OK(cuStreamWaitEvent(streams[0], all, 0));
  }
  compare(); /* nothing was done */
  OK(cuStreamEndCapture(streams[0], &graph));
  CUgraphExec exec = instantiate(graph);
  OK(cuGraphDestroy(graph));
  for (int round = 0; round < 3; round++) {
    for (int n = 0; n < NODES; n++) do_model(&operations[n]);
    launch(exec);
    compare();
  }
  OK(cuGraphExecDestroy(exec));
  for (int n = 0; n < NODES; n++) OK(cuEventDestroy(done[n]));
  for (int s = 0; s < STREAMS; s++) OK(cuStreamDestroy(streams[s]));
  OK(cuEventDestroy(all));
}

/* Threads that launch and change one executable graph, and make others. */
static CUgraphExec common;
static CUgraphNode common_nodes[3];
static CUdeviceptr common_memory;

static void *thread(void *given) {
  unsigned number = (unsigned)(size_t)given;
  CUstream own;
  OK(cuCtxSetCurrent(context));
  OK(cuStreamCreate(&own, number % 2 ? CU_STREAM_NON_BLOCKING : 0));
  for (unsigned i = 0; i < 60; i++) {
    CUDA_MEMSET_NODE_PARAMS params = set_params(common_memory + 4 * (i % 3), 1, 1);
    OK(cuGraphLaunch(common, number % 3 ? own : NULL));
    OK(cuGraphExecMemsetNodeSetParams(common, common_nodes[i % 3], &params, context));
    CUgraph graph = new_graph();
    CUgraphNode a = add_set(graph, NULL, 0, common_memory + 64 + 4 * number, i);
    add_copy(graph, &a, 1, common_memory + 128 + 4 * number, common_memory + 64 + 4 * number);
    CUgraphExec exec = instantiate(graph);
    OK(cuGraphDestroy(graph));
    OK(cuGraphLaunch(exec, own));
    OK(cuGraphExecDestroy(exec));
    unsigned back = 0;
    OK(cuMemcpyDtoHAsync(&back, common_memory + 128 + 4 * number, 4, own));
    CHECK(back == i);
  }
  OK(cuStreamSynchronize(own));
  OK(cuStreamDestroy(own));
  return NULL;
}

static void threads(void) {
  pthread_t all[6];
  OK(cuMemAlloc(&common_memory, 256));
  CUgraph graph = new_graph();
  for (int n = 0; n < 3; n++) common_nodes[n] = add_set(graph, NULL, 0, common_memory + 4 * (unsigned)n, 1);
  common = instantiate(graph);
  for (size_t i = 0; i < 6; i++) CHECK(!pthread_create(&all[i], NULL, thread, (void *)i));
  for (int i = 0; i < 6; i++) CHECK(!pthread_join(all[i], NULL));
  OK(cuGraphExecDestroy(common));
  OK(cuGraphDestroy(graph));
  OK(cuCtxSynchronize());
  OK(cuMemFree(common_memory));
}

int main(void) {
  OK(cuInit(0));
  OK(cuDevicePrimaryCtxRetain(&context, 0));
  OK(cuCtxSetCurrent(context));
  OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  OK(cuMemAllocHost((void **)&cells, sizeof model));
  memset(cells, 0, sizeof model);
  for (int i = 0; i < ROUNDS; i++) random_graph();
  for (int i = 0; i < ROUNDS; i++) random_capture();
  OK(cuMemFreeHost(cells));
  threads();
  OK(cuStreamDestroy(stream));
  OK(cuDevicePrimaryCtxRelease(0));
  return 0;
}
