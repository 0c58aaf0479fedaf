/* Threads make and end things at random, some of which they keep; what they ended the driver may give to the others at
 * once.
 *
 *     churn THREADS STEPS
 *
 * Prints, as JSON, what there is at the end: pairs of a kind (enum wire_kind) and a handle. */
#include <cuda.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "wire.h"

enum { HELD = 24, MOST_THREADS = 16 };

static const char TEXT[] = ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry k() { ret; }\n";

struct held {
  unsigned kind;
  uint64_t handle;
};

struct worker {
  pthread_t thread;
  unsigned seed, steps;
  CUcontext context;
  struct held held[HELD];
};

static void check(CUresult result) {
  if (result == CUDA_SUCCESS) return;
  fprintf(stderr, "error %d\n", result);
  exit(1);
}

static uint64_t number(const void *handle) { return (uint64_t)(uintptr_t)handle; }
static void *handle(uint64_t number) { return (void *)(uintptr_t)number; }

static struct held make(unsigned which) {
  CUdeviceptr memory;
  CUstream stream;
  CUevent event;
  CUmodule module;
  void *host;
  switch (which % 6) {
    case 0: check(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING)); return (struct held){WIRE_STREAM, number(stream)};
    case 1: check(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING)); return (struct held){WIRE_EVENT, number(event)};
    case 2: check(cuModuleLoadData(&module, TEXT)); return (struct held){WIRE_MODULE, number(module)};
    case 3: check(cuMemHostAlloc(&host, 100, 0)); return (struct held){WIRE_PHYSICAL, number(host)};
    default: check(cuMemAlloc(&memory, 4096)); return (struct held){WIRE_MEMORY, memory};
  }
}

static void end(struct held held) {
  switch (held.kind) {
    case WIRE_STREAM: check(cuStreamDestroy(handle(held.handle))); break;
    case WIRE_EVENT: check(cuEventDestroy(handle(held.handle))); break;
    case WIRE_MODULE: check(cuModuleUnload(handle(held.handle))); break;
    case WIRE_PHYSICAL: check(cuMemFreeHost(handle(held.handle))); break;
    default: check(cuMemFree(held.handle)); break;
  }
}

static void *work(void *given) {
  struct worker *worker = given;
  check(cuCtxSetCurrent(worker->context));
  for (unsigned step = 0; step < worker->steps; step++) {
    struct held *held = &worker->held[(unsigned)rand_r(&worker->seed) % HELD];
    if (held->kind)
      end(*held), held->kind = 0;
    else
      *held = make((unsigned)rand_r(&worker->seed));
    if (cuMemFree(12345 + step) == CUDA_SUCCESS) exit(1);
  }
  return NULL;
}

int main(int count, char **words) {
  static struct worker workers[MOST_THREADS];
  CUcontext context;
  if (count != 3) return 2;
  const int threads = atoi(words[1]);
  check(cuInit(0));
  check(cuDevicePrimaryCtxRetain(&context, 0));
  for (int i = 0; i < threads && i < MOST_THREADS; i++) {
    workers[i] = (struct worker){.seed = (unsigned)i + 1, .steps = (unsigned)atoi(words[2]), .context = context};
    if (pthread_create(&workers[i].thread, NULL, work, &workers[i])) return 1;
  }
  printf("[[%d, %llu]", WIRE_CONTEXT, (unsigned long long)number(context));
  for (int i = 0; i < threads && i < MOST_THREADS; i++) {
    pthread_join(workers[i].thread, NULL);
    for (int n = 0; n < HELD; n++)
      if (workers[i].held[n].kind) {
        struct held held = workers[i].held[n];
        if (held.kind == WIRE_PHYSICAL) held.kind = WIRE_MEMORY; /* the host's */
        printf(", [%u, %llu]", held.kind, (unsigned long long)held.handle);
      }
  }
  puts("]");
  return 0;
}
