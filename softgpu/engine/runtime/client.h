/* Compiled kernels for the run-time: from the cache on disk, else from the compile service. docs/engine-cache.md has the
 * formats and rules. All functions may be called from several threads at once. */
#ifndef SOFTGPU_CLIENT_H
#define SOFTGPU_CLIENT_H

#include <stddef.h>
#include <stdint.h>

#include "abi.h"

#pragma GCC visibility push(default)

#define SG_DIGEST_BYTES 32
#define SG_PATH_BYTES 4096

enum sg_answer {
  SG_ANSWERED = 0,
  /* What the service says, see Status in softgpu/engine/service/protocol.py. */
  SG_UNSUPPORTED = 1, /* the kernel has an instruction that the engine does not compile */
  SG_INVALID = 2,     /* no PTX, or no such kernel */
  SG_FAILED = 3,      /* a defect of the engine, or no room for the result */
  SG_REFUSED = 4,     /* the library and the installed engine are of different versions */
  /* What is said here. */
  SG_NO_SERVICE = 5, /* it does not start, or speaks nonsense */
  SG_TOO_LATE = 6    /* a deadline passed */
};

struct sg_options {
  uint32_t block[3]; /* extents of the block; all 0: any block */
  uint32_t flags;    /* SG_COUNTS, SG_LOGS */
  uint32_t rounding; /* family of cards, 0 or 1 */
};

/* Why an answer is not SG_ANSWERED: one text for people, UTF-8. */
struct sg_failure {
  char text[1024];
};

struct sg_loaded {
  void *handle; /* for dlclose */
  const struct sg_kernel *kernel;
};

/* SHA-256 of a PTX text, by which the functions below know it: made once per module. */
void sg_module_digest(const void *ptx, size_t bytes, uint8_t digest[SG_DIGEST_BYTES]);

/* Whether the cache has the kernel, whole; `path` is then its file. Never asks the service. */
int sg_cached_object(const uint8_t digest[SG_DIGEST_BYTES], const char *kernel, const struct sg_options *options,
                     char path[SG_PATH_BYTES]);

/* Load a kernel, compiled now if the cache does not have it. */
enum sg_answer sg_load_kernel(const void *ptx, size_t bytes, const uint8_t digest[SG_DIGEST_BYTES], const char *kernel,
                              const struct sg_options *options, struct sg_loaded *loaded, struct sg_failure *failure);

/* The description of a module: JSON, to be freed by the caller; it ends in a zero byte that `json_bytes` leaves out. */
enum sg_answer sg_describe_module(const void *ptx, size_t bytes, const uint8_t digest[SG_DIGEST_BYTES], char **json,
                                  size_t *json_bytes, struct sg_failure *failure);

/* How images of device code are packed. */
enum sg_packing { SG_ZSTANDARD = 1, SG_LZ4 = 2 };

/* Unpack `bytes` bytes: `content` has them and a zero byte behind, to be freed by the caller. */
enum sg_answer sg_unpack(enum sg_packing packing, const void *packed, size_t packed_bytes, size_t bytes, char **content,
                         struct sg_failure *failure);

/* One PTX text of several, which lie one behind the other, each with a zero byte behind it that counts in `bytes`. `text`
 * ends in a zero byte that `text_bytes` leaves out, to be freed by the caller. */
enum sg_answer sg_link(const char *texts, size_t bytes, char **text, size_t *text_bytes, struct sg_failure *failure);

/* The text of the fleet in a file, whose path is absolute; to be freed by the caller. */
enum sg_answer sg_fleet(const char *path, char **text, struct sg_failure *failure);

/* Milliseconds to wait for a start of the service (default 20,000) and for an answer (default 120,000). */
void sg_set_deadlines(int start, int answer);

/* The highest level of instruction sets that this CPU has, as softgpu/engine/target.py names it; null: none. */
const char *sg_target_level(void);

#pragma GCC visibility pop

/* For the software driver, which this is compiled into: the folder of sockets and locks, made if it does not exist. 0, or
 * -1 with the reason in `failure`. */
int sg_runtime_folder(char folder[SG_PATH_BYTES], struct sg_failure *failure);

#endif
