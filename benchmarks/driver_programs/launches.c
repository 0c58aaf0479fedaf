/* Microseconds of a launch of an empty kernel: waited for at once, one of many in a row, and one of a graph of many;
 * each as median and best of RUNS runs. */
#include "measure.h"

enum { RUNS = 15, BATCH = 500 };

static const char ptx[] = ".version 7.5\n.target sm_75\n.address_size 64\n.visible .entry nothing() { ret; }\n";

int main(void) {
  CUmodule module;
  CUfunction function;
  CUstream stream;
  CUgraph graph;
  CUgraphExec ready;
  double alone[RUNS], many[RUNS], graphs[RUNS];
  start();
  CHECK(cuModuleLoadData(&module, ptx));
  CHECK(cuModuleGetFunction(&function, module, "nothing"));
  CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CHECK(cuGraphCreate(&graph, 0));
  CUgraphNode node, last;
  CUDA_KERNEL_NODE_PARAMS params = {.func = function, .gridDimX = 1, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 32,
                                    .blockDimY = 1, .blockDimZ = 1};
  for (int i = 0; i < BATCH; i++) {
    CHECK(cuGraphAddKernelNode(&node, graph, i ? &last : NULL, i ? 1 : 0, &params));
    last = node;
  }
  CHECK(cuGraphInstantiate(&ready, graph, 0));
  for (int run = 0; run < RUNS; run++) {
    double begin = seconds();
    for (int i = 0; i < BATCH; i++) {
      CHECK(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, stream, NULL, NULL));
      CHECK(cuStreamSynchronize(stream));
    }
    alone[run] = (seconds() - begin) / BATCH * 1e6;
    begin = seconds();
    for (int i = 0; i < BATCH; i++)
      CHECK(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, stream, NULL, NULL));
    CHECK(cuStreamSynchronize(stream));
    many[run] = (seconds() - begin) / BATCH * 1e6;
    begin = seconds();
    CHECK(cuGraphLaunch(ready, stream));
    CHECK(cuStreamSynchronize(stream));
    graphs[run] = (seconds() - begin) / BATCH * 1e6;
  }
  double *const all[] = {alone, many, graphs};
  for (int i = 0; i < 3; i++) {
    const double middle = median(all[i], RUNS);
    printf("%.4f %.4f\n", middle, all[i][0]);
  }
  return 0;
}
