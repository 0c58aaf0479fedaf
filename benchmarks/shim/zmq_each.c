/* A yardstick: a message of ZeroMQ for every launch. YARDSTICK_ZMQ is the path of libzmq, YARDSTICK_ENDPOINT the
 * address of who reads. Nothing is lost: the queue has no limit, and the end of the program waits until all is sent. */
#include <cuda.h>
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PUSH = 8, NOBLOCK = 1, SNDHWM = 23 }; /* as in zmq.h, which pyzmq's wheel does not have */

struct record {
  uint64_t number, function, stream;
  uint32_t grid[3], block[3], shared, bytes;
  unsigned char parameters[200];
};
_Static_assert(sizeof(struct record) == 256, "a message of 256 bytes");

static __typeof__(cuLaunchKernel) *real;
static struct {
  void *context, *socket;
  void *(*ctx_new)(void);
  void *(*open)(void *context, int kind);
  int (*setsockopt)(void *socket, int option, const void *value, size_t bytes);
  int (*connect)(void *socket, const char *address);
  int (*send)(void *socket, const void *data, size_t bytes, int flags);
  int (*close)(void *socket);
  int (*term)(void *context);
} zmq;

static void fail(const char *what) {
  fprintf(stderr, "zmq_each: %s\n", what);
  _Exit(1);
}

static void *look_up(void *library, const char *name) {
  void *found = library ? dlsym(library, name) : NULL;
  if (!found) fail(dlerror());
  return found;
}

static void end(void) {
  zmq.close(zmq.socket);
  zmq.term(zmq.context);
}

static void begin(void) {
  const char *path = getenv("YARDSTICK_ZMQ"), *address = getenv("YARDSTICK_ENDPOINT");
  const int unlimited = 0;
  if (!path || !address) fail("YARDSTICK_ZMQ and YARDSTICK_ENDPOINT have to be there");
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  *(void **)&zmq.ctx_new = look_up(library, "zmq_ctx_new");
  *(void **)&zmq.open = look_up(library, "zmq_socket");
  *(void **)&zmq.setsockopt = look_up(library, "zmq_setsockopt");
  *(void **)&zmq.connect = look_up(library, "zmq_connect");
  *(void **)&zmq.send = look_up(library, "zmq_send");
  *(void **)&zmq.close = look_up(library, "zmq_close");
  *(void **)&zmq.term = look_up(library, "zmq_ctx_term");
  zmq.context = zmq.ctx_new();
  zmq.socket = zmq.open(zmq.context, PUSH);
  if (!zmq.socket || zmq.setsockopt(zmq.socket, SNDHWM, &unlimited, sizeof unlimited) ||
      zmq.connect(zmq.socket, address))
    fail("no connection");
  atexit(end);
  *(void **)&real = look_up(dlopen("libcuda.so.1", RTLD_NOW), "cuLaunchKernel");
}

__attribute__((visibility("default"))) CUresult
cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
               unsigned block_y, unsigned block_z, unsigned shared, CUstream stream, void **parameters, void **extra) {
  static uint64_t number;
  static const size_t sizes[] = {8, 8, 8, 4};
  struct record record = {++number, (uintptr_t)function, (uintptr_t)stream, {grid_x, grid_y, grid_z},
                          {block_x, block_y, block_z}, shared, 28, {0}};
  if (__builtin_expect(!real, 0)) begin();
  for (int i = 0; i < 4; i++)
    memcpy(record.parameters + 8 * i, parameters[i], sizes[i]);
  if (zmq.send(zmq.socket, &record, sizeof record, NOBLOCK) < 0) fail("a record is lost");
  return real(function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream, parameters, extra);
}
