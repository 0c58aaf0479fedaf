/* Copies and fills, as commands: one form for all calls and for nodes of graphs. */
#ifndef SOFTGPU_COPY_H
#define SOFTGPU_COPY_H

#include <stdbool.h>
#include <stdint.h>

#include "api.h"
#include "command.h"
#include "cost.h"

/* For nodes of graphs: what a copy or fill with these parameters does in a context. Pageable memory of the host is read
 * and written when the command runs. */
CUresult copy_command(const CUDA_MEMCPY3D *params, const struct stream_place *place, struct command **made);
CUresult fill_command(const CUDA_MEMSET_NODE_PARAMS_v2 *params, const struct stream_place *place,
                      struct command **made);

/* The parameters of a command, whoever made it. */
void copy_params(const struct command *command, CUDA_MEMCPY3D *params);
void fill_params(const struct command *command, CUDA_MEMSET_NODE_PARAMS_v2 *params);

/* How a call goes on. */
struct way {
  CUstream stream;
  bool own;          /* 0 is the default stream of the thread, not that of the context */
  bool synchronous;  /* a function without "Async" in its name */
};

#define LEGACY ((struct way){0, false, true})
#define OWN ((struct way){0, true, true})
#define IN(stream) ((struct way){stream, false, false})
#define IN_OWN(stream) ((struct way){stream, true, false})

/* A copy or fill as a call of the program. */
CUresult copy_call(struct way way, const CUDA_MEMCPY3D *params);
CUresult fill_call(struct way way, const CUDA_MEMSET_NODE_PARAMS_v2 *params);

/* When the source of a copy of a batch is read: in its turn, before the call returns, or whenever that suits. */
struct copy_order {
  CUDA_MEMCPY3D params;
  CUmemcpySrcAccessOrder source;
};

/* All of them or none. `failed`: the first one that is not valid. */
CUresult copy_batch(struct way way, const struct copy_order *copies, size_t count, size_t *failed);

/* What lies at an address, which stays mapped until `held` is given to `mapping_release`; that may be nothing. */
struct memory {
  bool known; /* the driver knows its first byte */
  bool host;  /* pinned or registered, or managed */
  bool managed;
  int device; /* whose memory it is, or OF_HOST */
  bool whole; /* all bytes, one at least, lie where the driver may access them */
  struct mapping *held;
};

struct memory memory_hold(uint64_t address, size_t bytes);

#endif
