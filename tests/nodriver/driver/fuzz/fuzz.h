/* Random calls: what the generated ones (fuzz_calls.py) take their arguments from. */
#ifndef FUZZ_H
#define FUZZ_H

#ifndef __CUDA_API_VERSION_INTERNAL
#define __CUDA_API_VERSION_INTERNAL
#endif
#include <cuda.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HANDLES(KIND)                                                                                          \
  KIND(CUcontext) KIND(CUstream) KIND(CUevent) KIND(CUmodule) KIND(CUfunction) KIND(CUlibrary) KIND(CUkernel)  \
  KIND(CUlinkState) KIND(CUgraph) KIND(CUgraphNode) KIND(CUgraphExec) KIND(CUmemoryPool) KIND(CUarray)         \
  KIND(CUmipmappedArray) KIND(CUuserObject) KIND(CUgreenCtx) KIND(CUmemGenericAllocationHandle)

#define HANDLE_KIND(kind) P_##kind,
enum pool { HANDLES(HANDLE_KIND) POOLS };

enum { KEPT = 32, ROOMS = 12, ROOM = 4096, NODE_TYPES = 16, MAPPED_BYTES = 2 << 20 };

/* Memory that the driver has given. */
struct memory {
  CUdeviceptr start;
  size_t size;
  bool alive, pinned;
};

/* Handles and memory, living and dead: of one thread, or of all. */
struct things {
  pthread_mutex_t lock;
  unsigned next_memory, next_handle[POOLS];
  uint64_t handles[POOLS][KEPT];
  struct memory memory[KEPT];
};

/* What a thread has, and its dice. */
struct fuzzer {
  uint64_t dice;
  unsigned thread, next_room;
  struct things *things, *own; /* links are never shared: they write to their thread's memory */
  uint8_t *host;               /* pageable memory of its own */
  _Atomic uint64_t since;      /* when the call that goes on began; 0: none does */
  void *options[4];            /* of links, to their end */
  uint8_t log[ROOM];
  uint64_t shared_handle[16]; /* of memory or an event, for other processes */
  CUmemLocation where;
  struct {
    uint64_t graph, exec, nodes[NODE_TYPES], physical;
    CUdeviceptr reserved;
  } model;
  int exported;      /* a file descriptor of memory */
  uint64_t captured; /* the stream that captures, if this thread has begun it */
  CUdeviceptr zero;
  uint8_t rooms[ROOMS][ROOM] __attribute__((aligned(64)));
};

enum ending { ENDS_NOTHING, ENDS_ONE, ENDS_ALL };

struct fuzzed {
  CUresult (*call)(struct fuzzer *f);
  unsigned weight;
  enum ending ending; /* something; or something that all threads use, whatever it is called with */
};

extern const struct fuzzed fuzzed[];
extern const unsigned fuzzed_count;

/* Written before a call and after it. */
void begin_call(struct fuzzer *f, const char *symbol, unsigned count, const uint64_t *arguments);
void end_call(struct fuzzer *f, CUresult result);

unsigned below(struct fuzzer *f, unsigned limit);
bool one_in(struct fuzzer *f, unsigned times);
uint64_t pick(struct fuzzer *f, unsigned count, const uint64_t *choices);
#define ONE_OF(f, ...) pick(f, sizeof(const uint64_t[]){__VA_ARGS__} / sizeof(uint64_t), (const uint64_t[]){__VA_ARGS__})

