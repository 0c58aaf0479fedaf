/* Arguments: mostly such that a call may succeed, seldom what no program should give. Host pointers are always valid: what
 * real drivers do with others is not defined. */
#include "fuzz.h"

#include <string.h>

/* xorshift64* */
static uint64_t roll(struct fuzzer *f) {
  f->dice ^= f->dice >> 12;
  f->dice ^= f->dice << 25;
  f->dice ^= f->dice >> 27;
  return f->dice * 0x2545f4914f6cdd1dull;
}

unsigned below(struct fuzzer *f, unsigned limit) { return (unsigned)((roll(f) >> 32) * limit >> 32); }
bool one_in(struct fuzzer *f, unsigned times) { return !below(f, times); }
uint64_t pick(struct fuzzer *f, unsigned count, const uint64_t *choices) { return choices[below(f, count)]; }

static struct things *things_of(struct fuzzer *f, enum pool pool) { return pool == P_CUlinkState ? f->own : f->things; }

/* More often one of the last. */
static uint64_t one_handle(struct fuzzer *f, enum pool pool) {
  struct things *things = things_of(f, pool);
  uint64_t found = 0;
  pthread_mutex_lock(&things->lock);
  for (int n = 0; n < 8 && !found; n++) {
    unsigned back = below(f, one_in(f, 4) ? KEPT : 6);
    found = things->handles[pool][(things->next_handle[pool] - 1 - back) % KEPT];
  }
  pthread_mutex_unlock(&things->lock);
  return found;
}

uint64_t some_handle(struct fuzzer *f, enum pool pool) {
  if (pool == P_CUstream && one_in(f, 4)) return 0;
  switch (below(f, 40)) {
    case 0: return 0;
    case 1: return one_handle(f, (enum pool)below(f, POOLS));
    case 2: return one_handle(f, pool) + 8;
    case 3: return 1 + below(f, 3); /* the default streams are 1 and 2 */
    case 4: return 0x7f0000000000 + (roll(f) >> 24);
  }
  return one_handle(f, pool);
}

uint64_t made_stream(struct fuzzer *f) {
  uint64_t found = one_in(f, 100) ? some_handle(f, P_CUstream) : one_handle(f, P_CUstream);
  return found || one_in(f, 100) ? found : 64; /* which is none */
}

uint64_t captured_stream(struct fuzzer *f) {
  return f->captured && !one_in(f, 6) ? f->captured : some_handle(f, P_CUstream);
}

uint64_t *some_handles(struct fuzzer *f, enum pool pool) {
  uint64_t *all = room(f);
  for (int n = 0; all && n < 16; n++) all[n] = some_handle(f, pool);
  return all;
}

static struct memory some_memory(struct fuzzer *f) {
  pthread_mutex_lock(&f->things->lock);
  struct memory found = f->things->memory[below(f, KEPT)];
  pthread_mutex_unlock(&f->things->lock);
  return found;
}

CUdeviceptr some_address(struct fuzzer *f) {
  struct memory memory = some_memory(f);
  switch (below(f, 16)) {
    case 0: return 0;
    case 1: return (CUdeviceptr)(uintptr_t)some_host(f);
    case 2: return roll(f) >> 17;
    case 3: return UINT64_MAX - below(f, 5000);
    case 4: return memory.start + memory.size;
    case 5: return memory.start + memory.size - 1 - below(f, 9);
    case 6: return memory.start + 1 + below(f, 7);
    case 7: return memory.start + memory.size + below(f, 1 << 20);
    case 8: return memory.start + memory.size / 8 * 4;
  }
  return memory.start;
}

CUdeviceptr living_address(struct fuzzer *f) {
  for (int n = 0; n < 4; n++) {
    struct memory memory = some_memory(f);
    if (memory.alive && memory.size) return memory.start + below(f, (unsigned)(memory.size < 64 ? memory.size : 64));
  }
  return (CUdeviceptr)(uintptr_t)some_host(f);
}

size_t small_size(struct fuzzer *f) {
  return one_in(f, 3) ? below(f, 1000) : ONE_OF(f, 0, 1, 2, 3, 4, 8, 64, 100, 512, 513, 4096, 65536);
}

/* None between the largest that an allocation can have here and those that nothing has. */
size_t some_size(struct fuzzer *f) {
  if (one_in(f, 16)) return ONE_OF(f, 1ull << 47, 1ull << 63, UINT64_MAX, UINT64_MAX - 511, (1ull << 62) + 1);
  return one_in(f, 8) ? ONE_OF(f, 1 << 20, 300000, (1 << 20) + 1) : small_size(f);
}

