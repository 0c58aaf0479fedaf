/* Options of the compiler and linker of PTX, as loads of modules and links take them. */
#ifndef SOFTGPU_JIT_H
#define SOFTGPU_JIT_H

#include <stdbool.h>
#include <stddef.h>

#include "api.h"

/* A buffer of the program for a log: kept ended by a zero byte. */
struct jit_log {
  char *text; /* NULL: nobody wants it */
  size_t size, used; /* bytes, the ending zero in `size` alone */
  void **told;       /* where the program reads `used`; NULL: nowhere */
};

struct jit {
  struct jit_log info, error;
  void **wall_time; /* where the program reads milliseconds; NULL: nowhere */
  double milliseconds;
  int target; /* a CUjit_target; 0: that of the context */
  bool threads; /* CU_JIT_THREADS_PER_BLOCK is given */
  unsigned max_threads; /* of a block, 0: as many as without; of kernels with .maxntid only if `override` */
  bool override;
};

/* Read options, which are checked: an error is that of the call. What is told to the program is written to `values`,
 * which must stay valid until jit_finish. */
CUresult jit_read(unsigned count, const CUjit_option *options, void **values, struct jit *jit);

/* A line for a log. */
void jit_error(struct jit *jit, const char *text);

/* Tell the program what the logs hold and how long it took: milliseconds more than before. */
void jit_finish(struct jit *jit, double milliseconds);

#endif