/* Arguments. */
uint64_t some_handle(struct fuzzer *f, enum pool pool);
uint64_t made_stream(struct fuzzer *f); /* mostly none of the default ones, whose captures nobody would end */
uint64_t captured_stream(struct fuzzer *f); /* or seldom another one */
uint64_t *some_handles(struct fuzzer *f, enum pool pool); /* several, in a room */
CUdeviceptr some_address(struct fuzzer *f);
CUdeviceptr living_address(struct fuzzer *f); /* at least 64 KiB if it is pageable memory */
size_t some_size(struct fuzzer *f);
size_t small_size(struct fuzzer *f); /* up to 64 KiB */
uint64_t some_number(struct fuzzer *f);
unsigned some_flags(struct fuzzer *f);
unsigned extent(struct fuzzer *f, unsigned most, unsigned too_many); /* seldom 0, or too many */
int some_device(struct fuzzer *f);
const char *some_text(struct fuzzer *f);
const void *good_image(void); /* with the kernels put, wait, nothing and stop */
const void *some_image(struct fuzzer *f);
void *some_host(struct fuzzer *f); /* pageable memory, as much as any size that a call can succeed with */
void *some_host_handle(struct fuzzer *f);
CUhostFn some_function(struct fuzzer *f);
CUstreamCallback some_callback(struct fuzzer *f);
void *room(struct fuzzer *f);          /* zero, for an answer; seldom NULL */
void *counting_room(struct fuzzer *f); /* with small numbers in it */
void **some_parameters(struct fuzzer *f); /* of a kernel */
void **rooms(struct fuzzer *f);           /* several addresses of rooms */
CUjit_option *some_options(struct fuzzer *f);
void **option_values(struct fuzzer *f);
CUlaunchConfig *launch_config(struct fuzzer *f);
CUhostFn some_destructor(struct fuzzer *f);
CUdeviceptr zero_address(struct fuzzer *f); /* of 64 bytes that are and stay zero */
size_t large_size(struct fuzzer *f);        /* of what is mapped, up to 4 MiB */
CUdeviceptr *addresses(struct fuzzer *f);

/* structures.c */
void *copy_2d_v1(struct fuzzer *f);
void *copy_2d(struct fuzzer *f);
void *copy_3d_v1(struct fuzzer *f);
void *copy_3d(struct fuzzer *f);
void *copy_3d_peer(struct fuzzer *f);
void *fill_params(struct fuzzer *f);
void *kernel_params(struct fuzzer *f);
void *host_params(struct fuzzer *f);
void *node_params(struct fuzzer *f);
void *edges(struct fuzzer *f);
void *location(struct fuzzer *f);
void *location_itself(struct fuzzer *f);
void *allocation_properties(struct fuzzer *f);
void *pool_properties(struct fuzzer *f);
void *access_rights(struct fuzzer *f);
void *attribute_value(struct fuzzer *f);
void *memory_operations(struct fuzzer *f);
void *batch_params(struct fuzzer *f);
void *array_v1(struct fuzzer *f);
void *array(struct fuzzer *f);
void *array_3d_v1(struct fuzzer *f);
void *array_3d(struct fuzzer *f);

void *copy_attributes(struct fuzzer *f);
uint64_t *indices(struct fuzzer *f);
uint64_t *copy_sizes(struct fuzzer *f);
void *copies_3d(struct fuzzer *f);
void *allocation_params(struct fuzzer *f);

/* model.c */
void make_model(struct fuzzer *f, CUfunction function, CUdeviceptr memory);
uint64_t model_node(struct fuzzer *f, CUgraphNodeType type);
uint64_t model_graph(struct fuzzer *f);
uint64_t model_exec(struct fuzzer *f);
CUdeviceptr model_address(struct fuzzer *f);
uint64_t model_physical(struct fuzzer *f);

/* What has come of a call. */
void keep_handle(struct fuzzer *f, enum pool pool, uint64_t handle);
void ended_handle(struct fuzzer *f, enum pool pool, uint64_t handle);
/* Of memory, by an argument that is its size or something much larger. */
static inline size_t size_of(uint64_t argument) { return argument <= 4u << 20 ? argument : 0; }
void keep_memory(struct fuzzer *f, CUdeviceptr start, size_t size, bool pinned);
void keep_reserved(struct fuzzer *f, CUdeviceptr start, size_t size); /* addresses without memory */
void freed_memory(struct fuzzer *f, CUdeviceptr start);
void context_ended(struct fuzzer *f);

#endif