size_t large_size(struct fuzzer *f) {
  return one_in(f, 5) ? some_size(f) : ONE_OF(f, 2 << 20, 4 << 20, 2 << 20, 1 << 20);
}

uint64_t some_number(struct fuzzer *f) {
  if (one_in(f, 10)) return ONE_OF(f, UINT64_MAX, 1u << 31, UINT32_MAX, 1ull << 32, INT32_MAX);
  return below(f, one_in(f, 4) ? 200 : 12);
}

unsigned some_flags(struct fuzzer *f) {
  if (one_in(f, 2)) return 0;
  if (!one_in(f, 3)) return below(f, 4);
  return one_in(f, 3) ? (unsigned)roll(f) : 1u << below(f, 32);
}

int some_device(struct fuzzer *f) { return one_in(f, 12) ? (int)ONE_OF(f, 2, UINT64_MAX, 1000, INT32_MAX) : (int)below(f, 2); }

static const char PTX[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .global .align 8 .u64 word = 7;\n"
    ".visible .entry put(.param .u64 p0, .param .u64 p1)\n"
    "{ .reg .b64 %d<5>; .reg .b32 %r<3>; ld.param.u64 %d1, [p0]; ld.param.u64 %d2, [p1]; mov.u32 %r1, %tid.x;\n"
    "  mul.wide.u32 %d3, %r1, 8; add.u64 %d1, %d1, %d3; st.global.u64 [%d1], %d2; ret; }\n"
    ".visible .entry wait(.param .u64 p0)\n"
    "{ .reg .b32 %r<3>; .shared .align 4 .b8 room[128]; mov.u32 %r1, %tid.x; st.shared.u32 [room], %r1;\n"
    "  bar.sync 0; ret; }\n"
    ".visible .entry nothing() { ret; }\n"
    ".visible .entry stop() { trap; }\n";

static const char CUBIN[ROOM] = "\x7f" "ELF\2\1\1\x33\7"; /* its first bytes, and room for what a header may point to */

const void *good_image(void) { return PTX; }

const char *some_text(struct fuzzer *f) {
  static const char *const texts[] = {
      "put", "wait", "nothing", "stop", "word", "", "cuInit", "cuMemAlloc", "/nonexistent/file", "/", "0000:01:00.0", "x",
      "5067:01:00.0", "put\n", "\xff\xfe", "-maxrregcount=4",
  };
  return one_in(f, 24) ? NULL : texts[below(f, sizeof texts / sizeof *texts)];
}

const void *some_image(struct fuzzer *f) {
  static const char *const images[] = {
      ".version 7.0\n.target sm_70\n.address_size 64\n", "", "//\n", ".version 99.0\n.target sm_70\n.address_size 64\n",
      ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry put() { no.such; }\n", CUBIN,
      ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry put( {",
  };
  if (one_in(f, 40)) return NULL;
  return one_in(f, 6) ? images[below(f, sizeof images / sizeof *images)] : PTX;
}

void *some_host(struct fuzzer *f) { return f->host + 4 * below(f, 2000) + (one_in(f, 4) ? below(f, 4) : 0); }

void *some_host_handle(struct fuzzer *f) {
  struct memory memory = some_memory(f);
  if (one_in(f, 4)) return some_host(f);
  return (void *)(uintptr_t)(memory.start + (one_in(f, 3) ? below(f, 100) : 0));
}

static void call_back(void *given) {
  CUcontext context;
  (void)given;
  if (cuCtxGetCurrent(&context) != CUDA_ERROR_NOT_PERMITTED) __builtin_trap();
}

static void do_nothing(void *given) { (void)given; }

static void called_back(CUstream stream, CUresult result, void *given) {
  (void)result, (void)given;
  if (cuStreamSynchronize(stream) != CUDA_ERROR_NOT_PERMITTED) __builtin_trap();
}

CUhostFn some_function(struct fuzzer *f) { return one_in(f, 20) ? NULL : one_in(f, 3) ? call_back : do_nothing; }
CUhostFn some_destructor(struct fuzzer *f) { return one_in(f, 20) ? NULL : do_nothing; }
CUdeviceptr zero_address(struct fuzzer *f) { return f->zero + 8 * below(f, 8); }
CUstreamCallback some_callback(struct fuzzer *f) { return one_in(f, 20) ? NULL : called_back; }

unsigned extent(struct fuzzer *f, unsigned most, unsigned too_many) {
  return one_in(f, 25) ? 0 : one_in(f, 25) ? too_many : 1 + below(f, most);
}

void *room(struct fuzzer *f) {
  if (one_in(f, 50)) return NULL;
  uint8_t *found = f->rooms[f->next_room++ % ROOMS];
  return memset(found, 0, ROOM);
}

void *counting_room(struct fuzzer *f) {
  uint64_t *numbers = room(f);
  for (int n = 0; numbers && n < 16; n++) numbers[n] = below(f, 9);
  return numbers;
}

void **rooms(struct fuzzer *f) {
  void **all = room(f);
  for (int n = 0; all && n < 4; n++) all[n] = f->rooms[f->next_room++ % ROOMS];
  return all;
}

void **some_parameters(struct fuzzer *f) {
  uint64_t *values = room(f);
  void **all = room(f);
  for (int n = 0; all && values && n < 8; n++) {
    values[n] = one_in(f, 8) ? some_address(f) : living_address(f) / 8 * 8;
    all[n] = one_in(f, 200) ? NULL : &values[n];
  }
  return values ? all : NULL;
}

CUjit_option *some_options(struct fuzzer *f) {
  CUjit_option *all = room(f);
  if (!all) return NULL;
  all[0] = CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES;
  all[1] = CU_JIT_ERROR_LOG_BUFFER;
  all[2] = one_in(f, 2) ? (CUjit_option)below(f, 2) : CU_JIT_GENERATE_LINE_INFO;
  all[3] = CU_JIT_CACHE_MODE;
  return all;
}

void **option_values(struct fuzzer *f) {
  f->options[0] = (void *)(uintptr_t)below(f, ROOM);
  f->options[1] = f->log;
  f->options[2] = f->options[3] = NULL;
  return one_in(f, 50) ? NULL : f->options;
}

CUlaunchConfig *launch_config(struct fuzzer *f) {
  CUlaunchConfig *config = room(f);
  CUlaunchAttribute *attributes = room(f);
  if (!config) return NULL;
  *config = (CUlaunchConfig){
      .gridDimX = extent(f, 8, 1u << 31), .gridDimY = extent(f, 2, 65536), .gridDimZ = 1,
      .blockDimX = extent(f, 64, 1025), .blockDimY = 1, .blockDimZ = 1,
      .sharedMemBytes = (unsigned)ONE_OF(f, 0, 0, 16, 1 << 20), .hStream = (CUstream)some_handle(f, P_CUstream),
      .attrs = attributes, .numAttrs = below(f, 3)};
  for (int n = 0; attributes && n < 3; n++) {
    attributes[n].id = (CUlaunchAttributeID)below(f, 20);
    memset(&attributes[n].value, one_in(f, 2), sizeof attributes[n].value);
  }
  return config;
}

void keep_handle(struct fuzzer *f, enum pool pool, uint64_t handle) {
  struct things *things = things_of(f, pool);
  pthread_mutex_lock(&things->lock);
  if (handle) things->handles[pool][things->next_handle[pool]++ % KEPT] = handle;
  pthread_mutex_unlock(&things->lock);
}

void keep_memory(struct fuzzer *f, CUdeviceptr start, size_t size, bool pinned) {
  pthread_mutex_lock(&f->things->lock);
  f->things->memory[f->things->next_memory++ % KEPT] = (struct memory){start, size, true, pinned};
  pthread_mutex_unlock(&f->things->lock);
}

void keep_reserved(struct fuzzer *f, CUdeviceptr start, size_t size) {
  keep_memory(f, start, size, false);
  freed_memory(f, start);
}

void freed_memory(struct fuzzer *f, CUdeviceptr start) {
  pthread_mutex_lock(&f->things->lock);
  for (int n = 0; n < KEPT; n++)
    if (f->things->memory[n].start == start) f->things->memory[n].alive = false;
  pthread_mutex_unlock(&f->things->lock);
}

/* Some stay, to be used although they are no more. */
void ended_handle(struct fuzzer *f, enum pool pool, uint64_t handle) {
  struct things *things = things_of(f, pool);
  pthread_mutex_lock(&things->lock);
  for (int n = 0; n < KEPT; n++)
    if (things->handles[pool][n] == handle && !one_in(f, 4)) things->handles[pool][n] = 0;
  pthread_mutex_unlock(&things->lock);
}

void context_ended(struct fuzzer *f) {
  pthread_mutex_lock(&f->things->lock);
  static const enum pool pools[] = {P_CUstream, P_CUevent, P_CUmodule, P_CUfunction};
  for (int n = 0; n < 4 * KEPT && !one_in(f, 100); n++) f->things->handles[pools[n / KEPT]][n % KEPT] = 0;
  for (int n = 0; n < KEPT; n++) f->things->memory[n].alive = false;
  pthread_mutex_unlock(&f->things->lock);
}
